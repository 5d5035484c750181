//! Random numbers equal to those of TensorFlow's own kernels: Philox, from a key and a counter.

use super::*;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::{Mutex, PoisonError};

/// TensorFlow's numbers for algorithms.
const PHILOX: i64 = 1;
const ANY: i64 = 3;
/// A run of a kernel with a state skips this many counters for each of its numbers, however many it uses.
const RESERVED: u128 = 256;
/// The number of [`mix`] in the shader.
const OF_SEED: u32 = 4;

/// The numbers with which a kernel fills its output.
#[derive(Clone, Copy)]
enum Distribution {
    Uniform,
    Normal,
    TruncatedNormal,
    /// The integers from the first number on, and how many; 0 means all of the type.
    Integers(i64, u64),
}
use Distribution::{Integers, Normal, TruncatedNormal, Uniform};

impl Distribution {
    /// Returns the integers from one host input to below another.
    fn between(context: &Run<'_>, [least, end]: [usize; 2]) -> Result<Self> {
        let (least, end) = (host_integer(context, least)?, host_integer(context, end)?);
        ensure!(least < end, wrong(format!("Need minval < maxval, got {least} >= {end}")));
        Ok(Integers(least, end.wrapping_sub(least) as u64))
    }

    /// Returns the number of the distribution in the shader, and the integers.
    fn parts(self) -> (u32, [u64; 2]) {
        match self {
            Uniform => (0, [0, 0]),
            Normal => (1, [0, 0]),
            TruncatedNormal => (2, [0, 0]),
            Integers(least, range) => (3, [least as u64, range]),
        }
    }
}

/// Returns the key and the counter of the inputs 1 and 2, with which input 3, on the host, names an algorithm.
pub(super) fn key_and_counter_of(context: &Run<'_>) -> Result<[DeviceTensor; 2]> {
    let (key, counter) = (context.input(1)?, context.input(2)?);
    let algorithm = host_integer(context, 3)?;
    ensure!(
        [PHILOX, ANY].contains(&algorithm),
        Error::new(
            Code::Unimplemented,
            format!("the device has no random numbers by the algorithm {algorithm}; take philox")
        )
    );
    ensure!(
        key.shape() == [1] && counter.shape().len() == 1 && counter.len() >= 2,
        wrong(format!(
            "key must have one element and counter two, and not {:?} and {:?}",
            key.shape(),
            counter.shape()
        ))
    );
    Ok([key, counter])
}

fn with_inputs(context: &Run<'_>, op: &'static str, distribution: Distribution) -> Result<()> {
    let [key, counter] = key_and_counter_of(context)?;
    let out = output(context, 0, &host_shape(context, 0)?)?;
    let state = [(&key).into(), (&counter).into(), Operand::Value(0)];
    random(context, op, distribution, state, &out)
}

/// The key of a kernel, and its next counter.
pub(super) struct State {
    key: u64,
    next: Mutex<u128>,
}

impl State {
    /// Creates the state from the seeds of the op; 0 and 0 select random ones.
    pub(super) fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let seed = |name| Ok::<_, Error>(construction.attr::<i64>(name)? as u64);
        let [key, high] = match [seed("seed")?, seed("seed2")?] {
            [0, 0] => [(); 2].map(|()| RandomState::new().hash_one(0)),
            seeds => seeds,
        };
        Ok(Self { key, next: Mutex::new(u128::from(high) << 64) })
    }

    /// Returns the key and the counter for this many numbers, and advances the counter.
    pub(super) fn take(&self, numbers: usize) -> [Operand<'static>; 3] {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let first = *next;
        *next = first.wrapping_add(numbers as u128 * RESERVED);
        [self.key, first as u64, (first >> 64) as u64].map(Operand::Value)
    }
}

