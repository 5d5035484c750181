//! Processes with a time limit.

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The output of a process.
#[derive(Debug)]
pub struct Finished {
    what: String,
    status: Option<ExitStatus>,
    limit: Duration,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Runs a process to its end. When the limit is over, it and all that it started are killed, after a
/// moment for Python's `faulthandler` to say where it hangs.
pub fn run(mut command: Command, limit: Duration) -> Finished {
    let (stdout, stderr) = (output(), output());
    let write_to = |file: &File| Stdio::from(file.try_clone().expect("one more handle"));
    let what = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(write_to(&stdout))
        .stderr(write_to(&stderr))
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run {what}: {error}"));
    let group = Pid::from_child(&child);
    // Leaves the process for `Child::wait`, so that its number stays taken until the group is killed.
    let wait = |limit| {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let end = Instant::now() + limit;
        loop {
            match waitid(WaitId::Pid(group), options).expect("a child can be waited for") {
                Some(_) => return true,
                None if Instant::now() >= end => return false,
                None => thread::sleep(Duration::from_millis(10)),
            }
        }
    };
    let in_time = wait(limit);
    if !in_time {
        // May fail because the process ended just now.
        let _ = kill_process(group, Signal::ABORT);
        wait(Duration::from_secs(3));
    }
    // Also what a process that ended in time has left behind: no test has background work.
    let _ = kill_process_group(group, Signal::KILL);
    let status = child.wait().expect("a killed child ends");
    let status = in_time.then_some(status);
    Finished::new(what, status, limit, [stdout, stderr])
}

/// A file, because a pipe stays open as long as any grandchild lives.
pub(crate) fn output() -> File {
    tempfile::tempfile().expect("a file for the output")
}

impl Finished {
    /// Of a process with this status, or none if the limit was over, and the files with its output.
    pub(crate) fn new(
        what: String,
        status: Option<ExitStatus>,
        limit: Duration,
        outputs: [File; 2],
    ) -> Self {
        let [stdout, stderr] = outputs.map(|mut file| {
            let mut content = Vec::new();
            let read = file.rewind().and_then(|()| file.read_to_end(&mut content));
            read.expect("the file can be read");
            String::from_utf8_lossy(&content).into_owned()
        });
        Self { what, status, limit, stdout, stderr }
    }

    /// Whether it ended by itself with exit status 0.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The signal that ended it, if one did within the limit.
    pub fn signal(&self) -> Option<i32> {
        self.status.and_then(|status| status.signal())
    }

    /// The same, if it ended with exit status 0 within the limit.
    ///
    /// # Panics
    /// Otherwise, with all output.
    #[track_caller]
    pub fn success(self) -> Self {
        match self.status {
            Some(status) if status.success() => self,
            Some(status) => self.fail(&format!("it ended with {status}")),
            None => self.fail(&format!("it did not end within {} s", self.limit.as_secs())),
        }
    }

    /// Returns the steps of a script: the rest of each line that begins with `ok`.
    pub fn done(&self) -> Vec<&str> {
        self.stdout.lines().filter_map(|line| line.strip_prefix("ok ")).collect()
    }

    /// Fails the test unless the script has done these, each once. A sweep has its own order, and reports more of each.
    #[track_caller]
    pub fn must_have_done<S: AsRef<str>>(&self, steps: &[S]) {
        let (mut done, mut steps) = (self.done(), Vec::from_iter(steps.iter().map(AsRef::as_ref)));
        done.sort_unstable();
        steps.sort_unstable();
        let is_one =
            |(done, step): (&&str, &&str)| format!("{done} ").starts_with(&format!("{step} "));
        if done.len() != steps.len() || !done.iter().zip(&steps).all(is_one) {
            self.fail(&format!("{done:?} was done, not {steps:?}"));
        }
    }

    /// Fails the test unless this is the last line.
    #[track_caller]
    pub fn must_end_with(&self, line: &str) {
        if self.stdout.lines().last() != Some(line) {
            self.fail(&format!("the last line is not {line:?}"));
        }
    }

    /// Fails the test, with all output.
    #[track_caller]
    pub fn fail(&self, why: &str) -> ! {
        panic!(
            "{why}\ncommand: {}\nstandard output:\n{}\nstandard error:\n{}",
            self.what, self.stdout, self.stderr
        )
    }
}
