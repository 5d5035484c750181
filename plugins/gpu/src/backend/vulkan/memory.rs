//! Buffers, each with its own memory.

use super::{Device, failed};
use crate::backend::driver::{BackendError, BackendResult, Memory, MemoryKind};
use ash::vk::{self, Handle as _};
use se_plugin::Code;

/// Returns the buffer of memory that [`Device::allocate`] made.
pub(super) fn buffer(memory: &Memory) -> vk::Buffer {
    vk::Buffer::from_raw(memory.handles[0])
}

impl Device {
    pub(super) fn allocate(&self, size: u64, kind: MemoryKind) -> BackendResult<Memory> {
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
        let mut memory =
            Memory { handles: [buffer.as_raw(), 0], address: 0, host: std::ptr::null_mut() };
        let filled = self.fill_in(&mut memory, size, index, kind);
        filled.inspect_err(|failure| {
            if !failure.is_lost {
                // SAFETY: nobody else has it.
                unsafe { self.free(&memory) };
            }
        })?;
        Ok(memory)
    }

    /// Allocates and binds the memory of a buffer.
    fn fill_in(
        &self,
        memory: &mut Memory,
        size: u64,
        index: u32,
        kind: MemoryKind,
    ) -> BackendResult {
        let what = |error| failed(format_args!("allocate {size} bytes"), error);
        let buffer = buffer(memory);
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
        memory.handles[1] = of_buffer.as_raw();
        // SAFETY: both are new and the memory is as large as the buffer needs.
        unsafe { self.raw.bind_buffer_memory(buffer, of_buffer, 0) }.map_err(what)?;
        match kind {
            MemoryKind::Local => {
                let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
                // SAFETY: the buffer is bound to memory, both made for device addresses.
                memory.address = unsafe { self.raw.get_buffer_device_address(&info) };
            }
            MemoryKind::Mapped => {
                let (whole, none) = (vk::WHOLE_SIZE, vk::MemoryMapFlags::empty());
                // SAFETY: the memory is of a type that the host can map, and is not mapped.
                let host = unsafe { self.raw.map_memory(of_buffer, 0, whole, none) };
                memory.host = host.map_err(|error| failed("map memory", error))?.cast();
            }
        }
        Ok(())
    }

    /// # Safety
    /// The memory is of this GPU, which is not at anything that uses it, and nothing uses it later.
    pub(super) unsafe fn free(&self, memory: &Memory) {
        // SAFETY: the memory is of this GPU, and nothing uses it any longer; null is ignored.
        unsafe {
            self.raw.destroy_buffer(buffer(memory), None);
            self.raw.free_memory(vk::DeviceMemory::from_raw(memory.handles[1]), None);
        }
    }
}
