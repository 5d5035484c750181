//! The configuration of the session.

use super::status::{HostApi, Status};
use core::ptr::NonNull;
use tf_fs_sys::host::Table as _;
use tf_fs_sys::{BufferFunctions, TF_OpKernelContext};
use tf_plugin_core::__private::boundary::lent;
use tf_plugin_core::{Error, Result};

/// Returns the configuration of the session that a run belongs to, a serialised `ConfigProto`.
///
/// # Errors
/// Those of the host; if the process has no functions for buffers.
///
/// # Safety
/// `raw` is a run of a kernel that has not ended.
pub unsafe fn session_config(
    raw: NonNull<TF_OpKernelContext>,
    host: &HostApi,
    status: &Status,
) -> Result<Vec<u8>> {
    let buffers = BufferFunctions::get().map_err(Error::failed_precondition)?;
    // SAFETY: a run that has not ended and a status; the buffer is made and deleted here, and its bytes are copied.
    unsafe {
        let buffer = (buffers.TF_NewBuffer)();
        let get = host.kernels.TF_GetSerializedConfigProto;
        get(raw.as_ptr(), buffer, status.as_ptr());
        let content = (buffers.TF_GetBuffer)(buffer);
        let config =
            status.check().and_then(|()| lent(content.data, content.length).map(<[u8]>::to_vec));
        (buffers.TF_DeleteBuffer)(buffer);
        config
    }
}
