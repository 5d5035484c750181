//! The functions that a program loads: of the driver, NVRTC, cuBLAS and cuDNN, with their memory and libraries.

mod cublas;
mod cudnn;
mod driver;
mod elements;
pub(crate) mod library;
pub(crate) mod memory;
mod nvrtc;
mod queue;

use crate::device::{self, Needs};
use crate::fault;
use cudarc::driver::sys::CUresult;
use std::ffi::{CStr, c_char};
use std::sync::atomic::Ordering;

/// Ends the process, because the program would corrupt memory on a GPU.
pub(crate) fn abort(why: &str) -> ! {
    eprintln!("{}{why}", fault::HAPPENED);
    std::process::abort()
}

/// Writes a result. Fails if the pointer is null.
///
/// # Safety
/// The pointer is null, or a `T` may be written there.
unsafe fn put<T>(to: *mut T, value: T) -> Result<(), CUresult> {
    if to.is_null() {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: it is not null.
    unsafe { to.write(value) };
    Ok(())
}

/// Copies a string. Returns `None` for null.
///
/// # Safety
/// The pointer is null, or leads to a string.
unsafe fn text(from: *const c_char) -> Option<String> {
    // SAFETY: it is not null.
    let text = (!from.is_null()).then(|| unsafe { CStr::from_ptr(from) })?;
    Some(text.to_string_lossy().into_owned())
}

/// Calls a function of the driver, unless a fault happens or the state that it needs is missing.
fn called(name: &str, needs: Needs, function: impl FnOnce() -> Result<(), CUresult>) -> CUresult {
    if fault::happens(name) {
        return match device::current().is_lost.load(Ordering::SeqCst) {
            true => CUresult::CUDA_ERROR_LAUNCH_FAILED,
            false => CUresult::CUDA_ERROR_NOT_SUPPORTED,
        };
    }
    let all = || {
        device::check(needs)?;
        function()?;
        // The GPU may have been lost while this call waited for work.
        if needs == Needs::ContextAfter { device::check(needs) } else { Ok(()) }
    };
    match all() {
        Ok(()) => CUresult::CUDA_SUCCESS,
        Err(error) => error,
    }
}

/// Defines functions of the driver, which return an error or nothing.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) $needs:ident $body:block)*) => {$(
        /// # Safety
        /// The caller follows CUDA's rules for this function.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "CUDA's name")]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> CUresult {
            $crate::abi::called(stringify!($name), $crate::device::Needs::$needs, || $body)
        }
    )*};
}
use functions;
