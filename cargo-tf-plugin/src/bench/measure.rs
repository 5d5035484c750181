//! How often an operation is called, and how its times are summarised.

use std::time::{Duration, Instant};

use crate::bench::job::Timing;

/// A sample is at least this long, so that reading the clock does not count.
const SAMPLE: Duration = Duration::from_micros(20);

/// Fewer samples do not show the spread.
const FEWEST: usize = 3;

/// More samples do not improve a median: longer ones are taken instead.
const MOST: u32 = 20_000;

/// Measures an operation for about `seconds`. `body` runs it a number of times, at most `most`, and
/// returns how long that took; its other work is not timed.
///
/// # Errors
/// Returns the error of `body`.
pub fn measure<E>(
    seconds: f64,
    most: u64,
    mut body: impl FnMut(u64) -> Result<Duration, E>,
) -> Result<Timing, E> {
    let start = Instant::now();
    let budget = Duration::from_secs_f64(seconds);
    let sample = SAMPLE.max(budget / MOST);
    let mut calls = 1;
    // The first call is always slower, and the number of calls that fill a sample has to be found.
    let mut rehearsals = 0;
    loop {
        let took = body(calls)?;
        rehearsals += 1;
        let full = took >= sample || calls == most;
        if full && rehearsals > 1 || start.elapsed() > budget / 3 {
            break;
        }
        if !full {
            let needed = sample.as_nanos().saturating_mul(calls.into()) / took.as_nanos().max(1);
            calls = u64::try_from(needed).unwrap_or(most).clamp(calls + 1, calls * 100).min(most);
        }
    }
    let mut samples = Vec::new();
    loop {
        samples.push(body(calls)?.as_nanos() as f64 / calls as f64);
        // An operation that takes longer than the whole time is called only once more.
        let has_time =
            start.elapsed() < budget || samples.len() < FEWEST && start.elapsed() < budget * 4;
        if samples.len() == MOST as usize || !has_time {
            return Ok(Timing::of(samples, calls));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fine(took: Duration) -> Result<Duration, ()> {
        Ok(took)
    }

    #[test]
    fn a_sample_has_as_many_calls_as_fill_it() {
        let timing = measure(0.01, 1 << 20, |calls| fine(Duration::from_nanos(10 * calls)));
        let timing = timing.expect("no error");
        assert!((timing.median_ns - 10.0).abs() < 1e-9, "{timing:?}");
        assert!(timing.calls / timing.samples >= 2000, "{timing:?}");
        let timing = measure(0.01, 8, |calls| fine(Duration::from_nanos(10 * calls)));
        let timing = timing.expect("no error");
        assert_eq!(timing.calls / timing.samples, 8, "no more than are allowed");
    }

    #[test]
    fn samples_are_so_long_that_they_fill_the_time() {
        let calls = |seconds| {
            let mut most = 0;
            let start = Instant::now();
            let _ = measure(seconds, 1 << 20, |calls| {
                most = most.max(calls);
                let ends = start.elapsed() > Duration::from_millis(30);
                if ends { Err(()) } else { fine(Duration::from_nanos(calls)) }
            });
            most
        };
        assert!(calls(1000.0) > 10 * calls(0.1), "{} and {}", calls(1000.0), calls(0.1));
    }

    #[test]
    fn an_operation_that_takes_too_long_is_called_twice() {
        let mut called = 0;
        let timing = measure(0.001, 1 << 20, |calls| {
            called += calls;
            std::thread::sleep(Duration::from_millis(10));
            fine(Duration::from_millis(10))
        });
        let timing = timing.expect("no error");
        assert_eq!((called, timing.samples), (2, 1));
    }

    #[test]
    fn an_error_ends_it() {
        assert_eq!(measure(1.0, 1, |_| Err("no")), Err("no"));
    }
}
