//! Random numbers that are those of TensorFlow's own kernels: Philox, of a key and a counter.

use super::*;
use core::marker::PhantomData;

/// TensorFlow's numbers for algorithms.
const PHILOX: i64 = 1;
const ANY: i64 = 3;

macro_rules! random {
    ($($op:literal $name:ident = $is_normal:literal;)*) => {$(
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
                    random(context, $op, $is_normal)
                }
            }
        };
    )*};
}

random! {
    "StatelessRandomUniformV2" Uniform = false;
    "StatelessRandomNormalV2" Normal = true;
}

fn random(context: &Run<'_>, op: &'static str, is_normal: bool) -> Result<()> {
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
    let counters = out.len().div_ceil(4);
    Launch {
        op,
        shader: shader!("random"),
        constants: &[element_type(out.dtype())?, is_normal.into()],
        operands: &[(&key).into(), (&counter).into(), (&out).into()],
        numbers: &[word(counters)?, word(out.len())?],
        groups: groups(counters),
    }
    .enqueue(context)
}
