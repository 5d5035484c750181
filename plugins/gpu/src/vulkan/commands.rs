//! Command buffers.

use super::memory::Memory;
use super::{Vulkan, failed};
use ash::vk;
use se_plugin_gpu::backend::{BackendResult, LARGEST_BATCH, Span};
use std::sync::PoisonError;
use std::time::Duration;

/// Times of a batch: one at its beginning, and one behind each command.
const TIMES: u32 = LARGEST_BATCH as u32 + 1;

/// A command buffer with a timeline.
pub(crate) struct Commands {
    pool: vk::CommandPool,
    buffer: vk::CommandBuffer,
    /// A timeline semaphore: how many batches are done.
    done: vk::Semaphore,
    /// How many batches were sent.
    sent: u64,
    /// The queries for times; null until a batch is measured.
    queries: vk::QueryPool,
    /// The number of times taken in this batch, if it is measured.
    taken: Option<u32>,
}

impl Commands {
    pub(super) fn new(device: &Vulkan) -> BackendResult<Self> {
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(device.family);
        // SAFETY: the device has a queue of this family.
        let pool = unsafe { device.raw.create_command_pool(&info, None) }
            .map_err(|error| failed("create a command pool", error))?;
        let mut commands = Self {
            pool,
            buffer: vk::CommandBuffer::null(),
            done: vk::Semaphore::null(),
            sent: 0,
            queries: vk::QueryPool::null(),
            taken: None,
        };
        match commands.fill_in(&device.raw) {
            Ok(()) => Ok(commands),
            Err(failure) => {
                if !failure.is_lost {
                    // SAFETY: it has recorded nothing.
                    unsafe { commands.destroy(device) };
                }
                Err(failure)
            }
        }
    }

    fn fill_in(&mut self, device: &ash::Device) -> BackendResult {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .command_buffer_count(1);
        // SAFETY: the pool is this device's, and no other thread has it.
        let buffers = unsafe { device.allocate_command_buffers(&info) }
            .map_err(|error| failed("create a command buffer", error))?;
        self.buffer = buffers[0];
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device has timeline semaphores, and the chain outlives the call.
        self.done = unsafe { device.create_semaphore(&info, None) }
            .map_err(|error| failed("create a semaphore", error))?;
        Ok(())
    }

    /// Creates the queries for times, if the GPU has a clock. Returns whether it has.
    fn make_queries(&mut self, device: &Vulkan) -> BackendResult<bool> {
        if device.tick == 0.0 {
            return Ok(false);
        }
        if self.queries == vk::QueryPool::null() {
            let info = vk::QueryPoolCreateInfo::default()
                .query_type(vk::QueryType::TIMESTAMP)
                .query_count(TIMES);
            // SAFETY: the device lives, and `info` outlives the call.
            self.queries = unsafe { device.raw.create_query_pool(&info, None) }
                .map_err(|error| failed("create timestamps", error))?;
        }
        Ok(true)
    }

    /// # Safety
    /// The buffer is open.
    unsafe fn stamp(&mut self, device: &Vulkan) {
        let Some(taken) = self.taken.as_mut().filter(|taken| **taken < TIMES) else { return };
        let stage = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
        // SAFETY: the buffer is open; the query exists, and was reset by `measure` in the same batch.
        unsafe {
            device.raw.cmd_write_timestamp(self.buffer, stage, self.queries, *taken);
        }
        *taken += 1;
    }

    /// # Safety
    /// As for all functions that record: [`Backend`](se_plugin_gpu::backend::Backend) says what the caller promises of batches,
    /// ranges and programs.
    pub(super) unsafe fn begin(&mut self, device: &Vulkan, is_measured: bool) -> BackendResult {
        let is_measured = is_measured && self.make_queries(device)?;
        let info = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the buffer is new or was reset, and `&mut self` is alone with its pool.
        unsafe { device.raw.begin_command_buffer(self.buffer, &info) }
            .map_err(|error| failed("begin a batch", error))?;
        self.taken = is_measured.then_some(0);
        if is_measured {
            // SAFETY: the buffer is open, there are so many queries, and the GPU is not at a batch with them.
            unsafe {
                device.raw.cmd_reset_query_pool(self.buffer, self.queries, 0, TIMES);
                self.stamp(device);
            }
        }
        Ok(())
    }

    /// # Safety
    /// As for [`begin`](Self::begin).
    pub(super) unsafe fn copy(
        &mut self,
        device: &Vulkan,
        target: Span<'_, Memory>,
        source: Span<'_, Memory>,
    ) {
        let region = [vk::BufferCopy {
            src_offset: source.offset,
            dst_offset: target.offset,
            size: target.bytes,
        }];
        let (from, to) = (source.memory.memory.buffer, target.memory.memory.buffer);
        // SAFETY: the command buffer is open, and of the ranges the rest is as the caller says.
        unsafe { device.raw.cmd_copy_buffer(self.buffer, from, to, &region) };
    }

    /// # Safety
    /// As for [`begin`](Self::begin).
    pub(super) unsafe fn fill(&mut self, device: &Vulkan, target: Span<'_, Memory>, word: u32) {
        let Span { memory, offset, bytes } = target;
        let to = memory.memory.buffer;
        // SAFETY: the command buffer is open; offset and size are multiples of 4, within the buffer, and not 0.
        unsafe { device.raw.cmd_fill_buffer(self.buffer, to, offset, bytes, word) };
    }

