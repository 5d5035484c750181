//! The C tables of `examples/memfs` against those of `memfs.cc`, a plugin of the same design written
//! by hand in C++, side by side in one run.
//!
//! `cargo bench -p tf-plugin-benches --bench memfs -- --help` lists the options.
//!
//! Instructions are also counted of `minimal.cc`, which does less.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Result;
use cargo_tf_plugin::workspace::Workspace;
use cargo_tf_plugin::{NEWEST, TensorFlow};
use clap::Parser;
use tf_plugin_benches::report::{self, Table};
use tf_plugin_benches::rows::{Names, Row, Session};
use tf_plugin_benches::{build, callgrind, comparison, equivalence, filesystem, load_framework};

/// Rounds of each row on each plugin; the plugins take turns.
const ROUNDS: usize = 101;

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
    /// The option that cargo adds.
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
        // Nobody has to be as cheap as the last one.
        let table =
            comparison::count_table("operation", &COUNTED, PLUGINS.len() - 1, Row::ALL, &counts);
        show("memfs-counts", format!("Instructions an operation:\n\n{table}\n{versions}"))?;
    }
    if !arguments.count {
        let table = time(&framework, &plugins)?;
        show("memfs-times", format!("Nanoseconds an operation:\n\n{table}\n{versions}"))?;
    }
    Ok(())
}

/// Runs each row once for callgrind.
fn run_counted(framework: &Path, plugin: &Path) -> Result<()> {
    load_framework(framework)?;
    let plugin = filesystem(plugin)?;
    let names = Names::create(&plugin)?;
    comparison::run_counted(Row::ALL, |row| Session::new(&plugin, &names, row))
}

fn time(framework: &Path, plugins: &[PathBuf; 3]) -> Result<Table> {
    load_framework(framework)?;
    let [rust, cpp, btree] = plugins;
    let plugins = [filesystem(rust)?, filesystem(cpp)?, filesystem(btree)?];
    let [rust, others @ ..] = &plugins;
    for other in others {
        equivalence::check(rust, other)?;
    }
    let names: Vec<Names> = plugins.iter().map(Names::create).collect::<Result<_>>()?;
    comparison::time_table("operation", &PLUGINS, Row::ALL, ROUNDS, |row| {
        let plugins = plugins.iter().zip(&names);
        plugins.map(|(plugin, names)| Session::new(plugin, names, row)).collect()
    })
}
