//! Sums along rows: of segments, and of all elements before.

use super::*;
use core::marker::PhantomData;

struct UnsortedSegmentSum<T>(PhantomData<T>);

#[kernel(
    op = "UnsortedSegmentSum",
    types(T = [f32, f16, bf16, i64], Tindices = [i32, i64], Tnumsegments = [i32, i64]),
    host_memory("num_segments")
)]
impl<T: Element> Kernel for UnsortedSegmentSum<T> {
    type Platform = GpuPlatform;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let (data, ids) = (context.input(0)?, context.input(1)?);
        let (shape, id_shape) = (shape(&data)?, shape(&ids)?);
        let Some(rest) = shape.strip_prefix(&id_shape[..]) else {
            return Err(wrong(format!(
                "data.shape = {shape:?} does not start with segment_ids.shape = {id_shape:?}"
            )));
        };
        let mut out_shape = from_host(&[host_integer(context, 2)?])?;
        out_shape.extend(rest);
        let out = output(context, 0, &out_shape)?;
        word(data.len())?;
        Launch {
            op: "UnsortedSegmentSum",
            shader: match is_float(data.dtype()) {
                true => shader!("segment.float"),
                false => shader!("segment.int64"),
            },
            constants: &[element_type(data.dtype())?, element_type(ids.dtype())?],
            operands: &[(&data).into(), (&ids).into(), (&out).into()],
            numbers: &[word(out.len())?, word(ids.len())?, shapes::count(rest) as u32],
            groups: groups(out.len()),
        }
        .enqueue(context)
    }
}

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
        ],
        operands: &[(&input).into(), (&out).into()],
        numbers: &[rows as u32, shape[axis] as u32, shapes::count(&shape[axis + 1..]) as u32],
        groups: groups(rows),
    }
    .enqueue(context)
}
