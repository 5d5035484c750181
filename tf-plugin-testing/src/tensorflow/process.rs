//! Runs cases in a process that has a real TensorFlow, and hears their answers.

use super::case::{Answer, TensorFlowCase};
use super::program::Program;
use crate::abi::processes::kill_group;
use crate::deviation::Deviation;
use crate::verdict::Verdict;
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::iter;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The last lines of a process that say why it ended.
const SHOWN_LINES: usize = 30;

/// A process that is over its limit gets so much more to say where it is: Python ends a case by itself.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(5);

/// How often it is looked whether a process is still there.
const LOOK: Duration = Duration::from_millis(50);

/// What has TensorFlow, and how it is run.
#[derive(Debug)]
pub(super) struct Process {
    pub program: Program,
    /// The plugin.
    pub library: PathBuf,
    pub environment: Vec<(String, String)>,
    /// Of a case.
    pub limit: Duration,
    /// Of what comes before the first case, and after the last one, if that is said.
    pub start_limit: Option<Duration>,
}

/// A directory that vanishes with the value.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tf-plugin-cases-{}-{number}", std::process::id());
        let path = env::temp_dir().join(name);
        fs::create_dir_all(&path)
            .unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays is in the system's directory for such things.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a process said.
struct Said {
    lines: Vec<Value>,
    status: ExitStatus,
    /// The lines that it wrote beside.
    messages: Vec<String>,
    /// In which state it was ended, if it had to be, and after how long.
    hung: Option<(State, Duration)>,
}

/// What a process is busy with.
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
        let what = match state {
            State::Starts => {
                "it hangs while TensorFlow and the plugin are loaded, before the first case: nothing in"
            }
            State::Works => "it hangs: not a word in",
            State::Ends => "it hangs at its end, after the last case: it is still there after",
        };
        let advice = match state {
            State::Starts => {
                "; look at what the plugin does in its entry points and when it is made (`cargo tf-plugin check` \
                 loads it without TensorFlow), or give it more time with `--timeout` of `cargo tf-plugin test`"
            }
            State::Works => "",
            State::Ends => {
                "; look at threads of the plugin that are waited for, and at what is done when the process exits"
            }
        };
        let stack = if shown.is_empty() { "" } else { "; where it was:" };
        format!("{what} {} s{advice}{stack}{shown}", limit.as_secs_f32())
    }
}

impl Process {
    /// How long TensorFlow may take to start, and to end: if nothing is said, what `cargo tf-plugin test` says, else two
    /// minutes, and no less than a case.
    fn start_limit(&self) -> Duration {
        let asked = || env::var("TF_PLUGIN_TEST_TIMEOUT").ok()?.parse().ok();
        let asked = self.start_limit.or_else(|| asked().map(Duration::from_secs));
        asked.unwrap_or_else(|| Duration::from_secs(120).max(self.limit))
    }

