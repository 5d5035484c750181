//! The registration of a kernel with the host.

use super::status::{HostApi, Status};
use super::trampoline::Functions;
use crate::kernel::registry::Registration;
use std::ffi::CString;
use tf_plugin_core::{Error, Result, ResultExt as _, ensure};

/// Registers a kernel for the devices that its functions are for.
///
/// # Errors
/// Those of the host, and `INVALID_ARGUMENT` for a text with a NUL.
pub fn register(host: &HostApi, status: &Status, kernel: &Registration) -> Result<()> {
    let c_string = |text: &str| CString::new(text).map_err(Error::invalid_argument);
    let Functions { create, compute, delete, device_type, name, .. } = kernel.functions;
    let (op, name, device_type) =
        (c_string(kernel.op)?, c_string(name())?, c_string(device_type())?);
    let options = &kernel.options;
    let label = c_string(options.label)?;
    let types = options.types.iter().map(|&(attribute, dtype)| Ok((c_string(attribute)?, dtype)));
    let types = types.collect::<Result<Vec<_>>>()?;
    let host_memory = options.host_memory.iter().map(|argument| c_string(argument));
    let host_memory = host_memory.collect::<Result<Vec<_>>>()?;
    let kernels = host.kernels;
    // SAFETY: C strings, which the host copies, a status, and functions that all belong to one type of kernel and to this
    // type of devices. The builder is deleted or registered, which frees it in any case, and not used afterwards.
    unsafe {
        let new = kernels.TF_NewKernelBuilder;
        let raw = new(op.as_ptr(), device_type.as_ptr(), Some(create), Some(compute), Some(delete));
        ensure!(!raw.is_null(), Error::resource_exhausted("TensorFlow made no builder"));
        for (attribute, dtype) in &types {
            let constrain = kernels.TF_KernelBuilder_TypeConstraint;
            constrain(raw, attribute.as_ptr(), dtype.as_raw(), status.as_ptr());
            if let Err(error) = status.check() {
                (kernels.TF_DeleteKernelBuilder)(raw);
                return Err(error).context(format!("the type {dtype}"));
            }
        }
        for argument in &host_memory {
            (kernels.TF_KernelBuilder_HostMemory)(raw, argument.as_ptr());
        }
        if options.priority != 0 {
            (kernels.TF_KernelBuilder_Priority)(raw, options.priority);
        }
        if !label.is_empty() {
            (kernels.TF_KernelBuilder_Label)(raw, label.as_ptr());
        }
        (kernels.TF_RegisterKernelBuilder)(name.as_ptr(), raw, status.as_ptr());
    }
    status.check()
}
