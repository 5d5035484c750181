//! Plugins that do the same, measured against each other row by row.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::callgrind::{Count, counted};
use crate::report::{RATIO, Table, number};
use crate::stats::{Spread, ratios, take_turns};

/// What Rust may cost, relative to C++.
const GOAL: f64 = 1.05;

/// An operation that is measured.
pub trait Row: Copy {
    /// Returns the row's name in the table.
    fn name(self) -> &'static str;

    /// How many operations make up a round.
    fn operations(self) -> usize;
}

/// A row on a plugin, ready to run.
pub trait Session {
    /// Prepares a round, outside of what is measured.
    fn prepare(&mut self) -> Result<()>;

    /// Runs the operation so many times.
    fn run(&mut self, operations: usize);

    /// Checks that the last round did what it was measured for.
    fn check(&mut self) -> Result<()>;
}

/// Runs each row once for callgrind.
pub fn run_counted<R: Row, S: Session>(rows: &[R], session: impl Fn(R) -> Result<S>) -> Result<()> {
    for &row in rows {
        let mut session = session(row)?;
        // Once for what happens on first use only.
        session.prepare()?;
        session.run(row.operations());
        session.prepare()?;
        counted(&mut || session.run(row.operations()));
        session.check().context("under callgrind")?;
    }
    Ok(())
}

/// The instructions of an operation in each plugin, and those of the first relative to each of the others: of so many
/// of them the goal is marked where it is missed.
pub fn count_table<R: Row>(
    what: &str,
    plugins: &[&str],
    judged: usize,
    rows: &[R],
    counts: &[Vec<Count>],
) -> Table {
    let mut headings = headings(what, plugins, "ratio");
    headings.push("in `TF_SetStatus`");
    let mut table = Table::new(&headings);
    for (index, row) in rows.iter().enumerate() {
        let each = |count: u64| number(count as f64 / row.operations() as f64);
        let first = counts[0][index];
        let mut cells = vec![row.name().to_owned(), each(first.total)];
        for (other, counts) in counts[1..].iter().enumerate() {
            let ratio = first.total as f64 / counts[index].total as f64;
            let mark = if other < judged && ratio > GOAL { " (!)" } else { "" };
            cells.extend([each(counts[index].total), format!("{ratio:.2}{mark}")]);
        }
        cells.push(each(first.status));
        table.push(cells);
    }
    table
}

/// Lets the plugins take turns, and shows the nanoseconds of an operation in each, and those of the first relative to
/// each of the others' in the same round.
pub fn time_table<R: Row, S: Session>(
    what: &str,
    plugins: &[&str],
    rows: &[R],
    rounds: usize,
    sessions: impl Fn(R) -> Result<Vec<S>>,
) -> Result<Table> {
    let mut table = Table::new(&headings(what, plugins, RATIO));
    for &row in rows {
        eprintln!("timing: {}", row.name());
        let mut sessions = sessions(row)?;
        let rounds = take_turns(plugins.len(), rounds, |index| {
            let session = &mut sessions[index];
            session.prepare()?;
            let start = Instant::now();
            session.run(black_box(row.operations()));
            let elapsed = start.elapsed();
            session.check()?;
            Ok::<_, anyhow::Error>(elapsed.as_nanos() as f64 / row.operations() as f64)
        })?;
        let name = row.name().to_owned();
        table.push([name].into_iter().chain(compared(&rounds, 1.0)));
    }
    Ok(table)
}

/// The median of each contestant, times `scale`, and of all but the first the ratios of the first's values to theirs.
pub fn compared(rounds: &[Vec<f64>], scale: f64) -> Vec<String> {
    let median = |times: &[f64]| number(Spread::of(times).median * scale);
    let mut cells = vec![median(&rounds[0])];
    for other in &rounds[1..] {
        cells.extend([median(other), ratios(&rounds[0], other).to_string()]);
    }
    cells
}

fn headings<'n>(what: &'n str, plugins: &[&'n str], ratio: &'n str) -> Vec<&'n str> {
    let others = plugins[1..].iter().flat_map(|other| [*other, ratio]);
    [what, plugins[0]].into_iter().chain(others).collect()
}
