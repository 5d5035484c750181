//! Runs cases in a process that has loaded a real TensorFlow, and reads their results.

use super::case::{CaseResult, TensorFlowCase};
use super::program::Program;
use crate::abi::processes::kill_group;
use crate::deviation::Deviation;
use crate::outcome::Outcome;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use std::{env, fs, iter, thread};

/// How many of the last lines of a process are shown, to explain why it ended.
const SHOWN_LINES: usize = 30;

/// How much longer than its limit a process may take, to report where it is: Python ends a case by itself.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(5);

/// How often to check whether a process is still running.
const LOOK: Duration = Duration::from_millis(50);

/// The program that loads TensorFlow, and how it is run.
#[derive(Debug)]
pub(super) struct Process {
    pub program: Program,
    /// The plugin.
    pub library: PathBuf,
    pub environment: Vec<(String, String)>,
    /// The time limit of a case.
    pub limit: Duration,
    /// The time limit before the first case and after the last one, if it was set.
    pub start_limit: Option<Duration>,
}

/// The output of a process.
struct Said {
    lines: Vec<Value>,
    status: ExitStatus,
    /// The other lines that it wrote.
    messages: Vec<String>,
    /// If it had to be ended: its state, and its time limit.
    hung: Option<(State, Duration)>,
}

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// TensorFlow and the plugin are loaded.
    Starts,
    Works,
    /// All cases have been run.
    Ends,
}

impl Said {
    fn end(&self) -> String {
        let lines = &self.messages;
        let shown = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
        let shown: String = shown.iter().map(|line| format!("\n  | {line}")).collect();
        let Some((state, limit)) = self.hung else { return format!("{}{shown}", self.status) };
        let (what, advice) = match state {
            State::Starts => (
                "it hangs while TensorFlow and the plugin are loaded, before the first case: nothing in",
                "; look at what the plugin does in its entry points and when it is made (`cargo tf-plugin check` \
                 loads it without TensorFlow), or give it more time with `--timeout` of `cargo tf-plugin test`",
            ),
            State::Works => ("it hangs: not a word in", ""),
            State::Ends => (
                "it hangs at its end, after the last case: it is still there after",
                "; look at threads of the plugin that are waited for, and at what is done when the process exits",
            ),
        };
        let stack = if shown.is_empty() { "" } else { "; where it was:" };
        format!("{what} {} s{advice}{stack}{shown}", limit.as_secs_f32())
    }
}

impl Process {
    /// Returns how long TensorFlow may take to start, and to end: the limit that was set, else that
    /// of `cargo tf-plugin test`, else two minutes or the limit of a case, if that is more.
    fn start_limit(&self) -> Duration {
        let asked = || env::var("TF_PLUGIN_TEST_TIMEOUT").ok()?.parse().ok();
        let asked = self.start_limit.or_else(|| asked().map(Duration::from_secs));
        asked.unwrap_or_else(|| Duration::from_secs(120).max(self.limit))
    }

    /// Starts the program; Python runs `text`, and loads `library` when it imports TensorFlow.
    #[track_caller]
    fn start(&self, text: &str, library: Option<&Path>, mut request: Value) -> Said {
        request["limit"] = json!(self.limit.as_secs_f64());
        request["start_limit"] = json!(self.start_limit().as_secs_f64());
        // For temporary files, also those of a process that is killed.
        let scratch = env::temp_dir().join(format!("tf-plugin-cases-{:x}", fastrand::u64(..)));
        let mut command = self.program.command(library);
        command
            .env("TMPDIR", &scratch)
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // To end it together with the processes that it starts.
            .process_group(0);
        let mut child = fs::create_dir_all(&scratch)
            .and_then(|()| command.spawn())
            .inspect_err(|_| drop(fs::remove_dir(&scratch)))
            .unwrap_or_else(|error| panic!("cannot run {}: {error}", self.program));
        // All three at once: a pipe that nobody reads is soon full. Nobody waits for the threads: a
        // process that was left behind may keep the pipes open forever.
        let (stdin, input) = (child.stdin.take(), self.program.input(text, &request));
        thread::spawn(move || {
            if let Some(mut stdin) = stdin {
                for part in input {
                    // A process that ends early reports why on the other pipes.
                    let _ = stdin.write_all(part.as_bytes());
                }
            }
        });
        let message = |line: &[u8]| Some(String::from_utf8_lossy(line).into_owned());
        let messages = read_lines(child.stderr.take(), message);
        let object = |line: &[u8]| serde_json::from_slice(line).ok().filter(Value::is_object);
        let heard = read_lines(child.stdout.take(), object);
        let (lines, status, hung) = follow(&mut child, &heard, self);
        let end = Instant::now() + LAST_WORDS;
        let rest = || messages.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
        let _ = fs::remove_dir_all(scratch);
        Said { lines, status, messages: iter::from_fn(rest).collect(), hung }
    }

