//! `examples/localfs` against TensorFlow's own local filesystem, through real TensorFlow.
//!
//! `cargo bench -p tf-plugin-benches --bench localfs [-- [--write] [--only TEXT] [--directory PATH]]`:
//! `--write` puts the table into `docs/benchmarks.md`, `--only` runs the rows whose name contains a
//! text, `--directory` says where the files are, 500 MB in all; otherwise in memory if the system has
//! a place for that, because a disk that writes back what earlier rounds wrote disturbs later ones.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use cargo_tf_plugin::workspace::Workspace;
use cargo_tf_plugin::{NEWEST, TensorFlow};
use serde_json::Value;
use tf_plugin_benches::build;
use tf_plugin_benches::report::{self, Table, number};
use tf_plugin_benches::stats::Spread;

fn main() -> Result<()> {
    let (mut write, mut only, mut directory) = (false, None, None);
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // What cargo adds.
            "--bench" => {}
            "--write" => write = true,
            "--only" => only = Some(arguments.next().context("`--only` needs a text")?),
            "--directory" => {
                directory = Some(arguments.next().context("`--directory` needs a path")?);
            }
            other => bail!(
                "unknown argument `{other}`; there are `--write`, `--only TEXT` and `--directory PATH`"
            ),
        }
    }
    ensure!(!(write && only.is_some()), "a part of the table is not written; leave out `--only`");

    let tensorflow = TensorFlow::pinned(NEWEST)?;
    let plugin = Workspace::current()?.build_plugin("localfs")?;
    let in_memory = Path::new("/dev/shm");
    let directory = match directory {
        Some(directory) => PathBuf::from(directory),
        None if in_memory.is_dir() => in_memory.to_owned(),
        None => env::temp_dir(),
    };
    let scratch = tempfile::tempdir_in(&directory)
        .with_context(|| format!("cannot use {}", directory.display()))?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("localfs/localfs_vs_builtin.py");
    let mut command = tensorflow.python_command();
    command.arg(script).arg("--plugin").arg(&plugin).arg("--directory").arg(scratch.path());
    if let Some(only) = only {
        command.arg("--only").arg(only);
    }
    let output = command.stderr(Stdio::inherit()).output().context("cannot run Python")?;
    ensure!(output.status.success(), "the measurement failed ({}); see above", output.status);
    let answer: Value = serde_json::from_slice(&output.stdout).context("no JSON from Python")?;

    let text = format!(
        "{}\nTensorFlow {} · {} · {}\n",
        table(&answer)?,
        tensorflow.version(),
        build::rust_version(),
        build::processor()
    );
    println!("{text}");
    if write {
        println!("written to {}", report::write("localfs", &text)?.display());
    }
    Ok(())
}

/// One table, of the time on the clock and of the processors' time.
fn table(answer: &Value) -> Result<Table> {
    const RATIO: &str = "ratio (quartiles)";
    let mut table = Table::new(&[
        "what",
        "localfs, ms",
        "TensorFlow's own, ms",
        RATIO,
        "localfs, CPU ms",
        "own, CPU ms",
        RATIO,
    ]);
    for row in answer["rows"].as_array().context("no rows")? {
        let mut cells = vec![row["name"].as_str().context("no name")?.to_owned()];
        for clock in 0..2 {
            let seconds = |filesystem: &str| -> Result<Vec<f64>> {
                let rounds = row[filesystem].as_array().context("no rounds")?;
                rounds.iter().map(|round| round[clock].as_f64().context("no time")).collect()
            };
            let (plugin, builtin) = (seconds("plugin")?, seconds("builtin")?);
            ensure!(!plugin.is_empty() && plugin.len() == builtin.len(), "no pairs of rounds");
            let ratios: Vec<f64> = plugin.iter().zip(&builtin).map(|(a, b)| a / b).collect();
            let ratio = Spread::of(&ratios);
            cells.extend([
                number(Spread::of(&plugin).median * 1e3),
                number(Spread::of(&builtin).median * 1e3),
                format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.low, ratio.high),
            ]);
        }
        table.push(cells);
    }
    Ok(table)
}
