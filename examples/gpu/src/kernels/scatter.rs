//! Rows that are added to others, taken from them or put in their place: in variables, and in sums of segments. The numbers
//! are those of the ops in `shaders/scatter.comp`. A row for a place that is outside changes nothing.

use super::arrange::fill;
use super::*;
use core::marker::PhantomData;

/// Changes rows of `target` in place. `updates` has `indices`' shape and then that of a row, or is one element.
fn scatter(
    context: &Run<'_>,
    op: &'static str,
    number: u32,
    target: &DeviceTensor,
    [indices, updates]: [&DeviceTensor; 2],
) -> Result<()> {
    let (target_shape, update_shape) = (shape(target)?, shape(updates)?);
    let Some((&size, rest)) = target_shape.split_first() else {
        return Err(wrong(format!("{op} has no rows to change: a scalar")));
    };
    let index_shape = shape(indices)?;
    let is_one = update_shape.is_empty();
    ensure!(
        is_one || update_shape == [&index_shape[..], rest].concat(),
        wrong(format!(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape \
             {update_shape:?}, indices.shape {index_shape:?}, params.shape {target_shape:?}"
        ))
    );
    let inner = shapes::count(rest);
    word(target.len())?;
    Launch {
        op,
        shader: match is_float(target.dtype()) {
            true => shader!("scatter.float"),
            false => shader!("scatter.int64"),
        },
        constants: &[number, element_type(target.dtype())?, element_type(indices.dtype())?],
        operands: &[target.into(), indices.into(), updates.into()],
        numbers: &[
            word(indices.len())?,
            inner as u32,
            size as u32,
            if is_one { 0 } else { inner as u32 },
            u32::from(!is_one),
        ],
        groups: groups(word(indices.len().saturating_mul(inner))? as usize),
    }
    .enqueue(context)
}

macro_rules! scatters {
    ($($op:literal $name:ident = $number:literal;)*) => {$(
        struct $name<T>(PhantomData<T>);

        #[allow(non_camel_case_types, reason = "the attribute has this name")]
        const _: () = {
            #[kernel(
                op = $op,
                types(
                    dtype = [f32, f16, bf16, i8, i16, i64, u8, u16, u32, u64],
                    Tindices = [i32, i64]
                ),
                host_memory("resource"),
                variables
            )]
            impl<dtype: Element> Kernel for $name<dtype> {
                type Platform = GpuPlatform;

                fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                    Ok(Self(PhantomData))
                }
                fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                    let variables = context.variables(&[0])?;
                    let (indices, updates) = (context.input(1)?, context.input(2)?);
                    scatter(context, $op, $number, &variables[0], [&indices, &updates])
                }
            }
        };
    )*};
}

scatters! {
    "ResourceScatterAdd" ScatterAdd = 0;
    "ResourceScatterSub" ScatterSub = 1;
    "ResourceScatterUpdate" ScatterUpdate = 2;
}

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
        fill(context, "UnsortedSegmentSum", Operand::Value(0), &out)?;
        scatter(context, "UnsortedSegmentSum", 0, &out, [&ids, &data])
    }
}
