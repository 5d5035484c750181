//! A contestant in a long-running Python process, which runs one operation after the other: see `benches/python/bench_worker.py`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// How long Python and the client may take to start.
const START: Duration = Duration::from_secs(180);

/// What a process says of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// On the clock.
    pub seconds: f64,
    /// That its threads ran on a CPU.
    pub cpu: f64,
    /// The peak of its memory above what it held after its imports.
    pub memory: u64,
    /// What the operation found.
    pub answer: i64,
}

/// A running process. Dropping it kills the process.
#[derive(Debug)]
pub struct Worker {
    process: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
    messages: PathBuf,
    /// What the client calls itself.
    pub version: String,
    /// When the last operation ended.
    pub idle_since: Instant,
    /// Whether it can run more; an operation that only says that it failed changes nothing.
    pub alive: bool,
}

impl Worker {
    /// Starts `command`; what it says on standard error goes into the file `messages`.
    ///
    /// # Errors
    /// When it does not start or the client cannot be imported.
    pub fn start(mut command: Command, messages: &Path) -> Result<Self> {
        let file = File::create(messages)
            .with_context(|| format!("cannot write {}", messages.display()))?;
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot run {}", command.get_program().display()))?;
        let (Some(requests), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            bail!("no pipes to the Python process");
        };
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut worker = Self {
            process,
            requests,
            answers,
            messages: messages.to_owned(),
            version: String::new(),
            idle_since: Instant::now(),
            alive: true,
        };
        let hello = worker.receive(START)?;
        worker.version = hello["version"].as_str().context("no version")?.to_owned();
        Ok(worker)
    }

    /// Runs an operation of the client.
    ///
    /// # Errors
    /// When it fails, or takes longer than `deadline`; then the process is gone.
    pub fn run(&mut self, run: &str, arguments: &Value, deadline: Duration) -> Result<Answer> {
        let line = json!({ "run": run, "arguments": arguments }).to_string();
        writeln!(self.requests, "{line}").with_context(|| self.gone())?;
        let answer = self.receive(deadline)?;
        self.idle_since = Instant::now();
        if let Some(error) = answer["error"].as_str() {
            bail!("{}", error.trim().lines().last().unwrap_or("no reason"));
        }
        let number = |name: &str| answer[name].as_f64().with_context(|| format!("no {name}"));
        Ok(Answer {
            seconds: number("seconds")?,
            cpu: number("cpu")?,
            memory: answer["memory"].as_u64().context("no memory")?,
            answer: answer["answer"].as_i64().context("no answer")?,
        })
    }

    fn receive(&mut self, deadline: Duration) -> Result<Value> {
        let answer = self.wait(deadline);
        self.alive = answer.is_ok();
        answer
    }

    fn wait(&mut self, deadline: Duration) -> Result<Value> {
        match self.answers.recv_timeout(deadline) {
            Ok(line) => serde_json::from_str(&line).context("no JSON from Python"),
            Err(RecvTimeoutError::Disconnected) => bail!(self.gone()),
            Err(RecvTimeoutError::Timeout) => {
                // It may be beyond helping itself; there is nothing to do if it has ended meanwhile.
                let _ = self.process.kill();
                bail!("no answer within {} s", deadline.as_secs())
            }
        }
    }

    fn gone(&mut self) -> String {
        let status = self.process.wait().map_or("unknown".to_owned(), |status| status.to_string());
        let said = fs::read_to_string(&self.messages).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        let last = lines[lines.len().saturating_sub(8)..].join("\n  | ");
        format!("the process has ended ({status}); its last messages:\n  | {last}")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
