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

/// Returns the error function of `x`.
pub fn erf<F: Float>(x: F) -> F {
    x.to_f64().map_or_else(F::nan, |x| constant(libm::erf(x)))
}

/// Returns `1 - erf(x)`, without cancellation where that is close to 0.
pub fn erfc<F: Float>(x: F) -> F {
    x.to_f64().map_or_else(F::nan, |x| constant(libm::erfc(x)))
}

/// Rounds to the nearest integer, and halves to the even one.
pub fn round<F: Float>(x: F) -> F {
    let two = F::one() + F::one();
    if x.fract().abs() == two.recip() { (x / two).round() * two } else { x.round() }
}

/// Returns `max(x, 0)`. NaN stays NaN.
pub fn relu<F: Float>(x: F) -> F {
    if x < F::zero() { F::zero() } else { x }
}

/// Returns `min(max(x, 0), 6)`. NaN stays NaN.
pub fn relu6<F: Float>(x: F) -> F {
    let six = constant(6.0);
    if x > six { six } else { relu(x) }
}

/// Returns the function that is `x`, or `alpha * x` where `x` is negative.
pub fn leaky_relu<F: Float>(alpha: F) -> impl Fn(F) -> F {
    move |x| if x > F::zero() { x } else { x * alpha }
}

/// Returns `x`, or `exp(x) - 1` if `x` is negative.
pub fn elu<F: Float>(x: F) -> F {
    if x < F::zero() { x.exp_m1() } else { x }
}

const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
const SELU_SCALED_ALPHA: f64 = 1.758_099_340_847_376_6;

/// Returns the scaled `elu`.
pub fn selu<F: Float>(x: F) -> F {
    if x < F::zero() { x.exp_m1() * constant(SELU_SCALED_ALPHA) } else { x * constant(SELU_SCALE) }
}

/// Returns `log(1 + exp(x))`.
pub fn softplus<F: Float>(x: F) -> F {
    let threshold = F::epsilon().ln() + constant(2.0);
    if x > -threshold {
        x
    } else if x < threshold {
        x.exp()
    } else {
        x.exp().ln_1p()
    }
}

/// Returns `x / (1 + |x|)`.
pub fn softsign<F: Float>(x: F) -> F {
    x / (x.abs() + F::one())
}

/// Returns the gradient of `relu`, from its argument or its result. A product, as on the CPU: an infinite gradient times
/// 0 is NaN.
pub fn relu_grad<F: Float>(gradient: F, x: F) -> F {
    gradient * if x > F::zero() { F::one() } else { F::zero() }
}

/// Returns the gradient of `relu6`, from its argument or its result.
pub fn relu6_grad<F: Float>(gradient: F, x: F) -> F {
    gradient * if x > F::zero() && x < constant(6.0) { F::one() } else { F::zero() }
}

/// Returns the function that computes the gradient of `leaky_relu`, from its argument.
pub fn leaky_relu_grad<F: Float>(alpha: F) -> impl Fn(F, F) -> F {
    move |gradient, x| if x > F::zero() { gradient } else { gradient * alpha }
}

/// Returns the gradient of `elu`, from its result.
pub fn elu_grad<F: Float>(gradient: F, y: F) -> F {
    if y < F::zero() { (y + F::one()) * gradient } else { gradient }
}

/// Returns the gradient of `selu`, from its result.
pub fn selu_grad<F: Float>(gradient: F, y: F) -> F {
    if y < F::zero() {
        gradient * (y + constant(SELU_SCALED_ALPHA))
    } else {
        gradient * constant(SELU_SCALE)
    }
}

/// Returns the gradient of `softplus`, from its argument.
pub fn softplus_grad<F: Float>(gradient: F, x: F) -> F {
    gradient / ((-x).exp() + F::one())
}

/// Returns the gradient of `softsign`, from its argument.
pub fn softsign_grad<F: Float>(gradient: F, x: F) -> F {
    gradient / (x.abs() + F::one()).powi(2)
}

/// Returns the gradient of `sigmoid`, from its result.
pub fn sigmoid_grad<F: Float>(y: F, gradient: F) -> F {
    gradient * y * (F::one() - y)
}

/// Returns the gradient of `tanh`, from its result.
pub fn tanh_grad<F: Float>(y: F, gradient: F) -> F {
    gradient * (F::one() - y * y)
}

/// Returns `result`, or 0 if `gradient` is 0, whatever the slope is.
fn along<F: Float>(gradient: F, result: F) -> F {
    if gradient == F::zero() { F::zero() } else { result }
}

/// Returns the gradient of `sqrt`, from its result.
pub fn sqrt_grad<F: Float>(y: F, gradient: F) -> F {
    along(gradient, gradient * constant(0.5) / y)
}

/// Returns the gradient of `rsqrt`, from its result.
pub fn rsqrt_grad<F: Float>(y: F, gradient: F) -> F {
    along(gradient, gradient * constant(-0.5) * y * y * y)
}