    /// Starts the program; Python runs `text`, and loads this library at import.
    #[track_caller]
    fn start(&self, text: &str, library: Option<&Path>, mut request: Value) -> Said {
        request["limit"] = json!(self.limit.as_secs_f64());
        request["start_limit"] = json!(self.start_limit().as_secs_f64());
        let mut command = self.program.command(library);
        command
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // To end it together with what it starts.
            .process_group(0);
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("cannot run {}: {error}", self.program);
        });
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // All three at once: each pipe is soon full. Nobody waits for the threads: something that the process has left
        // behind may keep the pipes forever.
        let input = self.program.input(text, &request);
        thread::spawn(move || {
            if let Some(mut stdin) = stdin {
                for text in input {
                    // A process that ends early says why on the other pipes.
                    let _ = stdin.write_all(text.as_bytes());
                }
            }
        });
        let (keep, messages) = channel();
        thread::spawn(move || {
            let lines = stderr.into_iter().flat_map(|pipe| BufReader::new(pipe).split(b'\n'));
            for line in lines.map_while(Result::ok) {
                let _ = keep.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        let (say, heard) = channel();
        thread::spawn(move || {
            let lines = stdout.into_iter().flat_map(|pipe| BufReader::new(pipe).split(b'\n'));
            for line in lines.map_while(Result::ok).filter(|line| line.starts_with(b"{")) {
                if let Ok(line) = serde_json::from_slice(&line) {
                    let _ = say.send(line);
                }
            }
        });
        let (lines, status, hung) = follow(&mut child, &heard, self);
        let end = Instant::now() + LAST_WORDS;
        let rest = || messages.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
        let messages = iter::from_fn(rest).collect();
        Said { lines, status, messages, hung }
    }

    /// Runs the cases, those that are left out for a reason excepted.
    #[track_caller]
    pub(super) fn run(
        &self,
        text: &str,
        settings: &Value,
        cases: &[(&'static TensorFlowCase, Option<String>)],
    ) -> Vec<Answer> {
        let mut answers: Vec<Answer> = Vec::new();
        while answers.len() < cases.len() {
            let rest = &cases[answers.len()..];
            // Its order is that of the request.
            let listed: serde_json::Map<String, Value> =
                rest.iter().map(|(case, reason)| (case.name.to_owned(), json!(reason))).collect();
            let order: Vec<_> = rest.iter().map(|(case, _)| case.name).collect();
            let request = json!({ "jobs": [settings], "cases": listed, "order": order });
            let said = self.start(text, Some(&self.library), request);
            let before = answers.len();
            for (case, _) in rest {
                let Some(line) = said.lines.iter().find(|line| is_end(line, 0, case)) else {
                    break;
                };
                answers.push(answer(case, line));
            }
            if said.lines.iter().any(|line| line["done"] == true) {
                if let Some((case, _)) = cases.get(answers.len()) {
                    // What a plugin has written in the middle of it, say.
                    answers.push(unanswered(case, None));
                    continue;
                }
                if let Some(last) = answers.last_mut().filter(|_| !said.status.success()) {
                    let what = match said.hung {
                        None => "TensorFlow's process does not end well after the last case",
                        Some(_) => "TensorFlow's process does not end after the last case",
                    };
                    let deviation = Deviation::new(what).because(said.end());
                    last.verdict = Verdict::Failed(vec![deviation]);
                }
                break;
            }
            let begun = |case: &TensorFlowCase| {
                said.lines
                    .iter()
                    .any(|line| line["case"] == case.name && line["outcome"] == "begun")
            };
            match cases.get(answers.len()) {
                Some((case, _)) if begun(case) => answers.push(unanswered(case, Some(&said.end()))),
                _ => {
                    let broken = said.lines.iter().find_map(|line| line["broken"].as_str());
                    if let Program::Test { name, .. } = &self.program {
                        assert!(
                            !said.status.success() || !said.lines.is_empty(),
                            "no test `{name}` of this executable calls `InTensorFlow::work()`; write one, or name the \
                             one that does with its modules"
                        );
                    }
                    assert!(
                        broken.is_none() && answers.len() > before,
                        "the cases cannot be run with {}: {}",
                        self.program,
                        broken.map_or_else(|| said.end(), str::to_owned)
                    );
                }
            }
        }
        answers
    }

    /// Runs the cases of each job in a process of its own.
    #[track_caller]
    pub(super) fn run_each<'c>(
        &self,
        text: &str,
        settings: &[Value],
        cases: impl Iterator<Item = &'c [&'static TensorFlowCase]>,
    ) -> Vec<Vec<Answer>> {
        let said = self.start(text, None, json!({ "jobs": settings, "cases": {} }));
        assert!(said.status.success(), "the cases cannot be run: {}", said.end());
        let answers = cases.enumerate().map(|(number, cases)| {
            let of_job = |line: &&Value| line["job"] == number;
            let lines: Vec<_> = said.lines.iter().filter(of_job).collect();
            let killed = lines.iter().find_map(|line| line["killed"].as_str());
            let broken = lines.iter().find_map(|line| line["broken"].as_str());
            let mut answers = Vec::new();
            for case in cases {
                match lines.iter().find(|line| is_end(line, number, case)) {
                    Some(line) => answers.push(answer(case, line)),
                    None => {
                        let end = killed.or(broken).unwrap_or("no answer");
                        answers.push(unanswered(case, Some(end)));
                        break;
                    }
                }
            }
            answers
        });
        answers.collect()
    }
}

/// Waits for a process, which is ended when nothing is heard of it for too long.
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
            // All that could speak has ended, or does not speak any more.
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
                // Also what it has left behind, which may hold the pipes.
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

fn is_end(line: &Value, job: usize, case: &TensorFlowCase) -> bool {
    line["job"] == job && line["case"] == case.name && line["outcome"] != "begun"
}

/// A case that has not said how it ended: `why`, if that is known.
fn unanswered(case: &'static TensorFlowCase, why: Option<&str>) -> Answer {
    let deviation = match why {
        Some(end) => Deviation::new("TensorFlow's process ends in the middle of the case")
            .because(end.to_owned()),
        None => Deviation::new("the case has not said how it ended"),
    };
    Answer { case, verdict: Verdict::Failed(vec![deviation]), took: Duration::ZERO }
}

fn answer(case: &'static TensorFlowCase, line: &Value) -> Answer {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let reason = || text(&line["reason"]).unwrap_or_default();
    let verdict = match line["outcome"].as_str() {
        Some("passed") => Verdict::Passed,
        Some("skipped") => Verdict::Skipped(reason()),
        Some("left out") => Verdict::Skipped(format!("left out: {}", reason())),
        _ => {
            let told = line["deviations"].as_array().map(Vec::as_slice).unwrap_or_default();
            let deviations = told.iter().map(|told| {
                let mut deviation = Deviation::new(text(&told["what"]).unwrap_or_default());
                deviation.wanted = text(&told["wanted"]);
                deviation.got = text(&told["got"]);
                deviation.detail = text(&told["detail"]);
                deviation
            });
            Verdict::Failed(deviations.collect())
        }
    };
    let took = Duration::try_from_secs_f64(line["seconds"].as_f64().unwrap_or_default());
    Answer { case, verdict, took: took.unwrap_or_default() }
}
