//! The process that measures a plugin's tables: it loads the plugin as TensorFlow would and calls their functions.

mod device;
mod filesystem;
mod rows;
mod scratch;

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use cargo_tf_plugin::bench::{Event, Job};
use cargo_tf_plugin::host::Library;

use self::rows::{RowError, STOPPED};
use super::events::{begin, leave, tell};

/// Does the job, and writes the results to the file `report`.
pub(crate) fn run(job: &OsStr, report: &OsStr) -> ExitCode {
    let job = job.to_str().and_then(|job| serde_json::from_str::<Job>(job).ok());
    let (Some(job), Ok(())) = (job, begin(report)) else {
        eprintln!("error: this is started by `cargo tf-plugin bench` alone");
        return ExitCode::FAILURE;
    };
    thread::spawn(|| {
        // The process ends with the command, however that ends.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        STOPPED.store(true, Ordering::Relaxed);
        // A plugin that hangs never checks that flag.
        thread::sleep(Duration::from_secs(60));
        leave();
    });
    let done = Library::open(&job.plugin).map_err(RowError::Failed).and_then(|library| match &job
        .scheme
    {
        Some(scheme) => filesystem::run(library, scheme, &job),
        None => device::run(library, &job),
    });
    tell(&match done {
        Ok(()) => Event::Done,
        Err(RowError::Stopped) => Event::Stopped,
        Err(why) => Event::Problem(why.to_string()),
    });
    leave()
}
