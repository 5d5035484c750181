//! Python processes that are forks of one that has imported TensorFlow: the import takes most of the time of a script.

use crate::child::{Finished, output};
use crate::script;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// What the server may take to import TensorFlow, and to end a process that is over its limit, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// The waiters of each fork; none once the server has ended.
type Waiting = Arc<Mutex<BTreeMap<u64, Sender<Value>>>>;

/// The process that forks: `tests/tensorflow/python/fork_server.py`. It ends with this one, which closes its input.
#[derive(Debug)]
struct ForkServer {
    requests: Mutex<ChildStdin>,
    waiting: Waiting,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ForkServer {
    /// The one of an interpreter with this environment, as far as it matters.
    fn of(command: &Command) -> Arc<Self> {
        type Servers = BTreeMap<Vec<String>, Arc<ForkServer>>;
        static SERVERS: Mutex<Servers> = Mutex::new(BTreeMap::new());
        let settings = command.get_envs().filter(|(name, _)| matters(name));
        let settings = settings.map(|setting| format!("{setting:?}"));
        let interpreter = command.get_program().to_string_lossy().into_owned();
        let key = [interpreter].into_iter().chain(settings).collect();
        Arc::clone(lock(&SERVERS).entry(key).or_insert_with(|| Arc::new(Self::start(command))))
    }

    fn start(command: &Command) -> Self {
        let mut server = Command::new(command.get_program());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) if matters(name) => server.env(name, value),
                _ => server.env_remove(name),
            };
        }
        let mut server = server
            .arg(script("tensorflow/python/fork_server.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run {server:?}: {error}"));
        let requests = Mutex::new(server.stdin.take().expect("it is piped"));
        let answers = BufReader::new(server.stdout.take().expect("it is piped"));
        let waiting = Waiting::default();
        let known = Arc::clone(&waiting);
        thread::spawn(move || {
            for line in answers.lines().map_while(Result::ok) {
                let answer: Value = serde_json::from_str(&line).expect("an answer is JSON");
                let id = answer["id"].as_u64().expect("an answer has a number");
                let sender = lock(&known).remove(&id);
                // A test that has failed meanwhile does not listen.
                let _ = sender.map(|sender| sender.send(answer));
            }
            lock(&known).clear();
            server.wait()
        });
        Self { requests, waiting }
    }
}

/// Whether it is read once: by TensorFlow while it is imported, by Python or the dynamic linker when a process starts.
fn matters(name: &OsStr) -> bool {
    let starts = ["TF_CPP_", "TF_ENABLE_ONEDNN", "CUDA_", "PYTHON", "LD_LIBRARY_PATH"];
    starts.iter().any(|start| name.to_string_lossy().starts_with(start))
}

/// Runs a Python command, a script with its arguments, in a fork; as [`child::run`](crate::child::run) otherwise.
pub(crate) fn run(command: &Command, limit: Duration) -> Finished {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let server = ForkServer::of(command);
    let (stdout, stderr) = (output(), output());
    let path = |file: &File| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    let mut arguments = command.get_args().map(|argument| argument.to_str().expect("UTF-8"));
    let mut environment: BTreeMap<_, _> = std::env::vars().collect();
    for (name, value) in command.get_envs() {
        let name = name.to_str().expect("UTF-8");
        match value {
            Some(value) => environment.insert(name.into(), value.to_str().expect("UTF-8").into()),
            None => environment.remove(name),
        };
    }
    let id = NUMBER.fetch_add(1, Ordering::Relaxed);
    let request = json!({
        "id": id,
        "script": arguments.next().expect("a script"),
        "arguments": arguments.collect::<Vec<_>>(),
        "environment": environment,
        "stdout": path(&stdout),
        "stderr": path(&stderr),
        "limit": limit.as_secs_f64(),
    });
    let (sender, answer) = channel();
    lock(&server.waiting).insert(id, sender);
    writeln!(lock(&server.requests), "{request}")
        .unwrap_or_else(|error| panic!("the fork server for {command:?} has ended: {error}"));
    let answer = answer.recv_timeout(limit + PATIENCE).unwrap_or_else(|error| {
        panic!("the fork server does not say how {command:?} ended: {error}")
    });
    let status = answer["status"]
        .as_i64()
        .map(|status| ExitStatus::from_raw(i32::try_from(status).expect("a status of `waitpid`")));
    Finished::new(format!("{command:?}"), status, limit, [stdout, stderr])
}
