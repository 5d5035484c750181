//! The measured operations, what they must find, and the targets.

use serde_json::{Map, Value, json};

use crate::clients::Client;

/// 2¹⁰ bytes.
pub const KIB: u64 = 1 << 10;
/// 2²⁰ bytes.
pub const MIB: u64 = 1 << 20;
/// Length of the large object that is read.
pub const LARGE: u64 = 256 * MIB;
/// Records of 16 KiB in each of the 16 TFRecord files of 16 MiB.
pub const RECORDS: u64 = 1023;
/// Objects in the listed directory, and files in the tree of 120 directories.
pub const LISTED: u64 = 5000;
/// Files in the tree: 20 directories of 5 directories of 5 files.
pub const TREE: u64 = 500;
/// Objects that are deleted at once.
pub const DELETED: u64 = 500;

/// How much of an object set an operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// A tenth, for a client that would take minutes.
    Tenth,
}

impl Part {
    /// As in the names of objects.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Tenth => "tenth",
        }
    }

    /// So much of `whole`.
    #[must_use]
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Self::Whole => whole,
            Self::Tenth => whole / 10,
        }
    }
}

/// What a target says of a loopback network as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unshaped {
    /// At least such a part of TensorFlow's own speed on files in memory.
    OfMemory(f64),
    /// At most so many seconds.
    Seconds(f64),
}

/// What the plugin should reach; `None` if it has no target.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target {
    /// Seconds of an operation with the shaped network.
    pub shaped: Option<f64>,
    /// Without shaping.
    pub unshaped: Option<Unshaped>,
    /// Requests of an operation.
    pub requests: Option<f64>,
    /// Bytes sent by an operation.
    pub sent: Option<u64>,
}

/// An operation of the clients.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The method of the clients.
    pub run: &'static str,
    /// As the tables name it.
    pub title: &'static str,
    /// A method that is called before, if any; it is not measured.
    pub setup: Option<&'static str>,
    /// How many operations are measured at once; their figures are divided by it.
    pub count: u64,
    /// Whether it can work on a tenth.
    pub parts: bool,
    /// Whether it writes below a directory of its own.
    pub writes: bool,
    /// Whether tensorflow-io takes so long with a shaped network that it does it once.
    pub slow: bool,
    /// The other clients that can do it.
    pub peers: &'static [Client],
    /// Whether TensorFlow does it on files in memory for comparison.
    pub memory: bool,
    /// What the plugin should reach.
    pub target: Target,
}

const NONE: Target = Target { shaped: None, unshaped: None, requests: None, sent: None };

const ROW: Row = Row {
    run: "",
    title: "",
    setup: None,
    count: 1,
    parts: false,
    writes: false,
    slow: false,
    peers: &[],
    memory: false,
    target: NONE,
};

/// Shaped seconds and requests.
const fn reach(shaped: f64, requests: f64) -> Target {
    Target { shaped: Some(shaped), requests: Some(requests), ..NONE }
}

const fn reach_of_memory(shaped: f64, requests: f64, part: f64) -> Target {
    Target { unshaped: Some(Unshaped::OfMemory(part)), ..reach(shaped, requests) }
}

const ALL: &[Client] = &Client::OTHERS;
const S3FS: &[Client] = &[Client::S3fs];
const WITH_DIRECTORIES: &[Client] = &[Client::Boto3, Client::S3fs];

/// Small files or directories that are looked at one after the other.
const SMALL: u64 = 20;