    /// Runs the cases, except those that are left out for a reason.
    #[track_caller]
    pub(super) fn run(
        &self,
        text: &str,
        settings: &Value,
        cases: &[(&'static TensorFlowCase, Option<String>)],
    ) -> Vec<CaseResult> {
        let mut results: Vec<CaseResult> = Vec::new();
        while results.len() < cases.len() {
            let rest = &cases[results.len()..];
            // This map loses the order, so the request also has it.
            let listed: serde_json::Map<String, Value> =
                rest.iter().map(|(case, reason)| (case.name.to_owned(), json!(reason))).collect();
            let order: Vec<_> = rest.iter().map(|(case, _)| case.name).collect();
            let request = json!({ "jobs": [settings], "cases": listed, "order": order });
            let output = self.start(text, Some(&self.library), request);
            let before = results.len();
            results.extend(results_in(&output.lines, 0, rest.iter().map(|(case, _)| *case)));
            if output.lines.iter().any(|line| line["done"] == true) {
                if let Some((case, _)) = cases.get(results.len()) {
                    // For example, if a plugin wrote in the middle of the case's line.
                    results.push(missing_result(case, None));
                    continue;
                }
                if let Some(last) = results.last_mut().filter(|_| !output.status.success()) {
                    let what = match output.hung {
                        None => "TensorFlow's process does not end well after the last case",
                        Some(_) => "TensorFlow's process does not end after the last case",
                    };
                    let deviation = Deviation::new(what).because(output.end());
                    last.outcome = Outcome::Failed(vec![deviation]);
                }
                break;
            }
            let begun = |case: &TensorFlowCase| {
                output
                    .lines
                    .iter()
                    .any(|line| line["case"] == case.name && line["outcome"] == "begun")
            };
            match cases.get(results.len()) {
                Some((case, _)) if begun(case) => {
                    results.push(missing_result(case, Some(&output.end())))
                }
                _ => {
                    let broken = output.lines.iter().find_map(|line| line["broken"].as_str());
                    if let Program::Test { name, .. } = &self.program {
                        assert!(
                            !output.status.success() || !output.lines.is_empty(),
                            "no test `{name}` of this executable calls `InTensorFlow::work()`; write one, or name the \
                             one that does with its modules"
                        );
                    }
                    assert!(
                        broken.is_none() && results.len() > before,
                        "the cases cannot be run with {}: {}",
                        self.program,
                        broken.map_or_else(|| output.end(), str::to_owned)
                    );
                }
            }
        }
        results
    }

    /// Runs the cases of each job in its own process.
    #[track_caller]
    pub(super) fn run_each<'c>(
        &self,
        text: &str,
        settings: &[Value],
        cases: impl Iterator<Item = &'c [&'static TensorFlowCase]>,
    ) -> Vec<Vec<CaseResult>> {
        let output = self.start(text, None, json!({ "jobs": settings, "cases": {} }));
        assert!(output.status.success(), "the cases cannot be run: {}", output.end());
        let results = cases.enumerate().map(|(number, cases)| {
            let told = |key: &str| {
                let mut of_job = output.lines.iter().filter(|line| line["job"] == number);
                of_job.find_map(|line| line[key].as_str())
            };
            let mut results = results_in(&output.lines, number, cases.iter().copied());
            if let Some(case) = cases.get(results.len()) {
                let end = told("killed").or_else(|| told("broken")).unwrap_or("no answer");
                results.push(missing_result(case, Some(end)));
            }
            results
        });
        results.collect()
    }
}

