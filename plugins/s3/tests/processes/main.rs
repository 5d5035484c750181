//! Forks: in a program of its own, where no other test holds a lock during a fork.

use std::sync::{Mutex, MutexGuard, PoisonError};

mod forks;
mod reading;
mod writing;

/// Held by a test that forks: the host of the tests has locks of its own, which another test must not hold meanwhile.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}
