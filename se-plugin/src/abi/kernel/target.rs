//! Kernels for the devices of a platform.

use super::context::{Node, OpKernelContext};
use crate::abi::device_type::device_type;
use crate::kernel::Kernel;
use crate::platform::Platform;
use core::any::type_name;
use core::marker::PhantomData;
use once_cell::race::OnceBox;
use std::borrow::Cow;
use tf_fs_sys::TF_OpKernelContext;
use tf_op_plugin::__private::abi::{KernelType, Target};
use tf_op_plugin::kernel::OpKernelConstruction;
use tf_plugin_core::Result;

/// The devices of a platform.
pub(crate) struct Devices<P>(PhantomData<fn() -> P>);

impl<P: Platform> Target for Devices<P> {
    type Context<'a> = OpKernelContext<'a, P>;
    type Facts = OnceBox<Node>;

    fn device_type() -> &'static str {
        device_type::<P>()
    }

    unsafe fn context<'a>(
        raw: *mut TF_OpKernelContext,
        facts: &'a OnceBox<Node>,
    ) -> Result<OpKernelContext<'a, P>> {
        // SAFETY: `raw` is null, or a run, not ended during `'a`, of a kernel for the devices of `P` alone. The host got
        // their handles from the callbacks for `P::Device`.
        unsafe { OpKernelContext::new(raw, facts) }
    }

    fn finish(context: &OpKernelContext<'_, P>) -> Result<()> {
        context.check_outputs()
    }

    fn node_name<'c>(context: &'c OpKernelContext<'_, P>) -> Cow<'c, str> {
        context.name()
    }
}

/// An author's kernel.
pub(crate) struct DeviceKernel<K>(K);

impl<K: Kernel> KernelType for DeviceKernel<K> {
    type Target = Devices<K::Platform>;

    fn name() -> &'static str {
        type_name::<K>()
    }

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        K::new(construction).map(Self)
    }

    fn compute(&self, context: &mut OpKernelContext<'_, K::Platform>) -> Result<()> {
        self.0.compute(context)
    }
}
