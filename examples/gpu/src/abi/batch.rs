//! Batches of commands.

use super::block::{Block, Place};
use super::card::Gpu;
use super::clock::{Clock, Measured};
use super::pipeline::Pipeline;
use ash::vk;
use se_plugin::{Error, Result, ensure};
use std::ops::Range;
use std::sync::{Arc, PoisonError};

/// After so many commands, or bytes that are copied from the host, a batch is full.
const MOST: usize = 256;
const MOST_STAGED: u64 = 64 << 20;

/// The least that is allocated for copies from and to the host.
const LEAST_STAGING: u64 = 1 << 20;

/// Commands that run in order, after those of all batches that were sent before.
pub(crate) struct Batch {
    gpu: Arc<Gpu>,
    pool: vk::CommandPool,
    buffer: vk::CommandBuffer,
    /// A timeline: how often the batch is done.
    done: vk::Semaphore,
    /// How often it was sent, and whether the card may be at it.
    sent: u64,
    is_sent: bool,
    /// What was recorded.
    names: Vec<&'static str>,
    /// The driver has failed in the middle of a batch: Vulkan permits no more calls with it.
    is_broken: bool,
    /// What it uses.
    uses: Vec<Arc<Block>>,
    /// What is copied from and to the host, and how much of it is taken.
    staging: Option<Block>,
    staged: u64,
    /// When its commands ran, if somebody profiles.
    clock: Option<Clock>,
    is_measured: bool,
    measured: Vec<Measured>,
}

/// Bytes in the staging memory of a batch.
pub(crate) struct Staged(Range<usize>);

