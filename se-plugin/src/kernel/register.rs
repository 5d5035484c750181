//! The registration of kernels and ops with the host.

use super::names::meant;
use super::op::OpRegistration;
use super::registry::{self, HostFeatures, Registration, Selection};
use super::{workarounds, xla};
use crate::abi::device_type::device_type;
use crate::abi::kernel::ops::Ops;
use crate::abi::kernel::register::register as register_one;
use crate::abi::kernel::status::{HostApi, Status};
use crate::platform::Platform;
use std::collections::BTreeMap;
use tf_plugin_core::__private::boundary::{guard_logged, log_error};

/// Registers all kernels of a platform, once a process: a second registration of a kernel makes its op fail.
/// Kernels that cannot be registered are logged; the others are registered.
///
/// This runs in `SE_InitPlugin`. TensorFlow would also call a `TF_InitKernel`, a moment later and without
/// more information. But that is a single symbol, and a filesystem in the same library needs it.
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
        let status = Status::new()?;
        for op in OpRegistration::all() {
            if let Err(error) = op.register(&status) {
                log_error(&format_args!("the op {} is not registered: {error:#}", op.name));
            }
        }
        let Selection { chosen, refused } =
            registry::choose(registry::of_platform::<P>(), HostFeatures::now());
        for refusal in refused {
            log_error(&refusal);
        }
        let ops = Ops::of_host(&status).ok();
        let mut known = BTreeMap::new();
        let mut lost = BTreeMap::new();
        let mut present = Vec::new();
        for registration in chosen {
            let of_host = known
                .entry(registration.op)
                .or_insert_with(|| ops.as_ref()?.get(registration.op).ok().flatten());
            let registered = match of_host {
                Some(definition) => registration.check(definition),
                // Another release may have the op, and TensorFlow accepts the kernel.
                None => {
                    lost.entry(registration.op).or_insert(registration);
                    Ok(())
                }
            };
            let registered = registered.and_then(|()| {
                register_one(&host, &status, &xla::raised(registration, device_type::<P>()))
            });
            match registered {
                Ok(()) => present.push(registration),
                Err(error) => {
                    log_error(&format_args!("{registration} is not registered: {error:#}"));
                }
            }
        }
        if let Some(ops) = &ops {
            report_lost(ops, &lost);
        }
        let added = xla::missing::<P>(ops.as_ref(), &present);
        for workaround in workarounds::missing::<P>(&present).into_iter().chain(added) {
            // A type that this release does not know needs no workaround.
            if let Err(error) = register_one(&host, &status, &workaround) {
                log::debug!("{workaround} is not registered: {error:#}");
            }
        }
        Ok(())
    };
    guard_logged("the registration of kernels", || (), body);
}

/// Logs the ops that TensorFlow does not have: it accepts kernels for any name, and never runs these.
fn report_lost(ops: &Ops<'_>, lost: &BTreeMap<&str, &Registration>) {
    // Without this op, the host has none, or does not say which.
    if lost.is_empty() || !ops.has("NoOp") {
        return;
    }
    let mut others = Vec::new();
    for (op, registration) in lost {
        match meant(op, |op| ops.has(op)) {
            Some(near) => log::warn!(
                "this TensorFlow has no op named `{op}`; did you mean `{near}`? Never used: {registration}"
            ),
            None => others.push(format!("`{op}`")),
        }
    }
    if !others.is_empty() {
        log::info!(
            "this TensorFlow has no ops named {}, for which the plugin has kernels; another release or library may have them",
            others.join(", ")
        );
    }
}
