//! Streams, host callbacks, and waiting for work.

use super::callback::{Argument, NewHandle, callbacks, null};
use crate::abi::host_callback::HostCallback;
use crate::abi::state::{
    DeviceState, StreamState, device as device_of, into_handle, shared_device, take,
};
use crate::abi::versions::{Versioned as _, read};
use crate::abi::work::WaitingStream as _;
use crate::device::Device;
use crate::health::Health;
use crate::stream::{Stream as _, StreamOptions};
use core::ffi::c_void;
use std::sync::Arc;
use tf_fs_sys::{
    SE_StatusCallbackFn, SP_Device, SP_Stream, SP_Stream_st, SP_StreamOptions, TF_Bool,
};
use tf_plugin_core::__private::boundary::catch;
use tf_plugin_core::Result;

/// Creates a stream, with options if the host passes any.
fn make<D: Device>(
    op: &'static str,
    device: Arc<DeviceState<D>>,
    place: NewHandle<'_, SP_Stream_st>,
    options: Option<StreamOptions>,
) {
    // Without a stream, TensorFlow 2.16 and earlier would abort at the first copy, and later releases would
    // not say why there is none. So this is a stream that reports the failure wherever it is used.
    let stream = catch(op, || match &options {
        None => device.device.create_stream(),
        Some(options) => device.device.create_stream_with_options(options),
    });
    let stream = stream.inspect_err(|error| device.health.note(op, error));
    place.put(into_handle(Arc::new(StreamState::new(stream.ok(), device))));
}

callbacks! {
    fn create_stream(device: *const SP_Device, place: NewHandle<'_, SP_Stream_st>) {
        // SAFETY: the host passes a device that `create_device` has filled for this `D`, or null.
        let device = unsafe { shared_device::<D>(device)? };
        make("create_stream", device, place, None);
        Ok(())
    }

    fn create_stream_with_options(
        device: *const SP_Device, options: *const SP_StreamOptions, place: NewHandle<'_, SP_Stream_st>,
    ) {
        // SAFETY: the host passes a device that `create_device` has filled for this `D`, or null.
        let device = unsafe { shared_device::<D>(device)? };
        let options = if options.is_null() {
            None
        } else {
            // SAFETY: not null, so the host passes options with their size.
            let options = unsafe { read(options)? };
            let is_there = options.struct_size >= SP_StreamOptions::STRUCT_SIZE;
            let priority = (is_there && options.has_priority != 0).then_some(options.priority);
            Some(StreamOptions { priority })
        };
        make("create_stream_with_options", device, place, options);
        Ok(())
    }

    enqueue fn create_stream_dependency(_device, dependent, other: &StreamState<D>) {
        dependent.wait_for(other)
    }

    fn get_stream_status(_device: *const SP_Device, stream: &StreamState<D>) {
        stream.author()?.status()?;
        stream.check()
    }

    /// Waits for a stream, which is null if it could not be created.
    fn block_host_until_done(_device: *const SP_Device, stream: Option<&StreamState<D>>) {
        stream.map_or(Ok(()), |stream| {
            stream.drain("block_host_until_done")?;
            stream.check()
        })
    }

    fn synchronize_all_activity(device: &DeviceState<D>) {
        let result = catch("synchronize_all_activity", || device.device.synchronize());
        device.copies.wait();
        result?;
        device.health.check()
    }

    quiet fn host_callback(
        device: *const SP_Device,
        stream: Option<&StreamState<D>>,
        function: SE_StatusCallbackFn,
        argument: *mut c_void,
    ) -> TF_Bool {
        const OP: &str = "host_callback";
        let Some(function) = function else { return Ok(0) };
        // SAFETY: the host's function is called once with its argument, on any thread. Whatever goes
        // wrong, the value makes the call, which frees the argument; so the result is always "true".
        let callback = |health| unsafe { HostCallback::of_host(function, argument, health) };
        match stream {
            Some(stream) => {
                let callback = callback(stream.health().clone());
                if let Err(error) = catch(OP, || stream.author()?.host_callback(callback)) {
                    stream.health().note(OP, &error);
                }
            }
            None => {
                // SAFETY: the host passes a device that `create_device` has filled for this `D`, or null.
                let device = unsafe { device_of::<D>(device) };
                let health = device.map_or_else(|_| Health::default(), |device| device.health.clone());
                callback(health).complete(Err(null("stream")));
            }
        }
        Ok(1)
    } else { 1 }

    quiet fn destroy_stream(_device: *const SP_Device, stream: SP_Stream) {
        const OP: &str = "destroy_stream";
        // SAFETY: the host destroys a stream of `create_stream` once.
        if let Some(stream) = unsafe { take::<StreamState<D>, _>(stream) }
            && let Err(error) = stream.drain(OP)
        {
            stream.health().note(OP, &error);
        }
        Ok(())
    } else {}
}
