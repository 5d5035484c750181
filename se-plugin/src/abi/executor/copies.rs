//! Copies.

use super::callback::{Argument, Source, Target, callbacks, null};
use crate::abi::host_buf::HostBuf;
use crate::abi::host_ptr::{HostSource, HostTarget};
use crate::abi::state::{DeviceState, StreamState};
use crate::abi::work::WaitingStream as _;
use crate::device::Device;
use crate::stream::Stream as _;
use core::ffi::c_void;
use tf_plugin_core::__private::boundary::{host_size, lent};
use tf_plugin_core::{Error, Result};

/// Refuses a null pointer to memory of the host.
#[inline]
fn check(memory: *const c_void, purpose: &str) -> Result<()> {
    #[cold]
    fn refused(purpose: &str) -> Error {
        Error::invalid_argument(format!("TensorFlow passed no memory to copy {purpose}"))
    }
    if memory.is_null() { Err(refused(purpose)) } else { Ok(()) }
}

callbacks! {
    fn memcpy_dtoh(
        device: &DeviceState<D>,
        stream: Option<&StreamState<D>>,
        target: *mut c_void,
        source: Source,
        size: u64,
    ) {
        // TensorFlow checks nothing after this copy: only an error prevents wrong numbers, even if it
        // aborts the process.
        device.health.check()?;
        let stream = stream.ok_or_else(|| null("stream"))?;
        if size == 0 {
            return Ok(());
        }
        let source = source.get()?;
        check(target, "to")?;
        let len = host_size(size)?;
        let author = stream.author()?;
        stream.begin_copy("memcpy_dtoh", |token| {
            // SAFETY: the host keeps `size` bytes at `target` until an event behind the copy is complete, which waits
            // for the token.
            let target = unsafe { HostTarget::new(target.cast(), len, token) };
            author.copy_to_host(target, source)
        })
    }

    enqueue fn memcpy_htod(_device, stream, target: Target, source: *const c_void, size: u64) {
        if size == 0 {
            return Ok(());
        }
        let target = target.get()?;
        check(source, "from")?;
        let len = host_size(size)?;
        let author = stream.author()?;
        stream.wait_for_work()?;
        stream.begin_copy("memcpy_htod", |token| {
            // SAFETY: the host keeps `size` bytes at `source` until an event behind the copy is complete, which waits
            // for the token.
            let source = unsafe { HostSource::new(source.cast(), len, token) };
            author.copy_to_device(target, source)
        })
    }

    enqueue fn memcpy_dtod(_device, stream, target: Target, source: Source, size: u64) {
        if size == 0 {
            return Ok(());
        }
        let (target, source) = (target.get()?, source.get()?);
        stream.author()?.copy_on_device(target, source, size)
    }

    fn sync_memcpy_dtoh(
        device: &DeviceState<D>, target: *mut c_void, source: Source, size: u64,
    ) {
        if size == 0 {
            return Ok(());
        }
        let source = source.get()?;
        // SAFETY: the host passes null, or `size` bytes that stay, and that nothing else uses, during the call.
        device.device.copy_to_host(unsafe { HostBuf::of_host(target, size)? }, source)
    }

    fn sync_memcpy_htod(
        device: &DeviceState<D>, target: Target, source: *const c_void, size: u64,
    ) {
        if size == 0 {
            return Ok(());
        }
        let target = target.get()?;
        check(source, "from")?;
        // SAFETY: the host passes `size` bytes that stay, and that nothing writes to, during the call.
        device.device.copy_to_device(target, unsafe { lent(source, host_size(size)?)? })
    }

    fn sync_memcpy_dtod(device: &DeviceState<D>, target: Target, source: Source, size: u64) {
        if size == 0 {
            return Ok(());
        }
        device.device.copy_on_device(target.get()?, source.get()?, size)
    }
}
