//! Streams of worker threads.

use super::delay::Delay;
use super::event::WorkerEvent;
use super::memory::HostMemory;
use super::queue::{QueuePosition, StreamCore, Task, TaskContext, sleep};
use super::range::DeviceRange;
use crate::abi::host::borrow_table::Borrow;
use crate::abi::host_callback::HostCallback;
use crate::abi::host_ptr::{HostSource, HostTarget};
use crate::health::Health;
use crate::memory::DevicePtr;
use crate::stream::{Pattern, Stream};
use std::sync::{Arc, mpsc};
use tf_plugin_core::__private::boundary;
use tf_plugin_core::{Error, Result};

/// A stream whose work runs on its own thread, in order, on [`HostMemory`].
///
/// Copies, fills and the work that kernels [`launch`](Self::launch) wait in one queue; nothing runs on the
/// caller's thread. The thread is created with the first task, so an unused stream costs nothing.
///
/// The first task that fails or panics ends the work of all streams of the same device: later work, which
/// might use its result, does not run. [`status`](Stream::status), [`synchronize`](Stream::synchronize) and
/// later launches report the failure.
///
/// Dropping a stream first runs the tasks in its queue.
#[derive(Debug)]
pub struct WorkerStream {
    core: Arc<StreamCore>,
}

impl WorkerStream {
    /// Creates a stream on this memory, without a device.
    #[must_use]
    pub fn new(memory: &HostMemory, delay: Delay) -> Self {
        Self::of(StreamCore::new(memory, Health::default(), delay, 0, None))
    }

    pub(super) fn of(core: StreamCore) -> Self {
        Self { core: Arc::new(core) }
    }

    pub(crate) fn core(&self) -> &Arc<StreamCore> {
        &self.core
    }

    /// Returns the memory that the stream works on.
    #[must_use]
    pub fn memory(&self) -> &HostMemory {
        &self.core.memory
    }

    /// Enqueues work for `op`, such as a kernel. `work` gets the bytes that it reads and those that it writes,
    /// in the order of the ranges. For work in place, name the range once, in `writes`.
    ///
    /// ```
    /// use se_plugin::host::{Delay, DeviceRange, HostMemory, WorkerStream};
    /// use se_plugin::Stream as _;
    ///
    /// let memory = HostMemory::new(1 << 20)?;
    /// let [a, b] = [memory.allocate(4)?, memory.allocate(4)?].map(|at| DeviceRange::new(at, 4));
    /// let stream = WorkerStream::new(&memory, Delay::NONE);
    /// stream.launch("Fill", [], [a], |[], [a]| {
    ///     a.fill(7);
    ///     Ok(())
    /// })?;
    /// stream.launch("Copy", [a], [b], |[a], [b]| {
    ///     b.copy_from_slice(a);
    ///     Ok(())
    /// })?;
    /// stream.synchronize()?;
    /// # Ok::<(), se_plugin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if a range is not within an allocation; the first failure of the stream if there
    /// was one. The error of `work` itself is the stream's failure.
    pub fn launch<const R: usize, const W: usize>(
        &self,
        op: &'static str,
        reads: [DeviceRange; R],
        writes: [DeviceRange; W],
        work: impl FnOnce([&[u8]; R], [&mut [u8]; W]) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.start(op, reads.into(), writes.into(), false, Box::new(arrays(work)))
    }

    /// Enqueues work as [`launch`](Self::launch) does, with any number of ranges.
    ///
    /// # Errors
    /// As for [`launch`](Self::launch).
    pub fn launch_lists(
        &self,
        op: &'static str,
        reads: Vec<DeviceRange>,
        writes: Vec<DeviceRange>,
        work: impl FnOnce(Vec<&[u8]>, Vec<&mut [u8]>) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.start(op, reads, writes, false, Box::new(work))
    }

    /// Enqueues work as [`launch`](Self::launch) does, and waits for it. An error of `work` is returned and is
    /// not a failure of the stream: for work that must check the content, such as for a division by zero.
    ///
    /// # Errors
    /// As for [`launch`](Self::launch), and those of `work`.
    pub fn run<const R: usize, const W: usize>(
        &self,
        op: &'static str,
        reads: [DeviceRange; R],
        writes: [DeviceRange; W],
        work: impl FnOnce([&[u8]; R], [&mut [u8]; W]) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.start(op, reads.into(), writes.into(), true, Box::new(arrays(work)))
    }

    /// Enqueues work. With `waits`, its result goes to the caller, and otherwise to the task. Not generic: there are as
    /// many types of work as kernels.
    pub(crate) fn start(
        &self,
        op: &'static str,
        reads: Vec<DeviceRange>,
        writes: Vec<DeviceRange>,
        waits: bool,
        work: Box<Work>,
    ) -> Result<()> {
        let memory = &self.core.memory;
        memory.check(op, &reads)?;
        memory.check(op, &writes)?;
        let (sender, receiver) = waits.then(|| mpsc::sync_channel(1)).unzip();
        let end = self.push(op, move |core, turn| {
            turn.health?;
            let mut borrow = core.memory.borrow(op, &reads, &writes)?;
            sleep(turn.hold);
            let (reads, writes) = borrow.slices();
            let result = boundary::catch(op, || work(reads, writes));
            match sender {
                // The waiting thread stays until the work is done.
                Some(sender) => sender.send(result).map_err(Error::internal),
                None => result,
            }
        })?;
        let Some(receiver) = receiver else { return Ok(()) };
        end.wait_elsewhere()?;
        receiver.try_recv().unwrap_or_else(|_| self.core.health.check())
    }

