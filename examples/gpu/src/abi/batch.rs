//! Batches of commands.

use super::block::{Block, Place};
use super::card::{Gpu, failed};
use super::pipeline::Pipeline;
use ash::vk;
use se_plugin::{Code, Error, Result, ensure};
use std::sync::{Arc, PoisonError};

/// After so many commands a batch is sent to the card.
const MOST: usize = 256;

/// Commands that run in order, one batch after the other.
pub(crate) struct Batch {
    gpu: Arc<Gpu>,
    pool: vk::CommandPool,
    buffer: vk::CommandBuffer,
    /// A timeline: the number of batches that are done.
    done: vk::Semaphore,
    sent: u64,
    recorded: usize,
    /// The driver has failed in the middle of a batch: Vulkan permits no more calls with it.
    is_broken: bool,
    /// What the open batch uses.
    uses: Vec<Arc<Block>>,
    /// Four bytes of each value, for fills of odd lengths.
    bytes: Arc<Block>,
}

impl Batch {
    /// # Errors
    /// Those of the driver.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        let mut bytes = Block::mapped(gpu, 4 * 256)?;
        for (index, byte) in bytes.host().iter_mut().enumerate() {
            *byte = (index / 4) as u8;
        }
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(gpu.family);
        // SAFETY: the device has a queue of this family.
        let pool = unsafe { gpu.device.create_command_pool(&info, None) }
            .map_err(|error| failed("create a command pool", error))?;
        let mut batch = Self {
            gpu: Arc::clone(gpu),
            pool,
            buffer: vk::CommandBuffer::null(),
            done: vk::Semaphore::null(),
            sent: 0,
            recorded: 0,
            is_broken: false,
            uses: Vec::new(),
            bytes: Arc::new(bytes),
        };
        let info =
            vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        // SAFETY: the pool is this device's, and no other thread has it.
        let buffers = unsafe { gpu.device.allocate_command_buffers(&info) }
            .map_err(|error| failed("create a command buffer", error))?;
        batch.buffer = buffers[0];
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device has timeline semaphores, and the chain outlives the call.
        batch.done = unsafe { gpu.device.create_semaphore(&info, None) }
            .map_err(|error| failed("create a semaphore", error))?;
        Ok(batch)
    }

    /// Opens the command buffer for a command that uses these blocks.
    fn open<'a>(&mut self, uses: impl IntoIterator<Item = &'a Place>) -> Result<()> {
        self.gpu.check_process()?;
        self.check()?;
        if self.recorded == MOST {
            self.flush()?;
        }
        if self.recorded == 0 {
            let info = vk::CommandBufferBeginInfo::default()
                .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
            // SAFETY: the buffer is new or was reset by `flush`, and `&mut self` is alone with its pool.
            unsafe { self.gpu.device.begin_command_buffer(self.buffer, &info) }
                .map_err(|error| failed("begin a batch", error))?;
        }
        self.recorded += 1;
        self.uses.extend(uses.into_iter().map(|place| Arc::clone(&place.block)));
        Ok(())
    }

    /// Lets later commands, and the host, see what the earlier ones wrote.
    fn barrier(&self) {
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
        let region = [vk::BufferCopy { src_offset: from, dst_offset: to, size: bytes }];
        // SAFETY: the command buffer is open; both ranges are within their buffers and do not overlap; `uses`
        // keeps both until the batch is done.
        unsafe {
            let (to, from) = (target.block.buffer, source.block.buffer);
            self.gpu.device.cmd_copy_buffer(self.buffer, from, to, &region);
        }
        self.barrier();
        Ok(())
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
        let source = Place { block: Arc::clone(&self.bytes), offset: u64::from(pattern[0]) * 4 };
        let after = |at: u64| Place {
            block: Arc::clone(&target.block),
            offset: target.offset + (at - from),
        };
        self.copy(target, &source, first - from)?;
        self.copy(&after(last), &source, from + bytes - last)?;
        if last > first {
            self.open([target, &source])?;
            // SAFETY: the command buffer is open; offset and size are multiples of 4, within the buffer, and not 0.
            unsafe {
                let word = u32::from_ne_bytes(pattern);
                let device = &self.gpu.device;
                device.cmd_fill_buffer(self.buffer, target.block.buffer, first, last - first, word);
            }
            self.barrier();
        }
        Ok(())
    }

    /// Records a run of a shader: `push` is the addresses of `uses` and numbers, `groups` the number of workgroups.
    ///
    /// # Errors
    /// Those of the driver.
    pub(crate) fn dispatch(
        &mut self,
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
        self.barrier();
        Ok(())
    }

    /// Sends the batch to the card and waits until it is done.
    ///
    /// # Errors
    /// Those of the driver: `UNAVAILABLE` if the card is lost. After one nothing more is sent.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.gpu.check_process()?;
        self.check()?;
        if self.recorded == 0 {
            return Ok(());
        }
        self.is_broken = true;
        self.send()?;
        self.is_broken = false;
        Ok(())
    }

    fn check(&self) -> Result<()> {
        ensure!(
            !self.is_broken,
            Error::new(Code::Unavailable, "the card has failed before; restart the process")
        );
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        let device = &self.gpu.device;
        // SAFETY: the command buffer is open.
        unsafe { device.end_command_buffer(self.buffer) }
            .map_err(|error| failed("end a batch", error))?;
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
                .map_err(|error| failed("send a batch", error))?;
        }
        let wait = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: the semaphore is a timeline of this device, and the submission signals it.
        unsafe { device.wait_semaphores(&wait, u64::MAX) }
            .map_err(|error| failed("wait for a batch", error))?;
        self.sent += 1;
        self.recorded = 0;
        self.uses.clear();
        // SAFETY: the card is done with the pool's only buffer: the semaphore has its value.
        unsafe { device.reset_command_pool(self.pool, vk::CommandPoolResetFlags::empty()) }
            .map_err(|error| failed("reset a batch", error))
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.gpu.check_process().is_err() {
            return;
        }
        // SAFETY: nothing that was sent is left: `flush` waits, and after a lost device nothing runs; null is
        // ignored.
        unsafe {
            self.gpu.device.destroy_semaphore(self.done, None);
            self.gpu.device.destroy_command_pool(self.pool, None);
        }
    }
}
