//! Rows of tensors at given indices: their places, and their elements.

use super::*;

/// The most axes that an index can have numbers for, as on the CPU.
const MOST_AXES: usize = 7;

/// The axes of a tensor that indices have numbers for.
pub(super) struct Axes<'a> {
    pub(super) sizes: &'a [usize],
    /// The number of indices.
    pub(super) count: usize,
}

impl<'a> Axes<'a> {
    /// Returns the axes for indices whose last axis has the numbers of each, in a tensor of the shape `of`.
    pub(super) fn of(op: &str, index_shape: &[usize], of: &'a [usize]) -> Result<Self> {
        let Some((&depth, outer)) = index_shape.split_last() else {
            return Err(wrong(format!("indices of {op} must be at least a vector")));
        };
        ensure!(
            depth <= of.len(),
            wrong(format!(
                "index innermost dimension length must be <= params rank; saw: {depth} vs. {}",
                of.len()
            ))
        );
        ensure!(
            depth <= MOST_AXES,
            Error::new(
                Code::Unimplemented,
                format!("{op} can do indices of at most {MOST_AXES} numbers, and not of {depth}"),
            )
        );
        Ok(Self { sizes: &of[..depth], count: shapes::count(outer) })
    }

    /// Returns the row of each index, as uint32; for one that is outside, NONE of `shaders/common.glsl`.
    pub(super) fn places(
        &self,
        context: &Run<'_>,
        op: &'static str,
        indices: &DeviceTensor,
    ) -> Result<DeviceTensor> {
        let places = context.temporary(DType::Uint32, &[self.count as i64])?;
        word(indices.len())?;
        let mut numbers = vec![word(self.count)?];
        numbers.extend(self.sizes.iter().map(|&size| size as u32));
        Launch {
            op,
            shader: shader!("gather_nd"),
            constants: &[element_type(indices.dtype())?, self.sizes.len() as u32],
            operands: &[indices.into(), (&places).into()],
            numbers: &numbers,
            groups: groups(self.count),
        }
        .enqueue(context)?;
        Ok(places)
    }
}

/// Returns the rows of `params` at `indices`. Rows outside of it are zeros.
fn gather(
    context: &Run<'_>,
    op: &'static str,
    [params, indices]: [&DeviceTensor; 2],
) -> Result<()> {
    let (shape, index_shape) = (shape(params)?, shape(indices)?);
    let axes = Axes::of(op, &index_shape, &shape)?;
    let rest = &shape[axes.sizes.len()..];
    let out_shape = [&index_shape[..index_shape.len() - 1], rest].concat();
    let out = output(context, 0, &out_shape)?;
    if out.is_empty() {
        return Ok(());
    }
    word(params.len())?;
    let places = axes.places(context, op, indices)?;
    let sizes = [1, shapes::count(axes.sizes), axes.count];
    gather::slices(context, op, [params, &places, &out], sizes, rest)
}

kernels! {
    types (Tparams = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool], Tindices = [i32, i64])
    "GatherNd" GatherNd () =
        |context, op| gather(context, op, [&context.input(0)?, &context.input(1)?]);
    types (dtype = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool], Tindices = [i32, i64])
    // The variable does not change meanwhile.
    "ResourceGatherNd" ResourceGatherNd (host_memory("resource"), variables) = |context, op| {
        gather(context, op, [&context.variables(&[0])?[0], &context.input(1)?])
    };
}
