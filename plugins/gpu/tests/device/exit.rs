//! The end of a process.

/// Fails the process if it comes to the functions that are registered for its end until now, as libraries such as LLVM do
/// when they are loaded.
pub(super) fn must_be_at_once() {
    extern "C" fn registered() {
        // SAFETY: nothing of this process is needed any more.
        unsafe { libc::_exit(3) };
    }
    // SAFETY: the function takes nothing, and lives as long as the process.
    assert_eq!(unsafe { libc::atexit(registered) }, 0);
}
