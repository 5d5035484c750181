//! The registration of kernels and ops with the host.

use super::definition::OpRegistration;
use super::names::meant;
use super::registry::{self, Registration, Selection};
use crate::abi::ops::Ops;
use crate::abi::register::register as register_one;
use crate::abi::status::{HostApi, Status};
use crate::abi::trampoline::Target;
use std::collections::BTreeMap;
use tf_plugin_core::__private::boundary::log_error;
use tf_plugin_core::Result;

/// What the registration of kernels has found.
#[derive(Debug)]
pub struct Registered<'s> {
    /// The functions of the host.
    pub host: HostApi,
    /// The ops of the host, if it says which there are.
    pub ops: Option<Ops<'s>>,
    /// The kernels that are registered now.
    pub present: Vec<&'static Registration>,
}

/// Registers the ops of the library, and its kernels for the devices of a target as [`register_kernels`] does.
///
/// # Errors
/// If the process has no TensorFlow.
pub fn register<T: Target>(
    status: &Status,
    can_run: impl Fn(&Registration) -> bool,
    is_due: impl Fn(&Registration) -> bool,
    adapt: impl Fn(&Registration) -> Registration,
) -> Result<Option<Registered<'_>>> {
    if HostApi::get().is_ok() {
        for op in OpRegistration::all() {
            if let Err(error) = op.register(status) {
                log_error(&format_args!("the op {} is not registered: {error:#}", op.name));
            }
        }
    }
    register_kernels::<T>(status, can_run, is_due, adapt)
}

/// Chooses the kernels for the devices of a target that `can_run` lets through, and registers those that are due; `adapt` returns what
/// to register for each. Logs those that cannot be registered. Returns `None` if the host has no kernels, such as that of tests.
///
/// # Errors
/// If the process has no TensorFlow.
pub fn register_kernels<T: Target>(
    status: &Status,
    can_run: impl Fn(&Registration) -> bool,
    is_due: impl Fn(&Registration) -> bool,
    adapt: impl Fn(&Registration) -> Registration,
) -> Result<Option<Registered<'_>>> {
    let host = match HostApi::get() {
        Ok(host) => host,
        Err(missing) => {
            log::debug!("no kernels are registered: {missing}");
            return Ok(None);
        }
    };
    let Selection { chosen, refused } = registry::choose(registry::kernels_for::<T>(), can_run);
    for (_, why) in refused.iter().filter(|(one, _)| is_due(one)) {
        log_error(why);
    }
    let ops = Ops::of_host(status).ok();
    let mut known = BTreeMap::new();
    let mut lost = BTreeMap::new();
    let mut present = Vec::new();
    for registration in chosen.into_iter().filter(|one| is_due(one)) {
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
        match registered.and_then(|()| register_one(&host, status, &adapt(registration))) {
            Ok(()) => present.push(registration),
            Err(error) => log_error(&format_args!("{registration} is not registered: {error:#}")),
        }
    }
    if let Some(ops) = &ops {
        report_lost(ops, &lost);
    }
    Ok(Some(Registered { host, ops, present }))
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
