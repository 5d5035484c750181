//! Classes drawn by their logits, equal to those that a thread of TensorFlow's own kernel draws.

use super::random::{State, mix};
use super::*;

/// The draws of a workgroup, one of each thread.
const DRAWS: usize = 256;

/// Draws from each row of input 0, as many as input 1 says. `source` returns key and counter for this number of random numbers.
fn draw<'a>(
    context: &Run<'_>,
    op: &'static str,
    source: impl FnOnce(usize) -> Result<[Operand<'a>; 3]>,
) -> Result<()> {
    let logits = context.input(0)?;
    let [rows, classes] = shape(&logits)?[..] else {
        return Err(wrong(format!("logits should be a matrix, got shape {:?}", logits.shape())));
    };
    let samples = host_integer(context, 1)?;
    let samples = usize::try_from(samples)
        .map_err(|_| wrong(format!("num_samples should be nonnegative, got {samples}")))?;
    ensure!(classes > 0, wrong(format!("num_classes should be positive, got {classes}")));
    let out = output(context, 0, &[rows, samples])?;
    // A draw takes half of the bits of a counter.
    let source = source(rows * samples.next_multiple_of(4) * 2)?;
    let are_tensors = matches!(source[0], Operand::At(..));
    let draws = samples.div_ceil(MOST_GROUPS).next_multiple_of(DRAWS);
    let turns = classes.div_ceil(256) * (2 + draws / DRAWS);
    ensure_turns(context, op, turns + rows.div_ceil(MOST_GROUPS) * 32)?;
    word(logits.len())?;
    word(out.len())?;
    let [key, counter, high] = source;
    // The sum of all weights has 64 bits.
    let scale = 2f32.powi(if classes < 1 << 23 { 40 } else { 32 });
    Launch {
        op,
        shader: shader!("multinomial"),
        constants: &[element_type(logits.dtype())?, element_type(out.dtype())?, are_tensors.into()],
        operands: &[(&logits).into(), key, counter, high, (&out).into()],
        numbers: &[rows as u32, classes as u32, samples as u32, draws as u32, scale.to_bits()],
        groups: [rows.min(MOST_GROUPS) as u32, samples.div_ceil(draws.max(1)) as u32, 1],
    }
    .enqueue(context)
}

/// Draws with the seed in input 2.
fn stateless(context: &Run<'_>, op: &'static str) -> Result<()> {
    let key = context.temporary(DType::Uint64, &[1])?;
    let counter = context.temporary(DType::Uint64, &[2])?;
    mix(context, op, [&context.input(2)?, &key, &counter])?;
    draw(context, op, |_| Ok([(&key).into(), (&counter).into(), Operand::Value(0)]))
}

kernels! {
    types (T = [f32, f16, bf16], output_dtype = [i32, i64])
    "Multinomial" Multinomial [State = State::new] (host_memory("num_samples")) =
        |run, op, state| draw(run, op, |numbers| Ok(state.take(numbers)));
    types (T = [f32, f16, bf16], output_dtype = [i32, i64], Tseed = [i32, i64])
    "StatelessMultinomial" StatelessMultinomial (host_memory("num_samples")) = |run, op| stateless(run, op);
}
