//! Locks like those of [`std::sync`], which are unlocked in a forked child.
//!
//! Python forks processes with many threads: `multiprocessing`, data loaders, servers. A child has one thread. If
//! another thread of the parent held a lock of [`std::sync`] at the fork, that lock is held in the child forever, and
//! the child's first call of the plugin hangs. Locks of this module are free then: `fork` waits for the threads that
//! hold one, and threads that lock one wait for the fork. So the data behind a lock is consistent in the child as well.
//!
//! Use them as those of `std`, with another `use`:
//!
//! ```
//! use tf_fs_plugin::sync::RwLock;
//!
//! let names = RwLock::new(vec!["a"]);
//! names.write()?.push("b");
//! assert_eq!(names.read()?.len(), 2);
//! # Ok::<(), tf_fs_plugin::Error>(())
//! ```
//!
//! Hold them as briefly as those of `std`: a fork waits up to 5 seconds for one, and all of Python with it. So use
//! locks for memory only, and do not hold one while you wait for a disk, a network or another thread. After 5 seconds
//! the fork happens anyway, and a thread that locks it in the child panics after another 5 seconds: the operation fails
//! with a text that explains it, and the child does not hang. Other locks work in that child as usual. A thread that
//! forks while it holds one of these locks waits 20 milliseconds for others, because they may wait for its lock. A
//! thread that locks one waits for a fork up to 10 seconds.
//!
//! Threads, connections and a `Once` or `LazyLock` that another thread is filling do not survive a fork
//! either. Create them in the constructor, or again in the child.

use crate::abi::fork::{self, ForkGuard};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{self, LockResult, PoisonError, TryLockError, TryLockResult};
use std::time::Instant;

/// The guard of a lock: [`MutexGuard`], [`RwLockReadGuard`] or [`RwLockWriteGuard`].
#[must_use = "the lock is given back when this is dropped"]
pub struct Guard<G> {
    // Dropped before the hold: fields are dropped from the first to the last.
    inner: G,
    _hold: ForkGuard,
}

/// The guard of a [`Mutex`].
pub type MutexGuard<'l, T> = Guard<sync::MutexGuard<'l, T>>;
/// The guard of a [`RwLock`] that is locked for reading.
pub type RwLockReadGuard<'l, T> = Guard<sync::RwLockReadGuard<'l, T>>;
/// The guard of a [`RwLock`] that is locked for writing.
pub type RwLockWriteGuard<'l, T> = Guard<sync::RwLockWriteGuard<'l, T>>;

impl<G: Deref> Deref for Guard<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.inner
    }
}

impl<G: DerefMut> DerefMut for Guard<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.inner
    }
}

impl<G: fmt::Debug> fmt::Debug for Guard<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// Takes a lock, with a hold that delays forks.
#[inline]
fn take<G>(
    proven: &AtomicU32,
    try_alone: impl Fn() -> bool,
    lock: impl FnOnce() -> LockResult<G>,
    try_lock: impl Fn() -> TryLockResult<G>,
) -> LockResult<Guard<G>> {
    let _hold = ForkGuard::new();
    let result = if fork::may_be_abandoned() {
        take_in_child(proven, try_alone, lock, try_lock)
    } else {
        lock()
    };
    match result {
        Ok(inner) => Ok(Guard { inner, _hold }),
        Err(poisoned) => Err(PoisonError::new(Guard { inner: poisoned.into_inner(), _hold })),
    }
}

