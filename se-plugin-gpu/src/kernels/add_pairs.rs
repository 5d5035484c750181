//! Several sums of two tensors each: `shaders/add_pairs.comp`. [`Fusion`](crate::fusion::Fusion) writes them for the changes of
//! variables by an optimizer.

use super::*;
use se_plugin::kernel::{OpDefinition, OpDefinitionBuilder};
use se_plugin::register_op;
use se_plugin::toolkit::shape::to_host;

/// The op.
pub(crate) const OP: &str = "RustGpuAddPairs";

/// The most sums in a launch.
pub(crate) const MOST: usize = 4;

struct Definition;

impl OpDefinition for Definition {
    const NAME: &'static str = OP;

    fn define(op: &mut OpDefinitionBuilder) {
        op.attribute("N: int >= 1")
            .attribute("T: {half, bfloat16, float}")
            .input("a: N * T")
            .input("b: N * T")
            .output("sums: N * T");
    }
}
register_op!(Definition);

/// Two tensors and their sum.
type Pair = [DeviceTensor; 3];

kernels! {
    types (T = [f32, f16, bf16])
    "RustGpuAddPairs" AddPairs () = |run, op| {
        let mut groups: [Vec<Pair>; 2] = [Vec::new(), Vec::new()];
        for (at, (a, b)) in inputs(run, "a")?.into_iter().zip(inputs(run, "b")?).enumerate() {
            let broadcast = Broadcast::new([&shape(&a)?, &shape(&b)?])?;
            let sum = run.output(at, &to_host(broadcast.shape()))?;
            if a.shape() == b.shape() {
                let pair = [a, b, sum];
                groups[usize::from(is_wide(&pair))].push(pair);
            } else {
                elementwise::run(run, op, [elementwise::ADD, 0], [&a, &b], &sum, broadcast.axes())?;
            }
        }
        let [single, wide] = &groups;
        single.chunks(MOST).try_for_each(|pairs| add(run, op, pairs, false))?;
        wide.chunks(MOST).try_for_each(|pairs| add(run, op, pairs, true))
    };
}

/// Returns whether four elements can be added at once.
fn is_wide(pair: &Pair) -> bool {
    pair[2].len().is_multiple_of(4)
        && pair.iter().all(|tensor| Operand::from(tensor).is_multiple_of(16))
}

/// Enqueues at most [`MOST`] sums.
fn add(context: &Run<'_>, op: &'static str, pairs: &[Pair], is_wide: bool) -> Result<()> {
    let (mut operands, mut sizes) = ([Operand::Value(0); 3 * MOST], [0; MOST]);
    for (at, pair) in pairs.iter().enumerate() {
        for (place, tensor) in pair.iter().enumerate() {
            operands[MOST * place + at] = tensor.into();
        }
        sizes[at] = word(pair[2].len())? / if is_wide { 4 } else { 1 };
    }
    let [most, ..] = groups(sizes.into_iter().max().unwrap_or_default() as usize);
    let Some(first) = pairs.first() else { return Ok(()) };
    Launch {
        op,
        shader: shader!("add_pairs"),
        constants: &[element_type(first[2].dtype())?, is_wide.into()],
        operands: &operands,
        numbers: &sizes,
        groups: [most, pairs.len() as u32, 1],
    }
    .enqueue(context)
}
