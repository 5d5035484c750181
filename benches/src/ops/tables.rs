//! The tables of all releases.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cargo_tf_plugin::{NEWEST, TensorFlow};
use serde_json::Value;

use super::rows::Row;
use crate::callgrind::Count;
use crate::comparison::{self, Row as _};
use crate::report::{RATIO, Table, number};
use crate::stats::ratios;
use crate::{answer, rows_of, times_of};

/// The two libraries.
pub const LIBRARIES: [&str; 2] = ["Rust", "C++"];

const CONTESTANTS: [&str; 3] = ["Rust", "C++", "py_function"];

/// The instructions in a release of TensorFlow.
#[derive(Debug)]
pub struct Counted {
    /// The release.
    pub release: String,
    /// For each library those of each row.
    pub counts: [Vec<Count>; 2],
}

/// The times in a release of TensorFlow.
#[derive(Debug)]
pub struct Timed {
    release: String,
    rows: Vec<TimedRow>,
}

#[derive(Debug)]
struct TimedRow {
    name: String,
    goal: f64,
    /// The seconds of a call in each round.
    times: [Vec<f64>; 3],
}

impl TimedRow {
    fn rust_to_cpp(&self) -> String {
        let [rust, cpp, _] = &self.times;
        let ratio = ratios(rust, cpp);
        marked(ratio.median, &ratio.to_string(), self.goal)
    }
}

impl Timed {
    /// Measures in Python the rows whose name contains `only`; if `quick`, in few rounds on small inputs.
    pub fn measure(
        tensorflow: &TensorFlow,
        [rust, cpp]: &[PathBuf; 2],
        only: &str,
        quick: bool,
    ) -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/ops.py");
        let mut command = tensorflow.python_command();
        command.arg(script).arg("--rust").arg(rust).arg("--cpp").arg(cpp).args(["--only", only]);
        if quick {
            command.args(["--quick", "--rounds", "2"]);
        }
        Self::read(tensorflow.version(), &answer(&mut command)?)
    }

    fn read(release: &str, answer: &Value) -> Result<Self> {
        let rows = rows_of(answer)?.map(|(name, row)| {
            let goal = match row["kind"].as_str() {
                Some("small") => super::SMALL_GOAL,
                Some("numbers") => super::NUMBERS_GOAL,
                Some("strings") => super::STRINGS_GOAL,
                kind => bail!("no goal for a row of the kind {kind:?}"),
            };
            Ok(TimedRow { name, goal, times: times_of(row, CONTESTANTS, Value::as_f64)? })
        });
        Ok(Self { release: release.to_owned(), rows: rows.collect::<Result<_>>()? })
    }
}

fn marked(ratio: f64, text: &str, goal: f64) -> String {
    // As shown, not as measured.
    let missed = (ratio * 100.0).round() / 100.0 > goal;
    if missed { format!("{text} (!)") } else { text.to_owned() }
}

fn ratio(first: u64, second: u64, goal: f64) -> String {
    let ratio = first as f64 / second as f64;
    marked(ratio, &format!("{ratio:.2}"), goal)
}

/// Returns the instructions of a call in one release, the newest if it was counted, and their ratios in all of them.
pub fn of_counts(all: &[Counted]) -> Result<String> {
    let (shown, headings) = shown(all, "ratio of instructions", |one| &one.release)?;
    let [rust, cpp] = &shown.counts;
    let mut table =
        Table::new(&["a call", "Rust", "C++", "ratio", "Rust, the op alone", "C++, the op alone"]);
    for ((row, rust), cpp) in Row::ALL.iter().zip(rust).zip(cpp) {
        let each = |count: u64| number(count as f64 / row.operations() as f64);
        table.push([
            row.name().to_owned(),
            each(rust.all),
            each(cpp.all),
            ratio(rust.all, cpp.all, row.goal),
            each(rust.total),
            each(cpp.total),
        ]);
    }
    let mut text = format!("Instructions a call in TensorFlow {}:\n\n{table}", shown.release);
    if all.len() > 1 {
        let mut table = Table::new(&headings);
        for (at, row) in Row::ALL.iter().enumerate() {
            let ratios = all.iter().map(|one| {
                let [rust, cpp] = &one.counts;
                ratio(rust[at].all, cpp[at].all, row.goal)
            });
            table.push([row.name().to_owned()].into_iter().chain(ratios));
        }
        text += &format!("\nIn each release:\n\n{table}");
    }
    Ok(text)
}

/// Returns the release that is shown in full, and the headings of a table of all releases.
fn shown<'a, T>(
    all: &'a [T],
    what: &'a str,
    release: impl Fn(&'a T) -> &'a str,
) -> Result<(&'a T, Vec<&'a str>)> {
    let shown = all.iter().find(|one| release(one) == NEWEST).or(all.last());
    let headings = [what].into_iter().chain(all.iter().map(&release)).collect();
    Ok((shown.context("no release was measured")?, headings))
}

/// Returns the times of a call in one release, the newest if it was measured, and their ratios in all of them.
pub fn of_times(all: &[Timed]) -> Result<String> {
    let (shown, headings) = shown(all, "ratio of times", |one| &one.release)?;
    let mut table = Table::new(&["µs a call", "Rust", "C++", RATIO, "`tf.py_function`", RATIO]);
    for row in &shown.rows {
        let mut cells = comparison::compared(&row.times, 1e6);
        cells[2] = row.rust_to_cpp();
        table.push([row.name.clone()].into_iter().chain(cells));
    }
    let mut text = format!("Microseconds a call in TensorFlow {}:\n\n{table}", shown.release);
    if all.len() > 1 {
        let mut table = Table::new(&headings);
        for (at, row) in shown.rows.iter().enumerate() {
            let ratios = all.iter().map(|one| one.rows[at].rust_to_cpp());
            table.push([row.name.clone()].into_iter().chain(ratios));
        }
        text += &format!("\nIn each release:\n\n{table}");
    }
    Ok(text)
}
