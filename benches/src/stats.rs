//! Medians and their spread.

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
    ///
    /// # Panics
    /// Without values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |quarter: usize| sorted[(sorted.len() - 1) * quarter / 4];
        Self { low: at(1), median: at(2), high: at(3) }
    }
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
}
