//! Notices that this process is a fork of the one that loaded the plugin.

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Once;

/// How many forks lie between the process that loaded the plugin and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between the process that called [`watch`] and this one. Costs one load, unlike a
/// look at the process's number, which is a system call.
#[inline]
pub(super) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Counts forks from now on. Where the system cannot tell of them all processes look alike.
pub(super) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        extern "C" fn in_child() {
            GENERATION.fetch_add(1, Ordering::Relaxed);
        }
        #[cfg(unix)]
        // SAFETY: the handler stays, since TensorFlow never unloads a plugin, and does nothing but an
        // atomic addition, which is allowed in the child of a process with many threads.
        unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
        }
    });
}
