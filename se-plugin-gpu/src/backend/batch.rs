//! Batches of commands.

mod parallel_memcpy;

use super::buffer::{Buffer, BufferSlice};
use super::clock::{Measured, now};
use super::erased::{Dispatch, Range as MemoryRange, Recorder};
use super::gpu::Gpu;
use super::interface::{BackendResult, MOST_COMMANDS, PUSH_BYTES};
use se_plugin::{Code, Error, HostSource, HostTarget, Result, ensure};
use std::ops::Range;
use std::sync::Arc;

/// A batch is full once this many bytes are staged for copies from the host.
const MOST_STAGED: u64 = 64 << 20;

/// The least staging memory that is allocated for copies from and to the host.
const LEAST_STAGING: u64 = 1 << 20;

/// Commands that run in order, after those of all batches that were sent before.
pub(crate) struct Batch {
    gpu: Arc<Gpu>,
    recorder: Box<dyn Recorder>,
    /// Whether the GPU may be executing it.
    is_sent: bool,
    names: Vec<&'static str>,
    /// Whether the driver has failed in the middle of a batch: then the batch calls nothing more.
    is_broken: bool,
    uses: Vec<Arc<Buffer>>,
    /// Memory for copies from and to the host, and how many bytes of it are used.
    staging: Option<Buffer>,
    staged: u64,
    /// Whether to measure when its commands run, and when the batch was sent.
    is_measured: bool,
    sent: i64,
    measured: Vec<Measured>,
}

/// Bytes in the staging memory of a batch.
pub(crate) struct Staged(Range<usize>);

