//! Medians and their spread.

use std::fmt;

/// A median with the quartiles around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// A quarter of the values are below.
    pub low: f64,
    /// The middle value.
    pub median: f64,
    /// A quarter of the values are above.
    pub high: f64,
}

impl Spread {
    /// The quartiles of some values, each the value that is next to its place.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |quarter: usize| sorted[(sorted.len() - 1) * quarter / 4];
        Self { low: at(1), median: at(2), high: at(3) }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ({:.2}–{:.2})", self.median, self.low, self.high)
    }
}

/// The spread of the ratios of values that belong together.
pub fn ratios(values: &[f64], to: &[f64]) -> Spread {
    Spread::of(&values.iter().zip(to).map(|(value, to)| value / to).collect::<Vec<_>>())
}

/// Lets so many contestants take turns: `run` gets the index of one and answers what it took. Answers the
/// rounds of each.
///
/// A first round, which warms up, is not counted. Another one goes first in each round, so that none always
/// finds the caches cold.
pub fn take_turns<T, E>(
    contestants: usize,
    rounds: usize,
    mut run: impl FnMut(usize) -> Result<T, E>,
) -> Result<Vec<Vec<T>>, E> {
    let mut taken: Vec<_> = (0..contestants).map(|_| Vec::with_capacity(rounds)).collect();
    for round in 0..=rounds {
        for turn in 0..contestants {
            let index = (turn + round) % contestants;
            let value = run(index)?;
            if round > 0 {
                taken[index].push(value);
            }
        }
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles() {
        let spread = Spread::of(&[5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!(spread, Spread { low: 2.0, median: 3.0, high: 4.0 });
        assert_eq!(Spread::of(&[7.0]).median, 7.0);
    }

    #[test]
    fn ratios_are_of_pairs() {
        assert_eq!(ratios(&[1.0, 6.0, 12.0], &[1.0, 2.0, 6.0]).median, 2.0);
    }

    #[test]
    fn turns_rotate_after_a_round_that_does_not_count() {
        let mut order = Vec::new();
        let taken = take_turns(2, 2, |index| {
            order.push(index);
            Ok::<_, ()>(order.len() as f64)
        });
        assert_eq!(order, [0, 1, 1, 0, 0, 1]);
        assert_eq!(taken, Ok(vec![vec![4.0, 5.0], vec![3.0, 6.0]]));
    }
}
