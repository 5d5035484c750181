//! The end of a process in which a driver computes.

use core::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Whether the driver computes.
type IsBusy = Box<dyn Fn() -> bool + Send + Sync>;

/// Ends the process at once, with its exit status, if at its end `is_busy` returns `true`. Call it once more whenever
/// the driver may have registered functions for the end of the process, such as after its first work: the function that is
/// registered last is called first.
///
/// A driver for the CPU, such as Mesa's lavapipe or PoCL, compiles and computes in threads of the process. At its end the C
/// library destroys what LLVM needs while these threads use it, and the process crashes after Python has ended well. If the
/// process ends at once, its threads end first. C's `stdout` and `stderr` are flushed; functions that were registered before for
/// the end of the process are not called.
///
/// A fork has none of the threads, and ends as without this function. So does a process whose C library is not glibc: others do
/// not tell the exit status.
///
/// # Panics
/// A panic of `is_busy` counts as `false`.
pub fn exit_at_once_if(is_busy: impl Fn() -> bool + Send + Sync + 'static) {
    #[cfg(target_env = "gnu")]
    {
        let process = std::process::id();
        let is_busy = move || std::process::id() == process && is_busy();
        let is_busy: Box<IsBusy> = Box::new(Box::new(is_busy));
        // SAFETY: `at_exit` takes what is passed here, which is never freed, from any thread.
        let refused = unsafe { on_exit(at_exit, Box::into_raw(is_busy).cast()) };
        if refused != 0 {
            log::warn!(
                "no memory for a function at the end of the process, which may crash while the GPU is at work"
            );
        }
    }
    #[cfg(not(target_env = "gnu"))]
    drop(is_busy);
}

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    // In glibc's `stdlib.h`. The function gets the exit status.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    static stdout: *mut libc::FILE;
    static stderr: *mut libc::FILE;
}

#[cfg(target_env = "gnu")]
extern "C" fn at_exit(status: c_int, is_busy: *mut c_void) {
    // SAFETY: `exit_at_once_if` has passed a pointer to such a box, which is never freed.
    let is_busy = unsafe { &*is_busy.cast::<IsBusy>() };
    if catch_unwind(AssertUnwindSafe(is_busy)).unwrap_or(false) {
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
