//! The C tables of `examples/memfs` against those of `memfs.cc`, a plugin of the same design written
//! by hand in C++, side by side in one run.
//!
//! `cargo bench -p tf-plugin-benches --bench memfs -- --help` lists the options.
//!
//! Instructions are also counted of `minimal.cc`, which does less.

use std::env;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use cargo_tf_plugin::workspace::Workspace;
use cargo_tf_plugin::{NEWEST, TensorFlow};
use clap::Parser;
use tf_plugin_benches::callgrind::{self, Count, counted};
use tf_plugin_benches::report::{self, Table, number};
use tf_plugin_benches::rows::{Names, Row, Session};
use tf_plugin_benches::stats::{Spread, ratios, take_turns};
use tf_plugin_benches::{build, filesystem, load_framework, same};

/// Rounds of each row on each plugin; the plugins take turns.
const ROUNDS: usize = 101;

/// What Rust may cost, relative to C++.
const GOAL: f64 = 1.05;

const DOCUMENT: &str = "benchmarks.md";

/// Given by this program to itself, under callgrind.
const COUNT: &str = "--count-instructions";

/// The plugins: the first is measured against each of the others.
const PLUGINS: [&str; 3] = ["Rust", "C++, `std::map`", "C++, B-tree"];

/// Those whose instructions are counted.
const COUNTED: [&str; 4] = [PLUGINS[0], PLUGINS[1], PLUGINS[2], "C++, minimal"];

/// `memfs` in Rust against C++.
#[derive(Parser)]
struct Arguments {
    /// Puts the tables into `docs/benchmarks.md`.
    #[arg(long)]
    write: bool,
    /// Leaves out the instruction counts, and needs no valgrind.
    #[arg(long, conflicts_with = "count")]
    time: bool,
    /// Leaves out the times.
    #[arg(long)]
    count: bool,
    /// Keeps callgrind's profiles here, one a row and plugin.
    #[arg(long)]
    profiles: Option<PathBuf>,
    /// What cargo adds.
    #[arg(long = "bench", hide = true)]
    _bench: bool,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [count, framework, plugin] = arguments.as_slice()
        && count == COUNT
    {
        return run_counted(framework.as_ref(), plugin.as_ref());
    }
    let arguments = Arguments::parse();

    let tensorflow = TensorFlow::pinned(NEWEST)?;
    let framework = tensorflow.library_dir().join("libtensorflow_framework.so.2");
    let scratch = tempfile::tempdir()?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("memfs/memfs.cc");
    let cpp =
        |defines: &[&str]| build::cpp(&source, defines, &tensorflow.include_dir(), scratch.path());
    let minimal = Path::new(env!("CARGO_MANIFEST_DIR")).join("memfs/minimal.cc");
    let plugins = [Workspace::current()?.build_plugin("memfs")?, cpp(&[])?, cpp(&["MEMFS_BTREE"])?];
    let versions = build::versions(&tensorflow);
    let show = |block: &str, text: String| report::show(DOCUMENT, block, &text, arguments.write);
    if !arguments.time {
        let profiles = arguments.profiles.as_deref().unwrap_or(scratch.path());
        let [rust, map, btree] = plugins.clone();
        let minimal = build::cpp(&minimal, &[], &tensorflow.include_dir(), scratch.path())?;
        let counts = callgrind::count_each(
            COUNTED,
            &[rust, map, btree, minimal],
            [COUNT.as_ref(), framework.as_os_str()],
            Row::ALL.len(),
            profiles,
        )?;
        let text = format!("Instructions an operation:\n\n{}\n{versions}", count_table(&counts));
        show("memfs-counts", text)?;
    }
    if !arguments.count {
        let times = time(&framework, &plugins)?;
        let text = format!("Nanoseconds an operation:\n\n{}\n{versions}", time_table(&times));
        show("memfs-times", text)?;
    }
    Ok(())
}