/// Takes a lock whose holder may be a thread that does not exist in this process. Once a thread has
/// held it alone in this process, that is ruled out, and the lock works like any other.
#[cold]
fn take_in_child<I>(
    proven: &AtomicU32,
    try_alone: impl Fn() -> bool,
    lock: impl FnOnce() -> LockResult<I>,
    try_lock: impl Fn() -> TryLockResult<I>,
) -> LockResult<I> {
    let generation = fork::generation();
    let began = Instant::now();
    loop {
        if proven.load(Ordering::Relaxed) == generation || try_alone() {
            proven.store(generation, Ordering::Relaxed);
            return lock();
        }
        match try_lock() {
            Ok(inner) => return Ok(inner),
            Err(TryLockError::Poisoned(poisoned)) => return Err(poisoned),
            Err(TryLockError::WouldBlock) => {}
        }
        assert!(
            began.elapsed() < fork::LIMIT,
            "a lock was held by another thread when this process was forked, and nobody can give it back here; \
             start processes with `spawn`, or hold locks briefly"
        );
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
}

/// Returns whether a lock was free for a moment, given the result of its `try_lock` or `try_write`.
fn was_free<I>(tried: TryLockResult<I>) -> bool {
    !matches!(tried, Err(TryLockError::WouldBlock))
}

/// Tries to take a lock, with a hold that delays forks.
#[inline]
fn try_take<G>(try_lock: impl FnOnce() -> TryLockResult<G>) -> TryLockResult<Guard<G>> {
    let _hold = ForkGuard::new();
    match try_lock() {
        Ok(inner) => Ok(Guard { inner, _hold }),
        Err(TryLockError::Poisoned(poisoned)) => {
            Err(PoisonError::new(Guard { inner: poisoned.into_inner(), _hold }).into())
        }
        Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
    }
}

/// Defines locks by their names in `std`: how each is inspected, how it is known to be free, and the ways to take it.
macro_rules! locks {
    ($(
        $(#[$doc:meta])*
        $name:ident by $try_look:ident, $try_alone:ident {
            $($(#[$take_doc:meta])* $take:ident, $try_take:ident -> $guard:ident;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Default)]
        pub struct $name<T: ?Sized> {
            /// The [`generation`](fork::generation) in which a thread is known to have held it alone.
            proven: AtomicU32,
            inner: sync::$name<T>,
        }

        impl<T> $name<T> {
            /// Creates a lock around a value.
            pub const fn new(value: T) -> Self {
                Self { proven: AtomicU32::new(0), inner: sync::$name::new(value) }
            }

            /// Returns the value and consumes the lock.
            ///
            /// # Errors
            /// A poison error with the value, if a thread panicked while it held the lock.
            pub fn into_inner(self) -> LockResult<T> {
                self.inner.into_inner()
            }
        }

        impl<T: ?Sized> $name<T> {
            /// Returns the value without locking: `&mut` proves that no other thread has it.
            ///
            /// # Errors
            /// A poison error with the value, if a thread panicked while it held the lock.
            pub fn get_mut(&mut self) -> LockResult<&mut T> {
                self.inner.get_mut()
            }

            $(
                $(#[$take_doc])*
                ///
                /// # Errors
                /// A poison error with the guard, if a thread panicked while it held the lock; `?` makes it `INTERNAL`.
                ///
                /// # Panics
                /// In a forked child, after 5 seconds, if another thread of the parent held the lock at the fork and
                /// the fork did not wait until it was free; see the [module](self). Also if the thread that forked
                /// still holds it in the child for 5 seconds while another one waits for it.
                pub fn $take(&self) -> LockResult<$guard<'_, T>> {
                    let (lock, try_lock) = (|| self.inner.$take(), || self.inner.$try_take());
                    take(&self.proven, || was_free(self.inner.$try_alone()), lock, try_lock)
                }

                #[doc = concat!("Tries [`", stringify!($take), "`](Self::", stringify!($take), ") without waiting for its holder.")]
                /// It still waits while a process is forked.
                ///
                /// # Errors
                /// If it would have to wait, or a thread panicked while it held the lock.
                pub fn $try_take(&self) -> TryLockResult<$guard<'_, T>> {
                    try_take(|| self.inner.$try_take())
                }
            )*
        }

        // Not derived: `Debug` of `std` takes the lock, and a fork would not wait for it.
        impl<T: ?Sized + fmt::Debug> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut shown = f.debug_struct(stringify!($name));
                match self.$try_look() {
                    Ok(value) => shown.field("data", &&*value),
                    Err(TryLockError::Poisoned(poisoned)) => shown.field("data", &&**poisoned.get_ref()),
                    Err(TryLockError::WouldBlock) => shown.field("data", &format_args!("<locked>")),
                };
                shown.field("poisoned", &self.inner.is_poisoned()).finish_non_exhaustive()
            }
        }

        impl<T> From<T> for $name<T> {
            fn from(value: T) -> Self {
                Self::new(value)
            }
        }
    )*};
}

locks! {
    /// A [`std::sync::Mutex`] that is unlocked in a forked child; see the [module](self).
    Mutex by try_lock, try_lock {
        /// Waits for the lock and takes it.
        lock, try_lock -> MutexGuard;
    }
    /// A [`std::sync::RwLock`] that is unlocked in a forked child; see the [module](self).
    RwLock by try_read, try_write {
        /// Locks the value for reading; waits while another thread changes it.
        read, try_read -> RwLockReadGuard;
        /// Locks the value for writing; waits while another thread uses it.
        write, try_write -> RwLockWriteGuard;
    }
}
