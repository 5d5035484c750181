//! Log lines on stderr in TensorFlow's style.
//!
//! A plugin logs with the [`log`] crate (or with `tracing` and its feature `log`); loading the plugin
//! installs the output, unless `Filesystem::new` has installed another logger.
//! To log in `new` itself, call [`init`] there first. Levels follow TensorFlow's environment variables:
//!
//! | `TF_CPP_MIN_LOG_LEVEL` | Shown |
//! |---|---|
//! | not set, or 1 | `warn!`, `error!` |
//! | 0 | also `info!` |
//! | not set, or 0, with `TF_CPP_MAX_VLOG_LEVEL` 1, or 2 and more | also `info!` and `debug!`, or all |
//! | 2 | `error!` |
//! | 3 or more | nothing |

use crate::abi::clock;
use crate::abi::fork::ForkGuard;
use log::{Level, LevelFilter, Log, Metadata, Record};
use std::io::{self, Write};
use std::os::fd::AsFd as _;

struct Stderr;

/// Makes [`log`] write to stderr, unless a logger is installed. Loading a plugin calls it; call it
/// yourself to log earlier, or in programs that use a filesystem without TensorFlow.
pub fn init() {
    if log::set_logger(&Stderr).is_ok() {
        log::set_max_level(level(|name| std::env::var(name).ok()));
    }
}

fn level(variable: impl Fn(&str) -> Option<String>) -> LevelFilter {
    let number = |name| variable(name).and_then(|value| value.trim().parse::<i64>().ok());
    match (number("TF_CPP_MIN_LOG_LEVEL"), number("TF_CPP_MAX_VLOG_LEVEL").unwrap_or(0)) {
        (None | Some(..=0), 2..) => LevelFilter::Trace,
        (None | Some(..=0), 1) => LevelFilter::Debug,
        (Some(..=0), _) => LevelFilter::Info,
        (None | Some(1), _) => LevelFilter::Warn,
        (Some(2), _) => LevelFilter::Error,
        (Some(_), _) => LevelFilter::Off,
    }
}

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            // A fork meanwhile would leave libc's time zone lock held in the child.
            let time = {
                let _hold = ForkGuard::new();
                clock::local_time()
            };
            // One write, so that lines of several threads do not mix. A closed stderr is not a reason to fail.
            let _ = write(line(&time, record).as_bytes());
        }
    }

    fn flush(&self) {}
}

/// Writes to stderr without the lock of `std`, which a forked child could find held. A [`ForkGuard`]
/// would not help: a pipe that no process reads blocks a write, and each fork would wait for it.
fn write(text: &[u8]) -> io::Result<()> {
    let stderr = io::stderr().as_fd().try_clone_to_owned()?;
    std::fs::File::from(stderr).write_all(text)
}

fn line(time: &str, record: &Record<'_>) -> String {
    let severity = match record.level() {
        Level::Error => 'E',
        Level::Warn => 'W',
        Level::Info | Level::Debug | Level::Trace => 'I',
    };
    // As in TensorFlow's lines the name without its directories, which are those of the build machine.
    let file = record.file().and_then(|file| file.rsplit(['/', '\\']).next());
    let file = file.unwrap_or_else(|| record.target());
    let line = record.line().unwrap_or(0);
    format!("{time}: {severity} {file}:{line}] {}\n", record.args())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level_with(min: Option<&str>, verbose: Option<&str>) -> LevelFilter {
        level(|name| match name {
            "TF_CPP_MIN_LOG_LEVEL" => min.map(String::from),
            "TF_CPP_MAX_VLOG_LEVEL" => verbose.map(String::from),
            other => panic!("{other} is none of TensorFlow's variables"),
        })
    }

    #[test]
    fn tensorflows_variables_choose_the_level() {
        assert_eq!(level_with(None, None), LevelFilter::Warn);
        assert_eq!(level_with(None, Some("2")), LevelFilter::Trace);
        assert_eq!(level_with(Some("1"), Some("2")), LevelFilter::Warn);
        assert_eq!(level_with(Some("0"), None), LevelFilter::Info);
        assert_eq!(level_with(Some("0"), Some("1")), LevelFilter::Debug);
        assert_eq!(level_with(Some("0"), Some("9")), LevelFilter::Trace);
        assert_eq!(level_with(Some("1"), None), LevelFilter::Warn);
        assert_eq!(level_with(Some("2"), None), LevelFilter::Error);
        assert_eq!(level_with(Some("3"), Some("9")), LevelFilter::Off);
        assert_eq!(level_with(Some("junk"), None), LevelFilter::Warn);
    }
}
