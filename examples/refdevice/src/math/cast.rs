//! Conversions between types of numbers.

use half::{bf16, f16};
use num_traits::AsPrimitive;
use se_plugin::toolkit::Number;

/// A number or `bool` that can be converted to a `T` as TensorFlow does it.
pub trait CastTo<T>: Copy {
    /// Converts the value. Floats are rounded towards 0 and clamped to the range of the integer type.
    fn cast(self) -> T;
}

macro_rules! casts {
    ($($from:ty)*; $to:tt) => {$(casts!(@from $from, $to);)*};
    (@from $from:ty, ($($to:ty)*)) => {
        $(impl CastTo<$to> for $from {
            fn cast(self) -> $to {
                self.as_()
            }
        })*
        impl CastTo<bool> for $from {
            fn cast(self) -> bool {
                self != <$from as Number>::ZERO
            }
        }
        impl CastTo<$from> for bool {
            fn cast(self) -> $from {
                if self { <$from as Number>::ONE } else { <$from as Number>::ZERO }
            }
        }
    };
}

casts!(f32 f64 f16 bf16 i8 u8 i16 u16 i32 i64 u32 u64; (f32 f64 f16 bf16 i8 u8 i16 u16 i32 i64 u32 u64));

impl CastTo<bool> for bool {
    fn cast(self) -> bool {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_those_of_the_types() {
        assert_eq!([-1.9_f32, 1.9, 0.0].map(CastTo::<i32>::cast), [-1, 1, 0]);
        assert_eq!([0.5_f32, 0.0, f32::NAN].map(CastTo::<bool>::cast), [true, false, true]);
        assert_eq!([true, false].map(CastTo::<f16>::cast), [f16::ONE, f16::ZERO]);
        assert_eq!(CastTo::<i8>::cast(300_i64), 44, "integers keep their low bits");
        assert_eq!(CastTo::<f32>::cast(bf16::from_f32(1.5)), 1.5);
    }
}
