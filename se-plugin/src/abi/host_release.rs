//! The release of TensorFlow that has loaded the plugin.

use once_cell::race::OnceBool;
use tf_fs_sys::host::release;

/// Returns whether the host turns the error of a copy into an exception, as TensorFlow 2.17 and later do.
/// Earlier releases abort the process. A host that does not report its release is treated as one of them.
#[inline]
pub(super) fn takes_errors_of_copies() -> bool {
    if let Some(takes) = release_override::get() {
        return takes;
    }
    static TAKES: OnceBool = OnceBool::new();
    TAKES.get_or_init(|| release() >= Some((2, 17)))
}

/// The setting of the in-process host, which may be loaded several times in one process.
pub mod release_override {
    use core::cell::Cell;

    thread_local! {
        static TAKES: Cell<Option<bool>> = const { Cell::new(None) };
    }

    pub(super) fn get() -> Option<bool> {
        TAKES.get()
    }

    /// Runs `body` with a host that takes errors of copies, or does not.
    pub fn with<R>(takes: bool, body: impl FnOnce() -> R) -> R {
        let before = TAKES.replace(Some(takes));
        let result = body();
        TAKES.set(before);
        result
    }
}
