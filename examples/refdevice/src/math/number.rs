//! What numbers have in common.

use half::{bf16, f16};
use num_traits::{AsPrimitive, Float};

/// A number of a tensor.
pub trait Number: Copy + PartialOrd + Send + Sync + 'static {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// What no number is less than; of floats, the infinity.
    const LOWEST: Self;
    /// What no number is greater than; of floats, the infinity.
    const HIGHEST: Self;

    /// The sum; integers wrap.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// The difference; integers wrap.
    #[must_use]
    fn minus(self, other: Self) -> Self;
    /// The product; integers wrap.
    #[must_use]
    fn times(self, other: Self) -> Self;
    /// The quotient; of integers, towards 0, and 0 for a divisor of 0.
    #[must_use]
    fn over(self, other: Self) -> Self;
    /// The quotient, rounded down.
    #[must_use]
    fn floor_over(self, other: Self) -> Self;
    /// The remainder of [`over`](Self::over), which has the sign of the dividend.
    #[must_use]
    fn remainder(self, other: Self) -> Self;
    /// The remainder of [`floor_over`](Self::floor_over), which has the sign of the divisor.
    #[must_use]
    fn floor_remainder(self, other: Self) -> Self;
    /// The sign, as -1, 0 or 1.
    #[must_use]
    fn sign(self) -> Self;
    /// The greater; NaN if one is.
    #[must_use]
    fn greater(self, other: Self) -> Self {
        if self > other || !self.is_number() { self } else { other }
    }
    /// The smaller; NaN if one is.
    #[must_use]
    fn smaller(self, other: Self) -> Self {
        if self < other || !self.is_number() { self } else { other }
    }
    /// Whether it is not NaN.
    fn is_number(self) -> bool {
        self.partial_cmp(&self).is_some()
    }
    /// Without the sign.
    #[must_use]
    fn magnitude(self) -> Self {
        if self < Self::ZERO { Self::ZERO.minus(self) } else { self }
    }
}

/// A float of a tensor.
pub trait Real: Number {
    /// What its functions are computed in.
    type Wide: Float + AsPrimitive<f64> + Number + ndarray::LinalgScalar;

    /// As it is computed with.
    fn wide(self) -> Self::Wide;
    /// The nearest to the result of a computation.
    fn narrow(wide: Self::Wide) -> Self;
    /// The nearest to a sum.
    fn of_f64(sum: f64) -> Self;
    /// For a sum.
    fn as_f64(self) -> f64 {
        self.wide().as_()
    }
}

macro_rules! floats {
    ($($float:ty, $wide:ty, $widen:expr, $narrow:expr, $of:expr;)*) => {$(
        impl Number for $float {
            const ZERO: Self = <$float>::ZERO_;
            const ONE: Self = <$float>::ONE_;
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
            fn over(self, other: Self) -> Self {
                self / other
            }
            fn floor_over(self, other: Self) -> Self {
                $narrow(($widen(self) / $widen(other)).floor())
            }
            fn remainder(self, other: Self) -> Self {
                $narrow($widen(self) % $widen(other))
            }
            fn floor_remainder(self, other: Self) -> Self {
                let (rest, other) = ($widen(self) % $widen(other), $widen(other));
                let is_other_side = rest != 0.0 && (rest < 0.0) != (other < 0.0);
                $narrow(if is_other_side { rest + other } else { rest })
            }
            fn sign(self) -> Self {
                if self > Self::ZERO {
                    Self::ONE
                } else if self < Self::ZERO {
                    -Self::ONE
                } else {
                    self
                }
            }
            fn magnitude(self) -> Self {
                $narrow($widen(self).abs())
            }
        }
        impl Real for $float {
            type Wide = $wide;

            fn wide(self) -> $wide {
                $widen(self)
            }
            fn narrow(wide: $wide) -> Self {
                $narrow(wide)
            }
            fn of_f64(sum: f64) -> Self {
                $of(sum)
            }
        }
    )*};
}

/// Constants under one name.
trait Constants: Sized {
    const ZERO_: Self;
    const ONE_: Self;
}
impl Constants for f32 {
    const ZERO_: Self = 0.0;
    const ONE_: Self = 1.0;
}
impl Constants for f64 {
    const ZERO_: Self = 0.0;
    const ONE_: Self = 1.0;
}
impl Constants for f16 {
    const ZERO_: Self = f16::ZERO;
    const ONE_: Self = f16::ONE;
}
impl Constants for bf16 {
    const ZERO_: Self = bf16::ZERO;
    const ONE_: Self = bf16::ONE;
}

floats! {
    f32, f32, |x: f32| x, |x: f32| x, |x: f64| x as f32;
    f64, f64, |x: f64| x, |x: f64| x, |x: f64| x;
    f16, f32, f16::to_f32, f16::from_f32, f16::from_f64;
    bf16, f32, bf16::to_f32, bf16::from_f32, bf16::from_f64;
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
            fn over(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[allow(unused_comparisons, reason = "of unsigned integers")]
            fn floor_over(self, other: Self) -> Self {
                let down = self.over(other);
                let is_inexact = self.remainder(other) != 0;
                if is_inexact && (self < 0) != (other < 0) { down.wrapping_sub(1) } else { down }
            }
            fn remainder(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }
            #[allow(unused_comparisons, reason = "of unsigned integers")]
            fn floor_remainder(self, other: Self) -> Self {
                let rest = self.remainder(other);
                let is_other_side = rest != 0 && (rest < 0) != (other < 0);
                if is_other_side { rest.wrapping_add(other) } else { rest }
            }
            #[allow(unused_comparisons, reason = "of unsigned integers")]
            fn sign(self) -> Self {
                if self > 0 {
                    1
                } else if self < 0 {
                    (0 as Self).wrapping_sub(1)
                } else {
                    0
                }
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
            assert_eq!((a.over(b), a.floor_over(b)), (over, floor), "{a} {b}");
            assert_eq!((a.remainder(b), a.floor_remainder(b)), (rest, floor_rest), "{a} {b}");
        }
        assert_eq!((7_u8.floor_over(2), 7_u8.floor_remainder(2), 0_u8.sign()), (3, 1, 0));
    }

    #[test]
    fn quotients_of_floats_round_as_named() {
        for (a, b, floor, rest) in [(7.5_f32, 2.0, 3.0, 1.5), (-7.5, 2.0, -4.0, 0.5)] {
            assert_eq!((a.floor_over(b), a.floor_remainder(b)), (floor, rest));
            let (a, b) = (f16::from_f32(a), f16::from_f32(b));
            assert_eq!(a.floor_over(b).to_f32(), floor);
            assert_eq!(a.floor_remainder(b).to_f32(), rest);
        }
        assert_eq!(7.5_f64.floor_remainder(-2.0), -0.5);
    }

    #[test]
    fn nan_is_neither_lost_in_the_greater_nor_in_the_smaller() {
        for (a, b) in [(f32::NAN, 1.0), (1.0, f32::NAN)] {
            assert!(a.greater(b).is_nan() && a.smaller(b).is_nan());
        }
        assert_eq!((2.0_f64.greater(1.0), 2_i32.smaller(1)), (2.0, 1));
        assert!(f32::NAN.sign().is_nan() && bf16::NAN.magnitude().is_nan());
    }
}
