//! A report as text for a terminal.

use std::fmt::Write as _;

use anstyle::Style;

use crate::bench::job::{Outcome, Row};
use crate::bench::report::{Part, Report, number, ratio};
use crate::render::{BAD, BOLD, CAREFUL, DIM, GOOD, line, painted, wrapped};

/// The widths of the columns behind the name.
const NUMBER: usize = 13;
const RATE: usize = 10;
const SPREAD: usize = 27;
const RATIO: usize = 9;

/// Formats the whole report, compared with an earlier one.
pub(crate) fn text(report: &Report, baseline: Option<&Report>) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", painted(BOLD, &report.plugin.name()));
    line(&mut text, "file", &report.plugin.shown());
    line(&mut text, "sha256", &report.plugin.sha256[..16.min(report.plugin.sha256.len())]);
    line(&mut text, "machine", &report.machine.line());
    line(&mut text, "measured", &format!("{}, each row for {} s", report.date, report.seconds));
    if let Some(busy) = busy(report) {
        line(&mut text, "note", &painted(CAREFUL, &busy));
    }
    if let Some(baseline) = baseline {
        line(&mut text, "baseline", &format!("{} of {}", baseline.plugin.name(), baseline.date));
    }
    let names = report.parts.iter().flat_map(|part| &part.rows).map(|row| row.name.chars().count());
    // Titles stand further to the left.
    let titles = report.parts.iter().map(|part| part.title().chars().count().saturating_sub(4));
    let width = names.chain(titles).max().unwrap_or(0);
    for part in &report.parts {
        text.push('\n');
        head(&mut text, part, width, baseline.is_some());
        let mut group = "";
        for row in &part.rows {
            if row.group != group {
                group = &row.group;
                let _ = writeln!(text, "  {}", painted(DIM, group));
            }
            let since = baseline.map(|baseline| baseline.since(part, row));
            self::row(&mut text, part, row, width, since);
        }
    }
    text
}

/// Says what the load of the machine means for the numbers.
pub(crate) fn busy(report: &Report) -> Option<String> {
    let machine = &report.machine;
    (machine.load > 0.5 * machine.cores as f64).then(|| {
        format!(
            "the machine was busy before ({:.1} of {} cores): times may be too long",
            machine.load, machine.cores
        )
    })
}

fn head(text: &mut String, part: &Part, width: usize, compared: bool) {
    let name = format!("{:<1$}", part.title(), width + 4);
    let mut columns =
        format!("{:>NUMBER$}{:>RATE$}{:>SPREAD$}", "ns/op", "MB/s", "fastest to 90 %");
    if let Some(reference) = &part.reference {
        let _ = write!(columns, "{reference:>0$}{1:>RATIO$}", reference_width(reference), "ratio");
    }
    if compared {
        let _ = write!(columns, "{:>1$}", "baseline", RATIO + 2);
    }
    let _ = writeln!(text, "{}{}", painted(BOLD, &name), painted(DIM, &columns));
}

/// The width of a column with this heading, of which some are longer than their numbers.
fn reference_width(reference: &str) -> usize {
    NUMBER.max(reference.len() + 2)
}

fn row(text: &mut String, part: &Part, row: &Row, width: usize, since: Option<Option<f64>>) {
    let _ = write!(text, "    {:<width$}", row.name);
    match &row.outcome {
        Outcome::Measured { timing, reference } => {
            let rate = row.bytes.map_or_else(String::new, |bytes| number(timing.megabytes(bytes)));
            let spread = format!("{} to {}", number(timing.min_ns), number(timing.p90_ns));
            let _ = write!(
                text,
                "{:>NUMBER$}{rate:>RATE$}{}",
                number(timing.median_ns),
                painted(DIM, &format!("{spread:>SPREAD$}"))
            );
            if let Some(heading) = &part.reference {
                let reference =
                    reference.map_or_else(|| "-".to_owned(), |other| number(other.median_ns));
                let (column, ratio) = (reference_width(heading), row.ratio());
                let _ = write!(text, "{reference:>column$}{}", coloured(ratio, RATIO, 1.0, 3.0));
            }
            if let Some(since) = since {
                text.push_str(&coloured(since, RATIO + 2, 0.9, 1.2));
            }
            text.push('\n');
        }
        Outcome::Absent { why } => {
            let _ = writeln!(text, "  {}", painted(DIM, why));
        }
        Outcome::Failed { why } => {
            let mut lines = why.lines();
            let first = lines.next().unwrap_or_default();
            let first = painted(BAD, &wrapped(&format!("failed: {first}"), width + 6));
            let _ = writeln!(text, "  {first}");
            for line in lines {
                let _ = writeln!(text, "      {}", painted(DIM, line.trim_start()));
            }
        }
    }
}

/// Formats a ratio, with a colour if it is small or large.
fn coloured(value: Option<f64>, width: usize, good: f64, careful: f64) -> String {
    let Some(value) = value else { return format!("{:>width$}", "-") };
    let style = if value <= good {
        GOOD
    } else if value >= careful {
        CAREFUL
    } else {
        Style::new()
    };
    painted(style, &format!("{:>width$}", ratio(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::tests::{report, row};

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn columns_are_aligned_and_what_was_not_measured_is_said() {
        let mut report = report(vec![
            row("read 4 KiB", 1234.0, Some(500.0)),
            row("open", 88.0, Some(100.0)),
            Row {
                outcome: Outcome::Absent { why: "not implemented: TensorFlow calls stat".into() },
                ..row("get_file_size", 1.0, None)
            },
            Row {
                outcome: Outcome::Failed { why: "DATA_LOSS: gone\n  | its words".into() },
                ..row("stat", 1.0, None)
            },
        ]);
        report.parts[0].reference = Some("file://".into());
        let mut earlier = self::report(vec![row("open", 44.0, None)]);
        earlier.parts[0].reference = Some("file://".into());
        let text = plain(&super::text(&report, Some(&earlier)));
        let wanted = "
mem:// through the C table        ns/op      MB/s            fastest to 90 %      file://    ratio   baseline
  Reading
    read 4 KiB                    1,234     3,319             1,111 to 1,481          500    2.47×          -
    open                           88.0    46,545                79.2 to 106          100    0.88×      2.00×
    get_file_size           not implemented: TensorFlow calls stat
    stat                    failed: DATA_LOSS: gone
      | its words
";
        assert!(text.ends_with(wanted), "{text}");
        report.parts[0].reference = Some("tf.py_function".into());
        let text = plain(&super::text(&report, None));
        for line in [
            "        fastest to 90 %  tf.py_function    ratio\n",
            "         1,111 to 1,481             500    2.47×\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn a_busy_machine_is_mentioned() {
        let mut report = report(vec![row("open", 1.0, None)]);
        assert!(!text(&report, None).contains("busy"));
        report.machine.load = 1.5;
        assert!(text(&report, None).contains("the machine was busy before (1.5 of 2 cores)"));
    }
}
