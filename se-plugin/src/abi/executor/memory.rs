//! Device memory and host memory.

use super::callback::{Argument, callbacks};
use crate::abi::host_memory::{HostAllocator, SystemAllocator};
use crate::abi::state::{DeviceState, device as device_of};
use crate::abi::versions::{field, fill, require};
use crate::device::Device;
use crate::memory::DevicePtr;
use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr::{self, NonNull};
use tf_fs_sys::{SP_AllocatorStats, SP_Device, SP_DeviceMemoryBase, TF_Bool};
use tf_plugin_core::__private::boundary::{self, catch};
use tf_plugin_core::{Code, Error, Result};

/// The largest request in bytes that TensorFlow repeats forever after a refusal, when it divides regions
/// itself: it retries with nine tenths, rounded up to a multiple of 256, which is the same size again.
const REPEATED_FOR_EVER: u64 = 2304;

/// The size in bytes of an [`SP_DeviceMemoryBase`] up to the end of its address.
const END_OF_ADDRESS: usize = offset_of!(SP_DeviceMemoryBase, opaque) + size_of::<*mut c_void>();

const ALLOCATE: &str = "allocate";
const DEALLOCATE: &str = "deallocate";

/// Passes an address to the host, or null.
///
/// # Safety
/// `memory` is null or a struct of which `struct_size` bytes can be written.
unsafe fn give(
    memory: *mut SP_DeviceMemoryBase,
    address: Option<DevicePtr>,
    size: u64,
) -> Result<()> {
    let memory_base = SP_DeviceMemoryBase {
        opaque: address.map_or(ptr::null_mut(), |address| {
            ptr::without_provenance_mut(address.address() as usize)
        }),
        size: if address.is_some() { size } else { 0 },
        ..SP_DeviceMemoryBase::default()
    };
    // SAFETY: `memory` is null or covers `struct_size` bytes.
    unsafe { fill(memory, &memory_base)? };
    Ok(())
}

/// Returns what a failed request gets: a piece of the reserve, nothing, or a sentinel address if the host insists.
#[cold]
fn refuse<D: Device>(
    device: &DeviceState<D>,
    size: u64,
    answer: Result<DevicePtr>,
) -> Option<DevicePtr> {
    let error = match answer {
        Ok(address) => {
            let freed = catch(DEALLOCATE, || device.device.deallocate(address));
            if let Err(error) = freed {
                boundary::discard(DEALLOCATE, error);
            }
            Error::internal(format!(
                "{address:?} is not a device address; `allocate` must return a multiple of {}",
                DevicePtr::ALIGNMENT
            ))
        }
        Err(error) => error,
    };
    if error.code() == Code::ResourceExhausted {
        log::debug!("{size} bytes were refused: {error:#}");
        if let Some(piece) = device.reserve().and_then(|reserve| reserve.allocate(size)) {
            return Some(piece);
        }
    } else {
        device.health.note(ALLOCATE, &error);
    }
    if !device.host_insists || size > REPEATED_FOR_EVER {
        return None;
    }
    boundary::log_error(&format_args!(
        "the memory of the device is used up; work that needs more fails: {error:#}"
    ));
    Some(device.refused())
}

/// Returns the allocator of host memory: the author's or the ordinary one. It is chosen when the device is opened,
/// because one must not free what the other has allocated.
fn host_allocator<D: Device>(device: &DeviceState<D>) -> Result<&dyn HostAllocator> {
    match device.device.host_allocator() {
        Some(own) if device.has_host_allocator => Ok(own),
        None if device.has_host_allocator => {
            Err(Error::internal("the device has no host allocator any more"))
        }
        _ => Ok(&SystemAllocator),
    }
}

