//! Loads a plugin as TensorFlow does, in a separate process: anything that it does there is a finding.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Seek as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::{Deserialize, Serialize};

use crate::interrupt::Held;
use crate::secrets;

/// The argument that makes the tool the process that loads a plugin.
pub const ARGUMENT: &str = "__load-plugin";

/// The lines of the plugin's own output that a report keeps.
const KEPT_LINES: usize = 20;

/// How many bytes a process may write before it is ended.
pub(crate) const MOST_OUTPUT: u64 = 64 << 20;

/// An event of the loading process, as a line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// The next step; after a crash, the last one is the step that crashed.
    Step(String),
    /// `dlopen` refused the file, with its reason.
    Refused(String),
    /// A function of the plugin has returned an error.
    Error {
        function: String,
        code: String,
        message: String,
    },
    /// The part that `TF_InitPlugin` has filled in.
    Offer {
        schemes: usize,
        allocate: bool,
        free: bool,
    },
    Scheme(Scheme),
    /// The same scheme as the plugin offers it to TensorFlow 2.22, if it requests the release.
    Newer(Scheme),
    /// The structs that `SE_InitPlugin` has filled in.
    Platform(Platform),
    /// A struct of functions that a device plugin has filled in.
    Functions(Table),
    Devices(i64),
    /// The hardware name of the next device.
    Hardware(String),
    Kernel(Kernel),
    Op(String),
    /// The description of the library's ops, as JSON.
    Ops(String),
    /// The structs that `TF_InitGraph` has filled in.
    Optimizer {
        device_type: Option<String>,
        functions: Table,
    },
    /// The structs that `TF_InitProfiler` has filled in.
    Profiler {
        device_type: Option<String>,
        functions: Table,
        /// Whether `destroy_profiler` and `destroy_profiler_fns` are set.
        destroy: [bool; 2],
    },
    /// The plugin has registered this file as a filesystem, as plugins do that register themselves on import.
    Registers(String),
    /// The plugin has called a function that only a running TensorFlow has.
    Unavailable(String),
    /// Memory behind a struct of the host was overwritten.
    Overrun {
        function: String,
        record: String,
    },
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheme {
    /// The scheme without `://`; `None` for a null pointer.
    pub scheme: Option<String>,
    /// `TF_FilesystemOps`, `TF_RandomAccessFileOps`, `TF_WritableFileOps` and `TF_ReadOnlyMemoryRegionOps`.
    pub tables: Vec<Table>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Its name in the header.
    pub name: String,
    /// Whether the pointer to it is not null.
    pub present: bool,
    /// The ABI number, of a filesystem's tables.
    pub abi: Option<i64>,
    /// The API number, of a filesystem's tables.
    pub api: Option<i64>,
    /// The size that the plugin gives.
    pub size: u64,
    pub slots: Vec<Slot>,
}

/// A function pointer in a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// The field's name in the header.
    pub name: String,
    /// Whether it is not null.
    pub filled: bool,
    /// The library that it points to, if that is not the plugin, or `no library`.
    pub elsewhere: Option<String>,
}

/// The structs that `SE_InitPlugin` has filled in.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Platform {
    pub name: Option<String>,
    pub device_type: Option<String>,
    pub size: u64,
    pub unified_memory: bool,
    pub bfc_allocator: bool,
    pub memory_growth: bool,
    /// Whether `destroy_platform` and `destroy_platform_fns` are set.
    pub destroy: [bool; 2],
    pub functions: Table,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Kernel {
    pub op: String,
    pub device: String,
    /// Attributes with their type, as in `T=DT_FLOAT`.
    pub types: Vec<String>,
    /// Arguments in host memory.
    pub host_memory: Vec<String>,
    /// If several kernels match a node, TensorFlow takes the one with the largest priority.
    pub priority: i32,
}

/// How the loading process ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Done,
    /// The file could not be opened.
    Refused,
    /// The plugin called a function that only TensorFlow has.
    Unavailable,
    /// It was killed by a signal, such as `SIGSEGV`.
    Killed(String),
    /// It ended the process with this status.
    Exited(i32),
    /// It was not done within this many seconds.
    Hung(u64),
    /// The plugin was not loaded.
    #[default]
    NotRun,
    /// The process was ended because it wrote more than this many bytes to its standard output and error.
    Flooded(u64),
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    #[serde(skip)]
    pub events: Vec<Event>,
    pub end: End,
    /// The last step that began.
    #[serde(skip)]
    pub last_step: String,
    /// The last lines that the plugin has written to its standard output and error.
    pub output: Vec<String>,
    /// The names of the environment variables that were kept from it.
    pub withheld: Vec<String>,
}

/// Loads a plugin in a process of this program and calls its entry points, for no longer than `limit`. The process has
/// the user's environment without possible secrets; `library_dir` is for a plugin that needs TensorFlow's libraries.
///
/// # Errors
/// Returns an error if the process cannot be started or watched; nothing that the plugin does is an error.
pub(crate) fn run(plugin: &Path, library_dir: Option<&Path>, limit: Duration) -> Result<Run> {
    let program = env::current_exe().context("cannot find the file of this program")?;
    // Dropped after the directory, which would stay if a signal ended the process before.
    let _held = Held::new();
    let scratch = tempfile::tempdir().context("cannot make a scratch directory")?;
    let report = scratch.path().join("report");
    let mut command = Command::new(program);
    command.arg(ARGUMENT).arg(plugin).arg(&report);
    let withheld = secrets::withhold(&mut command);
    prepare(&mut command, library_dir);
    let watched = watch(&mut command, limit)?;
    let events = read(&report);
    let output = last_lines(&watched.output, KEPT_LINES);
    let last_step = events.iter().rev().find_map(|event| match event {
        Event::Step(step) => Some(step.clone()),
        _ => None,
    });
    let last_step = last_step.unwrap_or_else(|| "the start of the process".to_owned());
    Ok(Run { end: end(&watched, &events, limit), events, last_step, output, withheld })
}

