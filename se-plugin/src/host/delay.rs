//! Random delays.

use std::time::Duration;

/// Random delays of tasks. A slow device reveals code that does not wait.
///
/// A task waits up to [`longest`](Self::longest) before it takes its memory, and up to as long again while
/// it has the memory. The same seed gives the same delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    longest: Duration,
    seed: u64,
}

impl Delay {
    /// No delay.
    pub const NONE: Self = Self { longest: Duration::ZERO, seed: 0 };

    /// Creates delays of up to `longest`, with a uniform distribution.
    #[must_use]
    pub const fn up_to(longest: Duration, seed: u64) -> Self {
        Self { longest, seed }
    }

    /// Returns the longest delay.
    #[must_use]
    pub const fn longest(self) -> Duration {
        self.longest
    }

    /// Returns the delays of the stream with this number, one after the other.
    pub(super) fn of_stream(self, number: u64) -> impl FnMut() -> Duration {
        let seed = self.seed ^ number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = fastrand::Rng::with_seed(seed);
        move || self.longest.mul_f64(random.f64())
    }
}

impl Default for Delay {
    fn default() -> Self {
        Self::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_reproducible_and_within_the_limit() {
        let longest = Duration::from_millis(3);
        let take = |seed, stream| {
            let delays = std::iter::repeat_with(Delay::up_to(longest, seed).of_stream(stream));
            delays.take(100).collect::<Vec<_>>()
        };
        assert_eq!(take(1, 0), take(1, 0));
        assert_ne!(take(1, 0), take(2, 0));
        assert_ne!(take(1, 0), take(1, 1));
        assert!(take(1, 0).iter().all(|&delay| delay < longest));
        assert!(take(1, 0).iter().any(|&delay| delay > longest / 2));
        assert_eq!(Delay::NONE.of_stream(0)(), Duration::ZERO);
    }
}
