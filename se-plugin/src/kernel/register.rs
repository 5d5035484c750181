//! The registration of kernels and ops with the host.

use super::{host_features::HostFeatures, workarounds, xla};
use crate::abi::device_type::device_type;
use crate::abi::kernel::target::Devices;
use crate::platform::Platform;
use std::sync::OnceLock;
use tf_op_plugin::__private::Registration;
use tf_op_plugin::__private::abi::{Status, register_kernel};
use tf_op_plugin::__private::register::{
    Registered, register as register_all, register_kernels as register_more,
};
use tf_plugin_core::__private::boundary::{catch, guard_logged, log_error};

/// Whether optional kernels could be registered, once that was tried. A library has one platform.
static OPTIONAL: OnceLock<bool> = OnceLock::new();

/// Returns whether a kernel is optional. One that the platform panics for is not.
fn is_optional<P: Platform>(one: &Registration) -> bool {
    let is_optional = || Ok(P::is_optional(one.op, one.options.types));
    catch("is_optional", is_optional).unwrap_or_else(|error| {
        log_error(&format_args!("{one} is registered with all others: {error:#}"));
        false
    })
}

/// Returns whether a kernel is not optional, or is registered.
pub(crate) fn is_registered<P: Platform>(one: &Registration) -> bool {
    OPTIONAL.get() == Some(&true) || !is_optional::<P>(one)
}

/// Registers the optional kernels of a platform, once a process.
pub(crate) fn register_optional<P: Platform>() {
    let body = || {
        let status = Status::new()?;
        let features = HostFeatures::now();
        register_more::<Devices<P>>(
            &status,
            |one| features.all_for(one),
            is_optional::<P>,
            |one| xla::raised(one, device_type::<P>()),
        )
        .map(|_| true)
    };
    OPTIONAL.get_or_init(|| guard_logged("the registration of optional kernels", || false, body));
}

/// Registers the kernels of a platform that are not optional, once a process: a second registration of a kernel makes its op fail.
/// Kernels that cannot be registered are logged; the others are registered.
///
/// This runs in `SE_InitPlugin`. TensorFlow would also call a `TF_InitKernel`, a moment later and without
/// more information. But that is a single symbol, and a filesystem in the same library needs it.
pub(crate) fn register<P: Platform>() {
    let body = || {
        let status = Status::new()?;
        let features = HostFeatures::now();
        let registered = register_all::<Devices<P>>(
            &status,
            |one| features.all_for(one),
            |one| !is_optional::<P>(one),
            |one| xla::raised(one, device_type::<P>()),
        )?;
        let Some(Registered { host, ops, present }) = registered else { return Ok(()) };
        let added = xla::missing::<P>(ops.as_ref(), &present);
        for workaround in workarounds::missing::<P>(&present).into_iter().chain(added) {
            // A type that this release does not know needs no workaround.
            if let Err(error) = register_kernel(&host, &status, &workaround) {
                log::debug!("{workaround} is not registered: {error:#}");
            }
        }
        Ok(())
    };
    guard_logged("the registration of kernels", || (), body);
}
