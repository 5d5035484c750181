//! The system's symbols: the real `dlsym`, and the file that contains a function.

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::settings::Settings;

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// Returns the system's `dlsym`.
pub(super) fn system_dlsym() -> *mut c_void {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    let known = REAL.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    // The symbol versions that glibc has given it: since 2.34, and before on either machine.
    let address = [c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"].into_iter().find_map(|version| {
        // SAFETY: C strings; the next library behind this one.
        let address = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
        (!address.is_null()).then_some(address)
    });
    let Some(address) = address else {
        super::system::write_stderr(
            "error: this system's `dlsym` is not found; run without `--trace`\n",
        );
        // The process would not work.
        std::process::abort();
    };
    REAL.store(address, Ordering::Relaxed);
    address
}

/// Looks up a symbol with the system's `dlsym`, for this library itself.
pub(super) unsafe fn lookup(handle: *mut c_void, name: &CStr) -> Option<usize> {
    // SAFETY: the system's `dlsym`, with a handle that it takes and a C string.
    let address = unsafe {
        let dlsym = transmute::<*mut c_void, Dlsym>(system_dlsym());
        dlsym(handle, name.as_ptr())
    };
    (!address.is_null()).then(|| address.expose_provenance())
}

/// Returns whether the plugin's file contains a function.
pub(super) fn is_traced(function: usize) -> bool {
    static BASE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    // SAFETY: `Dl_info` is pointers, for which zeros are a value; `dladdr` takes any address and returns a C
    // string that lives as long as the library, which is never closed.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let function = ptr::with_exposed_provenance(function);
        if libc::dladdr(function, &raw mut info) == 0 || info.dli_fname.is_null() {
            return false;
        }
        let base = BASE.load(Ordering::Relaxed);
        if !base.is_null() {
            return base == info.dli_fbase;
        }
        let Some(library) = &Settings::get().library else { return false };
        let Ok(file) = CStr::from_ptr(info.dli_fname).to_str() else { return false };
        let is_it = Path::new(file).canonicalize().is_ok_and(|file| file == *library);
        if is_it {
            BASE.store(info.dli_fbase, Ordering::Relaxed);
        }
        is_it
    }
}
