//! `Transpose`.

use super::*;

kernels! {
    Stored [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]
    "Transpose" Transpose index(Tperm) host("perm") = |context, op| {
        let shape = input_shape(context, 0)?;
        let order = permutation(&context.host_integers(1)?, shape.len())?;
        let out_shape = order.iter().map(|&axis| shape[axis]).collect();
        rearrange::<T::Bits>(context, op, 0, out_shape, move |input, mut out| {
            out.assign(&input.permuted_axes(order));
        })
    };
}

/// Checks that `order` is a permutation of the axes, and returns it. Negative axes count from the end.
fn permutation(order: &[i64], rank: usize) -> Result<Vec<usize>> {
    let axes = order.iter().map(|&axis| shapes::axis(axis, rank)).collect::<Result<Vec<_>>>()?;
    let mut sorted = axes.clone();
    sorted.sort_unstable();
    ensure!(
        sorted.into_iter().eq(0..rank),
        wrong(format!("{order:?} is not a permutation of {rank} axes"))
    );
    Ok(axes)
}
