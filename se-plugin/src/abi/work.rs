//! Work whose memory TensorFlow takes back before it is done.

use super::state::StreamState;
use crate::device::Device;
use crate::stream::Stream as _;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tf_fs_plugin::Result;

/// The streams of a device that kernels enqueue work into, and how much they have.
///
/// TensorFlow frees the memory of a tensor when the last kernel that uses it has returned, and gives it to
/// others while the work is still to run: what comes behind in the same stream cannot be too early, and a copy
/// in another stream waits for that stream. But the copies with which TensorFlow puts the constants of a new
/// function onto the device do not wait, in any release (host-to-device copies with `sync_dst_compute=false`),
/// and overwrite what earlier work has not read yet. So here every copy from the host waits for all work that
/// was enqueued before, unless TensorFlow has let it wait.
pub(super) struct Work<D: Device> {
    /// How many kernels have returned.
    enqueued: AtomicU64,
    streams: Mutex<Vec<Weak<StreamState<D>>>>,
}

impl<D: Device> Default for Work<D> {
    fn default() -> Self {
        Self { enqueued: AtomicU64::new(0), streams: Mutex::default() }
    }
}

impl<D: Device> Work<D> {
    fn enqueued(&self) -> u64 {
        self.enqueued.load(Ordering::Acquire)
    }

    /// The streams with work that still exist.
    fn streams(&self) -> Vec<Arc<StreamState<D>>> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.iter().filter_map(Weak::upgrade).collect()
    }
}

/// What a stream knows of the work on its device.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Whether it has work itself.
    works: AtomicBool,
    /// All that was enqueued until then is before what is enqueued into this stream from now on.
    waited: AtomicU64,
}

/// A kernel that runs. When it is dropped, its work has been enqueued.
pub(super) struct Running<'a, D: Device>(&'a Work<D>);

impl<'a, D: Device> Running<'a, D> {
    /// `weak` makes another reference to the stream.
    #[inline]
    pub(super) fn on(
        stream: &'a StreamState<D>,
        weak: impl FnOnce() -> Weak<StreamState<D>>,
    ) -> Self {
        let work = &stream.device.work;
        if !stream.progress.works.swap(true, Ordering::Relaxed) {
            let mut streams = work.streams.lock().unwrap_or_else(PoisonError::into_inner);
            streams.retain(|stream| stream.strong_count() > 0);
            streams.push(weak());
        }
        Self(work)
    }
}

impl<D: Device> Drop for Running<'_, D> {
    #[inline]
    fn drop(&mut self) {
        // Before TensorFlow can free what the kernel has used: the one who gets it sees this.
        self.0.enqueued.fetch_add(1, Ordering::AcqRel);
    }
}

impl<D: Device> StreamState<D> {
    /// Lets this stream wait for another one.
    pub(super) fn wait_for(&self, other: &Self) -> Result<()> {
        let enqueued = self.device.work.enqueued();
        let copies = other.copies.open();
        self.author()?.wait_for_stream(other.author()?)?;
        if core::ptr::eq(self, other) {
            return Ok(());
        }
        self.copies.add_all(copies);
        // Where two streams have work, one is not all.
        if other.progress.works.load(Ordering::Relaxed) && self.device.work.streams().len() == 1 {
            self.progress.waited.fetch_max(enqueued, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Lets this stream wait for all work that was enqueued on the device.
    #[inline]
    pub(super) fn wait_for_work(&self) -> Result<()> {
        match self.device.work.enqueued() {
            enqueued if enqueued == self.progress.waited.load(Ordering::Acquire) => Ok(()),
            enqueued => self.wait_for_all(enqueued),
        }
    }

    #[cold]
    fn wait_for_all(&self, enqueued: u64) -> Result<()> {
        for other in self.device.work.streams() {
            if !core::ptr::eq(self, &*other) {
                self.wait_for(&other)?;
            }
        }
        self.progress.waited.fetch_max(enqueued, Ordering::AcqRel);
        Ok(())
    }
}