/// Runs each row once for callgrind.
fn run_counted(framework: &Path, plugin: &Path) -> Result<()> {
    load_framework(framework)?;
    let plugin = filesystem(plugin)?;
    let names = Names::create(&plugin)?;
    for row in Row::ALL {
        let mut session = Session::new(&plugin, &names, row)?;
        // Once for what happens on first use only.
        session.prepare()?;
        session.run(row.operations());
        session.prepare()?;
        counted(&mut || session.run(row.operations()));
        session.check(row.operations()).context("under callgrind")?;
    }
    Ok(())
}

/// Nanoseconds an operation on each plugin, and Rust's relative to each other plugin's in the same
/// round.
struct Times {
    plugins: [Spread; PLUGINS.len()],
    ratios: [Spread; PLUGINS.len() - 1],
}

fn time(framework: &Path, plugins: &[PathBuf; 3]) -> Result<Vec<Times>> {
    load_framework(framework)?;
    let [rust, cpp, btree] = plugins;
    let plugins = [filesystem(rust)?, filesystem(cpp)?, filesystem(btree)?];
    let [rust, others @ ..] = &plugins;
    for other in others {
        same::check(rust, other)?;
    }
    let names: Vec<Names> = plugins.iter().map(Names::create).collect::<Result<_>>()?;
    let mut times = Vec::new();
    for row in Row::ALL {
        eprintln!("timing: {}", row.name());
        let mut sessions: Vec<Session<'_>> = plugins
            .iter()
            .zip(&names)
            .map(|(plugin, names)| Session::new(plugin, names, row))
            .collect::<Result<_>>()?;
        let rounds =
            take_turns(PLUGINS.len(), ROUNDS, |index| nanoseconds(&mut sessions[index], row))?;
        times.push(Times {
            plugins: [0, 1, 2].map(|plugin| Spread::of(&rounds[plugin])),
            ratios: [1, 2].map(|other| ratios(&rounds[0], &rounds[other])),
        });
    }
    Ok(times)
}

/// Nanoseconds an operation, in one round.
fn nanoseconds(session: &mut Session<'_>, row: Row) -> Result<f64> {
    session.prepare()?;
    let start = Instant::now();
    session.run(black_box(row.operations()));
    let elapsed = start.elapsed();
    session.check(row.operations())?;
    Ok(elapsed.as_nanos() as f64 / row.operations() as f64)
}

fn count_table(counts: &[Vec<Count>; 4]) -> Table {
    let mut table = Table::new(&[
        "operation",
        PLUGINS[0],
        PLUGINS[1],
        "ratio",
        PLUGINS[2],
        "ratio",
        COUNTED[3],
        "ratio",
        "in `TF_SetStatus`",
    ]);
    for (index, row) in Row::ALL.into_iter().enumerate() {
        let [rust, cpp, btree, minimal] = counts.each_ref().map(|counts| counts[index]);
        let each = |count: u64| number(count as f64 / row.operations() as f64);
        let ratio = |cpp: Count| {
            let ratio = rust.total as f64 / cpp.total as f64;
            format!("{ratio:.2}{}", if ratio <= GOAL { "" } else { " (!)" })
        };
        table.push([
            row.name(),
            each(rust.total),
            each(cpp.total),
            ratio(cpp),
            each(btree.total),
            ratio(btree),
            each(minimal.total),
            format!("{:.2}", rust.total as f64 / minimal.total as f64),
            each(rust.status),
        ]);
    }
    table
}

fn time_table(times: &[Times]) -> Table {
    const RATIO: &str = "ratio (quartiles)";
    let mut table = Table::new(&["operation", PLUGINS[0], PLUGINS[1], RATIO, PLUGINS[2], RATIO]);
    for (row, Times { plugins: [rust, cpp, btree], ratios }) in Row::ALL.into_iter().zip(times) {
        let [to_cpp, to_btree] = ratios.map(|ratio| ratio.to_string());
        table.push([
            row.name(),
            number(rust.median),
            number(cpp.median),
            to_cpp,
            number(btree.median),
            to_btree,
        ]);
    }
    table
}
