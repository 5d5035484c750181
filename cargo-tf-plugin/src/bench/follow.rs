//! The measuring processes: starts them, reads their reports, and goes on after a crash.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bench::job::{Event, Job, Outcome, Row};
use crate::probe::{self, Watched, last_lines, quoted, signal_name, supervise};

/// How long a process may take to remove what it has created.
const REMOVING: Duration = Duration::from_secs(60);

/// The least time for a process up to its first row, unless it only removes: TensorFlow's import is not a row.
const STARTING: Duration = Duration::from_secs(60);

/// How many lines of a process's own output a message shows.
const SHOWN_LINES: usize = 12;

/// The results of the processes of a job.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) rows: Vec<Row>,
    /// The position of the directory that was used, among those that the job names.
    pub(crate) directory: Option<usize>,
    /// Why some rows are missing.
    pub(crate) problem: Option<String>,
}

pub(crate) struct Child<'c> {
    /// The program, with the arguments before the job and the file for the report.
    pub(crate) program: &'c dyn Fn() -> Command,
    /// The program that removes what a crashed process has left.
    pub(crate) cleaner: &'c dyn Fn() -> Command,
    pub(crate) limit: Duration,
    pub(crate) interrupted: &'c AtomicBool,
    /// Called with the group and the name of each row that begins.
    pub(crate) begins: &'c dyn Fn(&str, &str),
}

impl Child<'_> {
    /// Does the job. If a row ends the process, a new one does the rows behind it. What could not
    /// be removed is added to `left`, with the reason, even without a result.
    pub(crate) fn run(&self, mut job: Job, left: &mut Vec<(String, String)>) -> Result<Part> {
        let mut part = Part::default();
        let wanted = job.directories.clone();
        for crashes in 1.. {
            let mut state = State::default();
            let (ended, limit) = self.once(&job, &mut |event| state.hear(event))?;
            let measured = !state.rows.is_empty();
            part.rows.append(&mut state.rows);
            left.append(&mut state.left);
            let taken = state.directories.last();
            let position = taken.and_then(|taken| wanted.iter().position(|one| one == taken));
            part.directory = part.directory.or(position);
            if self.interrupted.load(Ordering::Relaxed) {
                if !state.stopped {
                    left.append(&mut self.clean(&job, &state.directories));
                }
                bail!("interrupted");
            }
            if state.done {
                break;
            }
            if let Some(problem) = state.problem {
                let problem = refusal(&problem, &state.refused);
                if part.rows.is_empty() {
                    bail!(problem);
                }
                part.problem = Some(problem);
                break;
            }

            // The process has crashed or was ended.
            left.append(&mut self.clean(&job, &state.directories));
            let (how, said) = (how(&ended, limit), quoted(&last_lines(&ended.output, SHOWN_LINES)));
            let Some((group, name)) = state.begun else {
                if part.rows.is_empty() {
                    bail!("the process was {how} before anything was measured{said}");
                }
                // Otherwise it ended while it removed what it had created, which was tried again above.
                if !measured {
                    part.problem = Some(format!("a process was {how} before its first row{said}"));
                }
                break;
            };
            let why = format!("the process was {how}{said}");
            part.rows.push(Row { group, name, bytes: None, outcome: Outcome::Failed { why } });
            job.skip = part.rows.iter().map(|row| row.name.clone()).collect();
            if let Some(position) = part.directory {
                // Uses another directory: the one that was left cannot be created.
                job.directories = vec![format!("{}-{crashes}", wanted[position])];
            }
        }
        Ok(part)
    }

    /// Runs one process to its end. Returns the end, and how long the process could at last go without an event.
    fn once(&self, job: &Job, hear: &mut dyn FnMut(Line)) -> Result<(Watched, Duration)> {
        let scratch = tempfile::tempdir().context("cannot make a scratch directory")?;
        let report = scratch.path().join("report");
        let mut command = (self.program)();
        // The process ends with this one, however that ends.
        command.arg(serde_json::to_string(job)?).arg(&report).stdin(Stdio::piped());
        let mut leash = None;
        let mut read = 0;
        let (mut heard, mut limit) = (Instant::now(), self.limit);
        let (mut begun, mut told) = (job.clean, false);
        let mut allowed = limit;
        let ended = supervise(&mut command, |child| {
            leash = leash.take().or_else(|| child.stdin.take());
            for line in more(&report, &mut read) {
                heard = Instant::now();
                if let Line::Bench(Event::Begin(group, name)) = &line {
                    begun = true;
                    (self.begins)(group, name);
                }
                hear(line);
            }
            // Ctrl-C reaches only this process, which then tells the other one.
            if !told && self.interrupted.load(Ordering::Relaxed) {
                (leash, told) = (None, true);
                heard = Instant::now();
                limit = REMOVING.min(self.limit);
            }
            allowed = if begun || told { limit } else { limit.max(STARTING) };
            heard.elapsed() > allowed
        })?;
        Ok((ended, allowed))
    }

    /// Removes what a process has left, in a new process. Returns what could not be removed, and why.
    fn clean(&self, job: &Job, directories: &[String]) -> Vec<(String, String)> {
        if directories.is_empty() {
            return Vec::new();
        }
        // This is short, and it is what the user is waiting for.
        let never = AtomicBool::new(false);
        let child = Child {
            program: self.cleaner,
            cleaner: self.cleaner,
            limit: REMOVING.min(self.limit),
            interrupted: &never,
            begins: &|_, _| {},
        };
        let job = Job { directories: directories.to_vec(), clean: true, ..job.clone() };
        let mut state = State::default();
        let ended = child.once(&job, &mut |event| state.hear(event));
        if !state.done && state.left.is_empty() {
            let why = state.problem.unwrap_or_else(|| match ended {
                Ok((ended, limit)) => format!("the process was {}", how(&ended, limit)),
                Err(error) => format!("{error:#}"),
            });
            state.left.extend(directories.iter().map(|directory| (directory.clone(), why.clone())));
        }
        state.left
    }
}