impl Batch {
    /// # Errors
    /// Those of the driver.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(gpu.family);
        // SAFETY: the device has a queue of this family.
        let pool = unsafe { gpu.device.create_command_pool(&info, None) }
            .map_err(|error| gpu.failed("create a command pool", error))?;
        let mut batch = Self {
            gpu: Arc::clone(gpu),
            pool,
            buffer: vk::CommandBuffer::null(),
            done: vk::Semaphore::null(),
            sent: 0,
            is_sent: false,
            names: Vec::new(),
            is_broken: false,
            uses: Vec::new(),
            staging: None,
            staged: 0,
            clock: None,
            is_measured: false,
            measured: Vec::new(),
        };
        let info =
            vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        // SAFETY: the pool is this device's, and no other thread has it.
        let buffers = unsafe { gpu.device.allocate_command_buffers(&info) }
            .map_err(|error| gpu.failed("create a command buffer", error))?;
        batch.buffer = buffers[0];
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device has timeline semaphores, and the chain outlives the call.
        batch.done = unsafe { gpu.device.create_semaphore(&info, None) }
            .map_err(|error| gpu.failed("create a semaphore", error))?;
        Ok(batch)
    }

    /// Whether it is to be sent before more is recorded.
    pub(crate) fn is_full(&self) -> bool {
        self.names.len() >= MOST || self.staged >= MOST_STAGED
    }

    /// Says whether [`measured`](Self::measured) is to have what is recorded next; nothing is yet.
    ///
    /// # Errors
    /// Those of the driver.
    pub(crate) fn measure(&mut self, is_measured: bool) -> Result<()> {
        if !self.names.is_empty() {
            return Ok(());
        }
        if is_measured && self.clock.is_none() {
            // A fill is up to three commands.
            self.clock = Clock::new(&self.gpu, MOST + 3)?;
        }
        self.is_measured = is_measured && self.clock.is_some();
        Ok(())
    }

    /// When the commands ran, of the batch that was waited for last.
    pub(crate) fn measured(&mut self) -> Vec<Measured> {
        std::mem::take(&mut self.measured)
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        self.clock.as_mut().filter(|_| self.is_measured)
    }

    /// Opens the command buffer for a command that uses these blocks.
    fn open<'a>(&mut self, uses: impl IntoIterator<Item = &'a Place>) -> Result<()> {
        self.check()?;
        if self.names.is_empty() {
            let info = vk::CommandBufferBeginInfo::default()
                .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
            // SAFETY: the buffer is new or was reset by `wait`, and `&mut self` is alone with its pool.
            unsafe { self.gpu.device.begin_command_buffer(self.buffer, &info) }
                .map_err(|error| self.gpu.failed("begin a batch", error))?;
            let buffer = self.buffer;
            if let Some(clock) = self.clock() {
                // SAFETY: the buffer is open, and the card is not at this batch.
                unsafe { clock.begin(buffer) };
            }
        }
        self.uses.extend(uses.into_iter().map(|place| Arc::clone(&place.block)));
        Ok(())
    }

    /// Ends a command: lets later ones, and the host, see what it wrote.
    fn close(&mut self, name: &'static str) {
        let writes = vk::AccessFlags::TRANSFER_WRITE | vk::AccessFlags::SHADER_WRITE;
        let reads = vk::AccessFlags::TRANSFER_READ | vk::AccessFlags::SHADER_READ;
        let barrier = [vk::MemoryBarrier::default()
            .src_access_mask(writes)
            .dst_access_mask(writes | reads | vk::AccessFlags::HOST_READ)];
        let both = vk::PipelineStageFlags::TRANSFER | vk::PipelineStageFlags::COMPUTE_SHADER;
        // SAFETY: the command buffer is open, and a memory barrier names no object.
        unsafe {
            self.gpu.device.cmd_pipeline_barrier(
                self.buffer,
                both,
                both | vk::PipelineStageFlags::HOST,
                vk::DependencyFlags::empty(),
                &barrier,
                &[],
                &[],
            );
        }
        self.names.push(name);
        let buffer = self.buffer;
        if let Some(clock) = self.clock() {
            // SAFETY: the buffer is open since `open`, which began the times of the batch.
            unsafe { clock.mark(buffer, name) };
        }
    }

    /// Records a copy.
    ///
    /// # Errors
    /// `INTERNAL` if a range is outside of its block; those of the driver.
    pub(crate) fn copy(&mut self, target: &Place, source: &Place, bytes: u64) -> Result<()> {
        let (to, from) = (target.range(bytes)?, source.range(bytes)?);
        if bytes == 0 {
            return Ok(());
        }
        if Arc::ptr_eq(&target.block, &source.block) && to < from + bytes && from < to + bytes {
            return Err(Error::invalid_argument("source and target of a copy overlap"));
        }
        self.open([target, source])?;
        // SAFETY: the command buffer is open; both ranges are within their buffers and do not overlap; `uses`
        // keeps both until the batch is done.
        unsafe { self.record_copy([target.block.buffer, source.block.buffer], [to, from], bytes) };
        self.close("MemcpyD2D");
        Ok(())
    }

    /// # Safety
    /// The command buffer is open; both ranges, in the target and in the source, are within their buffers, do not overlap,
    /// and live until the batch is done.
    unsafe fn record_copy(&self, buffers: [vk::Buffer; 2], starts: [u64; 2], bytes: u64) {
        let region = [vk::BufferCopy { src_offset: starts[1], dst_offset: starts[0], size: bytes }];
        // SAFETY: as the caller says.
        unsafe {
            self.gpu.device.cmd_copy_buffer(self.buffer, buffers[1], buffers[0], &region);
        }
    }

    /// Takes staging memory, until the batch is done.
    fn stage(&mut self, bytes: usize) -> Result<(&mut Block, Staged)> {
        self.check()?;
        let bytes = bytes as u64;
        if self.staged == 0 && bytes <= MOST_STAGED {
            // What was large once is not kept.
            self.staging.take_if(|block| block.bytes() > MOST_STAGED);
        }
        let has_room = |block: &Block| self.staged + bytes <= block.bytes();
        if !self.staging.as_ref().is_some_and(has_room) {
            let size = (self.staged + bytes).next_power_of_two().min(MOST_STAGED);
            let block = Block::mapped(&self.gpu, size.max(bytes).max(LEAST_STAGING))?;
            self.uses.extend(self.staging.replace(block).map(Arc::new));
            self.staged = 0;
        }
        let start = self.staged as usize;
        self.staged = (self.staged + bytes).next_multiple_of(16);
        let block = self.staging.as_mut().ok_or_else(|| Error::internal("no staging memory"))?;
        Ok((block, Staged(start..start + bytes as usize)))
    }

    /// Records a copy from the host; `read` gives the bytes now.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` without memory for it; as for [`copy`](Self::copy).
    pub(crate) fn upload(
        &mut self,
        target: &Place,
        bytes: usize,
        read: impl FnOnce(&mut [u8]),
    ) -> Result<()> {
        let to = target.range(bytes as u64)?;
        if bytes == 0 {
            return Ok(());
        }
        let (block, Staged(range)) = self.stage(bytes)?;
        let (from, buffer) = (range.start as u64, block.buffer);
        read(&mut block.host()[range]);
        self.open([target])?;
        // SAFETY: the command buffer is open; the range of the staging memory is this copy's alone, and the batch keeps
        // the memory; the target's range is within it, and `uses` keeps it.
        unsafe { self.record_copy([target.block.buffer, buffer], [to, from], bytes as u64) };
        self.close("MemcpyH2D");
        Ok(())
    }

    /// Records a copy to the host, which is in [`staged`](Self::staged) once the batch is done.
    ///
    /// # Errors
    /// As for [`upload`](Self::upload).
    pub(crate) fn download(&mut self, source: &Place, bytes: usize) -> Result<Staged> {
        let from = source.range(bytes as u64)?;
        if bytes == 0 {
            return Ok(Staged(0..0));
        }
        let (block, staged) = self.stage(bytes)?;
        let (to, buffer) = (staged.0.start as u64, block.buffer);
        self.open([source])?;
        // SAFETY: as in `upload`, the other way round.
        unsafe { self.record_copy([buffer, source.block.buffer], [to, from], bytes as u64) };
        self.close("MemcpyD2H");
        Ok(staged)
    }

    /// What was copied to the host by a batch that is done.
    pub(crate) fn staged(&mut self, staged: Staged) -> &[u8] {
        if self.is_sent {
            return &[];
        }
        self.staging.as_mut().and_then(|block| block.host().get(staged.0)).unwrap_or_default()
    }

    /// Records a fill with a pattern, which is one byte four times unless the range is aligned to 4.
    ///
    /// # Errors
    /// As for [`copy`](Self::copy).
    pub(crate) fn fill(&mut self, target: &Place, pattern: [u8; 4], bytes: u64) -> Result<()> {
        let from = target.range(bytes)?;
        // Vulkan fills words: what is before the first and after the last is copied.
        let first = from.next_multiple_of(4).min(from + bytes);
        let last = ((from + bytes) & !3).max(first);
        for (start, end) in [(from, first), (last, from + bytes)] {
            let block = Arc::clone(&target.block);
            let edge = Place { block, offset: target.offset + (start - from) };
            self.upload(&edge, (end - start) as usize, |to| to.fill(pattern[0]))?;
        }
        if last > first {
            self.open([target])?;
            // SAFETY: the command buffer is open; offset and size are multiples of 4, within the buffer, and not 0.
            unsafe {
                let word = u32::from_ne_bytes(pattern);
                let device = &self.gpu.device;
                device.cmd_fill_buffer(self.buffer, target.block.buffer, first, last - first, word);
            }
            self.close("Memset");
        }
        Ok(())
    }

    /// Records a run of a shader for an op: `push` is the addresses of `uses` and numbers, `groups` the number of workgroups.
    ///
    /// # Errors
    /// Those of the driver.
    pub(crate) fn dispatch(
        &mut self,
        op: &'static str,
        pipeline: Pipeline,
        uses: &[Place],
        push: &[u8],
        groups: [u32; 3],
    ) -> Result<()> {
        self.open(uses)?;
        let (device, [x, y, z]) = (&self.gpu.device, groups);
        // SAFETY: the command buffer is open; the pipeline is this device's and lives as long; `push` is within the
        // range of its layout. Shaders reach memory by addresses of device memory only, of which Rust borrows nothing.
        unsafe {
            let bind = vk::PipelineBindPoint::COMPUTE;
            device.cmd_bind_pipeline(self.buffer, bind, pipeline.0);
            let layout = self.gpu.pipelines.layout;
            let stage = vk::ShaderStageFlags::COMPUTE;
            device.cmd_push_constants(self.buffer, layout, stage, 0, push);
            device.cmd_dispatch(self.buffer, x, y, z);
        }
        self.close(op);
        Ok(())
    }

    /// Sends the batch to the card. The next call is [`wait`](Self::wait).
    ///
    /// # Errors
    /// Those of the driver: `INTERNAL` if the card is lost. After one nothing more is recorded.
    pub(crate) fn send(&mut self) -> Result<()> {
        self.check()?;
        if self.names.is_empty() {
            return Ok(());
        }
        self.is_broken = true;
        if let Some(clock) = self.clock() {
            clock.send();
        }
        let device = &self.gpu.device;
        // SAFETY: the command buffer is open.
        unsafe { device.end_command_buffer(self.buffer) }
            .map_err(|error| self.gpu.failed("end a batch", error))?;
        let (semaphores, values, buffers) = ([self.done], [self.sent + 1], [self.buffer]);
        let mut timeline =
            vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
        let submit = [vk::SubmitInfo::default()
            .command_buffers(&buffers)
            .signal_semaphores(&semaphores)
            .push_next(&mut timeline)];
        {
            let queue = self.gpu.queue.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the lock is the queue's; the buffer is ended and not in use; the value is the next of the
            // timeline.
            unsafe { device.queue_submit(*queue, &submit, vk::Fence::null()) }
                .map_err(|error| self.gpu.failed("send a batch", error))?;
        }
        self.sent += 1;
        (self.is_sent, self.is_broken) = (true, false);
        Ok(())
    }

    /// Waits until the batch is done, if it was sent, and empties it.
    ///
    /// # Errors
    /// As for [`send`](Self::send); `DEADLINE_EXCEEDED` if the card hangs.
    pub(crate) fn wait(&mut self) -> Result<()> {
        if !self.is_sent {
            return Ok(());
        }
        self.gpu.check_process()?;
        self.is_broken = true;
        let gpu = Arc::clone(&self.gpu);
        gpu.wait(self.done, self.sent, &self.names)?;
        self.is_sent = false;
        self.names.clear();
        self.staged = 0;
        self.uses.clear();
        self.measured = self.clock().map_or(Ok(Vec::new()), Clock::read)?;
        // SAFETY: the card is done with the pool's only buffer: the semaphore has its value.
        unsafe { gpu.device.reset_command_pool(self.pool, vk::CommandPoolResetFlags::empty()) }
            .map_err(|error| gpu.failed("reset a batch", error))?;
        self.is_broken = false;
        Ok(())
    }

    /// Sends the batch and waits until it is done.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.send()?;
        self.wait()
    }

    fn check(&self) -> Result<()> {
        self.gpu.check_process()?;
        // What has happened to the card comes before what follows from it.
        self.gpu.lost().map_or(Ok(()), Err)?;
        ensure!(!self.is_sent, Error::internal("the card is at this batch"));
        ensure!(
            !self.is_broken,
            Error::internal("the card has failed before; restart the process")
        );
        Ok(())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.gpu.check_process().is_err() {
            return;
        }
        // For a card that was lost it does not wait.
        let _ = self.wait();
        if self.is_sent || self.gpu.is_lost() {
            // The card may still be at it: it stays, with what it uses, for good.
            std::mem::forget((
                std::mem::take(&mut self.uses),
                self.staging.take(),
                self.clock.take(),
            ));
            return;
        }
        // SAFETY: nothing that was sent is left, since `wait` waited; null is ignored.
        unsafe {
            self.gpu.device.destroy_semaphore(self.done, None);
            self.gpu.device.destroy_command_pool(self.pool, None);
        }
    }
}
