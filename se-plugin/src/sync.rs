//! Synchronization: atomics, locks and condition variables.
//!
//! The files that synchronize only through this module are also compiled in `tests/races`. There these names
//! are loom's, which tries the interleavings of their threads.

pub(crate) use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::MutexGuard;
pub(crate) use std::sync::{Condvar, Mutex};
/// A lock that is unlocked in a forked child. A fork waits for its holder, so hold it only to access memory.
pub(crate) use tf_plugin_core::sync::{Mutex as ForkMutex, MutexGuard as ForkMutexGuard};

/// Takes a lock, also after a panic of a thread that held it: the data in these locks is consistent at any time.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Takes a lock as [`lock`] does.
pub(crate) fn lock_across_forks<T>(mutex: &ForkMutex<T>) -> ForkMutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Asserts that `work` returns true in a child that is forked while another thread holds the result of `take`.
#[cfg(test)]
#[track_caller]
pub(crate) fn holds_in_a_child_forked_beside<G>(
    take: impl FnOnce() -> G + Send,
    work: impl FnOnce() -> bool,
) {
    let (taken, is_taken) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let guard = take();
            taken.send(()).unwrap();
            std::thread::sleep(core::time::Duration::from_millis(50));
            drop(guard);
        });
        is_taken.recv().unwrap();
        let status = tf_plugin_testing::__private::in_a_child(10, || i32::from(!work()));
        assert!(status.success(), "{status}; SIGALRM: it waited");
    });
}
