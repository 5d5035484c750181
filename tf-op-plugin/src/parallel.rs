//! Several threads for one run of an op.

use core::num::NonZero;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{self, PoisonError};
use std::thread;
use tf_plugin_core::__private::boundary::catch;
use tf_plugin_core::sync::Mutex;
use tf_plugin_core::{ProcessOrigin, Result};

/// The helper threads of all runs in this process that are busy. A forked child has none.
static BUSY: Mutex<Option<(ProcessOrigin, usize)>> = Mutex::new(None);

/// Helper threads that this owner may start.
struct Helpers(usize);

impl Helpers {
    /// Takes at most `wanted` helpers; all runs together have at most `limit`.
    fn take(wanted: usize, limit: usize) -> Self {
        let Ok(mut busy) = BUSY.lock() else { return Self(0) };
        let count = busy.filter(|(origin, _)| origin.is_current()).map_or(0, |(_, count)| count);
        let taken = wanted.min(limit.saturating_sub(count));
        *busy = Some((ProcessOrigin::current(), count + taken));
        Self(taken)
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        if let Ok(mut busy) = BUSY.lock()
            && let Some((_, count)) = &mut *busy
        {
            *count = count.saturating_sub(self.0);
        }
    }
}

/// Returns the number of threads for a run, if the session's configuration does not say it: as many as TensorFlow has.
pub(crate) fn default_threads() -> usize {
    let of_environment = std::env::var("TF_NUM_INTRAOP_THREADS").ok();
    let of_environment = of_environment.and_then(|count| count.trim().parse().ok());
    of_environment
        .filter(|&count| count > 0)
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZero::get))
}

/// Calls `work` for parts of `0..len` of at least `grain` each, on this thread and on helpers: `threads` in all. Returns
/// the results in the order of the parts, or the error of the first part that has failed. `name` is the op's in the error of a
/// panic.
pub(crate) fn run<C: Send>(
    name: &'static str,
    threads: usize,
    len: usize,
    grain: usize,
    work: impl Fn(Range<usize>) -> Result<C> + Sync,
) -> Result<Vec<C>> {
    let grain = grain.max(1);
    let most = len.div_ceil(grain).min(threads).max(1);
    if most == 1 {
        return Ok(vec![work(0..len)?]);
    }
    let helpers = Helpers::take(most - 1, threads - 1);
    // Several parts for each thread, as some parts take longer.
    let size = len.div_ceil((helpers.0 + 1) * 4).max(grain);
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let body = || {
        let mut results = Vec::new();
        while !has_failed.load(Ordering::Relaxed) {
            let part = next.fetch_add(1, Ordering::Relaxed);
            let start = part.saturating_mul(size);
            if start >= len {
                break;
            }
            let result = catch(name, || work(start..len.min(start + size)));
            if result.is_err() {
                has_failed.store(true, Ordering::Relaxed);
            }
            results.push((part, result));
        }
        results
    };
    let mut results = thread::scope(|scope| {
        let start =
            |_| thread::Builder::new().name(String::from("tf-op")).spawn_scoped(scope, body);
        // A thread that cannot be started leaves its parts to the others.
        let handles: Vec<_> = (0..helpers.0).filter_map(|at| start(at).ok()).collect();
        let mut results = body();
        // The work's panics are errors already.
        results.extend(handles.into_iter().filter_map(|handle| handle.join().ok()).flatten());
        results
    });
    results.sort_unstable_by_key(|(part, _)| *part);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Calls `work` for parts of a slice, each with the index of its first item, as [`run`] does.
pub(crate) fn run_mut<T: Send>(
    name: &'static str,
    threads: usize,
    items: &mut [T],
    grain: usize,
    work: impl Fn(usize, &mut [T]) -> Result<()> + Sync,
) -> Result<()> {
    let grain = grain.max(1);
    let parts: Vec<_> = items.chunks_mut(grain).map(sync::Mutex::new).collect();
    run(name, threads, parts.len(), 1, |range| {
        range.into_iter().try_for_each(|part| {
            let mut items = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
            work(part * grain, &mut items)
        })
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tf_plugin_core::Error;

    #[test]
    fn parts_are_in_order_and_cover_everything() {
        for (threads, len, grain) in
            [(1, 10, 1), (4, 1000, 1), (4, 1000, 300), (8, 3, 1), (3, 0, 5)]
        {
            let parts = run("op", threads, len, grain, Ok).unwrap();
            let all: Vec<usize> = parts.iter().cloned().flatten().collect();
            assert!(all.into_iter().eq(0..len), "{threads} {len} {grain}");
            let short = parts.iter().filter(|part| part.len() < grain).count();
            assert!(short <= 1, "{parts:?}");
        }
    }

    #[test]
    fn parts_of_a_slice_are_written_once() {
        let mut numbers = vec![0_usize; 1003];
        run_mut("op", 4, &mut numbers, 10, |start, part| {
            part.iter_mut().enumerate().for_each(|(at, number)| *number += start + at);
            Ok(())
        })
        .unwrap();
        assert!(numbers.into_iter().eq(0..1003));
    }

    #[test]
    fn the_first_error_is_returned_and_a_panic_is_one() {
        let result = run("my::Op", 4, 100, 1, |part| match part.start {
            0 => Ok(()),
            start => Err(Error::invalid_argument(format!("{start}"))),
        });
        assert!(result.is_err());
        let result = run("my::Op", 4, 100, 1, |part| {
            assert!(!part.contains(&50), "fifty");
            Ok(())
        });
        let error = result.unwrap_err().to_string();
        assert!(error.contains("fifty") && error.contains("my::Op"), "{error}");
    }

    #[test]
    fn all_runs_together_have_so_many_helpers() {
        let limit = 3;
        let most_at_once = || {
            let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        run("op", limit, 64, 1, |_| {
                            let running = now.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(running, Ordering::SeqCst);
                            thread::sleep(core::time::Duration::from_millis(1));
                            now.fetch_sub(1, Ordering::SeqCst);
                            Ok(())
                        })
                        .unwrap();
                    });
                }
            });
            let most = most.into_inner();
            assert!(most < 4 + limit, "{most}");
            most
        };
        // Other tests may have helpers at the same time, so that there are fewer here; and on a busy machine the four calls
        // may not overlap.
        assert!((0..50).any(|_| most_at_once() >= 4), "four calls never run at once");
    }
}
