//! A lock for what one thread at a time uses anyway.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

const FREE: u8 = 0;
const HELD: u8 = 1;
/// An operation panicked half-way.
const BROKEN: u8 = 2;

/// A value that is used by one thread at a time.
///
/// TensorFlow promises as much for an open writer, and appends to it in small pieces. So this costs one
/// atomic instruction an operation, half of what a `Mutex` does; in return a thread that comes second
/// despite the promise looks again and again until it is let in, instead of being woken.
pub(super) struct Exclusive<T> {
    state: AtomicU8,
    value: UnsafeCell<T>,
}

// SAFETY: `with` is the only way to the value and lets one thread at a time in, which is as if the value
// was sent from one to the next.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    pub(super) const fn new(value: T) -> Self {
        Self { state: AtomicU8::new(FREE), value: UnsafeCell::new(value) }
    }

    /// Runs `op` on the value. `None` if an earlier `op` panicked.
    #[inline]
    pub(super) fn with<R>(&self, op: impl FnOnce(&mut T) -> R) -> Option<R> {
        /// Leaves the value free or, if `op` panicked, broken.
        struct Leave<'l>(&'l AtomicU8, u8);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.store(self.1, Ordering::Release);
            }
        }

        let found = self.state.swap(HELD, Ordering::Acquire);
        if found != FREE && !self.wait(found) {
            return None;
        }
        let mut leave = Leave(&self.state, BROKEN);
        // SAFETY: the state went from `FREE` to `HELD` by this thread's doing, and until `leave` is
        // dropped no other thread's swap finds it `FREE`.
        let answer = op(unsafe { &mut *self.value.get() });
        leave.1 = FREE;
        Some(answer)
    }

    /// Waits for the value after a swap that `found` it not free; false if it is broken.
    #[cold]
    fn wait(&self, mut found: u8) -> bool {
        let mut looks = 0_u32;
        while found == HELD {
            looks = looks.saturating_add(1);
            if looks < 64 {
                std::thread::yield_now();
            } else {
                std::thread::sleep(Duration::from_micros(100));
            }
            found = self.state.swap(HELD, Ordering::Acquire);
        }
        if found == BROKEN {
            self.state.store(BROKEN, Ordering::Release);
        }
        found == FREE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn one_thread_at_a_time() {
        let value = Exclusive::new((0_u64, 0_u64));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..1000 {
                        value.with(|(first, second)| {
                            assert_eq!(first, second);
                            *first += 1;
                            if round % 100 == 0 {
                                // Long enough for the others to come and wait.
                                std::thread::sleep(Duration::from_micros(300));
                            }
                            *second += 1;
                        });
                    }
                });
            }
        });
        assert_eq!(value.with(|value| *value), Some((4000, 4000)));
    }

    #[test]
    fn a_panic_breaks_it_for_good() {
        let value = Exclusive::new(1);
        assert_eq!(value.with(|value| *value), Some(1));
        let panicked = catch_unwind(AssertUnwindSafe(|| value.with(|_| panic!("half-way"))));
        assert!(panicked.is_err());
        assert_eq!(value.with(|value| *value), None);
        assert_eq!(value.with(|value| *value), None);
    }
}
