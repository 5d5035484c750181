//! Measures the cost of the op SDK: the ops of `plugin`, safe Rust on the SDK, against the same ops in `ops.cc`, built
//! against each TensorFlow's own headers, and against `tf.py_function`.
//!
//! `cargo bench -p tf-plugin-benches --bench ops -- --help` lists the options.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use cargo_tf_plugin::host::Library;
use cargo_tf_plugin::workspace::Workspace;
use cargo_tf_plugin::{NEWEST, TensorFlow};
use clap::Parser;
use tf_plugin_benches::abi::eager::Eager;
use tf_plugin_benches::ops::rows::{Row, Session};
use tf_plugin_benches::ops::tables::{self, Counted, Timed};
use tf_plugin_benches::{build, callgrind, comparison, report};

/// The releases that are measured if none is named.
const RELEASES: [&str; 4] = ["2.12.1", "2.16.2", NEWEST, "2.22.0rc0"];

/// Given by this program to itself, under callgrind.
const COUNT: &str = "--count-instructions";

const DOCUMENT: &str = "op-benchmarks.md";

/// The op SDK against C++ and `tf.py_function`.
#[derive(Parser)]
struct Arguments {
    /// Puts the tables into `docs/op-benchmarks.md`: whole tables of all rounds and releases.
    #[arg(long, conflicts_with_all = ["quick", "only", "tf"])]
    write: bool,
    /// Takes few rounds on small inputs, to check that the benchmark works.
    #[arg(long)]
    quick: bool,
    /// Leaves out the instruction counts, and needs no valgrind.
    #[arg(long, conflicts_with = "count")]
    time: bool,
    /// Leaves out the times.
    #[arg(long)]
    count: bool,
    /// Times the rows whose name contains this text.
    #[arg(long, default_value = "")]
    only: String,
    /// TensorFlow release; may be repeated.
    #[arg(long, value_name = "VERSION", default_values_t = RELEASES.map(String::from))]
    tf: Vec<String>,
    /// Keeps callgrind's profiles here, one a release, row and library.
    #[arg(long)]
    profiles: Option<PathBuf>,
    /// The option that cargo adds.
    #[arg(long = "bench", hide = true)]
    _bench: bool,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [count, libraries, plugin] = arguments.as_slice()
        && count == COUNT
    {
        return run_counted(libraries.as_ref(), plugin.as_ref());
    }
    let arguments = Arguments::parse();
    let workspace = Workspace::current()?;
    let rust = workspace.build_plugin("benchops")?;
    let scratch = tempfile::tempdir()?;
    let profiles = arguments.profiles.as_deref().unwrap_or(scratch.path());
    let (mut counts, mut times, mut versions) = (Vec::new(), Vec::new(), String::new());
    for version in &arguments.tf {
        eprintln!("TensorFlow {version}");
        let tensorflow = TensorFlow::pinned(version)?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/ops.cc");
        let directory = workspace.target_dir().join("bench-ops").join(tensorflow.version());
        let libraries = [rust.clone(), build::cpp_ops(&source, &tensorflow, &directory)?];
        if !arguments.time {
            counts.push(count(&tensorflow, &libraries, &profiles.join(version))?);
        }
        if !arguments.count {
            times.push(Timed::measure(&tensorflow, &libraries, &arguments.only, arguments.quick)?);
        }
        versions = build::versions(&tensorflow);
    }
    // The compilers and the CPU; the tables name the releases.
    let built = versions.split_once(" · ").map_or("", |(_, rest)| rest);
    let show = |block: &str, table: String| {
        report::show(DOCUMENT, block, &format!("{table}\n{built}"), arguments.write)
    };
    if !counts.is_empty() {
        show("counts", tables::of_counts(&counts)?)?;
    }
    if !times.is_empty() {
        show("times", tables::of_times(&times)?)?;
    }
    Ok(())
}

/// Counts the instructions of each row in both libraries.
fn count(tensorflow: &TensorFlow, libraries: &[PathBuf; 2], profiles: &Path) -> Result<Counted> {
    let arguments = [COUNT.as_ref(), tensorflow.library_dir().as_os_str()];
    let names = tables::LIBRARIES;
    let counts = callgrind::count_each(names, libraries, arguments, Row::ALL.len(), profiles)?;
    Ok(Counted { release: tensorflow.version().to_owned(), counts })
}

/// Runs each row once for callgrind.
fn run_counted(libraries: &Path, plugin: &Path) -> Result<()> {
    let eager = Eager::open(libraries)?;
    let library = Library::open(plugin).map_err(|why| anyhow!(why))?;
    // An SDK's library describes its ops.
    let language = if library.symbol(c"tf_plugin_ops").is_some() { "Rust" } else { "Cpp" };
    comparison::run_counted(Row::ALL, |row| Session::new(&eager, language, row))
}
