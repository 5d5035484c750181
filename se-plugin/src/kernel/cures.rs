//! Kernels against TensorFlow's own ones for all devices.
//!
//! Those for `AssignAddVariableOp` and `AssignSubVariableOp` compute on the host with addresses of the
//! device: a crash, or wrong numbers. So each type for which the author has no kernel gets one that fails and says
//! what to write. Those for int32 `ZerosLike` and `OnesLike` read an input of the device on the host: they
//! get kernels whose input is on the host, too.

use crate::abi::kernel::construction::Construction;
use crate::abi::kernel::context::Context;
use crate::kernel::registry::Registration;
use crate::kernel::{DType, Kernel};
use crate::platform::Platform;
use core::marker::PhantomData;
use tf_fs_plugin::{Code, Error, Result};

/// The ops that compute in place, with the ones that a user writes in Python.
const IN_PLACE: [&str; 2] = ["AssignAddVariableOp", "AssignSubVariableOp"];

/// The types for which TensorFlow has kernels for these. Variables of int32 are on the CPU.
const TYPES: [&[(&str, DType)]; 13] = [
    &[("dtype", DType::Bfloat16)],
    &[("dtype", DType::Float16)],
    &[("dtype", DType::Float32)],
    &[("dtype", DType::Float64)],
    &[("dtype", DType::Complex64)],
    &[("dtype", DType::Complex128)],
    &[("dtype", DType::Int8)],
    &[("dtype", DType::Int16)],
    &[("dtype", DType::Int64)],
    &[("dtype", DType::Uint8)],
    &[("dtype", DType::Uint16)],
    &[("dtype", DType::Uint32)],
    &[("dtype", DType::Uint64)],
];

/// The cures that are to be registered besides an author's kernels.
pub(crate) fn missing<P: Platform>(chosen: &[&Registration]) -> Vec<Registration> {
    let mut cures = Vec::new();
    let has = |op: &str, attribute: &str, dtype: DType| {
        chosen.iter().any(|one| one.is_for(op, attribute, dtype))
    };
    for op in IN_PLACE {
        for types in TYPES {
            if types.iter().any(|&(attribute, dtype)| !has(op, attribute, dtype)) {
                let poison = Registration::new::<Poison<P>>(op, file!());
                cures.push(poison.types(types).host_memory(&["resource"]));
            }
        }
    }
    const INT32: &[(&str, DType)] = &[("T", DType::Int32)];
    for cure in [
        Registration::new::<HostFill<P, 0>>("ZerosLike", file!()),
        Registration::new::<HostFill<P, 1>>("OnesLike", file!()),
    ] {
        if !has(cure.op, "T", DType::Int32) {
            cures.push(cure.types(INT32).host_memory(&["x", "y"]));
        }
    }
    cures
}

/// Fails, in place of TensorFlow's kernel.
pub(crate) struct Poison<P> {
    dtype: DType,
    platform: PhantomData<fn() -> P>,
}

impl<P: Platform> Kernel for Poison<P> {
    type Platform = P;

    fn new(construction: &Construction<'_>) -> Result<Self> {
        Ok(Self { dtype: construction.attr("dtype")?, platform: PhantomData })
    }

    fn compute(&self, _: &mut Context<'_, P>) -> Result<()> {
        let (device, dtype) = (P::TYPE, self.dtype);
        Err(Error::new(
            Code::Unimplemented,
            format!(
                "this TensorFlow does not let {device} change a variable of {dtype} in place; do it in a \
                 `tf.function` (in Keras: without `run_eagerly=True`) if {device} adds this type, or \
                 write `v.assign(v + d)` in place of `v.assign_add(d)`, and `v.assign(v - d)` in place \
                 of `v.assign_sub(d)`"
            ),
        ))
    }
}

/// Fills an output on the host with a number.
struct HostFill<P, const VALUE: i32>(PhantomData<fn() -> P>);

impl<P: Platform, const VALUE: i32> Kernel for HostFill<P, VALUE> {
    type Platform = P;

    fn new(_: &Construction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }

    fn compute(&self, context: &mut Context<'_, P>) -> Result<()> {
        let shape = context.host_input::<i32>(0)?.shape().to_vec();
        context.host_output::<i32>(0, &shape)?.as_mut_slice().fill(VALUE);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::test_platform::Nothing;

    fn ops(chosen: &[&Registration]) -> Vec<String> {
        let ops = missing::<Nothing>(chosen);
        ops.iter().map(|cure| format!("{} {}", cure.op, cure.types[0].1)).collect()
    }

    #[test]
    fn each_type_is_cured() {
        let all = ops(&[]);
        assert_eq!(all.len(), 2 * 13 + 2);
        for one in ["AssignSubVariableOp float32", "AssignAddVariableOp int64", "OnesLike int32"] {
            assert!(all.iter().any(|cure| cure == one), "{one}");
        }
    }

    #[test]
    fn what_the_author_has_is_left_alone() {
        let place = "here";
        let float: &[_] = &[("dtype", DType::Float32)];
        let add = Registration::new::<Poison<Nothing>>(IN_PLACE[0], place).types(float);
        let cures = ops(&[&add]);
        assert!(!cures.contains(&String::from("AssignAddVariableOp float32")));
        assert_eq!(cures.len(), 2 * 13 + 1);
        let all = Registration::new::<Poison<Nothing>>(IN_PLACE[0], place);
        assert_eq!(ops(&[&all]).len(), 13 + 2);
        let zeros = Registration::new::<Poison<Nothing>>("ZerosLike", place);
        assert_eq!(ops(&[&zeros]).len(), 2 * 13 + 1);
    }
}
