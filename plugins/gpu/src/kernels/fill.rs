//! `Fill` and `Empty`.

use super::strided_copy::{fill, movers};
use super::*;
use core::marker::PhantomData;

movers! {
    types [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool]
    "Fill" Fill (index_type) ("dims") = |context, op| {
        let value = context.input(1)?;
        if value.len() != 1 {
            return Err(wrong("value must be a scalar"));
        }
        let out = output(context, 0, &host_shape(context, 0)?)?;
        fill(context, op, (&value).into(), &out)
    };
}

/// A tensor with any elements, or with zeros.
struct Empty<T> {
    with_zeros: bool,
    elements: PhantomData<T>,
}

#[allow(non_camel_case_types, reason = "the attribute has this name")]
const _: () = {
    #[kernel(
        op = "Empty",
        types(dtype = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool]),
        host_memory("shape")
    )]
    impl<dtype: Element> Kernel for Empty<dtype> {
        type Platform = GpuPlatform;

        fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
            Ok(Self { with_zeros: construction.attr("init")?, elements: PhantomData })
        }
        fn compute(&self, context: &mut Run<'_>) -> Result<()> {
            let out = output(context, 0, &host_shape(context, 0)?)?;
            if self.with_zeros {
                fill(context, "Empty", Operand::Value(0), &out)?;
            }
            Ok(())
        }
    }
};