impl Batch {
    /// Creates an empty batch.
    ///
    /// # Errors
    /// Those of the driver.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        Ok(Self {
            gpu: Arc::clone(gpu),
            recorder: gpu.recorder()?,
            is_sent: false,
            names: Vec::new(),
            is_broken: false,
            uses: Vec::new(),
            staging: None,
            staged: 0,
            is_measured: false,
            sent: 0,
            measured: Vec::new(),
        })
    }

    /// Returns whether it has to be sent before more is recorded.
    pub(crate) fn is_full(&self) -> bool {
        self.names.len() >= MOST_COMMANDS || self.staged >= MOST_STAGED
    }

    /// Sets whether [`measured`](Self::measured) returns the next commands, if nothing is recorded yet.
    pub(crate) fn measure(&mut self, is_measured: bool) {
        if self.names.is_empty() {
            self.is_measured = is_measured;
        }
    }

    /// Returns when the commands of the last batch ran that was waited for.
    pub(crate) fn measured(&mut self) -> Vec<Measured> {
        std::mem::take(&mut self.measured)
    }

    /// Records a command that uses these buffers: `record` passes it to the driver.
    fn record<'a>(
        &mut self,
        name: &'static str,
        uses: impl IntoIterator<Item = &'a BufferSlice>,
        record: impl FnOnce(&mut dyn Recorder) -> BackendResult,
    ) -> Result<()> {
        self.check()?;
        let gpu = Arc::clone(&self.gpu);
        if self.names.is_empty() {
            // SAFETY: the recorder is new or was reset by `wait`.
            let begun = unsafe { self.recorder.begin(self.is_measured) };
            begun.map_err(|failure| gpu.failed(&failure))?;
        }
        self.names.push(name);
        for BufferSlice { buffer, .. } in uses {
            ensure!(buffer.is_of(&gpu), Error::internal("memory of another GPU"));
            self.uses.push(Arc::clone(buffer));
        }
        // Until the command is marked: a batch with half a command is not sent.
        self.is_broken = true;
        record(&mut *self.recorder).map_err(|failure| gpu.failed(&failure))?;
        // SAFETY: the batch has begun.
        unsafe { self.recorder.mark() }.map_err(|failure| gpu.failed(&failure))?;
        self.is_broken = false;
        Ok(())
    }

    /// Records a copy.
    ///
    /// # Errors
    /// `INTERNAL` if a range is outside of its buffer; those of the driver.
    pub(crate) fn copy(
        &mut self,
        target: &BufferSlice,
        source: &BufferSlice,
        bytes: u64,
    ) -> Result<()> {
        let (to, from) = (target.range(bytes)?, source.range(bytes)?);
        if bytes == 0 {
            return Ok(());
        }
        let is_same = Arc::ptr_eq(&target.buffer, &source.buffer);
        if is_same && to.offset < from.offset + bytes && from.offset < to.offset + bytes {
            return Err(Error::invalid_argument("source and target of a copy overlap"));
        }
        self.record("MemcpyD2D", [target, source], |recorder| {
            // SAFETY: the batch has begun; both ranges are within their buffers and do not overlap; the batch keeps both.
            unsafe { recorder.copy(to, from) }
        })
    }

    /// Records a copy from another GPU, whose work that wrote the source is done. Returns `false` if the driver has no such copy.
    ///
    /// # Errors
    /// `INTERNAL` if a range is outside of its buffer; those of the driver.
    pub(crate) fn copy_from_peer(
        &mut self,
        target: &BufferSlice,
        peer: &Arc<Gpu>,
        source: &BufferSlice,
        bytes: u64,
    ) -> Result<bool> {
        let (to, from) = (target.range(bytes)?, source.range(bytes)?);
        ensure!(source.buffer.is_of(peer), Error::internal("memory of another GPU"));
        if bytes == 0 {
            return Ok(true);
        }
        if !self.gpu.driver.supports_peer_copies() {
            return Ok(false);
        }
        let mut is_recorded = false;
        self.uses.push(Arc::clone(&source.buffer));
        self.record("MemcpyP2P", [target], |recorder| {
            // SAFETY: the batch has begun; both ranges are within their buffers, which the batch keeps.
            is_recorded = unsafe { recorder.copy_from_peer(to, &*peer.driver, from) }?;
            Ok(())
        })?;
        Ok(is_recorded)
    }

    /// Reserves staging memory, until the batch is done.
    fn stage(&mut self, bytes: usize) -> Result<Staged> {
        self.check()?;
        let bytes = bytes as u64;
        if self.staged == 0 && bytes <= MOST_STAGED {
            // Memory that was needed for one large copy is not kept.
            self.staging.take_if(|buffer| buffer.bytes() > MOST_STAGED);
        }
        let has_room = |buffer: &Buffer| self.staged + bytes <= buffer.bytes();
        if !self.staging.as_ref().is_some_and(has_room) {
            let size = (self.staged + bytes).next_power_of_two().min(MOST_STAGED);
            let least = bytes.max(LEAST_STAGING);
            // Without the memory data would be missing, and the stream could not be used any more.
            let buffer = match Buffer::mapped(&self.gpu, size.max(least)) {
                Err(error) if size > least && error.code() == Code::ResourceExhausted => {
                    Buffer::mapped(&self.gpu, least)?
                }
                buffer => buffer?,
            };
            self.uses.extend(self.staging.replace(buffer).map(Arc::new));
            self.staged = 0;
        }
        let start = self.staged as usize;
        self.staged = (self.staged + bytes).next_multiple_of(16);
        Ok(Staged(start..start + bytes as usize))
    }

    /// Records a copy from the host; `read` writes the bytes to the staging memory now.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is no memory for it; those of [`copy`](Self::copy).
    pub(crate) fn upload(
        &mut self,
        target: &BufferSlice,
        bytes: usize,
        read: impl FnOnce(&mut [u8]),
    ) -> Result<()> {
        let to = target.range(bytes as u64)?;
        if bytes == 0 {
            return Ok(());
        }
        let Staged(range) = self.stage(bytes)?;
        let staging = self.staging.as_mut().ok_or_else(no_staging)?;
        read(staging.host(range.clone()).ok_or_else(no_staging)?);
        self.record_staged("MemcpyH2D", target, |recorder, staging| {
            // SAFETY: the batch has begun; the range of the staging memory is this copy's alone, and the batch keeps the
            // memory; the target's range is within its buffer, which the batch keeps.
            unsafe { recorder.copy(to, staging.part(range.start as u64, bytes as u64)) }
        })
    }

    /// Records a copy of a part of TensorFlow's memory, which is read now, by several threads if the part is large.
    ///
    /// # Errors
    /// `INTERNAL` if the part is outside of that memory; those of [`upload`](Self::upload).
    pub(crate) fn upload_part(
        &mut self,
        target: &BufferSlice,
        source: &HostSource,
        part: Range<usize>,
    ) -> Result<()> {
        check_part(&part, source.len())?;
        self.upload(target, part.len(), |to| {
            let from = source.as_ptr().wrapping_add(part.start);
            // SAFETY: `to` is as long as the part, which is within the source, and TensorFlow's memory can be read while the
            // source exists. `to` is staging memory, of which TensorFlow knows nothing.
            unsafe { parallel_memcpy::copy(to.as_mut_ptr(), from, to.len()) };
        })
    }

    /// Records a copy from or to the staging memory.
    fn record_staged(
        &mut self,
        name: &'static str,
        slice: &BufferSlice,
        copy: impl FnOnce(&mut dyn Recorder, &Buffer) -> BackendResult,
    ) -> Result<()> {
        let staging = self.staging.take().ok_or_else(no_staging)?;
        let recorded = self.record(name, [slice], |recorder| copy(recorder, &staging));
        self.staging = Some(staging);
        recorded
    }

    /// Records a copy to the host. [`staged`](Self::staged) and [`take`](Self::take) return it once the batch is done.
    ///
    /// # Errors
    /// Those of [`upload`](Self::upload).
    pub(crate) fn download(&mut self, source: &BufferSlice, bytes: usize) -> Result<Staged> {
        let from = source.range(bytes as u64)?;
        if bytes == 0 {
            return Ok(Staged(0..0));
        }
        let staged = self.stage(bytes)?;
        let start = staged.0.start as u64;
        self.record_staged("MemcpyD2H", source, |recorder, staging| {
            // SAFETY: as in `upload`, the other way round.
            unsafe { recorder.copy(staging.part(start, bytes as u64), from) }
        })?;
        Ok(staged)
    }

    /// Returns what a batch that is done has copied to the host.
    pub(crate) fn staged(&mut self, staged: Staged) -> &[u8] {
        if self.is_sent {
            return &[];
        }
        self.staging.as_mut().and_then(|buffer| buffer.host(staged.0)).unwrap_or_default()
    }

    /// Copies what a batch that is done has copied to the host to TensorFlow's memory, at the byte
    /// `start`; by several threads if it is large.
    ///
    /// # Errors
    /// `INTERNAL` if that memory is shorter.
    pub(crate) fn take(
        &mut self,
        staged: Staged,
        target: &mut HostTarget,
        start: usize,
    ) -> Result<()> {
        let from = self.staged(staged);
        check_part(&(start..start.saturating_add(from.len())), target.len())?;
        let to = target.as_mut_ptr().wrapping_add(start);
        // SAFETY: the part is within the target, which is borrowed alone, and TensorFlow's memory can be written while it
        // exists. `from` is borrowed staging memory, at which the GPU is not, and of which TensorFlow knows nothing.
        unsafe { parallel_memcpy::copy(to, from.as_ptr(), from.len()) };
        Ok(())
    }

    /// Records a fill with a pattern, which is one byte four times unless the range is aligned to 4.
    ///
    /// # Errors
    /// Those of [`copy`](Self::copy).
    pub(crate) fn fill(
        &mut self,
        target: &BufferSlice,
        pattern: [u8; 4],
        bytes: u64,
    ) -> Result<()> {
        let spot = target.range(bytes)?;
        let from = spot.offset;
        // Drivers fill whole words; the bytes before the first and behind the last word are copied.
        let first = from.next_multiple_of(4).min(from + bytes);
        let last = ((from + bytes) & !3).max(first);
        for (start, end) in [(from, first), (last, from + bytes)] {
            let buffer = Arc::clone(&target.buffer);
            let edge = BufferSlice { buffer, offset: target.offset + (start - from) };
            self.upload(&edge, (end - start) as usize, |to| to.fill(pattern[0]))?;
        }
        if last > first {
            let (word, whole) = (
                u32::from_ne_bytes(pattern),
                MemoryRange { offset: first, bytes: last - first, ..spot },
            );
            self.record("Memset", [target], |recorder| {
                // SAFETY: the batch has begun; both ends are multiples of 4, within the buffer, which the batch keeps, and
                // not the same.
                unsafe { recorder.fill(whole, word) }
            })?;
        }
        Ok(())
    }

    /// Records a launch for an op, which uses these buffers.
    ///
    /// # Errors
    /// Those of the driver.
    pub(crate) fn dispatch(
        &mut self,
        op: &'static str,
        uses: &[BufferSlice],
        shader: &Dispatch,
    ) -> Result<()> {
        ensure!(shader.push.len() <= PUSH_BYTES, Error::internal("too much to push to a shader"));
        self.record(op, uses, |recorder| {
            // SAFETY: the batch has begun; the program is this GPU's, and `push` what its shader takes, for the tensors of the
            // operation. Shaders and libraries reach memory by addresses of device memory only, of which Rust borrows nothing,
            // and the batch keeps `uses`.
            unsafe { recorder.dispatch(shader) }
        })
    }

    /// Sends the batch to the GPU. The next call is [`wait`](Self::wait).
    ///
    /// # Errors
    /// Those of the driver: `INTERNAL` if the GPU is lost. After an error nothing more is recorded.
    pub(crate) fn send(&mut self) -> Result<()> {
        self.check()?;
        if self.names.is_empty() {
            return Ok(());
        }
        self.is_broken = true;
        self.sent = now();
        let recorder = &mut self.recorder;
        // SAFETY: the batch has begun, and `record` marks each command.
        let sent = self.gpu.watchdog.send(|| unsafe { recorder.send() });
        sent.map_err(|failure| self.gpu.failed(&failure))?;
        (self.is_sent, self.is_broken) = (true, false);
        Ok(())
    }

    /// Waits until the batch is done, if it was sent, and empties it.
    ///
    /// # Errors
    /// Those of [`send`](Self::send); `DEADLINE_EXCEEDED` if the GPU hangs.
    pub(crate) fn wait(&mut self) -> Result<()> {
        if !self.is_sent {
            return Ok(());
        }
        self.gpu.check_process()?;
        self.is_broken = true;
        let gpu = Arc::clone(&self.gpu);
        gpu.watchdog.wait(&gpu.name, &mut *self.recorder, &self.names)?;
        self.is_sent = false;
        if self.is_measured {
            let times = self.recorder.times().map_err(|failure| gpu.failed(&failure))?;
            self.measured = gpu.clock.measured(&self.names, &times.unwrap_or_default(), self.sent);
        }
        self.names.clear();
        self.staged = 0;
        self.uses.clear();
        // SAFETY: the batch is done.
        unsafe { self.recorder.reset() }.map_err(|failure| gpu.failed(&failure))?;
        self.is_broken = false;
        Ok(())
    }

    /// Sends the batch and waits until it is done.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.send()?;
        self.wait()
    }

    fn check(&self) -> Result<()> {
        self.gpu.check_process()?;
        // The GPU's failure comes first, since it causes the others.
        self.gpu.lost().map_or(Ok(()), Err)?;
        ensure!(!self.is_sent, Error::internal("the GPU is at this batch"));
        ensure!(!self.is_broken, Error::internal("the GPU has failed before; restart the process"));
        Ok(())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.gpu.check_process().is_err() {
            return;
        }
        // Callbacks may expect recorded commands to run, so they are sent. Nothing waits for a GPU that was lost.
        let _ = self.flush();
        if !self.names.is_empty() || self.gpu.lost().is_some() {
            // The GPU may still be executing it: it is kept forever, with what it uses.
            std::mem::forget((std::mem::take(&mut self.uses), self.staging.take()));
            return;
        }
        // SAFETY: nothing is recorded that was not waited for.
        unsafe { self.recorder.destroy() };
    }
}

/// Fails if the part is not within `bytes` bytes of TensorFlow's memory.
fn check_part(part: &Range<usize>, bytes: usize) -> Result<()> {
    let fits = part.start <= part.end && part.end <= bytes;
    ensure!(fits, Error::internal("part outside of the host's memory"));
    Ok(())
}

#[cold]
fn no_staging() -> Error {
    Error::internal("no staging memory")
}
