//! The stream in which an event was recorded last.

use crate::sync::{AtomicUsize, ForkMutex, Ordering, lock_across_forks};
use std::sync::Weak;

/// The stream in which an event is recorded.
#[derive(Debug)]
pub(super) struct Recorded<S> {
    /// The stream's address; 0 if all work is known to be done. Changes under the lock.
    at: AtomicUsize,
    /// The stream at that address. While this refers to it, no other stream can have the address.
    stream: ForkMutex<Weak<S>>,
}

impl<S> Default for Recorded<S> {
    fn default() -> Self {
        Self { at: AtomicUsize::new(0), stream: ForkMutex::new(Weak::new()) }
    }
}

impl<S> Recorded<S> {
    /// Records that the event is in the stream at `address`, to which `weak` creates a reference.
    #[inline]
    pub(super) fn set(&self, address: usize, weak: impl FnOnce() -> Weak<S>) {
        if self.at.load(Ordering::Acquire) != address {
            self.remember(weak());
        }
    }

    #[cold]
    fn remember(&self, new: Weak<S>) {
        let mut stream = lock_across_forks(&self.stream);
        // Before the old reference is dropped, after which another stream may have the old address.
        self.at.store(new.as_ptr().addr(), Ordering::Release);
        *stream = new;
    }

    /// Records that all work before the event is done.
    pub(super) fn clear(&self) {
        let _stream = lock_across_forks(&self.stream);
        self.at.store(0, Ordering::Release);
    }

    /// Returns whether there may be work before the event.
    #[inline]
    pub(super) fn is_somewhere(&self) -> bool {
        self.at.load(Ordering::Acquire) != 0
    }

    /// Drains the stream of the latest record, for an event that returned an error in place of its status. A stream
    /// that no longer exists was drained.
    ///
    /// The event stays recorded: another thread may have recorded it again in the meantime, in the same stream.
    pub(super) fn drain(&self, drain: impl FnOnce(&S)) {
        let stream = lock_across_forks(&self.stream).upgrade();
        if let Some(stream) = stream {
            drain(&stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::holds_in_a_child_forked_beside;
    use std::sync::Arc;

    #[test]
    fn a_fork_records_events_while_another_thread_does() {
        let (recorded, stream) = (Recorded::default(), Arc::new(()));
        let take = || lock_across_forks(&recorded.stream);
        holds_in_a_child_forked_beside(take, || {
            recorded.set(Arc::as_ptr(&stream).addr(), || Arc::downgrade(&stream));
            recorded.is_somewhere()
        });
    }
}
