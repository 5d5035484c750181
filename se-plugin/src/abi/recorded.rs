//! Where an event was recorded last.

use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};
use std::sync::{PoisonError, Weak};

/// The stream in which an event is recorded.
#[derive(Debug)]
pub(super) struct Recorded<S> {
    /// The stream's address; 0 where all work is known to be done. Changes under the lock.
    at: AtomicUsize,
    /// The stream at that address, which so is not an other's.
    stream: Mutex<Weak<S>>,
}

impl<S> Default for Recorded<S> {
    fn default() -> Self {
        Self { at: AtomicUsize::new(0), stream: Mutex::new(Weak::new()) }
    }
}

impl<S> Recorded<S> {
    fn lock(&self) -> MutexGuard<'_, Weak<S>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The event was recorded in the stream at `address`, to which `weak` makes a reference.
    #[inline]
    pub(super) fn set(&self, address: usize, weak: impl FnOnce() -> Weak<S>) {
        if self.at.load(Ordering::Acquire) != address {
            self.remember(weak());
        }
    }

    #[cold]
    fn remember(&self, new: Weak<S>) {
        let mut stream = self.lock();
        // Before the reference that keeps the old address from being another stream's goes.
        self.at.store(new.as_ptr().addr(), Ordering::Release);
        *stream = new;
    }

    /// All work before the event is done.
    pub(super) fn clear(&self) {
        let _stream = self.lock();
        self.at.store(0, Ordering::Release);
    }

    /// Whether there may be work before the event.
    #[inline]
    pub(super) fn is_somewhere(&self) -> bool {
        self.at.load(Ordering::Acquire) != 0
    }

    /// Drains the stream of the latest record, for an event that does not say how far it is. A stream that is gone
    /// was drained.
    ///
    /// The event stays recorded: another thread may have recorded it again in the meantime, in the same stream.
    pub(super) fn drain(&self, drain: impl FnOnce(&S)) {
        let stream = self.lock().upgrade();
        if let Some(stream) = stream {
            drain(&stream);
        }
    }
}
