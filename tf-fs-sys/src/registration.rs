//! The functions of `tensorflow/c/c_api.h` that load a filesystem plugin and name the release.

use crate::host::Table;
use crate::status::TF_Status;
use core::ffi::{CStr, c_char};

crate::host::host_functions! {
    /// How a shared library becomes a filesystem plugin of this process. In
    /// `libtensorflow_cc.so.2`.
    pub struct RegistrationFunctions {
        /// Opens the shared library at `path`, calls its `TF_InitPlugin` (each time it is called) and
        /// registers every scheme it offers. The first error is in `status`; schemes that were
        /// registered stay so.
        required fn TF_RegisterFilesystemPlugin(path: *const c_char, status: *mut TF_Status);
        /// The release, as in `2.21.0` or `2.22.0-rc1`: a static text. Never null.
        optional fn TF_Version() -> *const c_char;
    }
}

/// Major and minor number of the TensorFlow in this process; `None` if there is none, or none that says.
#[must_use]
pub fn release() -> Option<(u32, u32)> {
    let version = RegistrationFunctions::get().ok()?.TF_Version?;
    // SAFETY: the function answers a static C string.
    let version = unsafe { CStr::from_ptr(version()) };
    major_minor(version.to_str().ok()?)
}

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::major_minor;

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(major_minor("2.9.1"), Some((2, 9)));
        assert!(major_minor("2.17.0-rc1") >= Some((2, 17)));
        assert!(major_minor("2.9.0") < Some((2, 17)) && major_minor("3.0.0") > Some((2, 17)));
        assert_eq!(major_minor("nightly"), None);
    }
}
