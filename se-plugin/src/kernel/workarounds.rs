//! Kernels that replace TensorFlow's own kernels for all devices, where those are unsafe.
//!
//! TensorFlow's kernels for `AssignAddVariableOp` and `AssignSubVariableOp` compute on the host with addresses of
//! the device: they crash, or return wrong numbers. So each type for which the author has no kernel gets one that
//! fails and says what to write. Those for int32 `ZerosLike` and `OnesLike` read an input of the device on the
//! host: they are replaced by kernels whose input is on the host, too.

use super::interface::Kernel;
use super::registry::{Options, Registration, has_kernel};
use super::{OpKernelConstruction, OpKernelContext};
use crate::abi::device_type::device_type;
use crate::abi::kernel::variables::host_has_variables;
use crate::dtype::DType;
use crate::platform::Platform;
use core::marker::PhantomData;
use tf_plugin_core::{Code, Error, Result};

/// An op that changes a variable in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InPlace {
    pub(crate) op: &'static str,
    /// The op that computes the new value, for the graph pass that replaces the first.
    pub(crate) computes: &'static str,
    /// The method of a variable in Python, and the sign that users write for the second op.
    method: &'static str,
    sign: char,
}

/// The ops that compute in place.
pub(crate) const IN_PLACE: [InPlace; 2] = [
    InPlace { op: "AssignAddVariableOp", computes: "AddV2", method: "assign_add", sign: '+' },
    InPlace { op: "AssignSubVariableOp", computes: "Sub", method: "assign_sub", sign: '-' },
];

macro_rules! of_types {
    ($($dtype:ident)*) => {
        [$(&[("dtype", DType::$dtype)]),*]
    };
}

/// The types for which TensorFlow has kernels for these ops. Variables of int32 are on the CPU.
const TYPES: [&[(&str, DType)]; 13] = of_types! {
    Bfloat16 Float16 Float32 Float64 Complex64 Complex128 Int8 Int16 Int64 Uint8 Uint16 Uint32 Uint64
};

/// Returns the workarounds to register in addition to an author's kernels.
pub(crate) fn missing<P: Platform>(chosen: &[&Registration]) -> Vec<Registration> {
    let mut workarounds = Vec::new();
    let has = |op: &str, attribute: &str, dtype: DType| {
        chosen.iter().any(|one| one.is_for(op, attribute, dtype))
    };
    let [add, sub] = IN_PLACE.map(|one| one.op);
    // `cargo tf-plugin coverage` recognises these kernels by their priority, which TensorFlow lists.
    let options = Options { host_memory: &["resource"], priority: -1, ..Options::default() };
    for poison in [
        Registration::new::<Poison<P, 0>>(add, file!(), options),
        Registration::new::<Poison<P, 1>>(sub, file!(), options),
    ] {
        for types in TYPES {
            if types.iter().any(|&(attribute, dtype)| !has(poison.op, attribute, dtype)) {
                workarounds.push(Registration { options: Options { types, ..options }, ..poison });
            }
        }
    }
    let options =
        Options { types: &[("T", DType::Int32)], host_memory: &["x", "y"], ..Options::default() };
    for workaround in [
        Registration::new::<HostFill<P, 0>>("ZerosLike", file!(), options),
        Registration::new::<HostFill<P, 1>>("OnesLike", file!(), options),
    ] {
        if !has(workaround.op, "T", DType::Int32) {
            workarounds.push(workaround);
        }
    }
    workarounds
}

/// A kernel that fails, in place of TensorFlow's kernel for the op of [`IN_PLACE`] with this number.
pub(crate) struct Poison<P, const OP: usize> {
    dtype: DType,
    platform: PhantomData<fn() -> P>,
}

impl<P: Platform, const OP: usize> Kernel for Poison<P, OP> {
    type Platform = P;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { dtype: construction.attr("dtype")?, platform: PhantomData })
    }

    fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
        let op = IN_PLACE[OP];
        let has_computes = has_kernel::<P>(op.computes, "T", self.dtype);
        let text = op.text(device_type::<P>(), self.dtype, has_computes, host_has_variables());
        Err(Error::new(Code::Unimplemented, text))
    }
}

