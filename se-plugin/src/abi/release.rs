//! Which TensorFlow this is.

use core::ffi::CStr;
use std::sync::OnceLock;
use tf_fs_sys::host::Table;
use tf_fs_sys::registration::RegistrationFunctions;

/// Whether the host turns the error of a copy into an exception, as TensorFlow does from 2.17 on. Earlier
/// releases abort the process. A host that does not say its release is taken for one of them.
#[inline]
pub(super) fn takes_errors_of_copies() -> bool {
    #[cfg(feature = "testing")]
    if let Some(takes) = pretended::get() {
        return takes;
    }
    static TAKES: OnceLock<bool> = OnceLock::new();
    *TAKES.get_or_init(find_out)
}

#[cold]
fn find_out() -> bool {
    let Some(version) = RegistrationFunctions::get().ok().and_then(|host| host.TF_Version) else {
        return false;
    };
    // SAFETY: the function answers a static C string.
    let version = unsafe { CStr::from_ptr(version()) };
    version.to_str().ok().and_then(release).is_some_and(|release| release >= (2, 17))
}

/// What the in-process host says, which is loaded several times in one process.
#[cfg(feature = "testing")]
pub(crate) mod pretended {
    use core::cell::Cell;

    thread_local! {
        static TAKES: Cell<Option<bool>> = const { Cell::new(None) };
    }

    pub(super) fn get() -> Option<bool> {
        TAKES.get()
    }

    /// Runs `body`, for which the host takes errors of copies or does not.
    pub(crate) fn with<R>(takes: bool, body: impl FnOnce() -> R) -> R {
        let before = TAKES.replace(Some(takes));
        let result = body();
        TAKES.set(before);
        result
    }
}

fn release(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::release;

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(release("2.9.1"), Some((2, 9)));
        assert!(release("2.17.0-rc1") >= Some((2, 17)));
        assert!(release("2.9.0") < Some((2, 17)) && release("3.0.0") > Some((2, 17)));
        assert_eq!(release("nightly"), None);
    }
}
