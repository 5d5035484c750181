//! Detects that a GPU is lost: its driver says so, or it hangs; and that it is at work when the process ends.

use super::erased::Recorder;
use super::interface::{BackendError, BackendResult};
use crate::settings::DEFAULT_TIMEOUT;
use se_plugin::{Code, Error, Result, driver};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// The longest wait before a thread checks whether another one has lost the GPU.
const SLICE: Duration = Duration::from_secs(1);

/// How often the end of the process looks whether software is still at work, and how long it lets it finish.
const LOOKS: usize = 50;
/// In so many of them nothing runs if it is not at work.
const IDLE_LOOKS: usize = 4;
const LOOK: Duration = Duration::from_millis(10);

/// How many names of commands a message contains.
const NAMES: usize = 4;

/// The time limit for the GPU, and how it was lost.
pub(super) struct Watchdog {
    /// The begin of the names of settings.
    prefix: &'static str,
    /// How long the GPU may finish no batch; `None` for no limit.
    limit: Option<Duration>,
    /// How many batches the GPU has finished.
    finished: AtomicU64,
    /// How many batches were sent and are not done, and shaders are being compiled.
    running: Arc<AtomicU64>,
    lost: OnceLock<Error>,
    is_software: bool,
    /// Whether a shader was compiled since the end of the process was prepared: when it first runs, LLVM may register
    /// functions of its own for the end.
    has_compiled: AtomicBool,
}

impl Watchdog {
    /// Creates a watchdog with the default limit. Software has none: lavapipe takes minutes for milliseconds of a GPU.
    pub(super) fn new(prefix: &'static str, is_software: bool) -> Self {
        let limit = (!is_software).then_some(DEFAULT_TIMEOUT);
        let watchdog = Self {
            prefix,
            limit,
            finished: AtomicU64::new(0),
            running: Arc::default(),
            lost: OnceLock::new(),
            is_software,
            has_compiled: AtomicBool::new(false),
        };
        // A GPU's driver ends with the process. Software compiles in threads with LLVM, which cannot be destroyed meanwhile.
        if is_software {
            let running = Arc::clone(&watchdog.running);
            driver::exit_at_once_if(move || is_at_work(&running));
        }
        watchdog
    }

    /// Compiles a shader.
    ///
    /// # Errors
    /// Those of `compile`.
    pub(super) fn compile<T>(
        &self,
        compile: impl FnOnce() -> BackendResult<T>,
    ) -> BackendResult<T> {
        self.running.fetch_add(1, Ordering::Relaxed);
        let compiled = compile();
        self.has_compiled.store(true, Ordering::Relaxed);
        self.running.fetch_sub(1, Ordering::Relaxed);
        compiled
    }

    /// Sends a batch.
    ///
    /// # Errors
    /// Those of `send`.
    pub(super) fn send(&self, send: impl FnOnce() -> BackendResult) -> BackendResult {
        self.running.fetch_add(1, Ordering::Relaxed);
        let sent = send();
        if sent.is_err() {
            self.running.fetch_sub(1, Ordering::Relaxed);
        }
        sent
    }

    /// Replaces the default limit. 0 means no limit.
    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = (!limit.is_zero()).then_some(limit);
    }

    /// Returns the error of a GPU that does not finish a batch of these commands.
    #[cold]
    fn hung(&self, gpu: &str, commands: &[&'static str]) -> Error {
        let (prefix, seconds) = (self.prefix, self.limit.unwrap_or_default().as_secs_f64());
        let last = commands[commands.len().saturating_sub(NAMES)..].join("`, `");
        // Not `UNAVAILABLE`, after which TensorFlow's monitored sessions try again in this process, for good. The limit is a setting, so its end is the code for limits.
        Error::new(
            Code::DeadlineExceeded,
            format!(
                "`{gpu}` has not finished a batch for {seconds} s, whose last commands are `{last}` (of {}); if they \
                 take longer, use a smaller batch or raise {prefix}_TIMEOUT_S (0 means no limit); if the GPU hangs, see \
                 the driver's messages in `dmesg`; restart the process to use the GPU again",
                commands.len()
            ),
        )
    }
}

/// Returns whether batches are still running after a while. Between two batches of a queue none may be, for a moment.
fn is_at_work(running: &AtomicU64) -> bool {
    let mut idle = 0;
    for _ in 0..LOOKS {
        idle = if running.load(Ordering::Relaxed) == 0 { idle + 1 } else { 0 };
        if idle == IDLE_LOOKS {
            return false;
        }
        thread::sleep(LOOK);
    }
    true
}

/// Copies an error.
pub(crate) fn again(error: &Error) -> Error {
    Error::new(error.code(), error.message().to_owned())
}

impl Watchdog {
    /// Returns how the GPU was lost, if it was. Nothing more is sent to it then, and nothing that it may use is freed.
    pub(super) fn lost(&self) -> Option<Error> {
        self.lost.get().map(again)
    }

