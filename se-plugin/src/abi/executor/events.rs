//! Events.

use super::callback::{Argument, NewHandle, callbacks, null};
use crate::abi::event::EventState;
use crate::abi::state::{DeviceState, StreamState, into_own_handle, take_own};
use crate::device::Device;
use crate::stream::{EventStatus, Stream as _};
use core::ptr::NonNull;
use tf_fs_sys::{
    SE_EVENT_COMPLETE, SE_EVENT_PENDING, SE_EventStatus, SP_Device, SP_Event, SP_Event_st,
    SP_Stream,
};
use tf_plugin_core::__private::boundary::{catch, log_failed};
use tf_plugin_core::Result;

callbacks! {
    fn create_event(device: &DeviceState<D>, place: NewHandle<'_, SP_Event_st>) {
        const OP: &str = "create_event";
        // An error would abort the process. An event that waits for the stream works as well.
        let event = catch(OP, || device.device.create_event());
        let waits = |error| log_failed(OP, ", so the stream is waited for instead", error);
        let event = event.map_err(waits);
        place.put(into_own_handle(EventState::<D>::new(event.ok())));
        Ok(())
    }

    quiet fn get_event_status(
        device: &DeviceState<D>, event: Option<&EventState<D>>,
    ) -> SE_EventStatus {
        Ok(match event.map(|event| event.status(device)) {
            Some(EventStatus::Pending) => SE_EVENT_PENDING,
            Some(EventStatus::Complete) | None => SE_EVENT_COMPLETE,
        })
    // Any other result would abort the process.
    } else { SE_EVENT_COMPLETE }

    fn record_event(_device: *const SP_Device, stream: SP_Stream, event: &EventState<D>) {
        let stream = NonNull::new(stream.cast()).ok_or_else(|| null("stream"))?;
        // SAFETY: not null, so it is from `create_stream` for this `D`, and not destroyed.
        unsafe { event.record(stream) }
    }

    enqueue fn wait_for_event(_device, stream, event: &EventState<D>) {
        if let Some(event) = &event.event {
            stream.author()?.wait_event(event)?;
        }
        stream.copies.add_all(event.copies.open());
        Ok(())
    }

    fn block_host_for_event(_device: *const SP_Device, event: Option<&EventState<D>>) {
        event.map_or(Ok(()), EventState::wait)
    }

    quiet fn destroy_event(_device: *const SP_Device, event: SP_Event) {
        // SAFETY: null, or a handle of `create_event` that the host gives back once.
        drop(unsafe { take_own::<EventState<D>, _>(event) });
        Ok(())
    } else {}
}
