//! How processes end that have used S3, and whether a forked child can.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::clients::{Client, Clients};
use crate::store::Store;

/// How long a process may take to import, read and fork.
const DEADLINE: Duration = Duration::from_secs(120);
/// How long it may take to leave.
const LEAVE: Duration = Duration::from_secs(30);

/// What became of a process.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In words.
    pub text: String,
    /// How long it took.
    pub seconds: f64,
    /// Whether it is as it should be.
    pub good: bool,
}

/// The status with which a process leaves that has read and written, and how long it takes to.
///
/// # Errors
/// When it does not get so far.
pub fn exit(clients: &Clients, client: Client, store: &Store) -> Result<Outcome> {
    let (_, status, seconds) = run(clients, client, "exit", store)?;
    let good = status.as_deref() == Some("exit status: 0");
    Ok(Outcome { text: status.unwrap_or_else(|| "hangs".to_owned()), seconds, good })
}

/// What a forked child reads after its parent has read.
///
/// # Errors
/// When the parent does not get so far.
pub fn fork(clients: &Clients, client: Client, store: &Store) -> Result<Outcome> {
    let (answer, ..) = run(clients, client, "fork", store)?;
    let text = answer["child"].as_str().context("no outcome")?.to_owned();
    let good = text == "right";
    Ok(Outcome { text, seconds: answer["seconds"].as_f64().context("no seconds")?, good })
}

/// The line that a probe prints, the status it ends with, if it does, and how long after the line.
fn run(
    clients: &Clients,
    client: Client,
    probe: &str,
    store: &Store,
) -> Result<(Value, Option<String>, f64)> {
    let mut command = clients.command(client, ("probe.py", probe), store, Path::new(""))?;
    // A shell that reports a signal as Python's own parent would see it is not needed: the status has it.
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let stdout = process.stdout.take().context("no pipe to the Python process")?;
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let line = BufReader::new(stdout).lines().next().and_then(Result::ok);
        // Nobody waits any more after the deadline.
        let _ = sender.send(line);
    });
    let line = lines.recv_timeout(DEADLINE).ok().flatten();
    let said = Instant::now();
    let status = loop {
        if let Some(status) = process.try_wait()? {
            break Some(status.to_string());
        }
        if line.is_none() || said.elapsed() > LEAVE {
            process.kill()?;
            process.wait()?;
            break None;
        }
        thread::sleep(Duration::from_millis(2));
    };
    let Some(line) = line else {
        bail!("the probe `{probe}` of {} ended without an answer ({status:?})", client.name());
    };
    Ok((serde_json::from_str(&line)?, status, said.elapsed().as_secs_f64()))
}