/// All rows, in the order of the tables.
pub const ROWS: &[Row] = &[
    Row {
        run: "read_chunks",
        title: "read 256 MiB, `GFile.read` of 1 MiB",
        parts: true,
        slow: true,
        peers: ALL,
        memory: true,
        target: reach_of_memory(0.70, 36.0, 0.85),
        ..ROW
    },
    Row {
        run: "read_whole",
        title: "read 256 MiB, one `GFile.read`",
        parts: true,
        slow: true,
        peers: ALL,
        memory: true,
        target: reach(0.90, 36.0),
        ..ROW
    },
    Row {
        run: "read_file",
        title: "read 256 MiB, `tf.io.read_file`",
        parts: true,
        slow: true,
        peers: ALL,
        memory: true,
        target: reach_of_memory(0.50, 36.0, 0.75),
        ..ROW
    },
    Row {
        run: "records",
        title: "`TFRecordDataset`, 16 files of 16 MiB",
        peers: ALL,
        memory: true,
        target: reach_of_memory(1.4, 128.0, 0.80),
        ..ROW
    },
    Row {
        run: "records_parallel",
        title: "– with `num_parallel_reads=8`",
        peers: ALL,
        memory: true,
        target: reach(0.40, 128.0),
        ..ROW
    },
    Row { run: "records_buffer", title: "– with `buffer_size` 256 KiB", memory: true, ..ROW },
    Row {
        run: "read_random",
        title: "read 64 KiB at a random place, `GFile`",
        count: 200,
        slow: true,
        peers: ALL,
        memory: true,
        target: reach(0.038, 1.0),
        ..ROW
    },
    Row { run: "read_many", title: "read 16 files of 64 MiB at once", ..ROW },
    Row {
        run: "write_large",
        title: "write 256 MiB, 1 MiB at a time",
        writes: true,
        peers: ALL,
        memory: true,
        target: Target { unshaped: Some(Unshaped::Seconds(0.268)), ..reach(0.55, 34.0) },
        ..ROW
    },
    Row {
        run: "write_small",
        title: "write 1 KiB",
        count: SMALL,
        writes: true,
        peers: ALL,
        target: Target { requests: Some(1.0), ..NONE },
        ..ROW
    },
    Row {
        run: "append",
        title: "append 1 KiB to an object of 8 MiB",
        writes: true,
        target: Target { requests: Some(5.0), sent: Some(MIB), ..NONE },
        ..ROW
    },
    Row {
        run: "flush",
        title: "16 × (write 1 MiB, flush)",
        writes: true,
        target: Target { sent: Some(40 * MIB), ..NONE },
        ..ROW
    },
    Row {
        run: "event_log",
        title: "event log, 50 × (200 kB, flush)",
        writes: true,
        target: Target { requests: Some(130.0), sent: Some(80_000_000), ..NONE },
        ..ROW
    },
    Row {
        run: "listdir",
        title: "`listdir`, 5,000 objects",
        parts: true,
        peers: ALL,
        target: reach(0.22, 6.0),
        ..ROW
    },
    Row {
        run: "glob",
        title: "`glob` `*`, 5,000 objects",
        parts: true,
        slow: true,
        peers: S3FS,
        target: reach(0.25, 5.0),
        ..ROW
    },
    Row {
        run: "glob_tree",
        title: "`glob` `*/*/*`, 500 files in 120 directories",
        parts: true,
        slow: true,
        peers: S3FS,
        target: reach(0.10, 2.0),
        ..ROW
    },
    Row {
        run: "walk",
        title: "`walk`, 500 files in 120 directories",
        parts: true,
        slow: true,
        peers: S3FS,
        target: reach(4.2, 122.0),
        ..ROW
    },
    Row {
        run: "stat",
        title: "`stat`",
        count: SMALL,
        peers: ALL,
        target: reach(0.034, 1.0),
        ..ROW
    },
    Row {
        run: "exists",
        title: "`exists`",
        count: SMALL,
        peers: ALL,
        target: reach(0.034, 1.0),
        ..ROW
    },
    Row {
        run: "exists_missing",
        title: "`exists`, missing",
        count: SMALL,
        peers: WITH_DIRECTORIES,
        target: reach(0.034, 2.0),
        ..ROW
    },
    Row {
        run: "isdir",
        title: "`isdir`",
        count: SMALL,
        peers: WITH_DIRECTORIES,
        target: reach(0.034, 1.0),
        ..ROW
    },
    Row {
        run: "read_small",
        title: "open and read 1 KiB",
        count: SMALL,
        peers: ALL,
        target: reach(0.066, 1.0),
        ..ROW
    },
    Row {
        run: "copy",
        title: "`copy` 100 MiB",
        writes: true,
        peers: ALL,
        target: reach(0.07, 2.0),
        ..ROW
    },
    Row {
        run: "rename",
        title: "`rename` 100 MiB",
        writes: true,
        peers: ALL,
        target: reach(0.10, 3.0),
        ..ROW
    },
    Row {
        run: "rmtree",
        title: "`rmtree`, 500 objects",
        parts: true,
        slow: true,
        writes: true,
        peers: WITH_DIRECTORIES,
        target: reach(0.15, 4.0),
        ..ROW
    },
    Row {
        run: "checkpoint_write",
        title: "`Checkpoint.write`, 100 MiB",
        setup: Some("prepare_write"),
        writes: true,
        memory: true,
        target: reach(1.2, 30.0),
        ..ROW
    },
    Row {
        run: "checkpoint_read",
        title: "`Checkpoint.read`, 100 MiB",
        setup: Some("prepare_read"),
        writes: true,
        memory: true,
        target: reach(0.55, 20.0),
        ..ROW
    },
    Row {
        run: "manager_save",
        title: "`CheckpointManager.save`, 100 MiB",
        setup: Some("prepare_manager"),
        writes: true,
        memory: true,
        ..ROW
    },
    Row {
        run: "model_save",
        title: "`saved_model.save`, 100 MiB",
        setup: Some("prepare_model"),
        writes: true,
        memory: true,
        target: reach(1.7, 45.0),
        ..ROW
    },
    Row {
        run: "model_load",
        title: "`saved_model.load`, 100 MiB",
        setup: Some("prepare_load"),
        writes: true,
        memory: true,
        target: reach(0.8, 25.0),
        ..ROW
    },
];

