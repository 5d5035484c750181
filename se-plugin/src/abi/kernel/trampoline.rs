//! The functions that the host calls for a kernel.

use super::construction::{self, Construction};
use super::run::{self, Node, Run};
use crate::abi::device_type::device_type;
use crate::device::Device;
use crate::kernel::{Kernel, OpKernelConstruction, OpKernelContext};
use core::any::type_name;
use core::ffi::c_void;
use core::ptr;
use std::sync::OnceLock;
use tf_fs_sys::{TF_OpKernelConstruction, TF_OpKernelContext};
use tf_plugin_core::__private::boundary::{catch, guard_quiet};
use tf_plugin_core::{Error, Result};

type Create = unsafe extern "C" fn(*mut TF_OpKernelConstruction) -> *mut c_void;
type Compute = unsafe extern "C" fn(*mut c_void, *mut TF_OpKernelContext);
type Delete = unsafe extern "C" fn(*mut c_void);

/// The functions of one kernel, all for the same type, and the devices that they can be registered for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    pub(super) create: Create,
    pub(super) compute: Compute,
    pub(super) delete: Delete,
    pub(super) device_type: fn() -> &'static str,
    /// The type, for errors.
    pub(crate) name: fn() -> &'static str,
}

impl Functions {
    pub(crate) const fn of_kernel<K: Kernel>() -> Self {
        Self {
            create: create::<K>,
            compute: compute::<K>,
            delete: delete::<K>,
            device_type: device_type::<K::Platform>,
            name: type_name::<K>,
        }
    }
}

/// A kernel of a node.
struct Made<K> {
    kernel: K,
    /// What the first run has found.
    node: OnceLock<Node>,
}

unsafe extern "C" fn create<K: Kernel>(raw: *mut TF_OpKernelConstruction) -> *mut c_void {
    let op = type_name::<K>();
    let made = catch(op, || {
        // SAFETY: the host passes a construction, which lasts until this function returns.
        K::new(&OpKernelConstruction(unsafe { Construction::new(raw)? }))
    });
    match made {
        Ok(kernel) => Box::into_raw(Box::new(Made { kernel, node: OnceLock::new() })).cast(),
        Err(error) => {
            // SAFETY: `raw` is the host's construction, which has not ended.
            unsafe { construction::fail(op, raw, error) };
            ptr::null_mut()
        }
    }
}

unsafe extern "C" fn delete<K>(kernel: *mut c_void) {
    let op = type_name::<K>();
    let body = || {
        if !kernel.is_null() {
            // SAFETY: made by `create` for this `K`, and deleted once.
            drop(unsafe { Box::from_raw(kernel.cast::<Made<K>>()) });
        }
        Ok(())
    };
    guard_quiet(op, || (), body);
}

/// # Safety
/// `kernel` is null or from `create` of this `K`, and not deleted during `'a`.
unsafe fn kernel_of<'a, K>(kernel: *mut c_void) -> Result<&'a Made<K>> {
    // SAFETY: `kernel` is null, or `create` of this `K` returned it as a `Box<Made<K>>` that `delete` has not
    // freed.
    unsafe { kernel.cast::<Made<K>>().as_ref() }
        .ok_or_else(|| Error::internal("TensorFlow runs a kernel that could not be made"))
}

unsafe extern "C" fn compute<K: Kernel>(kernel: *mut c_void, raw: *mut TF_OpKernelContext) {
    let op = type_name::<K>();
    // SAFETY: the host passes what `create` has returned, and deletes it after its runs; and a run, which does
    // not end before this returns. The kernel is only ever registered for the devices of `K::Platform`.
    unsafe {
        match kernel_of::<K>(kernel) {
            Ok(Made { kernel, node }) => compute_with(op, raw, node, &|run| {
                let mut context = OpKernelContext::<K::Platform>::new(run);
                kernel.compute(&mut context)?;
                context.check_outputs()
            }),
            Err(error) => run::fail(op, raw, error),
        }
    }
}

/// What is the same for all kernels of a type of devices, so that the library has it once.
///
/// # Safety
/// `raw` is a run on a device of type `D`, and does not end before this returns.
unsafe fn compute_with<D: Device>(
    op: &'static str,
    raw: *mut TF_OpKernelContext,
    node: &OnceLock<Node>,
    body: &dyn Fn(Run<'_, D>) -> Result<()>,
) {
    let result = catch(op, || {
        // SAFETY: `raw` is null, or a run of a kernel for devices of `D` that has not ended.
        body(unsafe { Run::new(raw, node)? })
    });
    if let Err(error) = result {
        // SAFETY: the run has not ended.
        unsafe { run::fail(op, raw, error) };
    }
}
