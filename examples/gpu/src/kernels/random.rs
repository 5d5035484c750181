//! Random numbers that are those of TensorFlow's own kernels: Philox, of a key and a counter.

use super::*;
use core::marker::PhantomData;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::{Mutex, PoisonError};

/// TensorFlow's numbers for algorithms.
const PHILOX: i64 = 1;
const ANY: i64 = 3;
/// A run of a kernel with a state skips so many counters for each of its numbers, whatever it uses.
const RESERVED: u128 = 256;

/// As the shader has it.
#[derive(Clone, Copy)]
enum Distribution {
    Uniform = 0,
    Normal = 1,
    TruncatedNormal = 2,
}
use Distribution::{Normal, TruncatedNormal, Uniform};

/// Kernels whose key and counter are inputs.
macro_rules! stateless {
    ($($op:literal $name:ident = $distribution:expr;)*) => {$(
        struct $name<T>(PhantomData<T>);

        #[allow(non_camel_case_types, reason = "the attribute has this name")]
        const _: () = {
            #[kernel(op = $op, types(dtype = [f32, f16, bf16]), host_memory("shape", "alg"))]
            impl<dtype: Element> Kernel for $name<dtype> {
                type Platform = GpuPlatform;

                fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                    Ok(Self(PhantomData))
                }
                fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                    with_inputs(context, $op, $distribution)
                }
            }
        };
    )*};
}

stateless! {
    "StatelessRandomUniformV2" StatelessUniform = Uniform;
    "StatelessRandomNormalV2" StatelessNormal = Normal;
    "StatelessTruncatedNormalV2" StatelessTruncatedNormal = TruncatedNormal;
}

fn with_inputs(context: &Run<'_>, op: &'static str, distribution: Distribution) -> Result<()> {
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
    let out = output(context, 0, &host_shape(context, 0)?)?;
    let state = [(&key).into(), (&counter).into(), Operand::Value(0)];
    random(context, op, distribution, state, &out)
}

/// Kernels that go on where their last run has ended.
macro_rules! stateful {
    ($($op:literal $name:ident = $distribution:expr;)*) => {$(
        struct $name<T>(State, PhantomData<T>);

        #[allow(non_camel_case_types, reason = "the attribute has this name")]
        const _: () = {
            #[kernel(op = $op, types(dtype = [f32, f16, bf16]), host_memory("shape"))]
            impl<dtype: Element> Kernel for $name<dtype> {
                type Platform = GpuPlatform;

                fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                    Ok(Self(State::new(construction)?, PhantomData))
                }
                fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                    let out = output(context, 0, &host_shape(context, 0)?)?;
                    random(context, $op, $distribution, self.0.take(out.len()), &out)
                }
            }
        };
    )*};
}

stateful! {
    "RandomUniform" RandomUniform = Uniform;
    "RandomStandardNormal" RandomNormal = Normal;
    "TruncatedNormal" RandomTruncatedNormal = TruncatedNormal;
}

/// The key of a kernel, and its next counter.
struct State {
    key: u64,
    next: Mutex<u128>,
}

impl State {
    /// From the seeds of the op; 0 and 0 select random ones.
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let seed = |name| Ok::<_, Error>(construction.attr::<i64>(name)? as u64);
        let [key, high] = match [seed("seed")?, seed("seed2")?] {
            [0, 0] => [(); 2].map(|()| RandomState::new().hash_one(0)),
            seeds => seeds,
        };
        Ok(Self { key, next: Mutex::new(u128::from(high) << 64) })
    }

    /// The key and the counter for so many numbers.
    fn take(&self, numbers: usize) -> [Operand<'static>; 3] {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let first = *next;
        *next = first.wrapping_add(numbers as u128 * RESERVED);
        [self.key, first as u64, (first >> 64) as u64].map(Operand::Value)
    }
}

/// Fills a tensor. The first operands are key and counter as the shader gets them: where they are, or two words.
fn random(
    context: &Run<'_>,
    op: &'static str,
    distribution: Distribution,
    [key, counter, high]: [Operand<'_>; 3],
    out: &DeviceTensor,
) -> Result<()> {
    let are_tensors = matches!(key, Operand::At(..));
    let fours = out.len().div_ceil(4);
    Launch {
        op,
        shader: shader!("random"),
        constants: &[element_type(out.dtype())?, distribution as u32, are_tensors.into()],
        operands: &[key, counter, high, out.into()],
        numbers: &[word(fours)?, word(out.len())?],
        groups: groups(fours),
    }
    .enqueue(context)
}
