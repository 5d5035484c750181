//! Whether all elements of many tensors are finite, which optimizers ask that scale the loss: `shaders/all_finite.comp`.
//! [`Fusion`](crate::fusion::Fusion) finds it in a graph.

use super::*;
use se_plugin::kernel::{OpDefinition, OpDefinitionBuilder};
use se_plugin::register_op;

/// The op.
pub(crate) const OP: &str = "RustGpuAllFinite";

/// The most tensors in a launch.
const MOST: usize = 10;

struct Definition;

impl OpDefinition for Definition {
    const NAME: &'static str = OP;

    fn define(op: &mut OpDefinitionBuilder) {
        op.attribute("T: list({half, bfloat16, float}) >= 1")
            .input("tensors: T")
            .output("all: bool");
    }
}
register_op!(Definition);

kernels! {
    types ()
    "RustGpuAllFinite" AllFinite () = |run, op| {
        let tensors = inputs(run, "tensors")?;
        let out = run.output(0, &[])?;
        strided_copy::fill(run, op, Operand::Value(1), &out)?;
        let mut groups: Vec<((DType, bool), Vec<&DeviceTensor>)> = Vec::new();
        for tensor in tensors.iter().filter(|tensor| !tensor.is_empty()) {
            let kind = (tensor.dtype(), is_wide(tensor));
            match groups.iter_mut().find(|(of, _)| *of == kind) {
                Some((_, group)) => group.push(tensor),
                None => groups.push((kind, vec![tensor])),
            }
        }
        groups.iter().try_for_each(|((_, is_wide), group)| {
            group.chunks(MOST).try_for_each(|some| check(run, op, some, *is_wide, &out))
        })
    };
}

/// Returns whether four elements can be read at once.
fn is_wide(tensor: &DeviceTensor) -> bool {
    tensor.len().is_multiple_of(4) && Operand::from(tensor).is_multiple_of(16)
}

/// Enqueues that `out` becomes false if an element of at most [`MOST`] tensors of one type is not finite.
fn check(
    context: &Run<'_>,
    op: &'static str,
    tensors: &[&DeviceTensor],
    is_wide: bool,
    out: &DeviceTensor,
) -> Result<()> {
    let (mut operands, mut numbers) = (vec![Operand::Value(0); MOST + 1], Vec::new());
    operands[0] = out.into();
    let mut most = 0;
    for (operand, tensor) in operands[1..].iter_mut().zip(tensors) {
        *operand = Operand::from(*tensor);
        let count = word(tensor.len())? / if is_wide { 4 } else { 1 };
        numbers.push(count);
        most = most.max(count as usize);
    }
    numbers.resize(MOST, 0);
    Launch {
        op,
        shader: shader!("all_finite"),
        constants: &[element_type(tensors[0].dtype())?, tensors.len() as u32, is_wide.into()],
        operands: &operands,
        numbers: &numbers,
        groups: groups(most),
    }
    .enqueue(context)
}
