//! Type rules: how TensorFlow computes with each type of elements.
//!
//! Integers wrap. 16-bit floats are rounded after each operation; within a function, 32 bits are used.

use crate::kernel::Element;
use bytemuck::Pod;
#[cfg(feature = "half")]
use half::{bf16, f16};

/// A number of a tensor.
///
/// ```
/// use tf_op_plugin::toolkit::Number;
///
/// assert_eq!(i64::MAX.plus(1), i64::MIN);
/// assert_eq!((-7).floor_div(2), -4);
/// assert_eq!((-7).floor_mod(2), 1);
/// assert!(1.0_f32.max_or_nan(f32::NAN).is_nan());
/// ```
pub trait Number: Element + Pod + PartialOrd {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// The lowest number; for floats the negative infinity.
    const LOWEST: Self;
    /// The highest number; for floats the infinity.
    const HIGHEST: Self;

    /// Returns the sum; integers wrap.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// Returns the difference; integers wrap.
    #[must_use]
    fn minus(self, other: Self) -> Self;
    /// Returns the product; integers wrap.
    #[must_use]
    fn times(self, other: Self) -> Self;
    /// Returns the quotient. That of integers is rounded towards 0, and is 0 for a divisor of 0.
    #[must_use]
    fn divide(self, other: Self) -> Self;
    /// Returns the quotient, rounded down. That of 16-bit floats is first rounded to their type.
    #[must_use]
    fn floor_div(self, other: Self) -> Self {
        let (down, rest) = (self.divide(other), self.truncate_mod(other));
        let is_below = rest != Self::ZERO && (self < Self::ZERO) != (other < Self::ZERO);
        if is_below { down.minus(Self::ONE) } else { down }
    }
    /// Returns the remainder of the quotient rounded towards 0, which has the sign of the dividend.
    #[must_use]
    fn truncate_mod(self, other: Self) -> Self;
    /// Returns the remainder of the quotient rounded down, which has the sign of the divisor.
    #[must_use]
    fn floor_mod(self, other: Self) -> Self {
        let rest = self.truncate_mod(other);
        let is_other_side = rest != Self::ZERO && (rest < Self::ZERO) != (other < Self::ZERO);
        if is_other_side { rest.plus(other) } else { rest }
    }
    /// Returns the sign, as -1, 0 or 1.
    #[must_use]
    fn sign(self) -> Self {
        if self > Self::ZERO {
            Self::ONE
        } else if self < Self::ZERO {
            Self::ZERO.minus(Self::ONE)
        } else {
            self
        }
    }
    /// Returns the greater number, or NaN if either is NaN.
    #[must_use]
    fn max_or_nan(self, other: Self) -> Self {
        if self > other || !self.is_number() { self } else { other }
    }
    /// Returns the smaller number, or NaN if either is NaN.
    #[must_use]
    fn min_or_nan(self, other: Self) -> Self {
        if self < other || !self.is_number() { self } else { other }
    }
    /// Returns whether the number is not NaN.
    fn is_number(self) -> bool {
        self.partial_cmp(&self).is_some()
    }
    /// Returns the number without its sign.
    #[must_use]
    fn magnitude(self) -> Self {
        if self < Self::ZERO { Self::ZERO.minus(self) } else { self }
    }
}

/// A float of a tensor.
pub trait Real: Number {
    /// The type that functions are computed in: `f32` for 16-bit floats.
    type Wide: Real;

    /// Returns the number in the type that functions are computed in.
    fn widen(self) -> Self::Wide;
    /// Rounds the result of a computation to this type.
    fn narrow(wide: Self::Wide) -> Self;
    /// Rounds a sum to this type.
    fn from_f64(sum: f64) -> Self;
    /// Returns the number in the type of sums.
    fn to_f64(self) -> f64;
}

