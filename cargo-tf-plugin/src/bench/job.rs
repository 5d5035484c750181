//! What a process that measures is told, and what it tells.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What is to be measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Job {
    /// The plugin's file.
    pub plugin: PathBuf,
    /// The scheme to take of those that it has; a device without one.
    pub scheme: Option<String>,
    /// The type of the device, where there is no scheme.
    pub device_type: Option<String>,
    /// Directories that may be made and removed again; the first one that can be made is taken.
    pub directories: Vec<String>,
    /// A file that is there, for a filesystem that cannot write: no directory is made, and only what reads is measured.
    pub file: Option<String>,
    /// A directory of this machine for the same operations on TensorFlow's own filesystem.
    pub reference: Option<PathBuf>,
    /// How long each row is measured, in seconds.
    pub seconds: f64,
    /// What the name of a row or of its group contains, in lower case.
    pub filter: String,
    /// Rows that are done, or that have ended a process before.
    pub skip: Vec<String>,
    /// Remove the directories and do nothing else.
    pub clean: bool,
}

impl Job {
    /// Whether a row is to be measured.
    pub fn wants(&self, group: &str, name: &str) -> bool {
        let named = |text: &str| text.to_lowercase().contains(&self.filter);
        (named(name) || named(group)) && !self.skip.iter().any(|skipped| skipped == name)
    }
}

/// What a measuring process tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// This directory is going to be made.
    Directory(String),
    /// This directory could not be made or not be written to, and why.
    Refused(String, String),
    /// A row begins, by its group and name: it is what a crash was in.
    Begin(String, String),
    Row(Row),
    Problem(String),
    /// This was made and could not be removed, and why.
    Left(String, String),
    /// It was told to stop, and has removed what it had made.
    Stopped,
    Done,
}

/// An operation and what it has come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What it is listed with.
    pub group: String,
    /// What is measured; each name is there once.
    pub name: String,
    /// How many bytes one operation moves.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// What it has come to.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What an operation has come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Outcome {
    Measured {
        timing: Timing,
        /// The times of the same operation on what TensorFlow has itself, taken in turns.
        #[serde(default)]
        reference: Option<Timing>,
    },
    /// The plugin does not have it, and what happens then.
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
    /// Of the means of one or more samples, and the number of operations in each.
    pub fn of(mut samples: Vec<f64>, calls: u64) -> Self {
        samples.sort_by(f64::total_cmp);
        // Of an even number the middle is between two.
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

    /// Megabytes a second, of so many bytes an operation.
    pub fn megabytes(&self, bytes: u64) -> f64 {
        bytes as f64 / self.median_ns * 1e3
    }
}

/// A number of bytes in the name of a row.
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
