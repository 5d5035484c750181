//! Random numbers of Poisson distributions, equal to those of TensorFlow's own kernels, which compute with doubles.

use super::random::{State, mix, of_distributions};
use super::*;

/// The most turns for a result: `RESERVED` of `shaders/philox.glsl`, each with those for random bits and for the gamma function.
const MOST_TURNS: usize = 256 * 20;

/// Fills a tensor with numbers of as many distributions as there are rates. Its shape ends with that of the rates.
fn poisson(
    context: &Run<'_>,
    op: &'static str,
    rates: &DeviceTensor,
    [key, counter, high]: [Operand<'_>; 3],
    out: &DeviceTensor,
) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let are_tensors = matches!(key, Operand::At(..));
    let each = out.len() / rates.len();
    let groups = groups(out.len());
    ensure_turns(context, op, out.len().div_ceil(groups[0] as usize * 256) * MOST_TURNS)?;
    Launch {
        op,
        shader: shader!("poisson64.double"),
        constants: &[element_type(rates.dtype())?, element_type(out.dtype())?, are_tensors.into()],
        operands: &[rates.into(), key, counter, high, out.into()],
        numbers: &[word(out.len())?, rates.len() as u32, each as u32],
        groups,
    }
    .enqueue(context)
}

/// Fills the output with the next numbers of a state, those of input 0 for each element of input 1.
fn with_state(context: &Run<'_>, op: &'static str, state: &State) -> Result<()> {
    let rates = context.input(1)?;
    let samples = host_shape(context, 0)?;
    let out = output(context, 0, &[samples, shape(&rates)?].concat())?;
    poisson(context, op, &rates, state.take(out.len()), &out)
}

/// Fills the output with numbers for each element of input 2, with the seed in input 1.
fn stateless(context: &Run<'_>, op: &'static str) -> Result<()> {
    let rates = context.input(2)?;
    let out = of_distributions(context, &rates)?;
    let key = context.temporary(DType::Uint64, &[1])?;
    let counter = context.temporary(DType::Uint64, &[2])?;
    mix(context, op, [&context.input(1)?, &key, &counter])?;
    poisson(context, op, &rates, [(&key).into(), (&counter).into(), Operand::Value(0)], &out)
}

kernels! {
    // `RandomPoisson` was removed from TensorFlow's graphs.
    types (dtype = [f32, f16, f64, i32, i64], R = [f32, f16, f64, i32, i64])
    "RandomPoissonV2" RandomPoissonV2 [State = State::new] (host_memory("shape")) = |run, op, state| with_state(run, op, state);
    types (dtype = [f32, f16, f64, i32, i64], Rtype = [f32, f16, f64, i32, i64], Tseed = [i32, i64])
    "StatelessRandomPoisson" StatelessPoisson (host_memory("shape")) = |run, op| stateless(run, op);
}
