//! Shared code of the benchmarks: building plugins, calling their C tables, counting instructions, and writing
//! the results into `docs`.

#[expect(unsafe_code, reason = "a name that is not mangled, and calls of TensorFlow's C interface")]
pub mod abi;
pub mod build;
pub mod callgrind;
pub mod comparison;
pub mod devices;
pub mod equivalence;
pub mod ops;
pub mod report;
pub mod rows;
pub mod stats;
pub mod training;
pub mod worker;

use anyhow::{Context as _, Result, anyhow, ensure};
use cargo_tf_plugin::host::{CallResult, Device, Filesystem, Library};
use serde_json::Value;
use std::ffi::CString;
use std::path::Path;
use std::process::{Command, Stdio};

/// Loads `libtensorflow_framework.so.2`, whose functions every plugin loaded later then calls.
pub fn load_framework(framework: &Path) -> Result<()> {
    Library::open_for_all(framework).map(drop).map_err(|why| anyhow!(why))
}

/// Loads a filesystem plugin.
pub fn filesystem(plugin: &Path) -> Result<Filesystem> {
    let loaded = Library::open(plugin).and_then(|library| Filesystem::load(library, None));
    loaded.map_err(|why| anyhow!("{}: {why}", plugin.display()))
}

/// Loads a device plugin, and opens its first device.
pub fn device(plugin: &Path) -> Result<Device> {
    let loaded = Library::open(plugin).and_then(Device::load);
    loaded.map_err(|why| anyhow!("{}: {why}", plugin.display()))
}

/// Returns a script's result, in JSON.
pub fn answer(command: &mut Command) -> Result<Value> {
    let output = command.stderr(Stdio::inherit()).output().context("cannot run Python")?;
    ensure!(output.status.success(), "the measurement failed ({}); see above", output.status);
    serde_json::from_slice(&output.stdout).context("no JSON from Python")
}

/// The rows of such an answer, with their names.
pub fn rows_of(answer: &Value) -> Result<impl Iterator<Item = (String, &Value)>> {
    let rows = answer["rows"].as_array().context("no rows")?;
    Ok(rows.iter().map(|row| (row["name"].as_str().unwrap_or_default().to_owned(), row)))
}

/// The times of each contestant of a row, which `seconds` finds in a round.
pub fn times_of<const N: usize>(
    row: &Value,
    names: [&str; N],
    seconds: impl Fn(&Value) -> Option<f64>,
) -> Result<[Vec<f64>; N]> {
    let mut rounds = [const { Vec::new() }; N];
    for (name, times) in names.iter().zip(&mut rounds) {
        let taken = row[name].as_array().with_context(|| format!("no rounds of {name}"))?;
        *times =
            taken.iter().map(|round| seconds(round).context("no time")).collect::<Result<_>>()?;
    }
    ensure!(
        rounds.iter().all(|times| !times.is_empty() && times.len() == rounds[0].len()),
        "not every contestant took part in each round"
    );
    Ok(rounds)
}

/// Returns the result of a call that must succeed.
pub fn done<T>(done: CallResult<'_, T>) -> Result<T> {
    done.map_err(|why| anyhow!("{why}"))
}

/// A C string of a name that has no NUL.
fn c(name: impl Into<Vec<u8>>) -> CString {
    CString::new(name).expect("a name without NUL")
}
