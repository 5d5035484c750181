//! Forked processes. `fork` in a program with several threads is what `multiprocessing` does to TensorFlow's users.

pub mod recycled;

use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

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

/// Forks, runs `work` in the child, and ends the child without any clean-up. Says how it ended and how long it took.
///
/// # Errors
/// If the system cannot fork.
pub fn in_fork(within: Duration, work: impl FnOnce() -> String) -> io::Result<(Ended, Duration)> {
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
            let answer = catch_unwind(AssertUnwindSafe(work));
            let code = i32::from(answer.is_err());
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
                () if hung => Ended::Hung,
                () if libc::WIFSIGNALED(status) => Ended::Killed(libc::WTERMSIG(status)),
                () if libc::WEXITSTATUS(status) != 0 => Ended::Panicked,
                () => Ended::Answered(answer),
            };
            Ok((ended, took))
        }
    }
}