callbacks! {
    quiet fn allocate(
        device: *const SP_Device, size: u64, _space: i64, memory: *mut SP_DeviceMemoryBase,
    ) {
        let allocate = || {
            // SAFETY: the host passes a device that `create_device` has filled for this `D`, or null.
            let device = unsafe { device_of::<D>(device)? };
            if size == 0 {
                return Ok(None);
            }
            // SAFETY: the host passes null or a struct with its size.
            unsafe { require(memory, END_OF_ADDRESS)? };
            device.set_aside();
            Ok(match catch(ALLOCATE, || device.device.allocate(size)) {
                Ok(address) if address.is_usable() => Some(address),
                refused => refuse(device, size, refused),
            })
        };
        let allocated = catch(ALLOCATE, allocate);
        // SAFETY: the host passes a struct with its size.
        unsafe { give(memory, *allocated.as_ref().unwrap_or(&None), size)? };
        allocated.map(drop)
    } else {}

    quiet fn deallocate(device: &DeviceState<D>, memory: *mut SP_DeviceMemoryBase) {
        // SAFETY: the host passes a struct with its size.
        let address = unsafe { field!(memory => SP_DeviceMemoryBase.opaque) };
        match address.and_then(|address| DevicePtr::new(address.addr() as u64)) {
            Some(address) if device.takes_back(address) => Ok(()),
            Some(address) => device.device.deallocate(address),
            None => Ok(()),
        }
    } else {}

    quiet fn host_memory_allocate(device: &DeviceState<D>, size: u64) -> *mut c_void {
        let bytes = usize::try_from(size).map_err(Error::resource_exhausted)?;
        if bytes == 0 {
            return Ok(ptr::null_mut());
        }
        Ok(host_allocator(device)?.allocate(bytes)?.as_ptr().cast())
    } else { ptr::null_mut() }

    quiet fn host_memory_deallocate(device: &DeviceState<D>, memory: *mut c_void) {
        let Some(memory) = NonNull::new(memory.cast()) else { return Ok(()) };
        let allocator = host_allocator(device)?;
        // SAFETY: the host frees once what `host_memory_allocate` returned, which was from this allocator
        // or from another of the device's.
        unsafe { allocator.deallocate(memory) };
        Ok(())
    } else {}

    quiet fn get_allocator_stats(
        device: &DeviceState<D>, stats: *mut SP_AllocatorStats,
    ) -> TF_Bool {
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let Some(known) = device.device.allocator_stats() else { return Ok(0) };
        let with = SP_AllocatorStats {
            struct_size: 0,
            num_allocs: signed(known.allocations),
            bytes_in_use: signed(known.in_use),
            peak_bytes_in_use: signed(known.peak_in_use),
            largest_alloc_size: signed(known.largest_allocation),
            has_bytes_limit: known.limit.is_some().into(),
            bytes_limit: signed(known.limit.unwrap_or(0)),
            bytes_reserved: signed(known.reserved),
            peak_bytes_reserved: signed(known.peak_reserved),
            has_bytes_reservable_limit: known.reservable_limit.is_some().into(),
            bytes_reservable_limit: signed(known.reservable_limit.unwrap_or(0)),
            largest_free_block_bytes: signed(known.largest_free_block),
        };
        // SAFETY: the host passes a struct with its size.
        unsafe { fill(stats, &with)? };
        Ok(1)
    } else { 0 }

    quiet fn device_memory_usage(
        device: &DeviceState<D>, free: *mut i64, total: *mut i64,
    ) -> TF_Bool {
        let usage = device.memory_usage();
        for (place, bytes) in [(free, usage.free), (total, usage.total)] {
            // SAFETY: null or a number of the host's.
            if let Some(place) = unsafe { place.as_mut() } {
                *place = i64::try_from(bytes).unwrap_or(i64::MAX);
            }
        }
        Ok(1)
    } else { 0 }
}

pub(super) unsafe extern "C" fn unified_memory_allocate(
    _: *const SP_Device,
    _: u64,
) -> *mut c_void {
    ptr::null_mut()
}

pub(super) unsafe extern "C" fn unified_memory_deallocate(_: *const SP_Device, _: *mut c_void) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::state::into_handle;
    use crate::abi::versions::Versioned as _;
    use crate::host::{HostDevice, HostMemory};
    use std::sync::Arc;

    #[test]
    fn without_a_place_for_the_address_nothing_is_allocated() {
        let device = HostDevice::new(HostMemory::new(1 << 20).unwrap());
        let memory = device.memory().clone();
        let state = Arc::new(DeviceState::new(device, false, false).unwrap());
        let device = SP_Device {
            struct_size: SP_Device::STRUCT_SIZE,
            device_handle: into_handle(Arc::clone(&state)),
            ..SP_Device::default()
        };
        let end = offset_of!(SP_DeviceMemoryBase, size);
        for (struct_size, allocations) in [(0, 0), (8, 0), (end - 1, 0), (end, 1)] {
            let mut place = SP_DeviceMemoryBase { struct_size, ..SP_DeviceMemoryBase::default() };
            // SAFETY: a device of this type, and a struct that has its size or more.
            unsafe { allocate::<HostDevice>(&raw const device, 8, 0, &raw mut place) };
            assert_eq!(memory.stats().allocations, allocations, "{struct_size}");
        }
        // SAFETY: a device of this type, and no struct.
        unsafe { allocate::<HostDevice>(&raw const device, 8, 0, ptr::null_mut()) };
        assert_eq!(memory.stats().allocations, 1);
        // SAFETY: the handle from above, which is not used afterwards.
        drop(unsafe {
            crate::abi::state::take::<DeviceState<HostDevice>, _>(device.device_handle)
        });
    }
}