/// Fills a tensor. The first operands are key and counter for the shader: their addresses, or two words.
fn random(
    context: &Run<'_>,
    op: &'static str,
    distribution: Distribution,
    [key, counter, high]: [Operand<'_>; 3],
    out: &DeviceTensor,
) -> Result<()> {
    let are_tensors = matches!(key, Operand::At(..));
    // A counter has 128 bits.
    let is_wide = matches!(out.dtype(), DType::Int64 | DType::Uint64 | DType::Float64);
    let counters = out.len().div_ceil(if is_wide { 2 } else { 4 });
    let (number, [least, range]) = distribution.parts();
    if out.dtype() == DType::Float64 {
        return Launch {
            op,
            shader: shader!("random64.double"),
            constants: &[number, are_tensors.into()],
            operands: &[key, counter, high, out.into()],
            numbers: &[word(counters)?, word(out.len())?],
            groups: groups(counters),
        }
        .enqueue(context);
    }
    Launch {
        op,
        shader: shader!("random"),
        constants: &[element_type(out.dtype())?, number, are_tensors.into()],
        operands: &[key, counter, high, out.into(), Operand::Value(least), Operand::Value(range)],
        numbers: &[word(counters)?, word(out.len())?],
        groups: groups(counters),
    }
    .enqueue(context)
}

/// Fills the output with the next numbers of a state.
fn with_state(
    context: &Run<'_>,
    op: &'static str,
    distribution: Distribution,
    state: &State,
) -> Result<()> {
    let out = output(context, 0, &host_shape(context, 0)?)?;
    random(context, op, distribution, state.take(out.len()), &out)
}

/// Mixes a seed into a key and a counter.
pub(super) fn mix(
    context: &Run<'_>,
    op: &'static str,
    [seed, key, counter]: [&DeviceTensor; 3],
) -> Result<()> {
    ensure!(
        seed.shape() == [2],
        wrong(format!("seed must have shape [2], and not {:?}", seed.shape()))
    );
    let none = Operand::Value(0);
    Launch {
        op,
        shader: shader!("random"),
        constants: &[element_type(seed.dtype())?, OF_SEED, 1],
        operands: &[seed.into(), counter.into(), none, key.into(), none, none],
        numbers: &[1, 1],
        groups: groups(1),
    }
    .enqueue(context)
}

/// Mixes input 0 into two outputs. TensorFlow has a kernel for the CPU only, for which each random tensor would copy its seed to the
/// host.
fn key_and_counter(context: &Run<'_>, op: &'static str) -> Result<()> {
    let (key, counter) = (output(context, 0, &[1])?, output(context, 1, &[2])?);
    mix(context, op, [&context.input(0)?, &key, &counter])
}

/// Returns the output of numbers of as many distributions as a parameter has elements: its shape, in input 0, ends with that.
pub(super) fn of_distributions(
    context: &Run<'_>,
    parameter: &DeviceTensor,
) -> Result<DeviceTensor> {
    let (out, of_each) = (host_shape(context, 0)?, shape(parameter)?);
    ensure!(
        out.ends_with(&of_each),
        wrong(format!("Shape passed in must end with broadcasted shape: {out:?} and {of_each:?}"))
    );
    output(context, 0, &out)
}

kernels! {
    types (Tseed = [i32, i64])
    "StatelessRandomGetKeyCounter" KeyAndCounter () = |run, op| key_and_counter(run, op);
    types (dtype = [f32, f16, bf16, f64])
    "StatelessRandomUniformV2" StatelessUniform (host_memory("shape", "alg")) =
        |run, op| with_inputs(run, op, Uniform);
    "StatelessRandomNormalV2" StatelessNormal (host_memory("shape", "alg")) =
        |run, op| with_inputs(run, op, Normal);
    "StatelessTruncatedNormalV2" StatelessTruncatedNormal (host_memory("shape", "alg")) =
        |run, op| with_inputs(run, op, TruncatedNormal);
    "RandomUniform" RandomUniform [State = State::new] (host_memory("shape")) =
        |run, op, state| with_state(run, op, Uniform, state);
    "RandomStandardNormal" RandomNormal [State = State::new] (host_memory("shape")) =
        |run, op, state| with_state(run, op, Normal, state);
    "TruncatedNormal" RandomTruncatedNormal [State = State::new] (host_memory("shape")) =
        |run, op, state| with_state(run, op, TruncatedNormal, state);
    types (dtype = [i32, i64, u32, u64])
    "StatelessRandomUniformFullIntV2" StatelessAll (host_memory("shape", "alg")) =
        |run, op| with_inputs(run, op, Integers(0, 0));
    types (dtype = [i32, i64])
    "StatelessRandomUniformIntV2" StatelessIntegers (host_memory("shape", "alg", "minval", "maxval")) =
        |run, op| with_inputs(run, op, Distribution::between(run, [4, 5])?);
    types (Tout = [i32, i64])
    "RandomUniformInt" RandomIntegers [State = State::new] (host_memory("shape", "minval", "maxval")) =
        |run, op, state| with_state(run, op, Distribution::between(run, [1, 2])?, state);
}
