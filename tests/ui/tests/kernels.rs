//! Kernels as authors write them.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unreachable_pub)]

use se_plugin::prelude::*;
use std::marker::PhantomData;
use tf_plugin_ui_tests::device::P;

/// With types.
pub struct Typed<T, U>(PhantomData<(T, U)>);

#[kernel(op = "Sum", types(T = [f32, f64], Tidx = [i32, i64]), host_memory("reduction_indices"))]
impl<T: Element, Tidx> Kernel for Typed<T, Tidx>
where
    Tidx: Element,
{
    type Platform = P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
        Ok(())
    }
}

macro_rules! kernels {
    ($($name:ident $op:literal $ty:ty, $also:path;)*) => {$(
        /// One of several.
        pub struct $name;

        #[kernel(op = $op, types(T = [$ty, $also]))]
        #[kernel(op = "Other", label = $op, types(T = $ty), priority = -1)]
        impl se_plugin::kernel::Kernel for $name {
            type Platform = P;

            fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                construction.attr::<Vec<DType>>("types").map(|_| Self)
            }
            fn compute(&self, context: &mut OpKernelContext<'_, P>) -> Result<()> {
                context.variables(&[0])?;
                Ok(())
            }
        }
    )*};
}

kernels! {
    Abs "Abs" f32, f64;
    Inv "Inv" i32, i64;
}

/// For types that Rust does not have, and for another op.
pub struct Elsewhere;

#[kernel(op = "Send", types(T = [DType::Variant, DType::String, se_plugin::kernel::DType::Resource]), variables, variants)]
#[kernel(op = "_Recv")]
impl Kernel for Elsewhere {
    type Platform = P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self)
    }
    fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
        Ok(())
    }
}

#[test]
fn types_have_kernels() {
    assert!(se_plugin::kernel::has_kernel::<P>("Abs", "T", DType::Float64));
    assert!(!se_plugin::kernel::has_kernel::<P>("Abs", "T", DType::Int32));
    assert!(se_plugin::kernel::has_kernel::<P>("Sum", "Tidx", DType::Int64));
    assert!(!se_plugin::kernel::has_kernel::<P>("Other", "T", DType::Float32));
    assert!(se_plugin::kernel::has_kernel::<P>("_Recv", "T", DType::Float32));
}
