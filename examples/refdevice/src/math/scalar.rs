//! Functions of one number, or of a gradient and a number.

use num_traits::Float;

/// Converts a constant to this type.
fn constant<F: Float>(value: f64) -> F {
    F::from(value).unwrap_or_else(F::nan)
}

/// Returns `1 / sqrt(x)`.
pub fn rsqrt<F: Float>(x: F) -> F {
    x.sqrt().recip()
}

/// Returns `1 / (1 + exp(-x))`.
pub fn sigmoid<F: Float>(x: F) -> F {
    ((-x).exp() + F::one()).recip()
}

/// Returns `1 - erf(x)`, without cancellation where that is close to 0.
pub fn erfc<F: Float>(x: F) -> F {
    x.to_f64().map_or_else(F::nan, |x| constant(libm::erfc(x)))
}

/// Returns `max(x, 0)`. NaN stays NaN.
pub fn relu<F: Float>(x: F) -> F {
    if x < F::zero() { F::zero() } else { x }
}

/// Returns the gradient of `relu`, from its argument or its result. A product, as on the CPU: an infinite gradient times
/// 0 is NaN.
pub fn relu_grad<F: Float>(gradient: F, x: F) -> F {
    gradient * if x > F::zero() { F::one() } else { F::zero() }
}

/// Returns the gradient of `sigmoid`, from its result.
pub fn sigmoid_grad<F: Float>(y: F, gradient: F) -> F {
    gradient * y * (F::one() - y)
}

/// Returns the gradient of `tanh`, from its result.
pub fn tanh_grad<F: Float>(y: F, gradient: F) -> F {
    gradient * (F::one() - y * y)
}

/// Returns the gradient of `rsqrt`, from its result: 0 if `gradient` is 0, whatever the slope is.
pub fn rsqrt_grad<F: Float>(y: F, gradient: F) -> F {
    if gradient == F::zero() { gradient } else { gradient * constant(-0.5) * y * y * y }
}

/// Returns `x / y`, or 0 if `y` is 0.
pub fn div_no_nan<F: Float>(x: F, y: F) -> F {
    if y == F::zero() { F::zero() } else { x / y }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_stays() {
        for function in [relu::<f32>, sigmoid, rsqrt, erfc] {
            assert!(function(f32::NAN).is_nan());
        }
    }

    #[test]
    fn gradients_of_nan_are_those_of_the_cpu() {
        assert!(relu_grad(f32::NAN, -1.0).is_nan());
        assert_eq!(relu_grad(2.0, f32::NAN), 0.0);
        assert_eq!(rsqrt_grad(f32::NAN, 0.0), 0.0);
        assert!(rsqrt_grad(f32::NAN, 1.0).is_nan());
    }

    #[test]
    fn small_tails_are_not_lost() {
        assert!((erfc(5.0_f64) / 1.537_459_794_428_035e-12 - 1.0).abs() < 1e-9);
    }
}
