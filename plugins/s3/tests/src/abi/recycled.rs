//! Numbers of processes that are given again.

use std::sync::atomic::{AtomicI32, Ordering};

/// The number that `getpid` returns; 0 for the true one.
static PRETENDED: AtomicI32 = AtomicI32::new(0);

/// Takes the place of the C library's in programs that link this: `std::process::id` calls it.
// SAFETY: `getpid` of the C library has this signature, cannot fail, and may be called at any time; this one returns what
// the kernel says, or a number that a test has chosen.
#[unsafe(no_mangle)]
extern "C" fn getpid() -> libc::pid_t {
    match PRETENDED.load(Ordering::Relaxed) {
        // SAFETY: a system call without arguments that has no effect.
        0 => unsafe { libc::syscall(libc::SYS_getpid) as libc::pid_t },
        number => number,
    }
}

/// From now on this process has the number `id`, as one that is started after the end of the last one with it.
pub fn pretend(id: u32) {
    PRETENDED.store(id.cast_signed(), Ordering::Relaxed);
}
