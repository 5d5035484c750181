//! A row: an operation that is measured, or why it is not.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cargo_tf_plugin::bench::{Event, Job, Outcome, Row, Timing, measure};
use cargo_tf_plugin::host::{CallError, CallResult};
use cargo_tf_plugin::tables::{self, Missing};
use tf_fs_sys::TF_UNIMPLEMENTED;

use crate::abi::events::tell;

/// Whether the command that started this process has ended, or has told it to end.
pub(super) static STOPPED: AtomicBool = AtomicBool::new(false);

/// Why an operation was not measured.
#[derive(Debug)]
pub(super) enum RowError {
    /// The plugin does not have it.
    Absent(String),
    /// It has returned an error.
    Failed(String),
    Stopped,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(why) | Self::Failed(why) => f.write_str(why),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

pub(super) type Result<T> = std::result::Result<T, RowError>;

pub(super) fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

pub(super) struct Rows<'j> {
    job: &'j Job,
    group: &'static str,
}

impl<'j> Rows<'j> {
    pub(super) fn new(job: &'j Job) -> Self {
        Self { job, group: "" }
    }

    pub(super) fn group(&mut self, group: &'static str) {
        self.group = group;
    }

    /// Measures a row with `body`, if the row is requested. Only a request to stop is an error.
    pub(super) fn row(
        &self,
        name: impl Into<String>,
        bytes: Option<u64>,
        body: impl FnOnce() -> Result<Timing>,
    ) -> Result<()> {
        let name = name.into();
        if !self.job.wants(self.group, &name) {
            return Ok(());
        }
        if stopped() {
            return Err(RowError::Stopped);
        }
        tell(&Event::Begin(self.group.to_owned(), name.clone()));
        let outcome = match body() {
            Ok(timing) => Outcome::Measured { timing, reference: None },
            Err(RowError::Absent(why)) => Outcome::Absent { why },
            Err(RowError::Failed(why)) => Outcome::Failed { why },
            Err(RowError::Stopped) => return Err(RowError::Stopped),
        };
        tell(&Event::Row(Row { group: self.group.to_owned(), name, bytes, outcome }));
        Ok(())
    }

    /// Measures an operation that `body` runs so many times, at most `most` times.
    pub(super) fn time(
        &self,
        most: u64,
        mut body: impl FnMut(u64) -> Result<Duration>,
    ) -> Result<Timing> {
        let body = |times| if stopped() { Err(RowError::Stopped) } else { body(times) };
        measure(self.job.seconds, most, body)
    }

    /// Measures `call`.
    pub(super) fn repeat<'h>(
        &self,
        most: u64,
        mut call: impl FnMut() -> CallResult<'h>,
    ) -> Result<Timing> {
        self.time(most, |times| repeated(times, &mut call))
    }
}

impl From<CallError<'_>> for RowError {
    fn from(failure: CallError<'_>) -> Self {
        match &failure {
            CallError::Missing(table, slot) if *table == tables::STREAM_EXECUTOR.0 => {
                Self::Absent(format!("not implemented: `{slot}` is null"))
            }
            CallError::Missing(table, slot) => Self::Absent(match tables::missing(table, slot) {
                Missing::Default(what) => format!("not implemented: TensorFlow {what}"),
                _ => "not implemented: TensorFlow returns UNIMPLEMENTED".to_owned(),
            }),
            CallError::Status(status) if status.code() == TF_UNIMPLEMENTED => {
                Self::Absent("not implemented: the plugin returns UNIMPLEMENTED".to_owned())
            }
            _ => Self::Failed(failure.to_string()),
        }
    }
}

/// Calls `call` so many times, and returns how long that took.
pub(super) fn repeated<'h>(
    times: u64,
    mut call: impl FnMut() -> CallResult<'h>,
) -> Result<Duration> {
    let start = Instant::now();
    for _ in 0..times {
        call()?;
    }
    Ok(start.elapsed())
}
