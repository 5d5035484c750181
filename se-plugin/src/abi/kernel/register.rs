//! Registering kernels and ops with the host.

use super::op;
use super::status::{HostApi, Status};
use super::trampoline::Functions;
use super::variables::host_has_variables;
use crate::kernel::op::OpRegistration;
use crate::kernel::registry::{self, Choice, Registration};
use crate::kernel::workarounds;
use crate::platform::Platform;
use std::collections::BTreeMap;
use std::ffi::CString;
use tf_fs_sys::TF_KernelBuilder;
use tf_plugin_core::__private::boundary::{guard_quiet, log_error};
use tf_plugin_core::{Error, Result, ResultExt as _};

/// Registers all kernels of a platform, once a process: a second registration of a kernel makes its op fail.
/// What cannot be registered is logged; the rest is there.
///
/// This runs in `SE_InitPlugin`. TensorFlow would also call a `TF_InitKernel`, a moment later and with no
/// more to tell; but that is one symbol, which a filesystem in the same library needs for itself.
pub(crate) fn register<P: Platform>() {
    let body = || {
        let host = match HostApi::get() {
            Ok(host) => host,
            // A host without kernels, such as that of tests.
            Err(missing) => {
                log::debug!("no kernels are registered: {missing}");
                return Ok(());
            }
        };
        let status = Status::new(host.status)?;
        for op in OpRegistration::all() {
            if let Err(error) = op::register(&host, &status, op) {
                log_error(&format_args!("the op {} is not registered: {error:#}", op.name));
            }
        }
        let Choice { chosen, refused } =
            registry::choose(registry::of_platform::<P>(), host_has_variables());
        for refusal in refused {
            log_error(&refusal);
        }
        let mut known = BTreeMap::new();
        let mut present = Vec::new();
        for registration in chosen {
            let of_host = known
                .entry(registration.op)
                .or_insert_with(|| op::look_up(&status, registration.op).ok().flatten());
            let registered = match of_host {
                Some(definition) => registration.check(definition),
                // Another release may have it, and TensorFlow does not mind.
                None => {
                    log::debug!("TensorFlow may lack an op for {registration}");
                    Ok(())
                }
            };
            let registered =
                registered.and_then(|()| register_one(&host, &status, P::TYPE, registration));
            match registered {
                Ok(()) => present.push(registration),
                Err(error) => {
                    log_error(&format_args!("{registration} is not registered: {error:#}"));
                }
            }
        }
        for workaround in workarounds::missing::<P>(&present) {
            // A type that this release does not know needs no workaround.
            if let Err(error) = register_one(&host, &status, P::TYPE, &workaround) {
                log::debug!("{workaround} is not registered: {error:#}");
            }
        }
        Ok(())
    };
    guard_quiet("the registration of kernels", || (), body);
}

/// A builder, deleted unless it is registered.
struct Builder<'a> {
    raw: *mut TF_KernelBuilder,
    host: &'a HostApi,
}

impl Builder<'_> {
    /// The host frees what it registers.
    fn release(self) -> *mut TF_KernelBuilder {
        let raw = self.raw;
        core::mem::forget(self);
        raw
    }
}

impl Drop for Builder<'_> {
    fn drop(&mut self) {
        // SAFETY: not registered, so ours.
        unsafe { (self.host.kernels.TF_DeleteKernelBuilder)(self.raw) }
    }
}

fn register_one(
    host: &HostApi,
    status: &Status,
    device: &str,
    registration: &Registration,
) -> Result<()> {
    let c_string = |text: &str| CString::new(text).map_err(Error::invalid_argument);
    let (op, device) = (c_string(registration.op)?, c_string(device)?);
    let Functions { create, compute, delete, .. } = registration.functions;
    // SAFETY: C strings, and functions that all belong to one type of kernel.
    let raw = unsafe {
        let new = host.kernels.TF_NewKernelBuilder;
        new(op.as_ptr(), device.as_ptr(), Some(create), Some(compute), Some(delete))
    };
    if raw.is_null() {
        return Err(Error::resource_exhausted("TensorFlow made no builder"));
    }
    let builder = Builder { raw, host };
    for (attribute, dtype) in registration.types {
        let attribute = c_string(attribute)?;
        // SAFETY: a builder that is ours, a C string and a status.
        unsafe {
            let constrain = host.kernels.TF_KernelBuilder_TypeConstraint;
            constrain(raw, attribute.as_ptr(), dtype.as_raw(), status.as_ptr());
        }
        status.check().context(format!("the type {dtype}"))?;
    }
    for argument in registration.host_memory {
        let argument = c_string(argument)?;
        // SAFETY: `raw` is the builder, which `builder` owns; the host copies the name.
        unsafe { (host.kernels.TF_KernelBuilder_HostMemory)(raw, argument.as_ptr()) };
    }
    if registration.priority != 0 {
        // SAFETY: `raw` is the builder, which `builder` owns.
        unsafe { (host.kernels.TF_KernelBuilder_Priority)(raw, registration.priority) };
    }
    if !registration.label.is_empty() {
        let label = c_string(registration.label)?;
        // SAFETY: `raw` is the builder, which `builder` owns; the host copies the label.
        unsafe { (host.kernels.TF_KernelBuilder_Label)(raw, label.as_ptr()) };
    }
    let name = c_string((registration.functions.name)())?;
    // SAFETY: `builder` gives its pointer up here, and `TF_RegisterKernelBuilder` frees it in any case. The
    // host copies the name.
    unsafe {
        let raw = builder.release();
        (host.kernels.TF_RegisterKernelBuilder)(name.as_ptr(), raw, status.as_ptr());
    }
    status.check()
}
