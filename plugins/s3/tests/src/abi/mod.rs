//! Forked processes. `fork` in a program with several threads is what `multiprocessing` does to TensorFlow's users.

pub mod recycled;

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};
use tf_plugin_testing::__private::{in_a_child, threads_start};

/// How a forked child ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// `work` has ended with this result.
    Answered(String),
    /// It panicked.
    Panicked,
    /// A signal ended it.
    Killed(i32),
    /// It was still at work when the time was over, and was killed.
    Hung,
}

/// How a child ends in which no thread starts, whatever the plugin does.
const NO_THREADS: i32 = 201;

/// Forks, runs `work` in the child, and ends the child without any clean-up. Returns how it ended and how long it took,
/// at most `within`, in whole seconds. A child in which no thread starts, for a lock of the standard library, is replaced
/// by another.
///
/// # Errors
/// If the system cannot create a pipe.
pub fn in_fork(within: Duration, work: impl FnOnce() -> String) -> io::Result<(Ended, Duration)> {
    // Only the child takes it.
    let mut work = Some(work);
    loop {
        let (mut reader, mut writer) = io::pipe()?;
        let start = Instant::now();
        let seconds = u32::try_from(within.as_secs()).unwrap_or(u32::MAX);
        let status = in_a_child(seconds, || match work.take().filter(|_| threads_start()) {
            Some(work) => writer.write_all(work().as_bytes()).is_err().into(),
            None => NO_THREADS,
        });
        let took = start.elapsed();
        drop(writer);
        let mut answer = String::new();
        reader.read_to_string(&mut answer)?;
        let ended = match (status.signal(), status.code()) {
            (Some(libc::SIGALRM), _) => Ended::Hung,
            (Some(signal), _) => Ended::Killed(signal),
            (None, Some(NO_THREADS)) => continue,
            (None, Some(0)) => Ended::Answered(answer),
            (None, _) => Ended::Panicked,
        };
        return Ok((ended, took));
    }
}
