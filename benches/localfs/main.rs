//! `examples/localfs` against TensorFlow's own local filesystem, through real TensorFlow.
//!
//! `cargo bench -p tf-plugin-benches --bench localfs -- --help` lists the options.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_tf_plugin::workspace::Workspace;
use cargo_tf_plugin::{NEWEST, TensorFlow};
use clap::Parser;
use serde_json::Value;
use tf_plugin_benches::report::{self, RATIO, Table};
use tf_plugin_benches::{answer, build, comparison, rows_of, times_of};

/// `localfs` against TensorFlow's own local filesystem.
#[derive(Parser)]
struct Arguments {
    /// Puts the table into `docs/benchmarks.md`: the whole table.
    #[arg(long, conflicts_with = "only")]
    write: bool,
    /// Runs the rows whose name contains this text.
    #[arg(long)]
    only: Option<String>,
    /// Where the files are, 500 MB in all; otherwise in memory if the system has a place for that, because a disk
    /// that writes back what earlier rounds wrote disturbs later ones.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// The option that cargo adds.
    #[arg(long = "bench", hide = true)]
    _bench: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let tensorflow = TensorFlow::pinned(NEWEST)?;
    let plugin = Workspace::current()?.build_plugin("localfs")?;
    let in_memory = Path::new("/dev/shm");
    let directory = match arguments.directory {
        Some(directory) => directory,
        None if in_memory.is_dir() => in_memory.to_owned(),
        None => env::temp_dir(),
    };
    let scratch = tempfile::tempdir_in(&directory)
        .with_context(|| format!("cannot use {}", directory.display()))?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("localfs/localfs_vs_builtin.py");
    let mut command = tensorflow.python_command();
    command.arg(script).arg("--plugin").arg(&plugin).arg("--directory").arg(scratch.path());
    if let Some(only) = arguments.only {
        command.arg("--only").arg(only);
    }
    let answer = answer(&mut command)?;

    let text = format!(
        "{}\nTensorFlow {} · {} · {}\n",
        table(&answer)?,
        tensorflow.version(),
        build::rust_version(),
        build::cpu_model()
    );
    report::show("benchmarks.md", "localfs", &text, arguments.write)
}

/// One table, of the time on the clock and of CPU time.
fn table(answer: &Value) -> Result<Table> {
    let mut table = Table::new(&[
        "what",
        "localfs, ms",
        "TensorFlow's own, ms",
        RATIO,
        "localfs, CPU ms",
        "own, CPU ms",
        RATIO,
    ]);
    for (name, row) in rows_of(answer)? {
        let mut cells = vec![name];
        for clock in 0..2 {
            let seconds = |round: &Value| round[clock].as_f64();
            let rounds = times_of(row, ["plugin", "builtin"], seconds)?;
            cells.extend(comparison::compared(&rounds, 1e3));
        }
        table.push(cells);
    }
    Ok(table)
}
