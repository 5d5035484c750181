//! The functions that the host calls for a kernel.

use super::construction::OpKernelConstruction;
use super::context::{Node, OpKernelContext};
use super::status::fail;
use crate::abi::device_type::device_type;
use crate::kernel::Kernel;
use crate::platform::Platform;
use crate::sync::{AtomicBool, Ordering};
use core::any::type_name;
use core::ffi::c_void;
use core::ptr;
use std::sync::OnceLock;
use tf_fs_sys::{TF_OpKernelConstruction, TF_OpKernelContext};
use tf_plugin_core::__private::boundary::{catch, discard};
use tf_plugin_core::{Error, Result};

type Create = unsafe extern "C" fn(*mut TF_OpKernelConstruction) -> *mut c_void;
type Compute = unsafe extern "C" fn(*mut c_void, *mut TF_OpKernelContext);
type Delete = unsafe extern "C" fn(*mut c_void);

/// The functions of one kernel, all for the same Rust type, and the type of devices that they can be registered for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    pub(super) create: Create,
    pub(super) compute: Compute,
    pub(super) delete: Delete,
    pub(super) device_type: fn() -> &'static str,
    /// The Rust type, for error texts.
    pub(crate) name: fn() -> &'static str,
}

impl Functions {
    pub(crate) const fn of_kernel<K: Kernel>() -> Self {
        Self {
            create: create::<K>,
            compute: compute::<K::Platform>,
            delete: delete::<K::Platform>,
            device_type: device_type::<K::Platform>,
            name: type_name::<K>,
        }
    }
}

/// A kernel without its type. A library has hundreds of kernel types: code that needs no type is compiled once.
trait AnyKernel<P: Platform>: Send + Sync {
    fn compute(&self, context: &mut OpKernelContext<'_, P>) -> Result<()>;
}

impl<K: Kernel> AnyKernel<K::Platform> for K {
    fn compute(&self, context: &mut OpKernelContext<'_, K::Platform>) -> Result<()> {
        Kernel::compute(self, context)
    }
}

/// A kernel of a node.
struct CreatedKernel<P> {
    kernel: Box<dyn AnyKernel<P>>,
    /// The Rust type, for error texts.
    name: &'static str,
    /// The facts that the first run has found.
    node: OnceLock<Node>,
    /// Whether a run has failed.
    has_failed: AtomicBool,
}

impl<P: Platform> CreatedKernel<P> {
    /// Runs the kernel. The first failure is also logged: TensorFlow drops errors of functions that it does not inline, such
    /// as those for XLA, if their caller waits for another device. It cancels the caller first, and the caller reports
    /// that it was cancelled.
    fn compute(&self, context: &mut OpKernelContext<'_, P>) -> Result<()> {
        let computed = self.kernel.compute(context).and_then(|()| context.check_outputs());
        if let Err(error) = &computed
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            log::warn!("the node `{}` failed: {error:#}", context.name());
        }
        computed
    }
}

unsafe extern "C" fn create<K: Kernel>(raw: *mut TF_OpKernelConstruction) -> *mut c_void {
    // SAFETY: the host passes a construction, which lasts until this function returns.
    unsafe { create_by(type_name::<K>(), raw, boxed::<K>) }
}

fn boxed<K: Kernel>(node: &OpKernelConstruction<'_>) -> Result<Box<dyn AnyKernel<K::Platform>>> {
    match K::new(node) {
        Ok(kernel) => Ok(Box::new(kernel)),
        Err(error) => Err(error),
    }
}

/// Creates a kernel with `new`. Reports an error to the host and returns null if that fails.
/// # Safety
/// `raw` is null or a construction that does not end before this returns.
unsafe fn create_by<P: Platform>(
    name: &'static str,
    raw: *mut TF_OpKernelConstruction,
    new: fn(&OpKernelConstruction<'_>) -> Result<Box<dyn AnyKernel<P>>>,
) -> *mut c_void {
    let created = catch(name, || {
        // SAFETY: `raw` is null or a construction that has not ended.
        new(&unsafe { OpKernelConstruction::new(raw)? })
    });
    match created {
        Ok(kernel) => {
            let (node, has_failed) = (OnceLock::new(), AtomicBool::new(false));
            Box::into_raw(Box::new(CreatedKernel { kernel, name, node, has_failed })).cast()
        }
        Err(error) => {
            // SAFETY: `raw` is the host's construction, which has not ended.
            unsafe { fail(name, raw, |host| host.TF_OpKernelConstruction_Failure, error) };
            ptr::null_mut()
        }
    }
}

unsafe extern "C" fn delete<P: Platform>(kernel: *mut c_void) {
    if kernel.is_null() {
        return;
    }
    // SAFETY: made by `create` for a kernel of this `P`, and deleted once.
    let created = unsafe { Box::from_raw(kernel.cast::<CreatedKernel<P>>()) };
    discard(created.name, created);
}

unsafe extern "C" fn compute<P: Platform>(kernel: *mut c_void, raw: *mut TF_OpKernelContext) {
    // SAFETY: `kernel` is null, or `create` for a kernel of this `P` returned it as a `Box<CreatedKernel<P>>`, which `delete` does not
    // free before this returns.
    let created = unsafe { kernel.cast::<CreatedKernel<P>>().as_ref() };
    let name = created.map_or("compute", |created| created.name);
    let result = catch(name, || {
        let created = created
            .ok_or_else(|| Error::internal("TensorFlow runs a kernel that could not be made"))?;
        // SAFETY: `raw` is null, or a run that has not ended, of a kernel that is only ever registered for the devices of `P`.
        let mut context = unsafe { OpKernelContext::new(raw, &created.node)? };
        created.compute(&mut context)
    });
    if let Err(error) = result {
        // SAFETY: `raw` is null or a run that has not ended.
        unsafe { fail(name, raw, |host| host.TF_OpKernelContext_Failure, error) };
    }
}