/// Prepares a process that loads a plugin: turns off messages of TensorFlow's libraries and the
/// SDK, which are not the plugin's, and makes the libraries in `library_dir` available.
pub(crate) fn prepare(command: &mut Command, library_dir: Option<&Path>) {
    for (name, value) in [("TF_CPP_MIN_LOG_LEVEL", "1"), ("TF_ENABLE_ONEDNN_OPTS", "0")] {
        if env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    if let Some(directory) = library_dir {
        let mut path = OsString::from(directory);
        if let Some(more) = env::var_os("LD_LIBRARY_PATH").filter(|more| !more.is_empty()) {
            path.push(":");
            path.push(more);
        }
        command.env("LD_LIBRARY_PATH", path);
    }
}

/// The longest time limit, in seconds: a year. Sums with it fit into a duration, and Python can wait for it.
pub(crate) const LONGEST: u64 = 31_536_000;

pub(crate) struct Watched {
    /// `None` if this program ended the process.
    pub(crate) status: Option<ExitStatus>,
    /// Whether it was ended because it wrote more than [`MOST_OUTPUT`], and not because it took too long.
    pub(crate) flooded: bool,
    /// The process's standard output and error.
    pub(crate) output: String,
}

/// Runs a command for no longer than `limit`, and ends all processes that it has started.
pub(crate) fn watch(command: &mut Command, limit: Duration) -> Result<Watched> {
    // Ctrl-C does not reach the process, which is in its own group.
    let held = Held::new();
    let start = Instant::now();
    supervise(command.stdin(Stdio::null()), |_| start.elapsed() >= limit || held.is_wanted_back())
}

/// Runs a command until it ends or `is_over` is true, which is called every few milliseconds and
/// once after its end. Then ends all processes that it has started.
pub(crate) fn supervise(
    command: &mut Command,
    mut is_over: impl FnMut(&mut Child) -> bool,
) -> Result<Watched> {
    let mut log = tempfile::tempfile().context("cannot make a file for the output of a process")?;
    let share = || log.try_clone().context("cannot share the file for the output of a process");
    let program = command.get_program().to_owned();
    let mut child = command
        .stdout(share()?)
        .stderr(share()?)
        // To end it together with the processes that it starts.
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let group = Pid::from_child(&child);
    // Leaves the process for `Child::wait`, so that its number stays taken until the group is killed.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let mut flooded = false;
    let by_itself = loop {
        let ended = waitid(WaitId::Pid(group), options).context("cannot wait for a process")?;
        let over = is_over(&mut child);
        if ended.is_some() {
            break true;
        }
        flooded = log.metadata().is_ok_and(|log| log.len() > MOST_OUTPUT);
        if flooded || over {
            break false;
        }
        thread::sleep(Duration::from_millis(5));
    };
    // Most groups are empty by now.
    let _ = kill_process_group(group, Signal::KILL);
    let status = child.wait().context("cannot wait for a process")?;
    let status = by_itself.then_some(status);
    let mut said = Vec::new();
    log.rewind().and_then(|()| log.read_to_end(&mut said)).context("cannot read what it said")?;
    Ok(Watched { status, flooded, output: String::from_utf8_lossy(&said).into_owned() })
}

/// Formats lines of a program's output, to append to a message.
pub(crate) fn quoted(lines: &[impl AsRef<str>]) -> String {
    lines.iter().flat_map(|line| ["\n  | ", line.as_ref()]).collect()
}

pub(crate) fn last_lines(text: &str, count: usize) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].iter().map(|line| (*line).to_owned()).collect()
}

/// Says how a process has ended.
pub(crate) fn ended(watched: &Watched, limit: Duration) -> String {
    match (watched.status, watched.status.and_then(|status| status.signal())) {
        (None, _) if watched.flooded => "ended, as it did not stop talking".to_owned(),
        (None, _) => format!("not done within {} s", limit.as_secs()),
        (_, Some(signal)) => format!("ended by {}", signal_name(signal)),
        (Some(status), None) => format!("ended with status {}", status.code().unwrap_or_default()),
    }
}

/// Reads the complete events: the process may have been killed while it wrote one.
fn read(report: &Path) -> Vec<Event> {
    let text = fs::read(report).unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

fn end(watched: &Watched, events: &[Event], limit: Duration) -> End {
    match events.last() {
        Some(Event::Done) => return End::Done,
        Some(Event::Refused(_)) => return End::Refused,
        Some(Event::Unavailable(_)) => return End::Unavailable,
        _ => {}
    }
    if watched.flooded {
        return End::Flooded(MOST_OUTPUT);
    }
    let Some(status) = watched.status else { return End::Hung(limit.as_secs()) };
    match status.signal() {
        Some(signal) => End::Killed(signal_name(signal)),
        None => End::Exited(status.code().unwrap_or_default()),
    }
}

pub(crate) fn signal_name(signal: i32) -> String {
    let name = signal_hook::low_level::signal_name(signal);
    name.map_or_else(|| format!("signal {signal}"), str::to_owned)
}