/// Reads the lines of a pipe in a thread, and sends what `make` makes of them.
fn read_lines<T: Send + 'static>(
    pipe: Option<impl Read + Send + 'static>,
    make: impl Fn(&[u8]) -> Option<T> + Send + 'static,
) -> Receiver<T> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let read = pipe.into_iter().flat_map(|pipe| BufReader::new(pipe).split(b'\n'));
        for made in read.map_while(Result::ok).filter_map(|line| make(&line)) {
            let _ = sender.send(made);
        }
    });
    receiver
}

/// Waits for a process, and ends it when it has written nothing for too long.
#[track_caller]
fn follow(
    child: &mut Child,
    heard: &Receiver<Value>,
    process: &Process,
) -> (Vec<Value>, ExitStatus, Option<(State, Duration)>) {
    let (mut lines, mut state, mut since) = (Vec::new(), State::Starts, Instant::now());
    let (mut ended, mut hung) = (None, None);
    while ended.is_none() || since.elapsed() <= LAST_WORDS {
        match heard.recv_timeout(LOOK) {
            Ok(line) => {
                let done = Value::Bool(true) == line["done"];
                (state, since) = (if done { State::Ends } else { State::Works }, Instant::now());
                lines.push(line);
                continue;
            }
            // Every process that could write has ended, or has closed the pipe.
            Err(RecvTimeoutError::Disconnected) if ended.is_some() => break,
            Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let limit = if state == State::Works { process.limit } else { process.start_limit() };
        if ended.is_none() {
            ended = child.try_wait().unwrap_or_else(|error| panic!("cannot wait for it: {error}"));
            if ended.is_none() && since.elapsed() > limit + LAST_WORDS {
                hung = Some((state, limit));
            }
            if ended.is_some() || hung.is_some() {
                // Also kills the processes that it has left behind, which may hold the pipes.
                kill_group(child);
                since = Instant::now();
            }
            if hung.is_some() {
                let killed = child.wait();
                ended = Some(killed.unwrap_or_else(|error| panic!("cannot wait for it: {error}")));
            }
        }
    }
    let status = ended.unwrap_or_default();
    (lines, status, hung)
}

/// Returns the results of a job for these cases, up to the first case that has none.
fn results_in(
    lines: &[Value],
    job: usize,
    cases: impl Iterator<Item = &'static TensorFlowCase>,
) -> Vec<CaseResult> {
    let one = |case: &'static TensorFlowCase| {
        let is_end = |line: &&Value| {
            line["job"] == job && line["case"] == case.name && line["outcome"] != "begun"
        };
        Some(result_of(case, lines.iter().find(is_end)?))
    };
    cases.map_while(one).collect()
}

/// Returns the result of a case that has not reported how it ended: `why` if that is known.
fn missing_result(case: &'static TensorFlowCase, why: Option<&str>) -> CaseResult {
    let deviation = match why {
        Some(end) => Deviation::new("TensorFlow's process ends in the middle of the case")
            .because(end.to_owned()),
        None => Deviation::new("the case has not said how it ended"),
    };
    CaseResult { case, outcome: Outcome::Failed(vec![deviation]), took: Duration::ZERO }
}

fn result_of(case: &'static TensorFlowCase, line: &Value) -> CaseResult {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let reason = || text(&line["reason"]).unwrap_or_default();
    let outcome = match line["outcome"].as_str() {
        Some("passed") => Outcome::Passed,
        Some("skipped") => Outcome::Skipped(reason()),
        Some("left out") => Outcome::Skipped(format!("left out: {}", reason())),
        _ => {
            let told = line["deviations"].as_array().map(Vec::as_slice).unwrap_or_default();
            let deviations = told.iter().map(|one| {
                let mut deviation = Deviation::new(text(&one["what"]).unwrap_or_default());
                deviation.wanted = text(&one["wanted"]);
                deviation.got = text(&one["got"]);
                deviation.detail = text(&one["detail"]);
                deviation
            });
            Outcome::Failed(deviations.collect())
        }
    };
    let took = Duration::try_from_secs_f64(line["seconds"].as_f64().unwrap_or_default());
    CaseResult { case, outcome, took: took.unwrap_or_default() }
}
