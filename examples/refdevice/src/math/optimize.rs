//! A step of an optimizer, in place.

use super::{Real, View, ViewMut};
use ndarray::Zip;
use num_traits::Float as _;
use se_plugin::toolkit::Number as _;

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
