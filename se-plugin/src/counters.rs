//! Counts of a device's tasks, in a file that users and tests read.

use crate::sync::lock;
use crate::{Result, ResultExt as _};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Counts of a device's tasks by operation, for a file with one JSON object, such as `{"MatMul": 2}`, or
/// `{"MatMul": 2, "bytes": {"MatMul": 512}}` if their bytes are counted. Clones share the counts.
#[derive(Clone, Debug)]
pub struct Counters {
    runs: Arc<Mutex<Runs>>,
}

#[derive(Debug)]
struct Runs {
    device_name: Option<String>,
    by_op: BTreeMap<&'static str, u64>,
    bytes: BTreeMap<&'static str, u64>,
    is_written: bool,
    path: Option<PathBuf>,
}

impl Counters {
    /// Creates the counters of the device with this number. Device 0 writes to `file`, others to the path with `.` and
    /// their number appended. Without a file, nothing is written.
    #[must_use]
    pub fn new(device: usize, file: Option<PathBuf>) -> Self {
        let path = file.map(|file| match device {
            0 => file,
            // One file for each device, since each may write at any time.
            device => with_ending(&file, &device.to_string()),
        });
        let (by_op, bytes) = (BTreeMap::new(), BTreeMap::new());
        let runs = Runs { device_name: None, by_op, bytes, is_written: false, path };
        Self { runs: Arc::new(Mutex::new(runs)) }
    }

    /// Sets the name of the device, which is `device` in the file.
    #[must_use]
    pub fn with_device_name(self, name: &str) -> Self {
        lock(&self.runs).device_name = Some(name.to_owned());
        self
    }

    /// Counts a run.
    pub fn count(&self, op: &'static str) {
        let mut runs = lock(&self.runs);
        *runs.by_op.entry(op).or_insert(0) += 1;
        runs.is_written = false;
    }

    /// Counts a run that moves this many bytes.
    pub fn count_bytes(&self, op: &'static str, bytes: u64) {
        *lock(&self.runs).bytes.entry(op).or_insert(0) += bytes;
        self.count(op);
    }

    /// Writes the counters to the file, if there is one and something was counted. A reader sees the old
    /// content or the new.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write(&self) -> Result<()> {
        let mut runs = lock(&self.runs);
        if runs.is_written {
            return Ok(());
        }
        let Some(path) = runs.path.clone() else { return Ok(()) };
        let new = with_ending(&path, "new");
        let context = format!("writing the counters to {}", path.display());
        std::fs::write(&new, runs.to_json()).context(context.clone())?;
        std::fs::rename(&new, &path).context(context)?;
        runs.is_written = true;
        Ok(())
    }
}

/// Returns the path with `.` and another ending appended.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

impl Runs {
    fn to_json(&self) -> String {
        let mut text = String::from("{");
        if let Some(device_name) = &self.device_name {
            // Characters that would have to be escaped are left out.
            let plain = |c: &char| !c.is_control() && !matches!(c, '"' | '\\');
            let _ = write!(
                text,
                "\"device\": \"{}\"",
                device_name.chars().filter(plain).collect::<String>()
            );
        }
        write_counts(&mut text, &self.by_op);
        if !self.bytes.is_empty() {
            text += ", \"bytes\": {";
            write_counts(&mut text, &self.bytes);
            text.push('}');
        }
        text + "}\n"
    }
}

/// Appends the members of a JSON object.
fn write_counts(text: &mut String, counts: &BTreeMap<&'static str, u64>) {
    for (op, count) in counts {
        let comma = if text.ends_with('{') { "" } else { ", " };
        // Names of operations are letters and digits, so there is nothing to escape.
        let _ = write!(text, "{comma}\"{op}\": {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_follows_the_counters() {
        let folder =
            std::env::temp_dir().join(format!("se-plugin-counters-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (device, name) in [(0, "counters"), (1, "counters.1")] {
            let counters = Counters::new(device, Some(folder.join("counters")));
            counters.count("MatMul");
            counters.count("AddV2");
            counters.count("MatMul");
            counters.write().unwrap();
            let read = || std::fs::read_to_string(folder.join(name)).unwrap();
            assert_eq!(read(), "{\"AddV2\": 1, \"MatMul\": 2}\n");
            counters.count("AddV2");
            counters.write().unwrap();
            assert_eq!(read(), "{\"AddV2\": 2, \"MatMul\": 2}\n");
        }
        let named =
            Counters::new(2, Some(folder.join("counters"))).with_device_name("a \"b\" \\ c");
        named.count("AddV2");
        named.write().unwrap();
        let read = std::fs::read_to_string(folder.join("counters.2")).unwrap();
        assert_eq!(read, "{\"device\": \"a b  c\", \"AddV2\": 1}\n");
        named.count_bytes("MatMul", 12);
        named.count_bytes("AddV2", 3);
        named.count_bytes("AddV2", 4);
        named.write().unwrap();
        let read = std::fs::read_to_string(folder.join("counters.2")).unwrap();
        let counts = "\"AddV2\": 3, \"MatMul\": 1, \"bytes\": {\"AddV2\": 7, \"MatMul\": 12}}\n";
        assert_eq!(read, format!("{{\"device\": \"a b  c\", {counts}"));
        std::fs::remove_dir_all(&folder).unwrap();
        let gone = Counters::new(0, Some(folder.join("counters")));
        assert!(gone.write().unwrap_err().to_string().contains("counters"));
        Counters::new(0, None).write().unwrap();
    }
}
