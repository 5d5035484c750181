//! What threads meet in: atomics, locks and condition variables.
//!
//! The files that use this module and nothing else for that are compiled once more in `tests/races`, where
//! these names are loom's, and the interleavings of their threads are tried.

pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU64, AtomicUsize, Ordering,
};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

/// Takes a lock, also after a panic of a thread that held it: what these locks guard is whole at any time.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
