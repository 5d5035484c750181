//! Steps of optimizers, in place.

use super::{Real, View, ViewMut};
use ndarray::Zip;
use num_traits::Float as _;
use se_plugin::toolkit::Number as _;

/// Takes a step of gradient descent.
pub fn gradient_descent<T: Real>(variable: ViewMut<'_, T>, rate: T, gradient: View<'_, T>) {
    let rate = rate.widen();
    Zip::from(variable).and(gradient).for_each(|variable, gradient| {
        *variable = T::narrow(variable.widen() - rate * gradient.widen());
    });
}

/// Takes a step with TensorFlow's momentum: the accumulator is a sum of gradients.
pub fn momentum<T: Real>(
    variable: ViewMut<'_, T>,
    accumulator: ViewMut<'_, T>,
    (rate, momentum): (T, T),
    gradient: View<'_, T>,
    nesterov: bool,
) {
    let (rate, momentum) = (rate.widen(), momentum.widen());
    Zip::from(variable).and(accumulator).and(gradient).for_each(|variable, sum, gradient| {
        let gradient = gradient.widen();
        let new = sum.widen() * momentum + gradient;
        let step = if nesterov { gradient * rate + new * momentum * rate } else { new * rate };
        *sum = T::narrow(new);
        *variable = T::narrow(variable.widen() - step);
    });
}

/// Takes a step with Keras's momentum: the accumulator is a sum of steps.
pub fn keras_momentum<T: Real>(
    variable: ViewMut<'_, T>,
    accumulator: ViewMut<'_, T>,
    (rate, momentum): (T, T),
    gradient: View<'_, T>,
    nesterov: bool,
) {
    let (rate, momentum) = (rate.widen(), momentum.widen());
    Zip::from(variable).and(accumulator).and(gradient).for_each(|variable, sum, gradient| {
        let gradient = gradient.widen();
        let new = sum.widen() * momentum - gradient * rate;
        let step = if nesterov { new * momentum - gradient * rate } else { new };
        *sum = T::narrow(new);
        *variable = T::narrow(variable.widen() + step);
    });
}

/// The hyperparameters of Adam, in the order of its inputs.
#[derive(Clone, Copy, Debug)]
pub struct Adam<T> {
    /// The powers of the two decay rates so far.
    pub powers: (T, T),
    /// The learning rate.
    pub rate: T,
    /// The decay rates of the two moments.
    pub decays: (T, T),
    /// A small number that keeps the divisor from 0.
    pub epsilon: T,
}

/// Takes a step of Adam.
pub fn adam<T: Real>(
    [variable, first, second]: [ViewMut<'_, T>; 3],
    numbers: Adam<T>,
    gradient: View<'_, T>,
    nesterov: bool,
) {
    let one = T::Wide::ONE;
    let (powers, decays) = (numbers.powers, numbers.decays);
    let rate = numbers.rate.widen() * (one - powers.1.widen()).sqrt() / (one - powers.0.widen());
    let (decay, second_decay) = (decays.0.widen(), decays.1.widen());
    let epsilon = numbers.epsilon.widen();
    Zip::from(variable).and(first).and(second).and(gradient).for_each(
        |variable, first, second, gradient| {
            let gradient = gradient.widen();
            let (old, old_second) = (first.widen(), second.widen());
            let new = old + (gradient - old) * (one - decay);
            let new_second = old_second + (gradient * gradient - old_second) * (one - second_decay);
            let direction = if nesterov { gradient * (one - decay) + decay * new } else { new };
            *first = T::narrow(new);
            *second = T::narrow(new_second);
            let step = direction * rate / (new_second.sqrt() + epsilon);
            *variable = T::narrow(variable.widen() - step);
        },
    );
}

#[cfg(test)]
mod tests {
    use super::super::testing::row;
    use super::*;

    #[track_caller]
    fn close(found: f32, expected: f32) {
        assert!((found - expected).abs() < 1e-6, "{found} and not {expected}");
    }

    /// Compares two steps with numbers computed by hand.
    #[test]
    fn momentum_remembers() {
        let gradient = row(&[2.0]);
        for (nesterov, steps) in [(false, [0.2, 0.38]), (true, [0.38, 0.542])] {
            let (mut variable, mut sum) = (row(&[1.0]), row(&[0.0]));
            let (mut keras, mut keras_sum) = (variable.clone(), sum.clone());
            let mut expected = 1.0;
            for step in steps {
                let numbers = (0.1, 0.9);
                momentum(variable.view_mut(), sum.view_mut(), numbers, gradient.view(), nesterov);
                keras_momentum(
                    keras.view_mut(),
                    keras_sum.view_mut(),
                    numbers,
                    gradient.view(),
                    nesterov,
                );
                expected -= step;
                close(variable[[0]], expected);
                close(keras[[0]], expected);
            }
            close(sum[[0]], 3.8);
            close(keras_sum[[0]], -0.38);
        }
        let mut variable = row(&[1.0]);
        gradient_descent(variable.view_mut(), 0.1, gradient.view());
        close(variable[[0]], 0.8);
    }

    /// Checks that the first step is close to the rate for any gradient.
    #[test]
    fn adam_goes_by_its_rate() {
        for gradient in [3.0_f32, -0.01] {
            let [mut variable, mut first, mut second] = [row(&[1.0]), row(&[0.0]), row(&[0.0])];
            let numbers =
                Adam { powers: (0.9, 0.999), rate: 0.5, decays: (0.9, 0.999), epsilon: 1e-8 };
            let state = [variable.view_mut(), first.view_mut(), second.view_mut()];
            adam(state, numbers, row(&[gradient]).view(), false);
            assert!((variable[[0]] - (1.0 - 0.5 * gradient.signum())).abs() < 1e-3);
            close(first[[0]], 0.1 * gradient);
            close(second[[0]], 0.001 * gradient * gradient);
        }
    }
}
