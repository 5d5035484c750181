//! All measurements, and their comparison with an earlier run.

use std::env;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::bench::job::{Outcome, Row};
use crate::bench::machine::Machine;

/// The version of the JSON format; other versions are not read.
pub(crate) const FORMAT: u32 = 1;

/// A measurement: the machine, the file, the time and the rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) format: u32,
    pub(crate) tool: String,
    /// The time when it began, in UTC.
    pub(crate) date: String,
    pub(crate) plugin: Plugin,
    pub(crate) machine: Machine,
    /// How long each row was measured.
    pub(crate) seconds: f64,
    pub(crate) parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plugin {
    pub(crate) path: PathBuf,
    /// In bytes.
    pub(crate) size: u64,
    pub(crate) sha256: String,
}

impl Plugin {
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the file's path, relative to the current directory where possible.
    pub(crate) fn shown(&self) -> String {
        let here = env::current_dir().unwrap_or_default();
        self.path.strip_prefix(here).unwrap_or(&self.path).display().to_string()
    }
}

/// One filesystem or device, called in one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// The scheme with `://`, or the device's name.
    pub(crate) subject: String,
    /// The C table, or a release of TensorFlow.
    pub(crate) through: String,
    /// The implementation on which the same operations ran in turns.
    pub(crate) reference: Option<String>,
    pub(crate) rows: Vec<Row>,
}

impl Part {
    pub(crate) fn title(&self) -> String {
        format!("{} through {}", self.subject, self.through)
    }
}

/// The size limit of a report in bytes, for files such as `/dev/zero`.
const LARGEST: u64 = 64 << 20;

impl Report {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let failed = || format!("cannot read {}", path.display());
        let mut content = Vec::new();
        let file = File::open(path).with_context(failed)?;
        file.take(LARGEST).read_to_end(&mut content).with_context(failed)?;
        let advice = || {
            format!(
                "{} is not a report of this version; make one with `cargo tf-plugin bench --save {}`",
                path.display(),
                path.display()
            )
        };
        let report: Self = serde_json::from_slice(&content).with_context(advice)?;
        if report.format != FORMAT {
            bail!(advice());
        }
        Ok(report)
    }

    /// Returns how many times as long a row takes as in this report, which is an earlier one.
    pub(crate) fn since(&self, part: &Part, row: &Row) -> Option<f64> {
        let same = |other: &&Part| {
            (&other.subject, &other.through, &other.reference)
                == (&part.subject, &part.through, &part.reference)
        };
        let earlier = self.parts.iter().find(same)?;
        let earlier = earlier.rows.iter().find(|other| other.name == row.name)?;
        Some(earlier.median()?.recip() * row.median()?)
    }

    pub(crate) fn failures(&self) -> usize {
        let rows = self.parts.iter().flat_map(|part| &part.rows);
        rows.filter(|row| matches!(row.outcome, Outcome::Failed { .. })).count()
    }
}

impl Row {
    /// Returns the time of the operation, in nanoseconds.
    pub(crate) fn median(&self) -> Option<f64> {
        match &self.outcome {
            Outcome::Measured { timing, .. } => Some(timing.median_ns),
            _ => None,
        }
    }

    /// Returns how many times as long the operation takes as TensorFlow's own.
    pub(crate) fn ratio(&self) -> Option<f64> {
        match &self.outcome {
            Outcome::Measured { timing, reference: Some(reference) } => {
                Some(timing.median_ns / reference.median_ns)
            }
            _ => None,
        }
    }
}

/// Formats a number with three significant digits, as short as it is readable.
pub(crate) fn ratio(value: f64) -> String {
    match value {
        value if value >= 99.5 => format!("{value:.0}×"),
        value if value >= 9.95 => format!("{value:.1}×"),
        value if value >= 0.095 => format!("{value:.2}×"),
        value => format!("{value:.3}×"),
    }
}

/// Formats a number in groups of three digits; with a decimal if it is small.
pub(crate) fn number(value: f64) -> String {
    if value < 99.95 { format!("{value:.1}") } else { grouped(value) }
}

/// Formats a whole number in groups of three digits.
pub fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;
    use crate::bench::job::Timing;

    pub(crate) fn row(name: &str, median: f64, reference: Option<f64>) -> Row {
        let timing = |median_ns| Timing {
            median_ns,
            min_ns: median_ns * 0.9,
            p90_ns: median_ns * 1.2,
            samples: 10,
            calls: 100,
        };
        let outcome =
            Outcome::Measured { timing: timing(median), reference: reference.map(timing) };
        Row { group: "Reading".into(), name: name.into(), bytes: Some(4096), outcome }
    }

    pub(crate) fn report(rows: Vec<Row>) -> Report {
        Report {
            format: FORMAT,
            tool: "0.1.0".into(),
            date: "2026-11-21T14:00:00Z".into(),
            plugin: Plugin {
                path: "/x/lib<a>.so".into(),
                size: 1_234_567,
                sha256: "00".repeat(32),
            },
            machine: Machine {
                cpu: "A & B".into(),
                cores: 2,
                memory: 8 << 30,
                system: "Linux 6.1".into(),
                load: 0.0,
            },
            seconds: 0.25,
            parts: vec![Part {
                subject: "mem://".into(),
                through: "the C table".into(),
                reference: None,
                rows,
            }],
        }
    }

    #[test]
    fn numbers_are_as_people_read_them() {
        assert_eq!([9.96, 123.4, 1e6].map(number), ["10.0", "123", "1,000,000"]);
        assert_eq!(number(1234.5), "1,234");
        let said = [0.004, 0.5, 1.0, 12.34, 250.0].map(ratio);
        assert_eq!(said, ["0.004×", "0.50×", "1.00×", "12.3×", "250×"]);
    }

    #[test]
    fn a_report_is_compared_with_an_earlier_one_row_by_row() {
        let earlier = report(vec![row("a", 100.0, None), row("b", 10.0, None)]);
        let now = report(vec![row("a", 150.0, None), row("c", 10.0, None)]);
        let part = &now.parts[0];
        assert_eq!(earlier.since(part, &part.rows[0]), Some(1.5));
        assert_eq!(earlier.since(part, &part.rows[1]), None);
        let other = Part { through: "TensorFlow 2.21.0".into(), ..part.clone() };
        assert_eq!(earlier.since(&other, &other.rows[0]), None);
        let other = Part { reference: Some("CPU".into()), ..part.clone() };
        assert_eq!(earlier.since(&other, &other.rows[0]), None);
    }

    #[test]
    fn json_is_read_as_it_was_written_and_another_format_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut report = report(vec![row("a", 100.0, Some(50.0))]);
        let absent = Outcome::Absent { why: "not implemented".into() };
        report.parts[0].rows.push(Row { outcome: absent, ..row("b", 1.0, None) });
        fs::write(file.path(), serde_json::to_string(&report).expect("JSON")).expect("written");
        assert_eq!(Report::read(file.path()).expect("a report"), report);
        report.format += 1;
        fs::write(file.path(), serde_json::to_string(&report).expect("JSON")).expect("written");
        let error = Report::read(file.path()).expect_err("another format").to_string();
        assert!(error.contains("bench --save"), "{error}");
    }
}
