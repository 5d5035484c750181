//! The job that a measuring process gets, and the events that it reports.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What to measure.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Job {
    /// The plugin's file.
    pub plugin: PathBuf,
    /// The scheme to measure, if the plugin has several; none for a device.
    pub scheme: Option<String>,
    /// The type of the device, for a plugin without a scheme.
    pub device_type: Option<String>,
    /// The ops to measure, as the library describes them, for a library of ops.
    pub ops: Vec<Value>,
    /// The function that an op takes turns with.
    pub op_reference: String,
    /// Directories that may be created and removed again; the first that can be created is used.
    pub directories: Vec<String>,
    /// An existing file, for a filesystem that cannot write: no directory is created, and only reads are measured.
    pub file: Option<String>,
    /// A local directory for the same operations on TensorFlow's own filesystem.
    pub reference: Option<PathBuf>,
    /// How long each row is measured, in seconds.
    pub seconds: f64,
    /// A part of the name of a row or of its group, in lower case.
    pub filter: String,
    /// Rows that are done, or that ended a process before.
    pub skip: Vec<String>,
    /// Whether to remove the directories and do nothing else.
    pub clean: bool,
}

impl Job {
    /// Returns whether to measure a row.
    pub fn wants(&self, group: &str, name: &str) -> bool {
        let named = |text: &str| text.to_lowercase().contains(&self.filter);
        (named(name) || named(group)) && !self.skip.iter().any(|skipped| skipped == name)
    }
}

/// An event of a measuring process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// This directory will be created.
    Directory(String),
    /// This directory could not be created or not be written to, and why.
    Refused(String, String),
    /// A row begins, by its group and name; after a crash it is the row that crashed.
    Begin(String, String),
    Row(Row),
    Problem(String),
    /// This was created and could not be removed, and why.
    Left(String, String),
    /// The process was told to stop, and has removed what it had created.
    Stopped,
    Done,
}

/// An operation and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The group that it is listed in.
    pub group: String,
    /// The operation; each name is unique.
    pub name: String,
    /// How many bytes one operation moves.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// The result.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Outcome {
    Measured {
        timing: Timing,
        /// The times of the same operation in TensorFlow itself, measured in turns.
        #[serde(default)]
        reference: Option<Timing>,
    },
    /// The plugin does not implement it; what happens then.
    Absent { why: String },
    /// It has returned an error, or has ended the process.
    Failed { why: String },
}

/// Nanoseconds that one operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The middle of the samples.
    pub median_ns: f64,
    /// The fastest sample.
    pub min_ns: f64,
    /// A tenth of the samples are slower.
    pub p90_ns: f64,
    /// How many samples were taken, each the mean of some operations.
    pub samples: u64,
    /// How many operations were timed in all.
    pub calls: u64,
}

impl Timing {
    /// Summarises one or more samples, each the mean of `calls` operations.
    pub fn of(mut samples: Vec<f64>, calls: u64) -> Self {
        samples.sort_by(f64::total_cmp);
        // With an even number of samples, the median is the mean of two.
        let middle = samples.len() / 2;
        let median = match samples.len() % 2 {
            0 => f64::midpoint(samples[middle - 1], samples[middle]),
            _ => samples[middle],
        };
        let p90 = samples[(samples.len() * 9).div_ceil(10) - 1];
        Self {
            median_ns: median,
            min_ns: samples[0],
            p90_ns: p90,
            samples: samples.len() as u64,
            calls: calls * samples.len() as u64,
        }
    }

    /// Returns megabytes per second, for operations that move so many bytes each.
    pub fn megabytes(&self, bytes: u64) -> f64 {
        bytes as f64 / self.median_ns * 1e3
    }
}

/// Formats a number of bytes for the name of a row.
pub fn bytes(count: u64) -> String {
    match count {
        count if count >= 1 << 20 && count % (1 << 20) == 0 => format!("{} MiB", count >> 20),
        count if count >= 1 << 10 && count % (1 << 10) == 0 => format!("{} KiB", count >> 10),
        count => format!("{count} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_ninth_tenth_of_samples() {
        let timing = Timing::of((1..=10).rev().map(f64::from).collect(), 4);
        assert_eq!((timing.min_ns, timing.median_ns, timing.p90_ns), (1.0, 5.5, 9.0));
        assert_eq!((timing.samples, timing.calls), (10, 40));
        let one = Timing::of(vec![7.0], 1);
        assert_eq!((one.min_ns, one.median_ns, one.p90_ns), (7.0, 7.0, 7.0));
        assert_eq!(Timing { median_ns: 1000.0, ..one }.megabytes(4096), 4096.0);
    }

    #[test]
    fn a_filter_is_for_names_and_groups_and_a_row_is_skipped_by_its_name() {
        let (filter, skip) = ("read".into(), vec!["read 16 B".into()]);
        let job = Job { filter, skip, ..Job::default() };
        assert!(job.wants("Reading", "open") && job.wants("Files", "Read 4 KiB"));
        assert!(!job.wants("Reading", "read 16 B") && !job.wants("Files", "stat"));
    }
}
