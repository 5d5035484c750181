//! `MatrixBandPart`: bands of matrices, such as the mask of a decoder.

use super::*;

kernels! {
    Stored [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool]
    "MatrixBandPart" MatrixBandPart index(Tindex) host("num_lower", "num_upper") = |context, op| {
        let input = context.input(0)?;
        let shape = shape(&input)?;
        let [.., rows, columns] = shape[..] else {
            return Err(wrong(format!("input must be at least 2-dim, received shape: {shape:?}")));
        };
        // The distance from the diagonal; a negative number means any distance.
        let side = |index: usize, name: &str, all: usize| match host_integer(context, index)? {
            ..0 => Ok(all),
            some if some <= all as i64 => Ok(some as usize),
            some => Err(wrong(format!("{name} must be negative or at most {all}, got: {some}"))),
        };
        let (lower, upper) = (side(1, "num_lower", rows)?, side(2, "num_upper", columns)?);
        let out = output(context, 0, &shape)?;
        launch(context, op, [&input], [&out], move |[input], [out]| {
            let (input, out) = (elements::<T::Bits>(input)?, elements_mut::<T::Bits>(out)?);
            let zero = T::default().bits();
            for (at, (out, &element)) in out.iter_mut().zip(input).enumerate() {
                let (row, column) = (at / columns % rows, at % columns);
                let is_within = row <= column + lower && column <= row + upper;
                *out = if is_within { element } else { zero };
            }
            Ok(())
        })
    };
}
