//! A lock for a value that only one thread at a time should use.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tf_plugin_core::__private::boundary::fork;
use tf_plugin_core::{Error, Result};

const FREE: u64 = 0;
/// An operation panicked half-way.
const BROKEN: u64 = 1;
/// Held by a thread of a process of fork generation 0; plus 1 for generation 1, and so on.
const HELD: u64 = 2;

/// A value that is used by one thread at a time.
///
/// TensorFlow promises this for an open writer, and appends to it in small pieces. So the lock costs one atomic
/// instruction per operation, half of what a `Mutex` takes. In return a thread that breaks the promise polls until the
/// value is free, instead of being woken. In a forked child, a `Mutex` that a thread held at the fork stays locked
/// forever; this lock returns an error instead.
pub(super) struct Exclusive<T> {
    state: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: `with` is the only way to the value and lets one thread at a time in, which is as if the value
// was sent from one to the next.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    pub(super) const fn new(value: T) -> Self {
        Self { state: AtomicU64::new(FREE), value: UnsafeCell::new(value) }
    }

    /// Runs `op` on the value, an open file.
    ///
    /// # Errors
    /// `INTERNAL` if an earlier `op` panicked; `FAILED_PRECONDITION` if the process was forked
    /// while a thread of its parent used the value: that thread does not exist here.
    #[inline]
    pub(super) fn with<R>(&self, op: impl FnOnce(&mut T) -> R) -> Result<R> {
        /// Leaves the value free or, if `op` panicked, broken.
        struct Leave<'l>(&'l AtomicU64, u64);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.store(self.1, Ordering::Release);
            }
        }

        let held = HELD + u64::from(fork::generation());
        let previous = self.state.swap(held, Ordering::Acquire);
        if previous != FREE {
            self.wait(held, previous)?;
        }
        let mut leave = Leave(&self.state, BROKEN);
        // SAFETY: the state went from `FREE` to held by this thread's doing, and until `leave` is
        // dropped no other thread's swap finds it `FREE`.
        let answer = op(unsafe { &mut *self.value.get() });
        leave.1 = FREE;
        Ok(answer)
    }

    /// Waits for the value after a swap whose `previous` state is not free.
    #[cold]
    fn wait(&self, held: u64, mut previous: u64) -> Result<()> {
        let mut attempts = 0_u32;
        while previous == held {
            attempts = attempts.saturating_add(1);
            if attempts < 64 {
                std::thread::yield_now();
            } else {
                std::thread::sleep(Duration::from_micros(100));
            }
            previous = self.state.swap(held, Ordering::Acquire);
        }
        if previous == FREE {
            return Ok(());
        }
        self.state.store(previous, Ordering::Release);
        Err(if previous == BROKEN {
            Error::internal(
                "the file is broken: an earlier operation on it panicked, so data may be missing",
            )
        } else {
            Error::failed_precondition(
                "the file was being written when this process was forked; it belongs to the parent",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tf_plugin_core::Code;

    #[test]
    fn one_thread_at_a_time() {
        let value = Exclusive::new((0_u64, 0_u64));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..1000 {
                        let used = value.with(|(first, second)| {
                            assert_eq!(first, second);
                            *first += 1;
                            if round % 100 == 0 {
                                // Long enough for the others to come and wait.
                                std::thread::sleep(Duration::from_micros(300));
                            }
                            *second += 1;
                        });
                        used.unwrap();
                    }
                });
            }
        });
        assert_eq!(value.with(|value| *value).unwrap(), (4000, 4000));
    }

    #[cfg(unix)]
    #[test]
    fn a_child_does_not_wait_for_a_thread_of_its_parent() {
        use std::sync::mpsc;
        use tf_plugin_testing::__private::in_a_child;
        fork::watch();
        let value = Exclusive::new(1);
        let ((held, is_held), (release, is_released)) = (mpsc::channel(), mpsc::channel::<()>());
        std::thread::scope(|scope| {
            let value = &value;
            scope.spawn(move || {
                value.with(|_| {
                    held.send(()).unwrap();
                    is_released.recv().unwrap();
                })
            });
            is_held.recv().unwrap();
            let status = in_a_child(10, || {
                let twice = [(), ()].map(|()| value.with(|value| *value).map_err(|e| e.code()));
                i32::from(twice != [Err(Code::FailedPrecondition); 2])
            });
            release.send(()).unwrap();
            assert!(status.success(), "the child waited, or used the value: {status}");
        });
        assert_eq!(value.with(|value| *value).unwrap(), 1, "the parent goes on");
    }
}
