//! The registration of kernels and ops with the host.

use super::{host_features::HostFeatures, workarounds, xla};
use crate::abi::device_type::device_type;
use crate::abi::kernel::target::Devices;
use crate::platform::Platform;
use tf_op_plugin::__private::abi::{Status, register_kernel};
use tf_op_plugin::__private::register::{Registered, register as register_all};
use tf_plugin_core::__private::boundary::guard_logged;

/// Registers all kernels of a platform, once a process: a second registration of a kernel makes its op fail.
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
