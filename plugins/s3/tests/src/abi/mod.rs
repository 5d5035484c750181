//! Forked processes. `fork` in a program with several threads is what `multiprocessing` does to TensorFlow's users.

pub mod recycled;

use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use tf_plugin_testing::__private::threads_start;

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

/// Forks, runs `work` in the child, and ends the child without any clean-up. Says how it ended and how long it took.
/// A child in which no thread starts, for a lock of the standard library, is replaced by another.
///
/// # Errors
/// If the system cannot fork.
pub fn in_fork(within: Duration, work: impl FnOnce() -> String) -> io::Result<(Ended, Duration)> {
    let mut work = Some(work);
    loop {
        let (ended, took) = fork_once(within, &mut work)?;
        if let Some(ended) = ended {
            return Ok((ended, took));
        }
    }
}

/// The same; `None` for the end of a child in which no thread starts. Only the child takes `work`.
fn fork_once(
    within: Duration,
    work: &mut Option<impl FnOnce() -> String>,
) -> io::Result<(Option<Ended>, Duration)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors that `pipe` writes.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `pipe` has just made both, and nothing else owns them.
    let (reader, writer) =
        unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    let start = Instant::now();
    // SAFETY: the child runs only `work`, whose locks and threads are the thing tested, `write` and `_exit`; it never
    // returns into the caller's frames, so nothing of the parent's is dropped twice. glibc makes its allocator usable
    // in the child of a program with threads.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let answer = match work.take().filter(|_| threads_start()) {
                Some(work) => catch_unwind(AssertUnwindSafe(work)).map_err(|_| 1),
                None => Err(NO_THREADS),
            };
            let code = answer.as_ref().err().copied().unwrap_or(0);
            let answer = answer.unwrap_or_default();
            // SAFETY: the pointer and the length are those of `answer`, which lives until `_exit`; a short write would
            // show as a wrong answer. `_exit` ends the process without running anything.
            unsafe {
                libc::write(writer.as_raw_fd(), answer.as_ptr().cast(), answer.len());
                libc::_exit(code)
            }
        }
        child => {
            drop(writer);
            let mut status = 0;
            let hung = loop {
                // SAFETY: `child` is a child of this process that no other thread waits for.
                if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
                    break false;
                }
                if start.elapsed() >= within {
                    // SAFETY: `child` is not waited for yet, so its number is still its own.
                    unsafe {
                        libc::kill(child, libc::SIGKILL);
                        libc::waitpid(child, &raw mut status, 0);
                    }
                    break true;
                }
                std::thread::sleep(Duration::from_millis(2));
            };
            let took = start.elapsed();
            let mut answer = String::new();
            std::fs::File::from(reader).read_to_string(&mut answer)?;
            let ended = match () {
                () if hung => Some(Ended::Hung),
                () if libc::WIFSIGNALED(status) => Some(Ended::Killed(libc::WTERMSIG(status))),
                () if libc::WEXITSTATUS(status) == NO_THREADS => None,
                () if libc::WEXITSTATUS(status) != 0 => Some(Ended::Panicked),
                () => Some(Ended::Answered(answer)),
            };
            Ok((ended, took))
        }
    }
}
