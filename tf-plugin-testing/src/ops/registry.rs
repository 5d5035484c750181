//! The ops and kernels of this process.

use super::definition::{AttrValue, OpDef};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tf_fs_sys::{TF_ComputeKernelFn, TF_CreateKernelFn, TF_DeleteKernelFn};
use tf_op_plugin::{Code, DType, Error, Result, ensure};

/// The device that this host has.
pub(super) const CPU: &str = "CPU";

/// A kernel, as it was registered.
#[derive(Clone, Debug)]
pub(super) struct KernelDef {
    pub(super) op: String,
    pub(super) device: String,
    pub(super) create: TF_CreateKernelFn,
    pub(super) compute: TF_ComputeKernelFn,
    pub(super) delete: TF_DeleteKernelFn,
    pub(super) types: Vec<(String, DType)>,
    pub(super) host_memory: Vec<String>,
    pub(super) priority: i32,
    pub(super) label: String,
}

static OPS: Mutex<BTreeMap<String, Arc<OpDef>>> = Mutex::new(BTreeMap::new());
static KERNELS: Mutex<Vec<Arc<KernelDef>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers an op. TensorFlow aborts the process where this is an error.
pub(super) fn add_op(op: OpDef) -> Result<()> {
    let checked = op.check().map_err(|why| {
        Error::invalid_argument(format!("TensorFlow aborts the process: the op {}: {why}", op.name))
    });
    checked?;
    let mut ops = lock(&OPS);
    ensure!(
        !ops.contains_key(&op.name),
        Error::new(
            Code::AlreadyExists,
            format!("TensorFlow aborts the process: Op with name {}", op.name)
        )
    );
    ops.insert(op.name.clone(), Arc::new(op));
    Ok(())
}

pub(super) fn op(name: &str) -> Option<Arc<OpDef>> {
    lock(&OPS).get(name).cloned()
}

/// Returns the names of all ops, sorted.
pub(super) fn op_names() -> Vec<String> {
    lock(&OPS).keys().cloned().collect()
}

/// Registers a kernel.
pub(super) fn add_kernel(kernel: KernelDef) {
    lock(&KERNELS).push(Arc::new(kernel));
}

/// Returns the kernel for a node on the CPU, with TensorFlow's errors.
pub(super) fn kernel(
    op: &OpDef,
    attributes: &BTreeMap<String, AttrValue>,
) -> Result<Arc<KernelDef>> {
    let all: Vec<_> = lock(&KERNELS).iter().filter(|one| one.op == op.name).cloned().collect();
    let on_cpu = || all.iter().filter(|one| one.device == CPU && one.label.is_empty());
    for one in on_cpu() {
        check_names(one, op)?;
    }
    let has_types = |one: &&Arc<KernelDef>| {
        one.types.iter().all(|(name, dtype)| match attributes.get(name) {
            Some(AttrValue::Type(found)) => found == dtype,
            Some(AttrValue::List(found)) => found.iter().all(|one| *one == AttrValue::Type(*dtype)),
            _ => false,
        })
    };
    let matching: Vec<_> = on_cpu().filter(has_types).collect();
    let Some(best) = matching.iter().max_by_key(|one| one.priority) else {
        let requested: Vec<_> =
            attributes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let registered: Vec<_> = all.iter().map(|one| shown(one)).collect();
        return Err(Error::new(
            Code::NotFound,
            format!(
                "No registered '{}' OpKernel for '{CPU}' devices. Requested Attributes: {}. Registered: {}",
                op.name,
                requested.join(", "),
                if registered.is_empty() {
                    "<no registered kernels>".into()
                } else {
                    registered.join("; ")
                },
            ),
        ));
    };
    let count = matching.iter().filter(|one| one.priority == best.priority).count();
    ensure!(
        count == 1,
        Error::invalid_argument(format!(
            "Multiple OpKernel registrations match NodeDef at the same priority: {} for '{}' with {}",
            count,
            op.name,
            shown(best)
        ))
    );
    Ok(Arc::clone(best))
}

/// Checks the names that a kernel has, which TensorFlow checks when the op runs.
fn check_names(kernel: &KernelDef, op: &OpDef) -> Result<()> {
    for (name, _) in &kernel.types {
        ensure!(
            op.attribute(name).is_some(),
            Error::invalid_argument(format!(
                "OpKernel '{}' has constraint on attr '{name}' not in NodeDef",
                op.name
            ))
        );
    }
    for name in &kernel.host_memory {
        ensure!(
            op.inputs.iter().chain(&op.outputs).any(|one| one.name == *name),
            Error::invalid_argument(format!(
                "HostMemory args '{name}' not found in OpDef: {}",
                op.name
            ))
        );
    }
    Ok(())
}

fn shown(kernel: &KernelDef) -> String {
    let types = kernel
        .types
        .iter()
        .map(|(name, dtype)| format!(", {name} in [{}]", AttrValue::Type(*dtype)));
    format!("device='{}'{}", kernel.device, types.collect::<String>())
}