    /// # Safety
    /// As for [`begin`](Self::begin).
    pub(super) unsafe fn launch(
        &mut self,
        device: &Vulkan,
        pipeline: vk::Pipeline,
        push: &[u8],
        [x, y, z]: [u32; 3],
    ) {
        // SAFETY: the command buffer is open; the pipeline is this device's and lives as long; `push` is within the
        // range of its layout. Shaders reach memory by addresses of device memory only, of which Rust borrows nothing.
        unsafe {
            let bind = vk::PipelineBindPoint::COMPUTE;
            device.raw.cmd_bind_pipeline(self.buffer, bind, pipeline);
            let stage = vk::ShaderStageFlags::COMPUTE;
            device.raw.cmd_push_constants(self.buffer, device.layout, stage, 0, push);
            device.raw.cmd_dispatch(self.buffer, x, y, z);
        }
    }

    /// # Safety
    /// As for [`begin`](Self::begin).
    pub(super) unsafe fn mark(&mut self, device: &Vulkan) {
        let writes = vk::AccessFlags::TRANSFER_WRITE | vk::AccessFlags::SHADER_WRITE;
        let reads = vk::AccessFlags::TRANSFER_READ | vk::AccessFlags::SHADER_READ;
        let barrier = [vk::MemoryBarrier::default()
            .src_access_mask(writes)
            .dst_access_mask(writes | reads | vk::AccessFlags::HOST_READ)];
        let both = vk::PipelineStageFlags::TRANSFER | vk::PipelineStageFlags::COMPUTE_SHADER;
        // SAFETY: the command buffer is open, and a memory barrier names no object.
        unsafe {
            device.raw.cmd_pipeline_barrier(
                self.buffer,
                both,
                both | vk::PipelineStageFlags::HOST,
                vk::DependencyFlags::empty(),
                &barrier,
                &[],
                &[],
            );
            self.stamp(device);
        }
    }

    /// # Safety
    /// As for [`begin`](Self::begin).
    pub(super) unsafe fn send(&mut self, device: &Vulkan) -> BackendResult {
        // SAFETY: the command buffer is open.
        unsafe { device.raw.end_command_buffer(self.buffer) }
            .map_err(|error| failed("end a batch", error))?;
        let (semaphores, values, buffers) = ([self.done], [self.sent + 1], [self.buffer]);
        let mut timeline =
            vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
        let submit = [vk::SubmitInfo::default()
            .command_buffers(&buffers)
            .signal_semaphores(&semaphores)
            .push_next(&mut timeline)];
        let queue = device.queue.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lock is the queue's; the buffer is ended and not in use; the value is the next of the timeline.
        unsafe { device.raw.queue_submit(*queue, &submit, vk::Fence::null()) }
            .map_err(|error| failed("send a batch", error))?;
        drop(queue);
        self.sent += 1;
        Ok(())
    }

    pub(super) fn wait(&mut self, device: &Vulkan, limit: Duration) -> BackendResult<bool> {
        let (semaphores, values) = ([self.done], [self.sent]);
        let wait = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        let nanoseconds = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: `done` is a timeline semaphore of this device, and `wait` outlives the call.
        match unsafe { device.raw.wait_semaphores(&wait, nanoseconds) } {
            Ok(()) => Ok(true),
            Err(vk::Result::TIMEOUT) => Ok(false),
            Err(error) => Err(failed("wait for a batch", error)),
        }
    }

    pub(super) fn times(&mut self, device: &Vulkan) -> BackendResult<Option<Vec<[i64; 2]>>> {
        let Some(taken) = self.taken.take() else { return Ok(None) };
        let mut ticks = vec![0_u64; taken as usize];
        let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WAIT;
        // SAFETY: so many queries were written by the batch, which is done.
        unsafe { device.raw.get_query_pool_results(self.queries, 0, &mut ticks, flags) }
            .map_err(|error| failed("read timestamps", error))?;
        let times = ticks
            .windows(2)
            .map(|ends| [ends[0], ends[1]].map(|ticks| (ticks as f64 * device.tick) as i64));
        Ok(Some(times.collect()))
    }

    /// # Safety
    /// The GPU does not execute the batch.
    pub(super) unsafe fn reset(&mut self, device: &Vulkan) -> BackendResult {
        let flags = vk::CommandPoolResetFlags::empty();
        // SAFETY: the GPU is done with the pool's only buffer, as the caller says.
        unsafe { device.raw.reset_command_pool(self.pool, flags) }
            .map_err(|error| failed("reset a batch", error))
    }

    /// # Safety
    /// As for [`reset`](Self::reset).
    pub(super) unsafe fn destroy(self, device: &Vulkan) {
        let device = &device.raw;
        // SAFETY: the GPU is not at the batch, as the caller says; null is ignored.
        unsafe {
            device.destroy_query_pool(self.queries, None);
            device.destroy_semaphore(self.done, None);
            device.destroy_command_pool(self.pool, None);
        }
    }
}
