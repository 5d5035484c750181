//! The end of a process in which a driver computes.

use core::ffi::{c_int, c_void};
use core::ptr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// Whether a driver computes.
type IsBusy = Box<dyn Fn() -> bool + Send + Sync>;

/// The checks that run at the end of the process.
static DRIVERS: Mutex<Vec<IsBusy>> = Mutex::new(Vec::new());

/// Ends the process at once, with its exit status, if at its end `is_busy` returns `true`.
///
/// A driver for the CPU, such as Mesa's lavapipe or PoCL, compiles and computes in threads of the process. At its end the C
/// library destroys what LLVM needs while these threads use it, and the process crashes after Python has ended well. If the
/// process ends at once, its threads end first. C's `stdout` and `stderr` are flushed; functions that were registered before for
/// the end of the process are not called. Those that were registered last are called first: see [`exit_before_others`].
///
/// A fork has none of the threads, and ends as without this function. So does a process whose C library is not glibc: others do
/// not tell the exit status.
///
/// # Panics
/// A panic of `is_busy` counts as `false`.
pub fn exit_at_once_if(is_busy: impl Fn() -> bool + Send + Sync + 'static) {
    let process = std::process::id();
    let is_busy = move || std::process::id() == process && is_busy();
    DRIVERS.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(is_busy));
    exit_before_others();
    at_the_end_of_python();
}

/// Registers the check of [`exit_at_once_if`] again, so that it runs before all functions that are registered for the end of the
/// process by now. Call it whenever the driver may have registered some, such as after its first work. In Python it is called once
/// more when the interpreter has ended.
pub fn exit_before_others() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: `at_exit` may be called by any thread, and does not use its argument.
        let refused = unsafe { on_exit(at_exit, ptr::null_mut()) };
        if refused != 0 {
            log::warn!(
                "no memory for a function at the end of the process, which may crash while the GPU is at work"
            );
        }
    }
}

/// Python calls a few functions after it has ended, and then ends the process: a driver has little time to register others.
fn at_the_end_of_python() {
    type PyAtExit = unsafe extern "C" fn(extern "C" fn()) -> c_int;
    extern "C" fn ended() {
        exit_before_others();
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the name is a string that ends in zero.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"Py_AtExit".as_ptr()) };
        if address.is_null() {
            return;
        }
        // SAFETY: Python's function has this type, in all versions.
        let register = unsafe { core::mem::transmute::<*mut c_void, PyAtExit>(address) };
        // Python has 32 places. If none is left, only what was registered before protects the process.
        // SAFETY: the function takes nothing, calls nothing of Python, and lives as long as the process. Before 3.12 Python's list
        // has no lock: modules of other libraries use it while they are imported, and not while devices are opened.
        let _ = unsafe { register(ended) };
    });
}

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    // In glibc's `stdlib.h`. The function gets the exit status.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    static stdout: *mut libc::FILE;
    static stderr: *mut libc::FILE;
}

#[cfg(target_env = "gnu")]
extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    static HAS_RUN: AtomicBool = AtomicBool::new(false);
    // In a fork a thread that is gone may have the lock. Elsewhere the next function tries again.
    let Ok(drivers) = DRIVERS.try_lock() else { return };
    // When the second one is called, what a driver needs may have been destroyed.
    if HAS_RUN.swap(true, Ordering::Relaxed) {
        return;
    }
    let is_busy = |driver: &IsBusy| catch_unwind(AssertUnwindSafe(driver)).unwrap_or(false);
    if drivers.iter().any(is_busy) {
        // Not all streams: a thread that reads one, such as stdin, keeps its lock.
        // SAFETY: the C library has opened both, and each call is for a stream or, if somebody has closed it, for null.
        unsafe {
            libc::fflush(stdout);
            libc::fflush(stderr);
        }
        // SAFETY: nothing of this process is needed any more.
        unsafe { libc::_exit(status) };
    }
}