    /// Keeps the first reason, and returns it.
    #[cold]
    fn lose(&self, reason: Error) -> Error {
        again(self.lost.get_or_init(|| reason))
    }

    /// Converts a failure of the driver to an error, and marks the GPU as lost if it is.
    #[cold]
    pub(super) fn failed(&self, gpu: &str, failure: &BackendError) -> Error {
        let error = failure.error(Some(gpu));
        match failure.is_lost {
            true => self.lose(error),
            // An error that follows from a loss is not its cause.
            false => self.lost().unwrap_or(error),
        }
    }

    /// Waits until the batch with these commands, which was sent, is done.
    ///
    /// The limit restarts whenever the GPU finishes a batch, since it may have to finish others first. It counts the
    /// slices that were waited for, not the clock: a process that was stopped meanwhile has lost only one of them.
    ///
    /// # Errors
    /// Those of the driver; `DEADLINE_EXCEEDED` after the limit. The GPU may still be executing the batch.
    pub(super) fn wait(
        &self,
        gpu: &str,
        recorder: &mut dyn Recorder,
        commands: &[&'static str],
    ) -> Result<()> {
        let Self { limit, finished, running, lost, .. } = self;
        let (mut left, mut before) = (*limit, finished.load(Ordering::Relaxed));
        loop {
            let slice = match left {
                _ if lost.get().is_some() => Duration::ZERO,
                None => SLICE,
                Some(left) => left.min(SLICE),
            };
            let waited = recorder.wait(slice).inspect_err(|_| {
                // It runs no more.
                running.fetch_sub(1, Ordering::Relaxed);
            });
            if waited.map_err(|failure| self.failed(gpu, &failure))? {
                finished.fetch_add(1, Ordering::Relaxed);
                running.fetch_sub(1, Ordering::Relaxed);
                if self.has_compiled.swap(false, Ordering::Relaxed) && self.is_software {
                    driver::exit_before_others();
                }
                return Ok(());
            }
            if let Some(error) = self.lost() {
                return Err(error);
            }
            let now = finished.load(Ordering::Relaxed);
            left = match left {
                _ if now != before => *limit,
                left => left.map(|left| left.saturating_sub(slice)),
            };
            before = now;
            if left == Some(Duration::ZERO) {
                // A process that was stopped may have missed the whole slice.
                if recorder.wait(Duration::ZERO).map_err(|failure| self.failed(gpu, &failure))? {
                    continue;
                }
                return Err(self.lose(self.hung(gpu, commands)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_has_no_limit_and_a_gpu_has_one_that_can_be_replaced() {
        assert_eq!(Watchdog::new("MY_GPU", true).limit, None);
        let mut watchdog = Watchdog::new("MY_GPU", false);
        assert_eq!(watchdog.limit, Some(Duration::from_secs(300)));
        watchdog.set_limit(Duration::from_millis(50));
        assert_eq!(watchdog.limit, Some(Duration::from_millis(50)));
        watchdog.set_limit(Duration::ZERO);
        assert_eq!(watchdog.limit, None);
    }

    #[test]
    fn only_what_runs_for_long_is_at_work_at_the_end() {
        assert!(!is_at_work(&AtomicU64::new(0)));
        assert!(is_at_work(&AtomicU64::new(1)));
        let running = Arc::new(AtomicU64::new(1));
        let ends = Arc::clone(&running);
        let thread = thread::spawn(move || {
            thread::sleep(5 * LOOK);
            ends.store(0, Ordering::Relaxed);
        });
        assert!(!is_at_work(&running));
        thread.join().unwrap();
    }

    #[test]
    fn what_was_not_sent_does_not_run() {
        let watchdog = Watchdog::new("MY_GPU", false);
        let failure = || BackendError {
            code: Code::Internal,
            what: String::new(),
            cause: String::new(),
            help: "",
            is_lost: true,
        };
        assert!(watchdog.send(|| Err(failure())).is_err());
        assert_eq!(watchdog.running.load(Ordering::Relaxed), 0);
        assert!(watchdog.send(|| Ok(())).is_ok());
        assert_eq!(watchdog.running.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_error_names_the_last_commands() {
        let message = |commands| Watchdog::new("MY_GPU", false).hung("GPU", commands).to_string();
        let text = message(&["a", "b", "c", "d", "e"]);
        let begin = "`GPU` has not finished a batch for 300 s, whose last commands are `b`, `c`, `d`, `e` (of 5); ";
        assert!(text.starts_with(begin), "{text}");
        assert!(text.contains(" raise MY_GPU_TIMEOUT_S (0"), "{text}");
        let text = message(&["MatMul"]);
        assert!(text.contains("are `MatMul` (of 1); "), "{text}");
    }
}
