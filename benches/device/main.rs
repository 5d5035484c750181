//! Measures the cost of the device SDK: the device of `plugin`, safe Rust on the SDK, against the same device in
//! `device.cc`, written by hand in C++, side by side; and the reference device against TensorFlow's CPU.
//!
//! `cargo bench -p tf-plugin-benches --bench device -- --help` lists the options.

use std::env;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use cargo_tf_plugin::host::Device;
use cargo_tf_plugin::workspace::Workspace;
use cargo_tf_plugin::{NEWEST, TensorFlow};
use clap::Parser;
use serde_json::Value;
use tf_plugin_benches::devices::equivalence;
use tf_plugin_benches::devices::rows::{Row, Session};
use tf_plugin_benches::report::{self, RATIO, Table, number};
use tf_plugin_benches::stats::take_turns;
use tf_plugin_benches::{
    answer, build, callgrind, comparison, device, done, load_framework, rows_of, times_of,
};

/// How fast a copy must be, relative to `memcpy`.
const BANDWIDTH_GOAL: f64 = 0.95;

/// Length of the copies whose bandwidth is measured.
const COPIED: usize = 64 << 20;

/// Given by this program to itself, under callgrind.
const COUNT: &str = "--count-instructions";

/// Given by this program to itself, because the devices are of no use afterwards.
const COMPARE: &str = "--compare";

const PLUGINS: [&str; 2] = ["Rust", "C++"];

const DOCUMENT: &str = "device-benchmarks.md";

/// The device SDK against C++.
#[derive(Parser)]
struct Arguments {
    /// Puts the tables into `docs/device-benchmarks.md`: whole tables of all rounds.
    #[arg(long, conflicts_with_all = ["quick", "time"])]
    write: bool,
    /// Takes few rounds.
    #[arg(long)]
    quick: bool,
    /// Leaves out the instruction counts, and needs no valgrind.
    #[arg(long)]
    time: bool,
    /// Runs one part.
    #[arg(long, value_parser = PARTS.map(|(name, _)| name))]
    only: Option<String>,
    /// Keeps callgrind's profiles here, one a row and plugin.
    #[arg(long)]
    profiles: Option<PathBuf>,
    /// The option that cargo adds.
    #[arg(long = "bench", hide = true)]
    _bench: bool,
}

impl Arguments {
    fn rounds(&self, rounds: usize) -> usize {
        if self.quick { rounds.min(5) } else { rounds }
    }
}

/// What all parts need.
struct Bench<'a> {
    arguments: &'a Arguments,
    tensorflow: &'a TensorFlow,
    framework: &'a Path,
    workspace: &'a Workspace,
    /// The Rust plugin, and the one in C++.
    plugins: &'a [PathBuf; 2],
    scratch: &'a Path,
    /// The devices of the plugins, which register them once a process.
    devices: [Device; 2],
}

type Part = fn(&Bench<'_>) -> Result<String>;

const PARTS: [(&str, Part); 4] =
    [("callbacks", callbacks), ("bandwidth", bandwidth), ("dispatch", dispatch), ("step", step)];

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [count, framework, plugin] if count == COUNT => {
            return run_counted(framework.as_ref(), plugin.as_ref());
        }
        [compare, framework, rust, cpp] if compare == COMPARE => {
            return run_compared(framework.as_ref(), rust.as_ref(), cpp.as_ref());
        }
        _ => {}
    }
    let arguments = Arguments::parse();
    let tensorflow = TensorFlow::pinned(NEWEST)?;
    let workspace = Workspace::current()?;
    let scratch = tempfile::tempdir()?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("device/device.cc");
    let plugins = [
        workspace.build_plugin("benchdevice")?,
        build::cpp(&source, &[], &tensorflow.include_dir(), scratch.path())?,
    ];
    let framework = tensorflow.library_dir().join("libtensorflow_framework.so.2");
    be_many();
    load_framework(&framework)?;
    let devices = [device(&plugins[0])?, device(&plugins[1])?];
    let bench = Bench {
        arguments: &arguments,
        tensorflow: &tensorflow,
        framework: &framework,
        workspace: &workspace,
        plugins: &plugins,
        scratch: scratch.path(),
        devices,
    };
    for (name, part) in PARTS {
        if arguments.only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let text = format!("{}\n{}", part(&bench)?, build::versions(&tensorflow));
        report::show(DOCUMENT, name, &text, arguments.write)?;
    }
    Ok(())
}

impl Bench<'_> {
    /// Returns the result of a script of this folder, which measures in TensorFlow.
    fn python(&self, script: &str, arguments: &[&str], plugins: &[&Path]) -> Result<Value> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("device").join(script);
        let mut command = self.tensorflow.python_command();
        command.arg(script).args(arguments);
        for plugin in plugins {
            command.arg("--plugin").arg(plugin);
        }
        answer(&mut command)
    }
}

// Callbacks.

fn callbacks(bench: &Bench<'_>) -> Result<String> {
    let mut compare = Command::new(env::current_exe()?);
    compare.arg(COMPARE).arg(bench.framework).args(bench.plugins);
    // The log is full of errors that were requested.
    let compared = compare.output().context("cannot run this program again")?;
    ensure!(
        compared.status.success(),
        "the devices do not do the same:\n{}",
        String::from_utf8_lossy(&compared.stderr)
    );
    let mut text = String::new();
    if !bench.arguments.time {
        let profiles = bench.arguments.profiles.as_deref().unwrap_or(bench.scratch);
        let counts = callgrind::count_each(
            PLUGINS,
            bench.plugins,
            [COUNT.as_ref(), bench.framework.as_os_str()],
            Row::ALL.len(),
            profiles,
        )?;
        let table = comparison::count_table("callback", &PLUGINS, 1, Row::ALL, &counts);
        text += &format!("Instructions a call:\n\n{table}\n");
    }
    let (devices, rounds) = (&bench.devices, bench.arguments.rounds(101));
    let table = comparison::time_table("callback", &PLUGINS, Row::ALL, rounds, |row| {
        devices.iter().map(|device| Session::new(device, row)).collect()
    })?;
    text += &format!("Nanoseconds a call:\n\n{table}");
    Ok(text)
}

