//! Calls of a driver.

use core::ffi::c_void;
use core::ptr::NonNull;
use se_plugin::driver::Library;
use std::path::Path;

/// Loads a library forever, whose symbols all later libraries see, as TensorFlow's are.
pub(crate) fn export_to_all(library: &Path) {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    // SAFETY: a library of the tests, which has no initialisers.
    let library = unsafe { Library::open(Some(library), RTLD_NOW | RTLD_GLOBAL) };
    let _ = library.unwrap().into_raw();
}

/// Returns what the driver's `version` returns, or the message of the error.
pub(crate) fn version_of(driver: &Path) -> Result<i32, String> {
    let call = || {
        // SAFETY: a library of the tests, which has no initialisers.
        let version = unsafe { Library::open(driver) }?.symbol(c"version")?;
        type Version = extern "C" fn() -> i32;
        // SAFETY: `int version(void)`, in a library that stays.
        let version = unsafe { std::mem::transmute::<NonNull<c_void>, Version>(version) };
        Ok(version())
    };
    call().map_err(|error: se_plugin::Error| error.message().to_owned())
}
