//! A kernel for tests that never runs.

use super::construction::OpKernelConstruction;
use super::trampoline::{KernelType, Target};
use std::borrow::Cow;
use tf_fs_sys::TF_OpKernelContext;
use tf_plugin_core::{Error, Result};

pub(crate) struct TestTarget;

impl Target for TestTarget {
    type Context<'a> = ();
    type Facts = ();

    fn device_type() -> &'static str {
        "TEST"
    }

    unsafe fn context(_: *mut TF_OpKernelContext, _: &()) -> Result<()> {
        Err(Error::internal("never runs"))
    }

    fn finish((): &()) -> Result<()> {
        Ok(())
    }

    fn node_name((): &()) -> Cow<'_, str> {
        Cow::Borrowed("")
    }
}

pub(crate) struct TestKernel;

impl KernelType for TestKernel {
    type Target = TestTarget;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self)
    }

    fn compute(&self, (): &mut ()) -> Result<()> {
        Ok(())
    }
}
