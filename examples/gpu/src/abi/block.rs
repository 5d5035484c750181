//! Memory.

use super::card::Gpu;
use ash::vk;
use se_plugin::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// TensorFlow divides regions at multiples of it.
const ALIGNMENT: u64 = 256;

/// A buffer with memory of its own. What uses it in a batch keeps it.
pub(crate) struct Block {
    gpu: Arc<Gpu>,
    pub(super) buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    /// Bytes of the buffer before the first that is used, so that its address is aligned.
    pad: u64,
    address: u64,
    bytes: u64,
    /// What it takes of the card's `total`; 0 for memory of the host.
    reserved: u64,
    /// Where the host sees it; null for device memory.
    host: *mut u8,
}

// SAFETY: the handles are numbers that Vulkan lets any thread use; what the host sees is only reached through
// `host`, which takes the block alone (`&mut`).
unsafe impl Send for Block {}
// SAFETY: nothing behind a shared reference changes: `host` takes `&mut self`, and the rest is set before the block is
// shared.
unsafe impl Sync for Block {}

impl Block {
    /// Allocates device memory at an aligned address.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if it is not there.
    pub(crate) fn local(gpu: &Arc<Gpu>, bytes: u64) -> Result<Self> {
        let size = bytes.saturating_add(ALIGNMENT);
        // Before the allocation, so that threads cannot take the same rest.
        let reserve = |used: u64| used.checked_add(size).filter(|used| *used <= gpu.total);
        let reserved = gpu.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve);
        reserved.map_err(|used| {
            Error::resource_exhausted(format!(
                "cannot allocate {bytes} bytes on `{}`: {used} of {} are used; use a smaller batch",
                gpu.name, gpu.total
            ))
        })?;
        let made = Self::new(gpu, size, gpu.local, vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS);
        let mut block = made.inspect_err(|_| {
            gpu.used.fetch_sub(size, Ordering::Relaxed);
        })?;
        block.reserved = size;
        let info = vk::BufferDeviceAddressInfo::default().buffer(block.buffer);
        // SAFETY: the buffer is bound to memory, both made for device addresses, by `new`.
        let first = unsafe { gpu.device.get_buffer_device_address(&info) };
        block.address = first.next_multiple_of(ALIGNMENT);
        block.pad = block.address - first;
        block.bytes = bytes;
        Ok(block)
    }

    /// Allocates memory that the host sees, for copies.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if it is not there.
    pub(crate) fn mapped(gpu: &Arc<Gpu>, bytes: u64) -> Result<Self> {
        let mut block = Self::new(gpu, bytes.max(1), gpu.mapped, vk::BufferUsageFlags::empty())?;
        // SAFETY: the memory is of a type that the host can map, is not mapped, and lives as long as `block`.
        let host = unsafe {
            gpu.device.map_memory(block.memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())
        };
        block.host = host.map_err(|error| gpu.failed("map memory", error))?.cast();
        Ok(block)
    }

    fn new(gpu: &Arc<Gpu>, size: u64, kind: u32, usage: vk::BufferUsageFlags) -> Result<Self> {
        gpu.check_process()?;
        let what = |error| gpu.failed(&format!("allocate {size} bytes"), error);
        let both = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
        let storage = vk::BufferUsageFlags::STORAGE_BUFFER;
        let info = vk::BufferCreateInfo::default().size(size).usage(usage | both | storage);
        // SAFETY: the device lives, `info` is complete and `size` is not 0.
        let buffer = unsafe { gpu.device.create_buffer(&info, None) }.map_err(what)?;
        let mut block = Self {
            gpu: Arc::clone(gpu),
            buffer,
            memory: vk::DeviceMemory::null(),
            pad: 0,
            address: 0,
            bytes: size,
            reserved: 0,
            host: std::ptr::null_mut(),
        };
        // SAFETY: the buffer is the device's.
        let needs = unsafe { gpu.device.get_buffer_memory_requirements(buffer) };
        if needs.memory_type_bits & (1 << kind) == 0 {
            return Err(Error::internal(format!(
                "`{}` takes no buffers in memory of type {kind}; report it with the driver's name",
                gpu.name
            )));
        }
        let mut flags = vk::MemoryAllocateFlagsInfo::default();
        if usage.contains(vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS) {
            flags = flags.flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        }
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(kind)
            .push_next(&mut flags);
        // SAFETY: the type exists, and `info` with its chain outlives the call.
        block.memory = unsafe { gpu.device.allocate_memory(&info, None) }.map_err(what)?;
        // SAFETY: both are new and the memory is as large as the buffer needs.
        unsafe { gpu.device.bind_buffer_memory(buffer, block.memory, 0) }.map_err(what)?;
        Ok(block)
    }

    /// The address on the device of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What is in a mapped block, while no batch uses it.
    pub(crate) fn host(&mut self) -> &mut [u8] {
        if self.host.is_null() {
            return &mut [];
        }
        // SAFETY: `bytes` bytes are mapped at `host` while the block lives, and the driver's memory has a value
        // in each. Nothing else reaches them through Rust; a batch takes its block only while the card is not at it.
        unsafe { std::slice::from_raw_parts_mut(self.host, self.bytes as usize) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // A card that hangs may go on, and use what no batch was seen to be done with.
        if self.gpu.check_process().is_err() || self.gpu.is_lost() {
            return;
        }
        self.gpu.used.fetch_sub(self.reserved, Ordering::Relaxed);
        // SAFETY: a batch that uses the block keeps it, so the device is done with both; null is ignored.
        unsafe {
            self.gpu.device.destroy_buffer(self.buffer, None);
            self.gpu.device.free_memory(self.memory, None);
        }
    }
}

/// A byte in a block.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) block: Arc<Block>,
    pub(crate) offset: u64,
}

impl Place {
    /// Where `bytes` bytes from here begin in the buffer.
    ///
    /// # Errors
    /// `INTERNAL` if the block is shorter.
    pub(super) fn range(&self, bytes: u64) -> Result<u64> {
        let fits = self.offset.checked_add(bytes).is_some_and(|end| end <= self.block.bytes);
        if fits {
            Ok(self.block.pad + self.offset)
        } else {
            Err(Error::internal("range outside of its block"))
        }
    }
}