/// The events of one process.
#[derive(Debug, Default)]
struct State {
    rows: Vec<Row>,
    /// The row that has begun and not ended.
    begun: Option<(String, String)>,
    /// The directories that were created; the last one is used.
    directories: Vec<String>,
    refused: Vec<(String, String)>,
    left: Vec<(String, String)>,
    problem: Option<String>,
    stopped: bool,
    done: bool,
}

impl State {
    fn hear(&mut self, line: Line) {
        match line {
            Line::Bench(Event::Directory(directory)) => self.directories.push(directory),
            Line::Bench(Event::Refused(directory, why)) => {
                self.directories.retain(|made| *made != directory);
                self.refused.push((directory, why));
            }
            Line::Bench(Event::Begin(group, name)) => self.begun = Some((group, name)),
            Line::Bench(Event::Row(row)) => {
                self.begun = None;
                self.rows.push(row);
            }
            Line::Bench(Event::Problem(problem)) => self.problem = Some(problem),
            Line::Bench(Event::Left(directory, why)) => self.left.push((directory, why)),
            Line::Bench(Event::Stopped) => self.stopped = true,
            Line::Bench(Event::Done) => self.done = true,
            Line::Probe(probe::Event::Unavailable(function)) => {
                self.problem = Some(format!(
                    "the plugin calls `{function}`, which takes a running TensorFlow: its C tables cannot be measured alone"
                ));
            }
            Line::Probe(_) => {}
        }
    }
}

/// A line of the report: an event of the process, or of the functions that replace TensorFlow's.
#[derive(Debug, serde::Deserialize)]
#[serde(untagged)]
enum Line {
    Bench(Event),
    Probe(probe::Event),
}

/// Returns the complete lines of a growing file, behind the `read` bytes that were read before.
fn more(path: &Path, read: &mut usize) -> Vec<Line> {
    let text = fs::read(path).unwrap_or_default();
    let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines = text[end.min(*read)..end].split(|byte| *byte == b'\n');
    let lines = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    *read = end.max(*read);
    lines
}

/// Formats a problem, with the directories that could not be used and what to do about that.
fn refusal(problem: &str, refused: &[(String, String)]) -> String {
    let Some((first, _)) = refused.first() else { return problem.to_owned() };
    let scheme = first.split_once("://").map_or("scheme", |(scheme, _)| scheme);
    let tried = refused.iter().map(|(directory, why)| format!("\n  {directory}: {why}"));
    format!(
        "{problem}:{}\nname an existing directory that you may write to, as in `--root {scheme}://host/directory`",
        tried.collect::<String>()
    )
}

/// Says how a process ended, behind "was".
fn how(ended: &Watched, limit: Duration) -> String {
    match (ended.status, ended.status.and_then(|status| status.signal())) {
        (None, _) if ended.flooded => "ended, as it did not stop talking".to_owned(),
        (None, _) => format!("ended after {} s without an answer", limit.as_secs()),
        (_, Some(signal)) => format!("killed by {}", signal_name(signal)),
        (Some(status), None) => format!("ended with status {}", status.code().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_line_is_read_once_and_only_when_it_is_complete() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let mut read = 0;
        file.write_all(b"\"Done\"\n{\"Begin\":[\"a\",").expect("written");
        assert!(matches!(more(file.path(), &mut read)[..], [Line::Bench(Event::Done)]));
        assert!(more(file.path(), &mut read).is_empty());
        file.write_all(b"\"b\"]}\n{\"Unavailable\":\"TF_Dim\"}\n").expect("written");
        let lines = more(file.path(), &mut read);
        assert!(
            matches!(&lines[..], [Line::Bench(Event::Begin(a, b)), Line::Probe(probe::Event::Unavailable(name))]
                if a == "a" && b == "b" && name == "TF_Dim"),
            "{lines:?}"
        );
    }
}
