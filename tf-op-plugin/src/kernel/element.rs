//! Rust types of elements.

use crate::dtype::DType;
use bytemuck::checked::{CheckedCastError, try_cast_slice};
use core::fmt;

/// A Rust type for the elements of a tensor.
///
/// With the feature `half`, `half::f16` and `half::bf16` implement it, too; with the feature `complex`,
/// `num_complex::Complex<f32>` and `Complex<f64>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type",
    note = "write `f32`, `f64`, `i8`, `i16`, `i32`, `i64`, `u8`, `u16`, `u32`, `u64`, `bool` or, with the feature \
            `half`, `half::f16` or `half::bf16`"
)]
pub trait Element: Cast + Copy + Default + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// The type in TensorFlow.
    const DTYPE: DType;
}

mod cast {
    use super::*;

    /// Plain bytes, which elements in host memory are in TensorFlow. Not bytemuck's traits themselves: an author's
    /// trait that extends [`Element`] would inherit their methods.
    pub trait Cast: Sized {
        #[doc(hidden)]
        fn __cast(bytes: &[u8]) -> Result<&[Self], CheckedCastError>;
    }
}

use cast::Cast;

macro_rules! elements {
    ($($(#[$attribute:meta])* $element:ty => $dtype:ident;)*) => {$(
        $(#[$attribute])*
        impl Element for $element {
            const DTYPE: DType = DType::$dtype;
        }
        $(#[$attribute])*
        const _: () = assert!(matches!(DType::$dtype.size(), Some(size) if size == size_of::<$element>()));

        $(#[$attribute])*
        impl Cast for $element {
            fn __cast(bytes: &[u8]) -> Result<&[Self], CheckedCastError> {
                try_cast_slice(bytes)
            }
        }
    )*};
}

elements! {
    f32 => Float32;
    f64 => Float64;
    i8 => Int8;
    i16 => Int16;
    i32 => Int32;
    i64 => Int64;
    u8 => Uint8;
    u16 => Uint16;
    u32 => Uint32;
    u64 => Uint64;
    bool => Bool;
    #[cfg(feature = "half")]
    half::f16 => Float16;
    #[cfg(feature = "half")]
    half::bf16 => Bfloat16;
    #[cfg(feature = "complex")]
    num_complex::Complex<f32> => Complex64;
    #[cfg(feature = "complex")]
    num_complex::Complex<f64> => Complex128;
}

// Their tensors hold objects of TensorFlow's, not plain bytes.
const _: () = assert!(
    DType::String.size().is_none()
        && DType::Resource.size().is_none()
        && DType::Variant.size().is_none()
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_elements_differ_from_addresses_that_do_not_fit() {
        assert_eq!(bool::__cast(&[0, 1]), Ok(&[false, true][..]));
        assert_eq!(bool::__cast(&[2]), Err(CheckedCastError::InvalidBitPattern));
        let odd = &bytemuck::bytes_of(&[0_u64; 2])[1..9];
        assert!(matches!(u64::__cast(odd), Err(CheckedCastError::PodCastError(_))));
    }
}
