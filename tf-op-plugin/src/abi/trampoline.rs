//! The functions that the host calls for a kernel.

use super::construction::OpKernelConstruction;
use super::status::fail;
use core::any::{TypeId, type_name};
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::borrow::Cow;
use tf_fs_sys::{TF_OpKernelConstruction, TF_OpKernelContext};
use tf_plugin_core::__private::boundary::{catch, discard};
use tf_plugin_core::{Error, Result};

type Create = unsafe extern "C" fn(*mut TF_OpKernelConstruction) -> *mut c_void;
type Compute = unsafe extern "C" fn(*mut c_void, *mut TF_OpKernelContext);
type Delete = unsafe extern "C" fn(*mut c_void);

/// The devices that kernels are for: the CPU, or those of a platform.
pub trait Target: 'static {
    /// One run of a kernel.
    type Context<'a>;
    /// The facts that are the same in all runs of a node, which the first run finds. Nothing waits for it: a fork would leave
    /// a lock held.
    type Facts: Default + Send + Sync;

    /// Returns the devices' type, such as `CPU`.
    fn device_type() -> &'static str;

    /// Wraps a run of a kernel.
    ///
    /// # Errors
    /// If the kernel cannot run; it becomes the error of the op in Python.
    ///
    /// # Safety
    /// `raw` is null, or a run, not ended during `'a`, of a kernel that is registered for these devices alone.
    unsafe fn context<'a>(
        raw: *mut TF_OpKernelContext,
        facts: &'a Self::Facts,
    ) -> Result<Self::Context<'a>>;

    /// Ends a run that has succeeded so far.
    ///
    /// # Errors
    /// If an output is missing.
    fn finish(context: &Self::Context<'_>) -> Result<()>;

    /// Returns the name of the node.
    fn node_name<'c>(context: &'c Self::Context<'_>) -> Cow<'c, str>;
}

/// A type of kernels.
pub trait KernelType: Sized + Send + Sync + 'static {
    /// The devices that it is for.
    type Target: Target;
    /// The author's type, for error texts.
    fn name() -> &'static str {
        type_name::<Self>()
    }

    /// Creates the kernel for a node.
    ///
    /// # Errors
    /// Any; it becomes the error of the op in Python.
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self>;

    /// Runs the kernel.
    ///
    /// # Errors
    /// Any; it becomes the error of the op in Python.
    fn compute(&self, context: &mut <Self::Target as Target>::Context<'_>) -> Result<()>;
}

/// The functions of one kernel, all for the same Rust type, and the devices that they can be registered for.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    pub(super) create: Create,
    pub(super) compute: Compute,
    pub(super) delete: Delete,
    pub(super) device_type: fn() -> &'static str,
    pub(crate) target: fn() -> TypeId,
    /// The Rust type, for error texts.
    pub(crate) name: fn() -> &'static str,
}

impl Functions {
    pub(crate) const fn of_kernel<K: KernelType>() -> Self {
        Self {
            create: create::<K>,
            compute: compute::<K::Target>,
            delete: delete::<K::Target>,
            device_type: K::Target::device_type,
            target: TypeId::of::<K::Target>,
            name: K::name,
        }
    }
}

/// A kernel without its type. A library has hundreds of kernel types: code that needs no type is compiled once.
trait AnyKernel<T: Target>: Send + Sync {
    fn compute(&self, context: &mut T::Context<'_>) -> Result<()>;
}

impl<K: KernelType> AnyKernel<K::Target> for K {
    fn compute(&self, context: &mut <K::Target as Target>::Context<'_>) -> Result<()> {
        KernelType::compute(self, context)
    }
}

/// A kernel of a node.
struct CreatedKernel<T: Target> {
    kernel: Box<dyn AnyKernel<T>>,
    /// The Rust type, for error texts.
    name: &'static str,
    /// The facts that the first run has found.
    facts: T::Facts,
    /// Whether a run has failed.
    has_failed: AtomicBool,
}

impl<T: Target> CreatedKernel<T> {
    /// Runs the kernel. The first failure is also logged: TensorFlow drops errors of functions that it does not inline, such
    /// as those for XLA, if their caller waits for another device. It cancels the caller first, and the caller reports
    /// that it was cancelled.
    fn compute(&self, context: &mut T::Context<'_>) -> Result<()> {
        let computed = self.kernel.compute(context).and_then(|()| T::finish(context));
        if let Err(error) = &computed
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            log::warn!("the node `{}` failed: {error:#}", T::node_name(context));
        }
        computed
    }
}

unsafe extern "C" fn create<K: KernelType>(raw: *mut TF_OpKernelConstruction) -> *mut c_void {
    // SAFETY: the host passes a construction, which lasts until this function returns.
    unsafe { create_by(K::name(), raw, boxed::<K>) }
}

fn boxed<K: KernelType>(node: &OpKernelConstruction<'_>) -> Result<Box<dyn AnyKernel<K::Target>>> {
    match K::new(node) {
        Ok(kernel) => Ok(Box::new(kernel)),
        Err(error) => Err(error),
    }
}

/// Creates a kernel with `new`. Reports an error to the host and returns null if that fails.
/// # Safety
/// `raw` is null or a construction that does not end before this returns.
unsafe fn create_by<T: Target>(
    name: &'static str,
    raw: *mut TF_OpKernelConstruction,
    new: fn(&OpKernelConstruction<'_>) -> Result<Box<dyn AnyKernel<T>>>,
) -> *mut c_void {
    let created = catch(name, || {
        // SAFETY: `raw` is null or a construction that has not ended.
        new(&unsafe { OpKernelConstruction::new(raw)? })
    });
    match created {
        Ok(kernel) => {
            let (facts, has_failed) = (T::Facts::default(), AtomicBool::new(false));
            let created = CreatedKernel { kernel, name, facts, has_failed };
            Box::into_raw(Box::new(created)).cast()
        }
        Err(error) => {
            // SAFETY: `raw` is the host's construction, which has not ended.
            unsafe { fail(name, raw, |host| host.TF_OpKernelConstruction_Failure, error) };
            ptr::null_mut()
        }
    }
}

unsafe extern "C" fn delete<T: Target>(kernel: *mut c_void) {
    if kernel.is_null() {
        return;
    }
    // SAFETY: made by `create` for a kernel of this `T`, and deleted once.
    let created = unsafe { Box::from_raw(kernel.cast::<CreatedKernel<T>>()) };
    discard(created.name, created);
}

unsafe extern "C" fn compute<T: Target>(kernel: *mut c_void, raw: *mut TF_OpKernelContext) {
    // SAFETY: `kernel` is null, or `create` for a kernel of this `T` returned it as a `Box<CreatedKernel<T>>`, which `delete` does not
    // free before this returns.
    let created = unsafe { kernel.cast::<CreatedKernel<T>>().as_ref() };
    let name = created.map_or("compute", |created| created.name);
    let result = catch(name, || {
        let created = created
            .ok_or_else(|| Error::internal("TensorFlow runs a kernel that could not be made"))?;
        // SAFETY: `raw` is null, or a run that has not ended, of a kernel that is only ever registered for the devices of `T`.
        let mut context = unsafe { T::context(raw, &created.facts)? };
        created.compute(&mut context)
    });
    if let Err(error) = result {
        // SAFETY: `raw` is null or a run that has not ended.
        unsafe { fail(name, raw, |host| host.TF_OpKernelContext_Failure, error) };
    }
}
