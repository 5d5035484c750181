//! The callbacks of devices, by what they are for.

mod callback;
mod copies;
mod description;
mod events;
mod fills;
mod memory;
mod streams;
mod timers;

pub(super) use description::device_fns;
pub(super) use timers::timer_fns;

use super::versions::Versioned as _;
use crate::device::Device;
use core::ptr;
use tf_fs_sys::{
    SP_STREAMEXECUTOR_WITH_STREAM_OPTIONS_STRUCT_SIZE, SP_StreamExecutor,
    SP_StreamExecutorWithStreamOptions,
};

/// All callbacks: each is there in every release.
pub(super) const fn table<D: Device>() -> SP_StreamExecutor {
    SP_StreamExecutor {
        struct_size: SP_StreamExecutor::STRUCT_SIZE,
        ext: ptr::null_mut(),
        allocate: Some(memory::allocate::<D>),
        deallocate: Some(memory::deallocate::<D>),
        host_memory_allocate: Some(memory::host_memory_allocate::<D>),
        host_memory_deallocate: Some(memory::host_memory_deallocate::<D>),
        unified_memory_allocate: Some(memory::unified_memory_allocate),
        unified_memory_deallocate: Some(memory::unified_memory_deallocate),
        get_allocator_stats: Some(memory::get_allocator_stats::<D>),
        device_memory_usage: Some(memory::device_memory_usage::<D>),
        create_stream: Some(streams::create_stream::<D>),
        destroy_stream: Some(streams::destroy_stream::<D>),
        create_stream_dependency: Some(streams::create_stream_dependency::<D>),
        get_stream_status: Some(streams::get_stream_status::<D>),
        create_event: Some(events::create_event::<D>),
        destroy_event: Some(events::destroy_event::<D>),
        get_event_status: Some(events::get_event_status::<D>),
        record_event: Some(events::record_event::<D>),
        wait_for_event: Some(events::wait_for_event::<D>),
        create_timer: Some(timers::create_timer::<D>),
        destroy_timer: Some(timers::destroy_timer::<D>),
        start_timer: Some(timers::start_timer::<D>),
        stop_timer: Some(timers::stop_timer::<D>),
        memcpy_dtoh: Some(copies::memcpy_dtoh::<D>),
        memcpy_htod: Some(copies::memcpy_htod::<D>),
        memcpy_dtod: Some(copies::memcpy_dtod::<D>),
        sync_memcpy_dtoh: Some(copies::sync_memcpy_dtoh::<D>),
        sync_memcpy_htod: Some(copies::sync_memcpy_htod::<D>),
        sync_memcpy_dtod: Some(copies::sync_memcpy_dtod::<D>),
        block_host_for_event: Some(events::block_host_for_event::<D>),
        block_host_until_done: Some(streams::block_host_until_done::<D>),
        synchronize_all_activity: Some(streams::synchronize_all_activity::<D>),
        mem_zero: Some(fills::mem_zero::<D>),
        memset: Some(fills::memset::<D>),
        memset32: Some(fills::memset32::<D>),
        host_callback: Some(streams::host_callback::<D>),
    }
}

/// Adds the callback that TensorFlow has from 2.22 on, if there is room for it.
///
/// # Safety
/// `executor` is a struct of the host's of which `room` bytes can be written, and which [`table`] has been put into.
pub(super) unsafe fn add_stream_options<D: Device>(executor: *mut SP_StreamExecutor, room: usize) {
    const SIZE: usize = SP_STREAMEXECUTOR_WITH_STREAM_OPTIONS_STRUCT_SIZE;
    if room < SIZE {
        return;
    }
    let longer = executor.cast::<SP_StreamExecutorWithStreamOptions>();
    // SAFETY: both fields are within the room.
    unsafe {
        (&raw mut (*longer).create_stream_with_options)
            .write(Some(streams::create_stream_with_options::<D>));
        (&raw mut (*longer).executor.struct_size).write(SIZE);
    }
}
