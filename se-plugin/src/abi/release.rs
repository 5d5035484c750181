//! Which TensorFlow this is.

use std::sync::OnceLock;
use tf_fs_sys::host::release;

/// Whether the host turns the error of a copy into an exception, as TensorFlow does from 2.17 on. Earlier
/// releases abort the process. A host that does not say its release is taken for one of them.
#[inline]
pub(super) fn takes_errors_of_copies() -> bool {
    if let Some(takes) = pretended::get() {
        return takes;
    }
    static TAKES: OnceLock<bool> = OnceLock::new();
    *TAKES.get_or_init(|| release() >= Some((2, 17)))
}

/// What the in-process host says, which is loaded several times in one process.
pub mod pretended {
    use core::cell::Cell;

    thread_local! {
        static TAKES: Cell<Option<bool>> = const { Cell::new(None) };
    }

    pub(super) fn get() -> Option<bool> {
        TAKES.get()
    }

    /// Runs `body`, for which the host takes errors of copies or does not.
    pub fn with<R>(takes: bool, body: impl FnOnce() -> R) -> R {
        let before = TAKES.replace(Some(takes));
        let result = body();
        TAKES.set(before);
        result
    }
}
