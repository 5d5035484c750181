//! `Tile` and `BroadcastTo`: copies of a tensor.

use super::*;
use ndarray::Axis;

kernels! {
    Stored [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]
    "Tile" Tile index(Tmultiples) host("multiples") = |context, op| {
        let (shape, multiples) = (input_shape(context, 0)?, host_shape(context, 1)?);
        ensure!(
            shape.len() == multiples.len(),
            wrong(format!("Expected multiples argument to be a vector of length {} but got length {}", shape.len(), multiples.len()))
        );
        let out_shape = shape.iter().zip(&multiples).map(|(size, times)| size.checked_mul(*times));
        let out_shape = out_shape.collect::<Option<_>>().ok_or_else(too_large)?;
        rearrange::<T::Bits>(context, op, 0, out_shape, tile)
    };
    "BroadcastTo" BroadcastTo index(Tidx) host("shape") = |context, op| {
        let (shape, out_shape) = (input_shape(context, 0)?, host_shape(context, 1)?);
        ensure!(
            shapes::broadcasts_to(&shape, &out_shape),
            wrong(format!("Incompatible shapes: {shape:?} vs. {out_shape:?}"))
        );
        rearrange::<T::Bits>(context, op, 0, out_shape, |input, mut out| {
            let input = input.broadcast(out.raw_dim()).expect("the shapes were checked");
            out.assign(&input);
        })
    };
}

/// Repeats the elements along each axis to fill the output, whose sizes are multiples of the input's.
fn tile<T: Copy>(mut input: View<'_, T>, out: ViewMut<'_, T>) {
    if out.is_empty() {
        return;
    }
    // Each axis becomes two: the copy, and the index in it.
    let sizes = out.shape().iter().zip(input.shape());
    let shape: Vec<_> = sizes.flat_map(|(&all, &one)| [all / one, one]).collect();
    let mut out = out.into_shape_with_order(IxDyn(&shape)).expect("it has as many elements");
    for axis in 0..input.ndim() {
        input = input.insert_axis(Axis(2 * axis));
    }
    out.assign(&input.broadcast(IxDyn(&shape)).expect("copies are alike"));
}
