//! Random numbers of gamma distributions, equal to those of TensorFlow's own kernels.

use super::random::{State, key_and_counter_of, of_distributions};
use super::*;

/// Fills a tensor with numbers of as many distributions as `alpha` has elements. Its shape ends with that of `alpha`.
fn gamma(
    context: &Run<'_>,
    op: &'static str,
    alpha: &DeviceTensor,
    [key, counter, high]: [Operand<'_>; 3],
    out: &DeviceTensor,
) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let are_tensors = matches!(key, Operand::At(..));
    let each = out.len() / alpha.len();
    Launch {
        op,
        shader: shader!("gamma"),
        constants: &[element_type(out.dtype())?, are_tensors.into()],
        operands: &[alpha.into(), key, counter, high, out.into()],
        numbers: &[word(out.len())?, alpha.len() as u32, each as u32],
        groups: groups(out.len()),
    }
    .enqueue(context)
}

/// Fills the output with the next numbers of a state, those of input 0 for each element of input 1.
fn with_state(context: &Run<'_>, op: &'static str, state: &State) -> Result<()> {
    let alpha = context.input(1)?;
    let out = output(context, 0, &[host_shape(context, 0)?, shape(&alpha)?].concat())?;
    gamma(context, op, &alpha, state.take(out.len()), &out)
}

fn with_inputs(context: &Run<'_>, op: &'static str) -> Result<()> {
    let [key, counter] = key_and_counter_of(context)?;
    let alpha = context.input(4)?;
    let out = of_distributions(context, &alpha)?;
    let state = [(&key).into(), (&counter).into(), Operand::Value(0)];
    gamma(context, op, &alpha, state, &out)
}

kernels! {
    types (dtype = [f32, f16])
    "StatelessRandomGammaV3" StatelessGamma (host_memory("shape", "alg")) = |run, op| with_inputs(run, op);
    types (T = [f32, f16])
    "RandomGamma" RandomGamma [State = State::new] (host_memory("shape")) = |run, op, state| with_state(run, op, state);
}