/// Makes this process one of several threads, as one with TensorFlow always is: the C library and C++'s
/// take shortcuts while there is only one.
fn be_many() {
    std::thread::spawn(|| {
        loop {
            std::thread::park();
        }
    });
}

/// Runs each row once for callgrind.
fn run_counted(framework: &Path, plugin: &Path) -> Result<()> {
    be_many();
    load_framework(framework)?;
    let device = device(plugin)?;
    comparison::run_counted(Row::ALL, |row| Session::new(&device, row))
}

/// Compares the devices, which then have an error that stays.
fn run_compared(framework: &Path, rust: &Path, cpp: &Path) -> Result<()> {
    load_framework(framework)?;
    equivalence::check(&device(rust)?, &device(cpp)?)
}

// Bandwidth.

fn bandwidth(bench: &Bench<'_>) -> Result<String> {
    let [rust, cpp] = &bench.devices;
    let reference = bench.workspace.build_plugin("refdevice")?;
    let reference = device(&reference)?;
    let mut table = Table::new(&["copy of 64 MiB", "GiB/s", "of `memcpy`'s"]);
    let (mut buffer, mut other) = (vec![1; COPIED], vec![2; COPIED]);
    let mut devices = Vec::new();
    for (name, device) in [("Rust", rust), ("C++", cpp), ("`refdevice`", &reference)] {
        let place = done(device.allocate(COPIED)).context(name)?;
        done(device.copy_to_device(place.address, &buffer)).context(name)?;
        devices.push((name, place, done(device.stream()).context(name)?));
    }
    // `memcpy`, then to and from each device.
    let rounds = take_turns(1 + 2 * devices.len(), bench.arguments.rounds(61), |index| {
        let Some(copy) = index.checked_sub(1) else {
            let start = Instant::now();
            black_box(&mut other).copy_from_slice(black_box(&buffer));
            return Ok::<_, anyhow::Error>(start.elapsed().as_secs_f64());
        };
        let (name, place, stream) = &devices[copy / 2];
        let start = Instant::now();
        // Returns once the stream is done.
        let copied = stream.copying(&mut buffer, |copies| {
            done(match copy % 2 {
                0 => copies.to_device(place.address),
                _ => copies.to_host(place.address),
            })
        });
        let elapsed = start.elapsed().as_secs_f64();
        copied.with_context(|| format!("the copy of {name} failed"))?;
        Ok(elapsed)
    })?;
    ensure!(buffer.iter().all(|&byte| byte == 1), "what came back is not what was copied");
    // The fastest round, as is usual for bandwidth: what else the machine does only makes one slower.
    let fastest = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let speed = |times: &[f64]| number(COPIED as f64 / fastest(times) / f64::from(1 << 30));
    table.push(["`memcpy`".into(), speed(&rounds[0]), String::new()]);
    for (index, times) in rounds.iter().skip(1).enumerate() {
        let (name, _, _) = devices[index / 2];
        let way = ["to", "from"][index % 2];
        let ratio = fastest(&rounds[0]) / fastest(times);
        let mark = if ratio >= BANDWIDTH_GOAL { "" } else { " (!)" };
        table.push([
            format!("{way} the device, {name}"),
            speed(times),
            format!("{ratio:.2}{mark}"),
        ]);
    }
    Ok(table.to_string())
}

// In TensorFlow.

fn dispatch(bench: &Bench<'_>) -> Result<String> {
    const NAMES: [&str; 3] = ["RUST_BENCH", "CPP_BENCH", "CPU"];
    let rounds = bench.arguments.rounds(101).to_string();
    let [rust, cpp] = bench.plugins;
    let answer = bench.python("dispatch.py", &["--rounds", &rounds], &[rust, cpp])?;
    let mut table = Table::new(&["µs an op", "Rust", "C++", RATIO, "TensorFlow's CPU", RATIO]);
    for (name, row) in rows_of(&answer)? {
        let times = comparison::compared(&times_of(row, NAMES, Value::as_f64)?, 1e6);
        table.push([name].into_iter().chain(times));
    }
    Ok(table.to_string())
}

fn step(bench: &Bench<'_>) -> Result<String> {
    const NAMES: [&str; 2] = ["RUST_REF", "CPU"];
    let rounds = bench.arguments.rounds(15).to_string();
    let reference = bench.workspace.build_plugin("refdevice")?;
    let models = bench.workspace.root().join("examples/device_demo");
    let models = models.to_str().context("the workspace's path is not UTF-8")?;
    let arguments = ["--rounds", &rounds, "--models", models];
    let answer = bench.python("step.py", &arguments, &[&reference])?;
    let mut table = Table::new(&[
        "a training step of 64 digits",
        "`refdevice`, ms",
        "TensorFlow's CPU, ms",
        RATIO,
    ]);
    for (name, row) in rows_of(&answer)? {
        let times = comparison::compared(&times_of(row, NAMES, Value::as_f64)?, 1e3);
        table.push([name].into_iter().chain(times));
    }
    Ok(table.to_string())
}
