//! Timers.

use super::callback::{Argument, NewHandle, callbacks};
use crate::abi::state::{DeviceState, StreamState, TimerState, into_own_handle, take_own};
use crate::device::Device;
use core::ptr;
use tf_fs_sys::{SP_Device, SP_TIMER_FNS_STRUCT_SIZE, SP_Timer, SP_Timer_st, SP_TimerFns};
use tf_plugin_core::Result;

/// Returns the functions of timers.
pub(in crate::abi) const fn timer_fns<D: Device>() -> SP_TimerFns {
    SP_TimerFns {
        struct_size: SP_TIMER_FNS_STRUCT_SIZE,
        ext: ptr::null_mut(),
        nanoseconds: Some(nanoseconds::<D>),
    }
}

callbacks! {
    fn create_timer(device: &DeviceState<D>, place: NewHandle<'_, SP_Timer_st>) {
        place.put(into_own_handle(TimerState::<D>(device.device.create_timer()?)));
        Ok(())
    }

    fn start_timer(_device: *const SP_Device, stream: &StreamState<D>, timer: &TimerState<D>) {
        timer.0.start(stream.author()?)
    }

    fn stop_timer(_device: *const SP_Device, stream: &StreamState<D>, timer: &TimerState<D>) {
        timer.0.stop(stream.author()?)
    }

    quiet fn nanoseconds(timer: Option<&TimerState<D>>) -> u64 {
        let elapsed = timer.map_or(0, |timer| timer.0.elapsed().as_nanos());
        Ok(u64::try_from(elapsed).unwrap_or(u64::MAX))
    } else { 0 }

    quiet fn destroy_timer(_device: *const SP_Device, timer: SP_Timer) {
        // SAFETY: null, or a handle of `create_timer` that the host gives back once.
        drop(unsafe { take_own::<TimerState<D>, _>(timer) });
        Ok(())
    } else {}
}