/// Returns the gradient of `1 / x`, from its result.
pub fn reciprocal_grad<F: Float>(y: F, gradient: F) -> F {
    along(gradient, -gradient * y * y)
}

/// Returns `x / y`, or 0 if `y` is 0.
pub fn div_no_nan<F: Float>(x: F, y: F) -> F {
    if y == F::zero() { F::zero() } else { x / y }
}

/// Returns `x * y`, or 0 if `y` is 0.
pub fn mul_no_nan<F: Float>(x: F, y: F) -> F {
    if y == F::zero() { F::zero() } else { x * y }
}

/// Returns `x * log(y)`, or 0 if `x` is 0.
pub fn xlogy<F: Float>(x: F, y: F) -> F {
    if x == F::zero() { F::zero() } else { x * y.ln() }
}

/// Returns `x / y`, or 0 if `x` is 0.
pub fn xdivy<F: Float>(x: F, y: F) -> F {
    if x == F::zero() { F::zero() } else { x / y }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_to_even() {
        for (x, y) in [(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, 0.0), (-1.5, -2.0), (1.4, 1.0)] {
            assert_eq!(round(x), y, "{x}");
        }
        assert!(round(f32::NAN).is_nan() && round(f32::INFINITY) == f32::INFINITY);
    }

    #[test]
    fn nan_stays() {
        for function in [relu::<f32>, relu6, elu, selu, softplus, softsign, sigmoid, erf, erfc] {
            assert!(function(f32::NAN).is_nan());
        }
    }

    #[test]
    fn gradients_of_no_number_are_those_of_the_cpu() {
        assert!(relu_grad(f32::NAN, -1.0).is_nan() && relu6_grad(f32::INFINITY, 7.0).is_nan());
        assert_eq!((relu_grad(2.0, f32::NAN), relu6_grad(2.0, f32::NAN)), (0.0, 0.0));
        for gradient in [sqrt_grad, rsqrt_grad, reciprocal_grad] {
            assert_eq!(gradient(f32::NAN, 0.0), 0.0);
            assert!(gradient(f32::NAN, 1.0).is_nan());
        }
    }

    /// Compares each gradient with the difference quotient of its function.
    #[test]
    fn gradients_are_slopes() {
        let slope = |f: fn(f64) -> f64, x: f64| (f(x + 1e-6) - f(x - 1e-6)) / 2e-6;
        let check = |name: &str, found: f64, expected: f64| {
            assert!((found - 3.0 * expected).abs() < 1e-6, "{name} {found} {expected}");
        };
        for x in [-7.0, -1.3, -0.2, 0.4, 2.0, 7.5] {
            check("relu", relu_grad(3.0, x), slope(relu, x));
            check("relu6", relu6_grad(3.0, x), slope(relu6, x));
            check("leaky", leaky_relu_grad(0.1)(3.0, x), slope(|x| leaky_relu(0.1)(x), x));
            check("elu", elu_grad(3.0, elu(x)), slope(elu, x));
            check("selu", selu_grad(3.0, selu(x)), slope(selu, x));
            check("softplus", softplus_grad(3.0, x), slope(softplus, x));
            check("softsign", softsign_grad(3.0, x), slope(softsign, x));
            check("sigmoid", sigmoid_grad(sigmoid(x), 3.0), slope(sigmoid, x));
            check("tanh", tanh_grad(x.tanh(), 3.0), slope(f64::tanh, x));
            check("1/x", reciprocal_grad(1.0 / x, 3.0), slope(|x| 1.0 / x, x));
        }
        for x in [0.3_f64, 4.0] {
            check("sqrt", sqrt_grad(x.sqrt(), 3.0), slope(f64::sqrt, x));
            check("rsqrt", rsqrt_grad(rsqrt(x), 3.0), slope(rsqrt, x));
        }
    }

    #[test]
    fn softplus_does_not_overflow() {
        assert_eq!(softplus(1000.0_f32), 1000.0);
        assert!((softplus(-20.0_f32) - (-20.0_f32).exp()).abs() < 1e-12);
        assert!((softplus(0.0_f64) - 2.0_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn small_tails_are_not_lost() {
        assert!((erfc(1.0_f64) - (1.0 - erf(1.0))).abs() < 1e-15);
        assert!((erfc(5.0_f64) / 1.537_459_794_428_035e-12 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn zeros_win_where_the_name_says_so() {
        assert_eq!((div_no_nan(1.0, 0.0), div_no_nan(1.0, 4.0)), (0.0, 0.25));
        assert_eq!((mul_no_nan(f32::NAN, 0.0), mul_no_nan(2.0, 4.0)), (0.0, 8.0));
        assert_eq!((xlogy(0.0, 0.0), xdivy(0.0, 0.0), xdivy(1.0, 2.0)), (0.0, 0.0, 0.5));
        assert!((xlogy(2.0_f64, 3.0) - 2.0 * 3.0_f64.ln()).abs() < 1e-12);
    }
}
