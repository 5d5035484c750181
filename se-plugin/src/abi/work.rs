//! Work whose memory TensorFlow frees before the work is done.

use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, lock};
use core::ptr;
use std::sync::{Arc, Weak};
use tf_plugin_core::Result;

/// The streams of a device that kernels enqueue work into, and how much work there is.
///
/// TensorFlow frees the memory of a tensor when the last kernel that uses it has returned, and reuses it before
/// the work has run. That is safe for later work in the same stream, which runs afterwards, and for a copy in
/// another stream, which waits for that stream. But the copies of the constants of a new function to the device
/// do not wait, in any release (host-to-device copies with `sync_dst_compute=false`), and overwrite data that
/// earlier work has not read yet. So here every copy from the host waits for all work that was enqueued before,
/// unless TensorFlow has made it wait.
///
/// A stream is in the list before its work is counted. So a thread that has read a count finds all streams whose
/// work is in it.
pub(super) struct Work<S> {
    /// The number of kernels that have returned.
    enqueued: AtomicU64,
    streams: Mutex<Vec<Weak<S>>>,
}

impl<S> Default for Work<S> {
    fn default() -> Self {
        Self { enqueued: AtomicU64::new(0), streams: Mutex::default() }
    }
}

impl<S> Work<S> {
    fn enqueued(&self) -> u64 {
        self.enqueued.load(Ordering::Acquire)
    }

    /// Adds a stream to the list, unless another thread has done it since `progress` was read.
    #[cold]
    fn register(&self, progress: &Progress, stream: Weak<S>) {
        let mut streams = lock(&self.streams);
        if progress.works() {
            return;
        }
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(stream);
        // Set last: a thread that sees it counts work, and others find that work by the list.
        progress.works.store(true, Ordering::Release);
    }

    /// Returns the streams with work that still exist. The others were drained.
    fn streams(&self) -> Vec<Arc<S>> {
        lock(&self.streams).iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns whether no other stream has work.
    fn is_only(&self, stream: &S) -> bool {
        let is_it = |other: &Weak<S>| ptr::eq(other.as_ptr(), stream);
        lock(&self.streams).iter().all(|other| is_it(other) || other.strong_count() == 0)
    }
}

/// How a stream relates to the work on its device.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Whether it has work itself, and so is in the list.
    works: AtomicBool,
    /// The count of enqueued work that this stream waits for: its later work runs after that.
    waited: AtomicU64,
}

impl Progress {
    #[inline]
    fn works(&self) -> bool {
        self.works.load(Ordering::Acquire)
    }
}

/// A stream that waits for the work of others.
pub(super) trait WaitingStream: Sized {
    /// Returns the work on its device.
    fn work(&self) -> &Work<Self>;

    fn progress(&self) -> &Progress;

    /// Makes this stream wait for the work that is in another one now.
    fn follow(&self, other: &Self) -> Result<()>;

    /// Calls [`follow`](Self::follow), and records the count if the other stream has all work of the device.
    fn wait_for(&self, other: &Self) -> Result<()> {
        let enqueued = self.work().enqueued();
        self.follow(other)?;
        // If two streams have work, one does not have all of it; and `other` may be another device's.
        if other.progress().works() && self.work().is_only(other) {
            self.progress().waited.fetch_max(enqueued, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Makes this stream wait for all work that was enqueued on the device.
    #[inline]
    fn wait_for_work(&self) -> Result<()> {
        match self.work().enqueued() {
            enqueued if enqueued == self.progress().waited.load(Ordering::Acquire) => Ok(()),
            enqueued => wait_for_all(self, enqueued),
        }
    }
}

#[cold]
fn wait_for_all<S: WaitingStream>(stream: &S, enqueued: u64) -> Result<()> {
    for other in stream.work().streams() {
        if !ptr::eq(stream, &*other) {
            stream.wait_for(&other)?;
        }
    }
    stream.progress().waited.fetch_max(enqueued, Ordering::AcqRel);
    Ok(())
}

/// A kernel that runs. When it is dropped, its work has been enqueued.
pub(super) struct Running<'a, S>(&'a Work<S>);

impl<'a, S: WaitingStream> Running<'a, S> {
    /// Begins a kernel's run on a stream, to which `weak` creates another reference.
    #[inline]
    pub(super) fn on(stream: &'a S, weak: impl FnOnce() -> Weak<S>) -> Self {
        if !stream.progress().works() {
            stream.work().register(stream.progress(), weak());
        }
        Self(stream.work())
    }
}

impl<S> Drop for Running<'_, S> {
    #[inline]
    fn drop(&mut self) {
        // Before TensorFlow can free the kernel's memory: the next user of that memory sees this count.
        self.0.enqueued.fetch_add(1, Ordering::AcqRel);
    }
}