impl InPlace {
    /// Returns what failed, why, and what to do. `has_computes`: the plugin has a kernel for `computes`, with which the
    /// graph pass replaces the change in functions. `host_has_variables`: it could have a kernel for the change itself.
    fn text(
        self,
        device: &str,
        dtype: DType,
        has_computes: bool,
        host_has_variables: bool,
    ) -> String {
        let Self { op, computes, method, sign } = self;
        let failed = format!("`{method}` failed on a variable of {dtype} on {device}");
        let in_function = format!(
            "do it in a `tf.function` (in Keras: without `run_eagerly=True`), or write `v.assign(v {sign} d)` in \
             place of `v.{method}(d)`"
        );
        if !has_computes {
            let other = if host_has_variables { format!(" or `{op}`") } else { String::new() };
            return format!(
                "{failed}: the plugin has no kernel `{computes}` of {dtype}{other}; add a kernel for \
                 `{computes}` with T = {dtype}, or keep the variable on the CPU with \
                 `tf.device(\"/device:CPU:0\")`"
            );
        }
        if host_has_variables {
            return format!(
                "{failed}: the plugin has no kernel `{op}` of {dtype}; add one with `variables`, {in_function}"
            );
        }
        format!(
            "{failed}: this TensorFlow does not let plugins change a variable in place; {in_function}"
        )
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
    use crate::kernel::test_platform::Nothing;

    fn ops(chosen: &[&Registration]) -> Vec<String> {
        let ops = missing::<Nothing>(chosen);
        ops.iter()
            .map(|workaround| format!("{} {}", workaround.op, workaround.options.types[0].1))
            .collect()
    }

    #[test]
    fn each_type_is_cured() {
        let all = ops(&[]);
        assert_eq!(all.len(), 2 * 13 + 2);
        for one in ["AssignSubVariableOp float32", "AssignAddVariableOp int64", "OnesLike int32"] {
            assert!(all.iter().any(|workaround| workaround == one), "{one}");
        }
    }

    #[test]
    fn what_the_author_has_is_left_alone() {
        let all = Options::default();
        let float = Options { types: &[("dtype", DType::Float32)], ..all };
        let own = |op, options| Registration::new::<Poison<Nothing, 0>>(op, "here", options);
        let workarounds = ops(&[&own(IN_PLACE[0].op, float)]);
        assert!(!workarounds.contains(&String::from("AssignAddVariableOp float32")));
        assert_eq!(workarounds.len(), 2 * 13 + 1);
        assert_eq!(ops(&[&own(IN_PLACE[0].op, all)]).len(), 13 + 2);
        assert_eq!(ops(&[&own("ZerosLike", all)]).len(), 2 * 13 + 1);
    }

    #[test]
    fn the_error_names_what_is_missing() {
        let text =
            |op: usize, computes, host| IN_PLACE[op].text("MY_NPU", DType::Float32, computes, host);
        for (op, method, computes, in_place, written) in [
            (0, "`assign_add`", "`AddV2`", "`AssignAddVariableOp`", "`v.assign(v + d)`"),
            (1, "`assign_sub`", "`Sub`", "`AssignSubVariableOp`", "`v.assign(v - d)`"),
        ] {
            let missing = format!("no kernel {computes} of float32");
            for host in [true, false] {
                let text = text(op, false, host);
                assert!(text.contains(&missing) && text.contains(method), "{text}");
                assert_eq!(text.contains(in_place), host, "{text}");
                assert!(!text.contains("TensorFlow"), "it is not the cause: {text}");
            }
            let own = text(op, true, true);
            assert!(own.contains(&format!("no kernel {in_place} of float32")), "{own}");
            let host = text(op, true, false);
            assert!(host.contains("this TensorFlow does not let plugins"), "{host}");
            for text in [own, host] {
                assert!(text.contains(written) && !text.contains(&missing), "{text}");
            }
        }
    }
}