    /// Enqueues work, unless the stream has failed.
    fn push(
        &self,
        op: &'static str,
        run: impl FnOnce(&StreamCore, TaskContext) -> Result<()> + Send + 'static,
    ) -> Result<QueuePosition> {
        self.core.health.check()?;
        self.push_always(op, true, run)
    }

    fn push_always(
        &self,
        op: &'static str,
        is_work: bool,
        run: impl FnOnce(&StreamCore, TaskContext) -> Result<()> + Send + 'static,
    ) -> Result<QueuePosition> {
        // A fork has the queue but not the thread.
        self.core.memory.check(op, &[])?;
        let core = Arc::downgrade(&self.core);
        let run = move |turn| {
            // The thread that runs this has a reference.
            let core = core.upgrade().ok_or_else(|| Error::internal("the stream is gone"))?;
            run(&core, turn)
        };
        self.core.push(Task { op, is_work, run: Box::new(run) })
    }

    fn wait_for(&self, op: &'static str, point: QueuePosition) -> Result<()> {
        if point.is_done() {
            return Ok(());
        }
        self.push_always(op, false, move |_, _| {
            point.wait();
            Ok(())
        })
        .map(drop)
    }
}

/// Returns a copy of the error, for the token.
fn again(error: &Error) -> Error {
    Error::new(error.code(), error.message().to_owned())
}

/// The work of a task, on the bytes that it reads and those that it writes.
type Work = dyn FnOnce(Vec<&[u8]>, Vec<&mut [u8]>) -> Result<()> + Send;

/// Converts work on arrays into work on lists of the same lengths.
fn arrays<const R: usize, const W: usize>(
    work: impl FnOnce([&[u8]; R], [&mut [u8]; W]) -> Result<()> + Send + 'static,
) -> impl FnOnce(Vec<&[u8]>, Vec<&mut [u8]>) -> Result<()> + Send + 'static {
    move |reads, writes| {
        let (reads, writes) = (array(reads)?, array(writes)?);
        work(reads, writes)
    }
}

/// Converts a list into an array. Not part of `arrays`, which is compiled for each type of work.
fn array<T, const N: usize>(slices: Vec<T>) -> Result<[T; N]> {
    slices.try_into().map_err(|_| Error::internal("there are as many slices as ranges"))
}

impl Stream for WorkerStream {
    type Event = WorkerEvent;

    fn copy_to_device(&self, target: DevicePtr, source: HostSource) -> Result<()> {
        const OP: &str = "copy_to_device";
        let range = DeviceRange::new(target, source.len() as u64);
        self.core.memory.check(OP, &[range])?;
        self.push(OP, move |core, turn| {
            let read = |mut borrow: Borrow| source.read(0, borrow.slices().1[0]);
            let copied = core.copy(turn, OP, &[], &[range], read);
            source.complete(copied.as_ref().map(drop).map_err(again));
            copied
        })
        .map(drop)
    }

    fn copy_to_host(&self, mut target: HostTarget, source: DevicePtr) -> Result<()> {
        const OP: &str = "copy_to_host";
        let range = DeviceRange::new(source, target.len() as u64);
        self.core.memory.check(OP, &[range])?;
        self.push(OP, move |core, turn| {
            let write = |mut borrow: Borrow| target.write(0, borrow.slices().0[0]);
            let copied = core.copy(turn, OP, &[range], &[], write);
            target.complete(copied.as_ref().map(drop).map_err(again));
            copied
        })
        .map(drop)
    }

    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        const OP: &str = "copy_on_device";
        let memory = &self.core.memory;
        memory.check(OP, &[])?;
        memory.owner(target).check(OP, &[DeviceRange::new(target, bytes)])?;
        memory.owner(source).check(OP, &[DeviceRange::new(source, bytes)])?;
        self.push(OP, move |core, turn| {
            turn.health?;
            core.memory.copy(OP, target, source, bytes)
        })
        .map(drop)
    }

    fn fill(&self, target: DevicePtr, pattern: Pattern, bytes: u64) -> Result<()> {
        self.launch("fill", [], [DeviceRange::new(target, bytes)], move |[], [target]| {
            pattern.fill(target);
            Ok(())
        })
    }

    fn wait_stream(&self, other: &Self) -> Result<()> {
        // Earlier work in the same stream is done before anyway.
        if Arc::ptr_eq(&self.core, &other.core) {
            return Ok(());
        }
        self.wait_for("wait_stream", other.core.end()?)
    }

    fn record_event(&self, event: &WorkerEvent) -> Result<()> {
        event.set(self.core.end()?);
        Ok(())
    }

    fn wait_event(&self, event: &WorkerEvent) -> Result<()> {
        match event.latest() {
            Some(point) if !self.core.has(&point) => self.wait_for("wait_event", point),
            _ => Ok(()),
        }
    }

    fn host_callback(&self, callback: HostCallback) -> Result<()> {
        self.push_always("host_callback", false, move |_, turn| {
            callback.complete(turn.health);
            Ok(())
        })
        .map(drop)
    }

    fn synchronize(&self) -> Result<()> {
        self.core.end()?.wait_elsewhere()?;
        self.status()
    }

    fn status(&self) -> Result<()> {
        self.core.memory.check_process()?;
        self.core.health.check()
    }
}

impl Drop for WorkerStream {
    fn drop(&mut self) {
        self.core.close();
    }
}
