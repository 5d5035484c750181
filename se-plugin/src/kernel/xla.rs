//! Kernels that replace TensorFlow's own for devices of the type `GPU`.
//!
//! Each build of TensorFlow has kernels for that type that compile an op with XLA, which has no compiler for a
//! plugin's devices. Python emits some of these ops outside of XLA: `keras.ops.slice_update` is `XlaDynamicUpdateSlice`.
//! TensorFlow's kernels then fail, and release two objects that they never set (`XlaCompileOnDemandOp::Compute`),
//! which ends the process now or later. So the SDK adds kernels with a higher priority, which run the op on the CPU.
//! For other types TensorFlow has no such kernels, and the ops are on the CPU.

use super::interface::Kernel;
use super::registration;
use super::{OpKernelConstruction, OpKernelContext};
use crate::abi::device_type::device_type;
use crate::abi::kernel::cpu_op::{Attributes, Handle};
use crate::platform::Platform;
use core::marker::PhantomData;
use std::ffi::{CStr, CString};
use tf_op_plugin::__private::abi::Ops;
use tf_op_plugin::__private::{Options, Registration};
use tf_plugin_core::Result;

/// The ops for which TensorFlow has kernels that compile with XLA, for the types `CPU` and `GPU`. A kernel of `XlaLaunch`
/// needs no replacement: only TensorFlow inserts it, where a user turns its automatic clustering on.
const OPS: [&str; 31] = [
    "XlaBroadcastHelper",
    "XlaCallModule",
    "XlaConv",
    "XlaConvV2",
    "XlaDequantize",
    "XlaDot",
    "XlaDotV2",
    "XlaDynamicSlice",
    "XlaDynamicUpdateSlice",
    "XlaEinsum",
    "XlaGather",
    "XlaIf",
    "XlaKeyValueSort",
    "XlaPad",
    "XlaRecv",
    "XlaReduce",
    "XlaReducePrecision",
    "XlaReduceWindow",
    "XlaReplicaId",
    "XlaRngBitGenerator",
    "XlaScatter",
    "XlaSelectAndScatter",
    "XlaSelfAdjointEig",
    "XlaSend",
    "XlaSort",
    "XlaSpmdShardToFullShape",
    "XlaSvd",
    "XlaVariadicReduce",
    "XlaVariadicReduceV2",
    "XlaVariadicSort",
    "XlaWhile",
];

/// Of the same ops, those that return their inputs.
const PASSED: [&str; 2] = ["XlaOptimizationBarrier", "XlaSharding"];

/// An op of TensorFlow's for cuDNN, of which the CPU has the other version alone.
const CTC_LOSS: &str = "CTCLossV2";

/// The type for which TensorFlow has kernels, or Python has ops of its own.
const GPU: &str = "GPU";

/// Above the priority of TensorFlow's kernels, which is 0. An author's kernel has the next.
const PRIORITY: i32 = 1;

/// Returns the author's kernel with a priority above TensorFlow's for the same op, if there is one.
pub(crate) fn raised(kernel: &Registration, device_type: &str) -> Registration {
    let mut kernel = *kernel;
    let is_xla = OPS.contains(&kernel.op) || PASSED.contains(&kernel.op);
    if device_type == GPU && is_xla && kernel.options.priority <= PRIORITY {
        kernel.options.priority = PRIORITY + 1;
    }
    kernel
}

/// Returns the kernels to register in addition to an author's.
pub(crate) fn missing<P: Platform>(
    ops: Option<&Ops<'_>>,
    chosen: &[&Registration],
) -> Vec<Registration> {
    if device_type::<P>() != GPU {
        return Vec::new();
    }
    let options = Options { priority: PRIORITY, ..Options::default() };
    let mut missing: Vec<_> =
        PASSED.into_iter().map(|op| registration::<Identity<P>>(op, file!(), options)).collect();
    let on_cpu = OPS.map(|op| registration::<OnCpu<P>>(op, file!(), options));
    let loss = registration::<CtcLoss<P>>(CTC_LOSS, file!(), Options::default());
    let has_loss = chosen.iter().any(|one| one.op == CTC_LOSS);
    for kernel in on_cpu.into_iter().chain((!has_loss).then_some(loss)) {
        // Another release may not have the op.
        let definition = ops.and_then(|ops| ops.get(kernel.op).ok().flatten());
        let Some(definition) = definition else { continue };
        let names = definition.arguments.into_iter().map(|name| &*name.leak());
        // Registered once a process.
        let host_memory = names.collect::<Vec<_>>().leak();
        let options = Options { host_memory, ..kernel.options };
        missing.push(kernel.with_options(options));
    }
    missing
}

