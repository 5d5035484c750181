//! The process that measures a plugin's tables: it loads the plugin as TensorFlow would and calls what it has filled in.

mod device;
mod filesystem;

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cargo_tf_plugin::bench::{Event, Job, Outcome, Row, Timing, measure};
use cargo_tf_plugin::host::{Done, Failure, Library};
use cargo_tf_plugin::tables::{self, Missing};
use rustix::process::{Resource, Rlimit, setrlimit};
use tf_fs_sys::TF_UNIMPLEMENTED;

use super::{REPORT, leave};

/// Whether the command that has started this process is gone, or wants it to end.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Why an operation was not measured.
#[derive(Debug)]
pub(super) enum Why {
    /// The plugin does not have it.
    Absent(String),
    /// It has answered with an error.
    Failed(String),
    /// The command has ended.
    Stopped,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(why) | Self::Failed(why) => f.write_str(why),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

pub(super) type Result<T> = std::result::Result<T, Why>;

/// Does the job, and writes what comes of it to the file `report`.
pub(crate) fn run(job: &OsStr, report: &OsStr) -> ExitCode {
    let job = job.to_str().and_then(|job| serde_json::from_str::<Job>(job).ok());
    let (Some(job), Ok(report)) = (job, File::create(Path::new(report))) else {
        eprintln!("error: this is started by `cargo tf-plugin bench` alone");
        return ExitCode::FAILURE;
    };
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let _ = setrlimit(Resource::Core, none);
    let _ = REPORT.set(Mutex::new(report));
    thread::spawn(|| {
        // It ends with the command, whatever ends that.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        STOPPED.store(true, Ordering::Relaxed);
        // A plugin that hangs does not look at that.
        thread::sleep(Duration::from_secs(60));
        leave();
    });
    let done =
        Library::open(&job.plugin).map_err(Why::Failed).and_then(|library| match &job.scheme {
            Some(scheme) => filesystem::run(library, scheme, &job),
            None => device::run(library, &job),
        });
    tell(&match done {
        Ok(()) => Event::Done,
        Err(Why::Stopped) => Event::Stopped,
        Err(why) => Event::Problem(why.to_string()),
    });
    leave()
}

fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

fn tell(event: &Event) {
    let (Some(report), Ok(mut line)) = (REPORT.get(), serde_json::to_vec(event)) else { return };
    line.push(b'\n');
    let _ = report.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
}

/// The rows of a plugin.
struct Rows<'j> {
    job: &'j Job,
    group: &'static str,
}

impl<'j> Rows<'j> {
    fn new(job: &'j Job) -> Self {
        Self { job, group: "" }
    }

    fn group(&mut self, group: &'static str) {
        self.group = group;
    }

    /// Measures a row, if it is wanted, by what `body` does; only a wish to stop is an error.
    fn row(
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
            return Err(Why::Stopped);
        }
        tell(&Event::Begin(self.group.to_owned(), name.clone()));
        let outcome = match body() {
            Ok(timing) => Outcome::Measured { timing, reference: None },
            Err(Why::Absent(why)) => Outcome::Absent { why },
            Err(Why::Failed(why)) => Outcome::Failed { why },
            Err(Why::Stopped) => return Err(Why::Stopped),
        };
        tell(&Event::Row(Row { group: self.group.to_owned(), name, bytes, outcome }));
        Ok(())
    }

    /// The times of an operation that `body` does so often, at most `most` times.
    fn time(&self, most: u64, body: impl FnMut(u64) -> Result<Duration>) -> Result<Timing> {
        measure(self.job.seconds, most, stopped, body)?.ok_or(Why::Stopped)
    }
}

impl From<Failure<'_>> for Why {
    fn from(failure: Failure<'_>) -> Self {
        match &failure {
            Failure::Missing(table, slot) if *table == tables::STREAM_EXECUTOR.0 => {
                Self::Absent(format!("not implemented: `{slot}` is null"))
            }
            Failure::Missing(table, slot) => Self::Absent(match tables::missing(table, slot) {
                Missing::Default(what) => format!("not implemented: TensorFlow {what}"),
                _ => "not implemented: TensorFlow returns UNIMPLEMENTED".to_owned(),
            }),
            Failure::Status(status) if status.code() == TF_UNIMPLEMENTED => {
                Self::Absent("not implemented: the plugin returns UNIMPLEMENTED".to_owned())
            }
            _ => Self::Failed(failure.to_string()),
        }
    }
}

/// How long `call` takes, done so often.
fn repeated<'h>(times: u64, mut call: impl FnMut() -> Done<'h>) -> Result<Duration> {
    let start = Instant::now();
    for _ in 0..times {
        call()?;
    }
    Ok(start.elapsed())
}