macro_rules! floats {
    ($($float:ty, $wide:ty, $widen:expr, $narrow:expr, $of:expr, $zero:expr, $one:expr;)*) => {$(
        impl Number for $float {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            const LOWEST: Self = <$float>::NEG_INFINITY;
            const HIGHEST: Self = <$float>::INFINITY;

            fn plus(self, other: Self) -> Self {
                self + other
            }
            fn minus(self, other: Self) -> Self {
                self - other
            }
            fn times(self, other: Self) -> Self {
                self * other
            }
            fn divide(self, other: Self) -> Self {
                self / other
            }
            fn floor_div(self, other: Self) -> Self {
                $narrow($widen(self / other).floor())
            }
            fn truncate_mod(self, other: Self) -> Self {
                $narrow($widen(self) % $widen(other))
            }
            fn magnitude(self) -> Self {
                $narrow($widen(self).abs())
            }
        }
        impl Real for $float {
            type Wide = $wide;

            fn widen(self) -> $wide {
                $widen(self)
            }
            fn narrow(wide: $wide) -> Self {
                $narrow(wide)
            }
            fn from_f64(sum: f64) -> Self {
                $of(sum)
            }
            fn to_f64(self) -> f64 {
                $widen(self).into()
            }
        }
    )*};
}

floats! {
    f32, f32, |x: f32| x, |x: f32| x, |x: f64| x as f32, 0.0, 1.0;
    f64, f64, |x: f64| x, |x: f64| x, |x: f64| x, 0.0, 1.0;
}
#[cfg(feature = "half")]
floats! {
    f16, f32, f16::to_f32, f16::from_f32, f16::from_f64, f16::ZERO, f16::ONE;
    bf16, f32, bf16::to_f32, bf16::from_f32, bf16::from_f64, bf16::ZERO, bf16::ONE;
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl Number for $integer {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = <$integer>::MIN;
            const HIGHEST: Self = <$integer>::MAX;

            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn divide(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            fn truncate_mod(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_of_integers_round_as_named() {
        for (a, b, over, floor, rest, floor_rest) in [
            (7, 2, 3, 3, 1, 1),
            (-7, 2, -3, -4, -1, 1),
            (7, -2, -3, -4, 1, -1),
            (-7, -2, 3, 3, -1, -1),
            (6, -2, -3, -3, 0, 0),
            (i64::MIN, -1, i64::MIN, i64::MIN, 0, 0),
        ] {
            assert_eq!((a.divide(b), a.floor_div(b)), (over, floor), "{a} {b}");
            assert_eq!((a.truncate_mod(b), a.floor_mod(b)), (rest, floor_rest), "{a} {b}");
        }
        assert_eq!((7_u8.floor_div(2), 7_u8.floor_mod(2), 0_u8.sign()), (3, 1, 0));
    }

    /// Checks quotients that are rounded first: 500 / 3 is 166.67, which is 167 as a bfloat16.
    #[cfg(feature = "half")]
    #[test]
    fn quotients_of_16_bit_floats_are_rounded_to_their_type_first() {
        assert_eq!(bf16::from_f32(500.0).floor_div(bf16::from_f32(3.0)).to_f32(), 167.0);
        assert_eq!(f16::from_f32(5000.0).floor_div(f16::from_f32(3.0)).to_f32(), 1667.0);
        assert_eq!(500.0_f32.floor_div(3.0), 166.0);
    }

    #[cfg(feature = "half")]
    #[test]
    fn quotients_of_floats_round_as_named() {
        for (a, b, floor, rest) in [(7.5_f32, 2.0, 3.0, 1.5), (-7.5, 2.0, -4.0, 0.5)] {
            assert_eq!((a.floor_div(b), a.floor_mod(b)), (floor, rest));
            let (a, b) = (f16::from_f32(a), f16::from_f32(b));
            assert_eq!(a.floor_div(b).to_f32(), floor);
            assert_eq!(a.floor_mod(b).to_f32(), rest);
        }
        assert_eq!(7.5_f64.floor_mod(-2.0), -0.5);
    }

    #[cfg(feature = "half")]
    #[test]
    fn nan_is_neither_lost_in_the_greater_nor_in_the_smaller() {
        for (a, b) in [(f32::NAN, 1.0), (1.0, f32::NAN)] {
            assert!(a.max_or_nan(b).is_nan() && a.min_or_nan(b).is_nan());
        }
        assert_eq!((2.0_f64.max_or_nan(1.0), 2_i32.min_or_nan(1)), (2.0, 1));
        assert!(f32::NAN.sign().is_nan() && bf16::NAN.magnitude().is_nan());
    }
}
