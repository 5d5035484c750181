//! Registering a kernel with the host.

use super::status::{HostApi, Status};
use super::trampoline::Functions;
use crate::dtype::DType;
use std::ffi::CString;
use tf_fs_sys::TF_KernelBuilder;
use tf_plugin_core::{Error, Result, ResultExt as _};

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(Error::invalid_argument)
}

/// A kernel in the making for the devices that its functions are for, deleted unless it is registered.
pub(crate) struct Builder<'a> {
    raw: *mut TF_KernelBuilder,
    host: &'a HostApi,
    status: &'a Status,
    functions: Functions,
}

impl Drop for Builder<'_> {
    fn drop(&mut self) {
        // SAFETY: not registered, so ours.
        unsafe { (self.host.kernels.TF_DeleteKernelBuilder)(self.raw) }
    }
}

impl<'a> Builder<'a> {
    pub(crate) fn new(
        host: &'a HostApi,
        status: &'a Status,
        op: &str,
        functions: Functions,
    ) -> Result<Self> {
        let Functions { create, compute, delete, device_type, .. } = functions;
        let (op, device_type) = (c_string(op)?, c_string(device_type())?);
        // SAFETY: C strings, and functions that all belong to one type of kernel and to this type of devices.
        let raw = unsafe {
            let new = host.kernels.TF_NewKernelBuilder;
            new(op.as_ptr(), device_type.as_ptr(), Some(create), Some(compute), Some(delete))
        };
        if raw.is_null() {
            return Err(Error::resource_exhausted("TensorFlow made no builder"));
        }
        Ok(Self { raw, host, status, functions })
    }

    /// For nodes with this type in an attribute only.
    pub(crate) fn constrain(&self, attribute: &str, dtype: DType) -> Result<()> {
        let attribute = c_string(attribute)?;
        // SAFETY: a builder that is ours, a C string and a status.
        unsafe {
            let constrain = self.host.kernels.TF_KernelBuilder_TypeConstraint;
            constrain(self.raw, attribute.as_ptr(), dtype.as_raw(), self.status.as_ptr());
        }
        self.status.check().context(format!("the type {dtype}"))
    }

    /// With an argument in host memory.
    pub(crate) fn host_memory(&self, argument: &str) -> Result<()> {
        let argument = c_string(argument)?;
        // SAFETY: a builder that is ours; the host copies the name.
        unsafe { (self.host.kernels.TF_KernelBuilder_HostMemory)(self.raw, argument.as_ptr()) };
        Ok(())
    }

    pub(crate) fn priority(&self, priority: i32) {
        // SAFETY: a builder that is ours.
        unsafe { (self.host.kernels.TF_KernelBuilder_Priority)(self.raw, priority) };
    }

    pub(crate) fn label(&self, label: &str) -> Result<()> {
        let label = c_string(label)?;
        // SAFETY: a builder that is ours; the host copies the label.
        unsafe { (self.host.kernels.TF_KernelBuilder_Label)(self.raw, label.as_ptr()) };
        Ok(())
    }

    pub(crate) fn register(self) -> Result<()> {
        let name = c_string((self.functions.name)())?;
        let (raw, host, status) = (self.raw, self.host, self.status);
        core::mem::forget(self);
        // SAFETY: the builder's pointer was given up here, and `TF_RegisterKernelBuilder` frees it in any case. The
        // host copies the name.
        unsafe { (host.kernels.TF_RegisterKernelBuilder)(name.as_ptr(), raw, status.as_ptr()) };
        status.check()
    }
}
