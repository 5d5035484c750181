//! Copies between GPUs.

use super::{Device, failed};
use cudarc::driver::{DriverError, result, sys};
use se_plugin_gpu::backend::{BackendResult, Span};
use std::collections::HashSet;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The other GPUs of this process, as one of them sees them.
#[derive(Default)]
pub(super) struct Peers {
    /// Those whose memory the driver was requested to make accessible.
    requested: Mutex<HashSet<sys::CUdevice>>,
    /// Whether a failed copy was logged.
    is_logged: AtomicBool,
}

impl Peers {
    /// Enqueues a copy in the stream of `device`. Returns `false` if the driver cannot do it.
    ///
    /// # Errors
    /// `INTERNAL` if a GPU is lost.
    ///
    /// # Safety
    /// The context of `device` is that of this thread. The ranges, of `device` and of `peer`, are within their memory, which lives
    /// until the copy is done.
    pub(super) unsafe fn copy(
        &self,
        device: &Device,
        target: Span<'_, ()>,
        peer: &Device,
        source: Span<'_, ()>,
    ) -> BackendResult<bool> {
        if self.requested.lock().unwrap_or_else(PoisonError::into_inner).insert(peer.number) {
            // SAFETY: the context is that of this thread, as the caller says.
            unsafe { enable_access(device, peer) };
        }
        // SAFETY: the ranges are within their memory, which lives until the copy is done, as the caller says; both contexts stay.
        let copied = unsafe {
            let (to, from) = (target.address(), source.address());
            let bytes = target.bytes as usize;
            result::memcpy_peer_async(device.context, to, peer.context, from, bytes, device.stream)
        };
        let Err(error) = copied else { return Ok(true) };
        let failure = failed("copy from another GPU", error);
        if failure.is_lost {
            // If it is the peer that is lost, the copy through the host finds that, and this GPU goes on.
            return if peer.is_lost() { Ok(false) } else { Err(failure) };
        }
        if !self.is_logged.swap(true, Ordering::Relaxed) {
            let (what, cause) = (failure.what, failure.cause);
            log::warn!("RUST_GPU copies between GPUs through the host: {what}: {cause}");
        }
        Ok(false)
    }
}

/// Lets the GPU access the memory of `peer` over NVLink or PCIe, if they can: otherwise the driver itself copies through the host.
///
/// # Safety
/// The context of `device` is that of this thread.
unsafe fn enable_access(device: &Device, peer: &Device) {
    let mut can_access: c_int = 0;
    // SAFETY: it is a place for a number, and both devices are the driver's.
    let asked = unsafe {
        sys::cuDeviceCanAccessPeer(&raw mut can_access, device.number, peer.number).result()
    };
    if asked.is_ok() && can_access != 0 {
        // An error, such as that another library has enabled it, changes no result.
        // SAFETY: the peer's context stays.
        let _: Result<(), DriverError> =
            unsafe { sys::cuCtxEnablePeerAccess(peer.context, 0).result() };
    }
}
