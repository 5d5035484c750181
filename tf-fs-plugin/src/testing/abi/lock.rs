//! A lock that nobody holds while the process forks.
//!
//! A forked child has one thread. A lock that another thread of its parent held would stay locked in it for ever, and
//! what it guards could be half changed; so `fork` waits until no thread holds one.

use core::cell::{Cell, RefCell};
use core::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Held for reading by each thread that has a [`Lock`], for writing during a fork.
static FORK: RwLock<()> = RwLock::new(());

thread_local! {
    /// This thread's hold on [`FORK`], and the number of its guards.
    static HELD: RefCell<Option<RwLockReadGuard<'static, ()>>> = const { RefCell::new(None) };
    static GUARDS: Cell<usize> = const { Cell::new(0) };
    /// The forking thread's.
    static FORKING: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// A mutex that is free in the child of a process with threads. Poison is ignored.
#[derive(Debug, Default)]
pub(in crate::testing) struct Lock<T>(Mutex<T>);

/// Access to what a [`Lock`] guards.
#[derive(Debug)]
pub(in crate::testing) struct Guard<'a, T> {
    // In this order: fields are dropped from the first to the last.
    guard: MutexGuard<'a, T>,
    _no_fork: NoFork,
}

impl<T> Lock<T> {
    pub(in crate::testing) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(in crate::testing) fn lock(&self) -> Guard<'_, T> {
        let no_fork = NoFork::new();
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Guard { guard, _no_fork: no_fork }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// While one lives in any thread, `fork` waits. It stays in its thread, as the guard beside it does.
#[derive(Debug)]
struct NoFork;

impl NoFork {
    fn new() -> Self {
        watch();
        if GUARDS.get() == 0 {
            HELD.set(Some(FORK.read().unwrap_or_else(PoisonError::into_inner)));
        }
        GUARDS.set(GUARDS.get() + 1);
        Self
    }
}

impl Drop for NoFork {
    fn drop(&mut self) {
        GUARDS.set(GUARDS.get() - 1);
        if GUARDS.get() == 0 {
            HELD.set(None);
        }
    }
}

fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        extern "C" fn before() {
            FORKING.set(Some(FORK.write().unwrap_or_else(PoisonError::into_inner)));
        }
        extern "C" fn after() {
            FORKING.set(None);
        }
        // SAFETY: the handlers are functions of this program, which is not unloaded while it tests; they take and
        // give back a lock that the forking thread does not have: no `Lock` is held where a test can fork.
        unsafe {
            libc::pthread_atfork(Some(before), Some(after), Some(after));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn a_child_finds_each_lock_free_and_what_it_guards_whole() {
        static PAIR: Lock<(u64, u64)> = Lock::new((0, 0));
        /// Ends the threads, also when an assertion fails: the scope waits for them.
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let stop = AtomicBool::new(false);
        // Forks wait for locks from the first one on; one during the first would leave it half made in the child.
        drop(PAIR.lock());
        thread::scope(|scope| {
            let _stop = Stop(&stop);
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let (mut pair, other) = (PAIR.lock(), Lock::new(1));
                        pair.0 += *other.lock();
                        thread::yield_now();
                        pair.1 += 1;
                    }
                });
            }
            for _ in 0..100 {
                // SAFETY: the child takes a lock that is free in it, and ends.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    // SAFETY: both end this process only; the alarm, if it waits.
                    unsafe {
                        libc::alarm(10);
                        let pair = PAIR.lock();
                        libc::_exit(i32::from(pair.0 != pair.1));
                    }
                }
                assert!(child > 0, "cannot fork: {}", io::Error::last_os_error());
                let mut status = -1;
                loop {
                    // SAFETY: a child of this process that nobody else waits for.
                    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
                    let error = io::Error::last_os_error();
                    if waited == child {
                        break;
                    }
                    let again = error.kind() == io::ErrorKind::Interrupted;
                    assert!(again, "cannot wait for the child: {error}");
                }
                assert_eq!(status, 0, "0x100: half changed; 0xe: waited");
            }
        });
    }
}
