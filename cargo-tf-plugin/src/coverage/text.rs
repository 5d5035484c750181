//! The report as text for people.

use std::fmt::Write as _;

use crate::coverage::report::{Copied, Copies, Missing, Report, Row, Where};
use crate::render::{BAD, BOLD, DIM, GOOD, painted, size, wrapped};

/// Ops that TensorFlow adds to graphs, and that no plugin has to implement.
const PLUMBING: &str = "Const Identity IdentityN Enter Exit Merge Switch NextIteration LoopCond \
    ControlTrigger VarHandleOp StatefulPartitionedCall PartitionedCall";

/// The widths of the columns behind the op.
const RUNS: usize = 9;
const BYTES: usize = 12;

pub(crate) fn text(report: &Report, plugin: &str) -> String {
    let device = report.device.as_deref().unwrap_or_default();
    let mut text = String::new();
    let release = report.tensorflow.as_deref().unwrap_or_default();
    let title = format!("{plugin}: what ran on {device}, TensorFlow {release}");
    let _ = writeln!(text, "\n{BOLD}{title}{BOLD:#}");
    if let Some(function) = &report.stopped {
        let _ = writeln!(text, "stopped before `{function}`, which changes variables");
    }
    let is_shown =
        |row: &&Row| !PLUMBING.split(' ').any(|op| op == row.op) || !row.copied.is_none();
    let place = |place: Where| report.rows.iter().filter(move |row| row.place == place);
    let is_for_host = |row: &&Row| row.why.as_deref() == Some("host only");
    missing(&mut text, &report.missing, device);
    table(&mut text, &format!("on {device}"), place(Where::Device).collect());
    let fallen = place(Where::Cpu).filter(is_shown).filter(|row| !is_for_host(row));
    table(&mut text, "on the CPU", fallen.collect());
    let host = place(Where::Host).filter(is_shown);
    table(&mut text, "in host memory, on the CPU", host.collect());
    text.push('\n');
    let default = place(Where::Default);
    summary(&mut text, "by TensorFlow's kernels for every device", default);
    let only = place(Where::Cpu).filter(is_for_host);
    summary(&mut text, "datasets, strings and other work for the CPU only", only);
    if !report.program.is_none() {
        let copied = of(&report.program);
        let _ = writeln!(text, "  the program's own tensors and arguments: {copied}");
    }
    if !report.unseen.is_empty() {
        let names = report.unseen.join(", ");
        let note = format!("not seen, as they are not part of the graph that calls them: {names}");
        let _ = writeln!(text, "  {}", wrapped(&note, 2));
    }
    if let Some(error) = &report.error {
        let error = error.trim_end();
        let _ =
            writeln!(text, "  {BAD}not all could be watched; please report this:{BAD:#}\n{error}");
    }
    if report.rows.iter().any(|row| !row.exact) {
        let _ = writeln!(text, "  ~ in a loop or a branch of a function, counted once a call");
    }
    if report
        .rows
        .iter()
        .any(|row| row.copied.to_device.unknown + row.copied.from_device.unknown > 0)
    {
        let _ = writeln!(text, "  + and copies whose size is known only when they run");
    }
    text
}

fn missing(text: &mut String, missing: &[Missing], device: &str) {
    if missing.is_empty() {
        return;
    }
    let _ =
        writeln!(text, "\n{BOLD}kernels that functions need and {device} does not have{BOLD:#}");
    for one in missing {
        let name = painted(BAD, &format!("{} {}", one.op, one.types));
        let mut line = format!("{name} in `{}`: {}", one.function, one.why);
        if !one.detail.is_empty() {
            let _ = write!(line, "; {}", one.detail);
        }
        let _ = writeln!(text, "  {}", wrapped(&line, 4));
    }
}

fn table(text: &mut String, title: &str, mut rows: Vec<&Row>) {
    if rows.is_empty() {
        return;
    }
    rows.sort_by(|a, b| {
        let order = (b.copied.bytes(), b.runs).cmp(&(a.copied.bytes(), a.runs));
        order.then_with(|| (&a.op, &a.types).cmp(&(&b.op, &b.types)))
    });
    let name = |row: &Row| format!("{} {}", row.op, row.types).trim_end().to_owned();
    let names = rows.iter().map(|row| name(row).chars().count());
    let width = names.chain([title.chars().count().saturating_sub(2)]).max().unwrap_or_default();
    let copies = rows.iter().any(|row| !row.copied.is_none());
    let mut head = format!("{:>RUNS$}", "runs");
    if copies {
        let _ = write!(head, "{:>BYTES$}{:>BYTES$}", "to device", "from device");
    }
    let _ = writeln!(text, "\n{BOLD}{title:<0$}{BOLD:#}{DIM}{head}{DIM:#}", width + 2);
    for row in rows {
        let style = if row.place == Where::Device { GOOD } else { BAD };
        let style = if row.place == Where::Host { BOLD } else { style };
        let name = name(row);
        let _ = write!(text, "  {style}{name}{style:#}{:1$}", "", width - name.chars().count());
        let about = if row.exact { "" } else { "~" };
        let _ = write!(text, "{:>RUNS$}", format!("{about}{}", row.runs));
        if copies {
            let Copied { to_device, from_device } = row.copied;
            let _ = write!(text, "{:>BYTES$}{:>BYTES$}", bytes(to_device), bytes(from_device));
        }
        let why = row.why.as_deref().map(|why| match why {
            "placed" => "TensorFlow or the program put it there",
            why => why,
        });
        let why = [why.unwrap_or_default(), &row.detail];
        let why: Vec<_> = why.into_iter().filter(|part| !part.is_empty()).collect();
        if !why.is_empty() {
            let _ = write!(text, "  {}", why.join("; "));
        }
        text.push('\n');
    }
}

fn bytes(copies: Copies) -> String {
    match (copies.copies, copies.unknown) {
        (0, _) => String::new(),
        (_, 0) => size(copies.bytes),
        (copies, unknown) if copies == unknown => "+".to_owned(),
        _ => format!("{} +", size(copies.bytes)),
    }
}

fn of(copied: &Copied) -> String {
    let parts = [(copied.to_device, "to the device"), (copied.from_device, "from it")];
    let parts = parts.into_iter().filter(|(copies, _)| copies.copies > 0).map(|(copies, way)| {
        let plural = if copies.copies == 1 { "copy" } else { "copies" };
        format!("{} {plural} {way}, {}", copies.copies, bytes(copies))
    });
    parts.collect::<Vec<_>>().join("; ")
}

/// Writes one line for several rows that nobody has to read one by one.
fn summary<'a>(text: &mut String, title: &str, rows: impl Iterator<Item = &'a Row>) {
    let (mut runs, mut names, mut copied) = (0, Vec::new(), Copied::default());
    for row in rows {
        runs += row.runs;
        names.push(row.op.as_str());
        for (sum, one) in [
            (&mut copied.to_device, row.copied.to_device),
            (&mut copied.from_device, row.copied.from_device),
        ] {
            sum.copies += one.copies;
            sum.bytes += one.bytes;
            sum.unknown += one.unknown;
        }
    }
    names.sort_unstable();
    names.dedup();
    if runs > 0 {
        let copied = if copied.is_none() { String::new() } else { format!("; {}", of(&copied)) };
        let line = format!("{title}: {runs} runs of {}{copied}", names.join(", "));
        let _ = writeln!(text, "  {}", wrapped(&line, 4));
    }
}