/// A kernel that returns its inputs.
struct Identity<P>(PhantomData<fn() -> P>);

impl<P: Platform> Kernel for Identity<P> {
    type Platform = P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }

    fn compute(&self, context: &mut OpKernelContext<'_, P>) -> Result<()> {
        (0..context.output_count()).try_for_each(|at| context.set_output(at, &context.input(at)?))
    }
}

/// A kernel that runs its op on the CPU. All arguments are in host memory.
struct OnCpu<P> {
    op: CString,
    attributes: Attributes,
    platform: PhantomData<fn() -> P>,
}

impl<P: Platform> Kernel for OnCpu<P> {
    type Platform = P;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let (op, attributes) = Attributes::op(construction)?;
        Ok(Self { op, attributes, platform: PhantomData })
    }

    fn compute(&self, context: &mut OpKernelContext<'_, P>) -> Result<()> {
        let cpu = context.cpu(&self.attributes)?;
        let inputs = (0..context.input_count()).map(|at| context.cpu_input(cpu, at));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let outputs = cpu.run(&self.op, &inputs, &self.attributes, context.output_count())?;
        outputs
            .iter()
            .enumerate()
            .try_for_each(|(at, output)| context.set_cpu_output(cpu, at, output))
    }
}

/// `CTCLossV2` by `CTCLoss` on the CPU: its blank is the last class and not the first. All arguments are in host memory.
struct CtcLoss<P> {
    attributes: Attributes,
    platform: PhantomData<fn() -> P>,
}

impl<P: Platform> Kernel for CtcLoss<P> {
    type Platform = P;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { attributes: Attributes::of(construction)?, platform: PhantomData })
    }

    fn compute(&self, context: &mut OpKernelContext<'_, P>) -> Result<()> {
        let cpu = context.cpu(&self.attributes)?;
        let run = |op: &CStr, inputs: &[&Handle], outputs| {
            let inputs = inputs.iter().copied();
            cpu.run(op, inputs, &Attributes::default(), outputs)
        };
        let input = |at| context.cpu_input(cpu, at);
        let [logits, indices, labels, lengths] = [input(0)?, input(1)?, input(2)?, input(3)?];
        let (one, classes) = (cpu.scalar(1_i32)?, cpu.scalar(2_i32)?);
        let minus_one = cpu.scalar(-1_i32)?;
        let logits = run(c"Roll", &[&logits, &minus_one, &classes], 1)?;
        let labels = run(c"Sub", &[&labels, &one], 1)?;
        let inputs = [&logits[0], &indices, &labels[0], &lengths];
        let results = cpu.run(c"CTCLoss", inputs, &self.attributes, 2)?;
        let gradient = run(c"Roll", &[&results[1], &one, &classes], 1)?;
        context.set_cpu_output(cpu, 0, &results[0])?;
        context.set_cpu_output(cpu, 1, &gradient[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::test_platform::TestPlatform;

    #[test]
    fn kernels_of_the_author_come_before_those_of_tensorflow() {
        let of = |op| registration::<OnCpu<TestPlatform>>(op, "here", Options::default());
        for (op, device_type, priority) in [
            ("XlaDynamicUpdateSlice", GPU, 2),
            ("XlaSharding", GPU, 2),
            ("XlaPad", "MY_DEVICE", 0),
            ("AddV2", GPU, 0),
        ] {
            assert_eq!(raised(&of(op), device_type).options.priority, priority, "{op}");
        }
    }
}
