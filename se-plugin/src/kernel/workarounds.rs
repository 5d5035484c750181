//! Kernels that replace TensorFlow's own kernels for all devices, where those are unsafe.
//!
//! TensorFlow's kernels for `AssignAddVariableOp` and `AssignSubVariableOp` compute on the host with addresses of
//! the device: they crash, or return wrong numbers. For other ops that read or change a variable in place it has no kernels, and
//! without one it cannot place them beside the variable. So each op of [`VARIABLE_OPS`] gets a kernel that fails and says what to
//! write, for types for which the author has none. In functions the graph pass replaces these ops, once they are placed. Those
//! for int32 `ZerosLike` and `OnesLike` read an input of the device on the host: they are replaced by kernels whose input
//! is on the host, too.

use super::interface::Kernel;
use super::registration;
use super::variable_ops::{VARIABLE_OPS, VariableOp};
use super::{OpKernelConstruction, OpKernelContext};
use crate::abi::device_type::device_type;
use crate::abi::kernel::variables::host_has_variables;
use crate::platform::Platform;
use core::marker::PhantomData;
use tf_op_plugin::__private::{Options, Registration};
use tf_op_plugin::DType;
use tf_plugin_core::{Code, Error, Result};

macro_rules! of_types {
    ($attribute:literal $($dtype:ident)*) => {
        &[$(&[($attribute, DType::$dtype)]),*]
    };
}

/// The types for which TensorFlow has kernels for these ops. Variables of int32 are on the CPU. Its kernels of the other
/// ops, for variants, are safe; without constraints the failing kernels would replace them.
const TYPES: &[&[(&str, DType)]] = of_types! {
    "dtype" Bfloat16 Float16 Float32 Float64 Complex64 Complex128 Int8 Int16 Int64 Uint8 Uint16 Uint32 Uint64 Bool String
};

/// Returns the workarounds to register in addition to an author's kernels.
pub(crate) fn missing<P: Platform>(chosen: &[&Registration]) -> Vec<Registration> {
    let mut workarounds = Vec::new();
    let has = |op: &str, types: &[(&str, DType)]| chosen.iter().any(|one| one.is_for(op, types));
    for one in &VARIABLE_OPS {
        // `cargo tf-plugin coverage` recognises these kernels by their priority, which TensorFlow lists. An author's
        // kernel has a higher one.
        let options = Options { host_memory: one.handles, priority: -1, ..Options::default() };
        let refusal = registration::<FailingKernel<P>>(one.op, file!(), options);
        if one.dtype != Some("dtype") {
            workarounds.push(refusal);
            continue;
        }
        let types = TYPES.iter().filter(|types| !has(one.op, types));
        workarounds.extend(types.map(|types| refusal.with_options(Options { types, ..options })));
    }
    let options =
        Options { types: &[("T", DType::Int32)], host_memory: &["x", "y"], ..Options::default() };
    for workaround in [
        registration::<HostFill<P, 0>>("ZerosLike", file!(), options),
        registration::<HostFill<P, 1>>("OnesLike", file!(), options),
    ] {
        if !has(workaround.op, options.types) {
            workarounds.push(workaround);
        }
    }
    workarounds
}

/// A kernel that fails, for an op of [`VARIABLE_OPS`].
pub(crate) struct FailingKernel<P> {
    op: &'static VariableOp,
    dtype: DType,
    platform: PhantomData<fn() -> P>,
}

impl<P: Platform> Kernel for FailingKernel<P> {
    type Platform = P;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let name = construction.op_name()?;
        let op = VariableOp::of(&name)
            .ok_or_else(|| Error::internal(format!("{name} is not an op on variables")))?;
        let dtype = op.dtype.map_or(Ok(DType::Int64), |name| construction.attr(name))?;
        Ok(Self { op, dtype, platform: PhantomData })
    }

    fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
        let text = self.op.error(device_type::<P>(), self.dtype, host_has_variables());
        Err(Error::new(Code::Unimplemented, text))
    }
}

/// A kernel that fills an output on the host with a number.
struct HostFill<P, const VALUE: i32>(PhantomData<fn() -> P>);

impl<P: Platform, const VALUE: i32> Kernel for HostFill<P, VALUE> {
    type Platform = P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }

    fn compute(&self, context: &mut OpKernelContext<'_, P>) -> Result<()> {
        let shape = context.host_input::<i32>(0)?.shape().to_vec();
        context.host_output::<i32>(0, &shape)?.as_mut_slice().fill(VALUE);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::test_platform::TestPlatform;

    fn ops(chosen: &[&Registration]) -> Vec<String> {
        let ops = missing::<TestPlatform>(chosen);
        ops.iter()
            .map(|workaround| match workaround.options.types.first() {
                Some((_, dtype)) => format!("{} {dtype}", workaround.op),
                None => String::from(workaround.op),
            })
            .collect()
    }

    #[test]
    fn each_op_and_type_has_a_workaround() {
        let all = ops(&[]);
        for one in [
            "AssignSubVariableOp float32",
            "AssignAddVariableOp int64",
            "ResourceGather bool",
            "OnesLike int32",
        ] {
            assert!(all.iter().any(|workaround| workaround == one), "{one}");
        }
        for one in VARIABLE_OPS {
            assert!(all.iter().any(|workaround| workaround.starts_with(one.op)), "{}", one.op);
        }
    }

    #[test]
    fn what_the_author_has_is_left_alone() {
        let all = Options::default();
        let float = Options { types: &[("dtype", DType::Float32)], ..all };
        let own = |op, options| registration::<FailingKernel<TestPlatform>>(op, "here", options);
        let count = ops(&[]).len();
        let workarounds = ops(&[&own("AssignAddVariableOp", float)]);
        assert!(!workarounds.contains(&String::from("AssignAddVariableOp float32")));
        assert_eq!(workarounds.len(), count - 1);
        assert_eq!(ops(&[&own("AssignAddVariableOp", all)]).len(), count - TYPES.len());
        assert_eq!(ops(&[&own("ZerosLike", all)]).len(), count - 1);
    }
}
