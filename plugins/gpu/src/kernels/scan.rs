//! Cumulative sums and products.

use super::*;
use core::marker::PhantomData;

macro_rules! scans {
    ($($op:literal $name:ident = $is_product:literal;)*) => {$(
        struct $name<T> {
            way: [bool; 2],
            elements: PhantomData<T>,
        }

        #[kernel(op = $op, types(T = [f32, i64], Tidx = [i32, i64]), host_memory("axis"))]
        impl<T: Element> Kernel for $name<T> {
            type Platform = GpuPlatform;

            fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                let way = [construction.attr("exclusive")?, construction.attr("reverse")?];
                Ok(Self { way, elements: PhantomData })
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                scan(context, $op, $is_product, self.way)
            }
        }
    )*};
}

scans! {
    "Cumsum" Cumsum = false;
    "Cumprod" Cumprod = true;
}

/// The elements in a turn of the loop of `shaders/scan.comp`.
const EACH: usize = 8;

fn scan(
    context: &Run<'_>,
    op: &'static str,
    is_product: bool,
    [is_exclusive, is_reverse]: [bool; 2],
) -> Result<()> {
    let input = context.input(0)?;
    let shape = shape(&input)?;
    let axis = shapes::axis(host_integer(context, 1)?, shape.len())?;
    let out = output(context, 0, &shape)?;
    let rows = if out.is_empty() { 0 } else { out.len() / shape[axis] };
    word(out.len())?;
    // One thread is slow for a long row; many rows may have one each. A product of floats from the middle of a row may
    // be infinite, or 0, although that of the whole row is not; for a sum this needs numbers near the largest.
    let may_split = !is_product || !is_float(input.dtype());
    let is_wide = may_split && shape[axis] >= reduce::WIDE && rows <= shape[axis];
    // Those of a group go through it twice.
    let lanes = if is_wide { 128 } else { 1 };
    ensure_turns(context, op, shape[axis].div_ceil(lanes * EACH) + 16)?;
    Launch {
        op,
        shader: match is_float(input.dtype()) {
            true => shader!("scan.float"),
            false => shader!("scan.int64"),
        },
        constants: &[
            element_type(input.dtype())?,
            is_product.into(),
            is_exclusive.into(),
            is_reverse.into(),
            is_wide.into(),
        ],
        operands: &[(&input).into(), (&out).into()],
        numbers: &[rows as u32, shape[axis] as u32, shapes::count(&shape[axis + 1..]) as u32],
        groups: groups_of(rows, is_wide),
    }
    .enqueue(context)
}
