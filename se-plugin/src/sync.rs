//! What threads meet in: atomics, locks and condition variables.
//!
//! The files that use this module and nothing else for that are compiled once more in `tests/races`, where
//! these names are loom's, and the interleavings of their threads are tried.

pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU64, AtomicUsize, Ordering,
};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
