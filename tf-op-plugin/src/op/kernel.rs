//! The kernel of an op on the CPU.

use super::args::{Inputs as _, Outputs as _};
use super::shapes::{Known, Side};
use super::spec::{ArgSpec, ArgType, Repeat};
use super::{Op, OpContext};
use crate::abi::cpu::{Cpu, Run};
use crate::abi::trampoline::KernelType;
use crate::kernel::OpKernelConstruction;
use core::any::type_name;
use core::ops::Range;
use tf_plugin_core::{Error, Result, ensure};

/// A node of an op.
pub(super) struct OpKernel<O> {
    op: O,
    /// The tensors of each input and output.
    inputs: Vec<Range<usize>>,
    outputs: Vec<Range<usize>>,
    /// Whether an input or an output has a declared shape.
    has_shapes: bool,
}

/// Returns the range of each argument among the tensors of a node.
fn ranges(
    construction: &OpKernelConstruction<'_>,
    args: &[ArgSpec],
    types: &[ArgType],
) -> Result<Vec<Range<usize>>> {
    let mut end = 0;
    let mut ranges = Vec::with_capacity(args.len());
    for (arg, ty) in args.iter().zip(types) {
        let count = match ty.repeat {
            Repeat::One => 1,
            Repeat::Ragged => 2,
            Repeat::Optional | Repeat::List => {
                let count: i64 = construction.attr(&arg.count_attribute())?;
                usize::try_from(count).map_err(Error::invalid_argument)?
            }
        };
        ranges.push(end..end + count);
        end += count;
    }
    Ok(ranges)
}

impl<O: Op> KernelType for OpKernel<O> {
    type Target = Cpu;

    fn name() -> &'static str {
        type_name::<O>()
    }

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let spec = O::SPEC;
        Ok(Self {
            op: O::create(construction)?,
            inputs: ranges(construction, spec.inputs, O::Inputs::TYPES)?,
            outputs: ranges(construction, spec.outputs, O::Outputs::TYPES)?,
            has_shapes: spec.inputs.iter().chain(spec.outputs).any(|arg| arg.shape.is_some()),
        })
    }

    fn compute(&self, run: &mut Run<'_>) -> Result<()> {
        let run = &*run;
        let wanted = self.inputs.last().map_or(0, |range| range.end);
        ensure!(
            run.input_count() == wanted,
            Error::internal(format!("the node has {} inputs, not {wanted}", run.input_count()))
        );
        let spec = &O::SPEC;
        let context = OpContext::new(run, spec, Self::name());
        let inputs = O::Inputs::read_all(&context, &self.inputs)?;
        let mut known = Known::default();
        if self.has_shapes {
            inputs.each_shape(&mut |at, shape| {
                spec.inputs.get(at).map_or(Ok(()), |arg| known.check(Side::Input, arg, shape))
            })?;
        }
        let outputs = self.op.compute(inputs, &context)?;
        if self.has_shapes {
            outputs.each_shape(&mut |at, shape| {
                spec.outputs.get(at).map_or(Ok(()), |arg| known.check(Side::Output, arg, shape))
            })?;
        }
        outputs.write_all(&context, &self.outputs)
    }
}
