//! The callbacks of devices, by purpose.

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

/// The callbacks of devices of a type `D`, by the modules that have them.
macro_rules! callbacks_of {
    ($($module:ident: $($name:ident)*;)*) => {
        SP_StreamExecutor {
            struct_size: SP_StreamExecutor::STRUCT_SIZE,
            ext: ptr::null_mut(),
            unified_memory_allocate: Some(memory::unified_memory_allocate),
            unified_memory_deallocate: Some(memory::unified_memory_deallocate),
            $($($name: Some($module::$name::<D>),)*)*
        }
    };
}

/// Returns the callbacks that every release of TensorFlow has.
pub(super) const fn table<D: Device>() -> SP_StreamExecutor {
    callbacks_of! {
        memory: allocate deallocate host_memory_allocate host_memory_deallocate get_allocator_stats device_memory_usage;
        streams: create_stream destroy_stream create_stream_dependency get_stream_status block_host_until_done
            synchronize_all_activity host_callback;
        events: create_event destroy_event get_event_status record_event wait_for_event block_host_for_event;
        timers: create_timer destroy_timer start_timer stop_timer;
        copies: memcpy_dtoh memcpy_htod memcpy_dtod sync_memcpy_dtoh sync_memcpy_htod sync_memcpy_dtod;
        fills: mem_zero memset memset32;
    }
}

/// Adds the callback that TensorFlow has since 2.22, if there is room for it.
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
