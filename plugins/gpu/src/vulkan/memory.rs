//! Buffers, each with its own memory.

use super::{Vulkan, failed};
use ash::vk;
use se_plugin::Code;
use se_plugin_gpu::backend::{Allocation, BackendError, BackendResult, MemoryKind};
use std::ptr::NonNull;

/// A buffer and its memory; null until they are created.
pub(crate) struct Memory {
    pub(super) buffer: vk::Buffer,
    memory: vk::DeviceMemory,
}

impl Vulkan {
    pub(super) fn buffer(&self, size: u64, kind: MemoryKind) -> BackendResult<Allocation<Memory>> {
        let what = |error| failed(format_args!("allocate {size} bytes"), error);
        let (index, own) = match kind {
            MemoryKind::Local => (self.local, vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS),
            MemoryKind::Mapped => (self.mapped, vk::BufferUsageFlags::empty()),
        };
        let both = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
        let storage = vk::BufferUsageFlags::STORAGE_BUFFER;
        let info = vk::BufferCreateInfo::default().size(size).usage(own | both | storage);
        // SAFETY: the device lives, `info` is complete and `size` is not 0.
        let buffer = unsafe { self.raw.create_buffer(&info, None) }.map_err(what)?;
        let memory = Memory { buffer, memory: vk::DeviceMemory::null() };
        let mut allocation = Allocation { address: 0, host: None, memory };
        match self.fill_in(&mut allocation, size, index, kind) {
            Ok(()) => Ok(allocation),
            Err(failure) => {
                if !failure.is_lost {
                    // SAFETY: nobody else has it.
                    unsafe { self.release(&allocation.memory) };
                }
                Err(failure)
            }
        }
    }

    /// Allocates and binds the memory of a buffer.
    fn fill_in(
        &self,
        allocation: &mut Allocation<Memory>,
        size: u64,
        index: u32,
        kind: MemoryKind,
    ) -> BackendResult {
        let what = |error| failed(format_args!("allocate {size} bytes"), error);
        let buffer = allocation.memory.buffer;
        // SAFETY: the buffer is the device's.
        let needs = unsafe { self.raw.get_buffer_memory_requirements(buffer) };
        if needs.memory_type_bits & (1 << index) == 0 {
            return Err(BackendError {
                code: Code::Internal,
                what: format!("vulkan cannot allocate {size} bytes"),
                cause: format!("it takes no buffers in memory of type {index}"),
                help: "report it with the driver's name",
                is_lost: false,
            });
        }
        let mut flags = vk::MemoryAllocateFlagsInfo::default();
        if kind == MemoryKind::Local {
            flags = flags.flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        }
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(index)
            .push_next(&mut flags);
        // SAFETY: the type exists, and `info` with its chain outlives the call.
        let of_buffer = unsafe { self.raw.allocate_memory(&info, None) }.map_err(what)?;
        allocation.memory.memory = of_buffer;
        // SAFETY: both are new and the memory is as large as the buffer needs.
        unsafe { self.raw.bind_buffer_memory(buffer, of_buffer, 0) }.map_err(what)?;
        match kind {
            MemoryKind::Local => {
                let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
                // SAFETY: the buffer is bound to memory, both made for device addresses.
                allocation.address = unsafe { self.raw.get_buffer_device_address(&info) };
            }
            MemoryKind::Mapped => {
                let (whole, none) = (vk::WHOLE_SIZE, vk::MemoryMapFlags::empty());
                // SAFETY: the memory is of a type that the host can map, and is not mapped.
                let host = unsafe { self.raw.map_memory(of_buffer, 0, whole, none) };
                allocation.host =
                    NonNull::new(host.map_err(|error| failed("map memory", error))?.cast());
            }
        }
        Ok(())
    }

    /// # Safety
    /// The memory is of this GPU, which is not at anything that uses it, and nothing uses it later.
    pub(super) unsafe fn release(&self, memory: &Memory) {
        // SAFETY: the memory is of this GPU, and nothing uses it any longer; null is ignored.
        unsafe {
            self.raw.destroy_buffer(memory.buffer, None);
            self.raw.free_memory(memory.memory, None);
        }
    }
}