impl Row {
    /// What the method is called with: the `first` of small files that were not looked at before, and `out`, an empty
    /// directory.
    #[must_use]
    pub fn arguments(&self, part: Part, first: u64, out: &str) -> Value {
        let mut arguments = Map::new();
        if self.parts {
            arguments.insert("part".into(), json!(part.name()));
        }
        if self.writes {
            arguments.insert("out".into(), json!(out));
        }
        if self.count > 1 {
            arguments.insert("count".into(), json!(self.count));
            if self.uses_small_files() {
                arguments.insert("first".into(), json!(first));
            }
        }
        arguments.into()
    }

    /// Whether it works on small files by number.
    #[must_use]
    pub fn uses_small_files(&self) -> bool {
        self.count == SMALL
    }

    /// What the operation must find.
    #[must_use]
    pub fn expected(&self, part: Part) -> u64 {
        match self.run {
            "read_chunks" | "read_whole" | "read_file" => part.of(LARGE),
            "records" | "records_parallel" | "records_buffer" => 16 * RECORDS,
            "read_random" => self.count * 64 * KIB,
            "read_many" => 1024 * MIB,
            "listdir" | "glob" => part.of(LISTED),
            "glob_tree" | "walk" => part.of(TREE),
            "stat" | "read_small" => self.count * KIB,
            "exists" | "isdir" => self.count,
            "model_load" => 20,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_called_with_what_its_method_takes() {
        let row = |run: &str| *ROWS.iter().find(|row| row.run == run).unwrap();
        let arguments = row("rmtree").arguments(Part::Tenth, 0, "out/1");
        assert_eq!(arguments, json!({ "part": "tenth", "out": "out/1" }));
        let arguments = row("stat").arguments(Part::Whole, 40, "out/1");
        assert_eq!(arguments, json!({ "count": 20, "first": 40 }));
        let arguments = row("read_random").arguments(Part::Whole, 40, "out/1");
        assert_eq!(arguments, json!({ "count": 200 }));
    }

    #[test]
    fn a_name_means_one_row() {
        for (index, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..index].iter().all(|other| other.run != row.run), "{} twice", row.run);
        }
    }
}
