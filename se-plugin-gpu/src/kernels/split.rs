//! `Split` and `SplitV`.

use super::strided_copy::slice;
use super::*;
use se_plugin::toolkit::slice::Steps;

/// Splits a tensor into parts of these sizes along an axis.
fn split(
    context: &Run<'_>,
    op: &'static str,
    input: &DeviceTensor,
    axis: usize,
    sizes: &[usize],
) -> Result<()> {
    let shape = shape(input)?;
    let mut start = 0;
    for (at, &size) in sizes.iter().enumerate() {
        let mut steps: Vec<_> = shape.iter().map(|&size| Steps::range(0, size)).collect();
        steps[axis] = Steps::range(start, size);
        start += size;
        let part: Shape = steps.iter().map(|steps| steps.count).collect();
        let out = output(context, at, &part)?;
        slice(&shape, &steps).enqueue(context, op, input.into(), &out)?;
    }
    Ok(())
}

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool, C64])
    "Split" Split (host_memory("split_dim")) = |context, op| {
        let input = context.input(1)?;
        let shape = shape(&input)?;
        let axis = shapes::axis(host_integer(context, 0)?, shape.len())?;
        let count = context.output_count();
        if count == 0 || !shape[axis].is_multiple_of(count) {
            return Err(wrong(format!(
                "Number of ways to split should evenly divide the split dimension: {count}, {shape:?}"
            )));
        }
        split(context, op, &input, axis, &vec![shape[axis] / count; count])
    };
    types (T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool, C64], Tlen = [i32, i64])
    "SplitV" SplitV (host_memory("size_splits", "split_dim")) = |context, op| {
        let input = context.input(0)?;
        let shape = shape(&input)?;
        let axis = shapes::axis(host_integer(context, 2)?, shape.len())?;
        let mut sizes = context.host_integers(1)?;
        let known: i64 = sizes.iter().filter(|&&size| size != -1).sum();
        // At most one size is the rest.
        if let Some(rest) = sizes.iter_mut().find(|size| **size == -1) {
            *rest = shape[axis] as i64 - known;
        }
        let parts =
            from_host(&sizes).ok().filter(|parts| parts.iter().sum::<usize>() == shape[axis]);
        let parts = parts
            .ok_or_else(|| wrong(format!("sizes {sizes:?} do not add up to {}", shape[axis])))?;
        split(context, op, &input, axis, &parts)
    };
}
