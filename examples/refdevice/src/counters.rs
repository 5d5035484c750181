//! How often tasks ran.

use se_plugin::{Result, ResultExt as _};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The runs of a device's tasks, by the name of their operation.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    runs: Arc<Mutex<Runs>>,
}

#[derive(Debug)]
struct Runs {
    device: usize,
    by_op: BTreeMap<&'static str, u64>,
    is_written: bool,
    file: Option<PathBuf>,
}

impl Counters {
    /// Of the device with this number, for a file that all devices share.
    pub(crate) fn new(device: usize, file: Option<PathBuf>) -> Self {
        let runs = Runs { device, by_op: BTreeMap::new(), is_written: false, file };
        Self { runs: Arc::new(Mutex::new(runs)) }
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a run.
    pub(crate) fn count(&self, op: &'static str) {
        let mut runs = self.runs();
        *runs.by_op.entry(op).or_insert(0) += 1;
        runs.is_written = false;
    }

    /// Writes the counters to the file, if there is one and something was counted. A reader sees the old
    /// content or the new.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn write(&self) -> Result<()> {
        let mut runs = self.runs();
        if runs.is_written {
            return Ok(());
        }
        let Some(file) = runs.file.clone() else { return Ok(()) };
        let path = match runs.device {
            0 => file,
            // One file for each, since they are written at any time.
            device => with_ending(&file, &device.to_string()),
        };
        let new = with_ending(&path, "new");
        let context = format!("writing the counters to {}", path.display());
        std::fs::write(&new, runs.to_json()).context(context.clone())?;
        std::fs::rename(&new, &path).context(context)?;
        runs.is_written = true;
        Ok(())
    }
}

/// The path with another ending behind those that it has.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

impl Runs {
    fn to_json(&self) -> String {
        let mut text = String::from("{");
        for (index, (op, count)) in self.by_op.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            // Names of operations are letters and digits, so there is nothing to escape.
            let _ = write!(text, "{comma}\"{op}\": {count}");
        }
        text + "}\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_follows_the_counters() {
        let folder = std::env::temp_dir().join(format!("refdevice-{}", std::process::id()));
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
        std::fs::remove_dir_all(&folder).unwrap();
        let gone = Counters::new(0, Some(folder.join("counters")));
        assert!(gone.write().unwrap_err().to_string().contains("counters"));
        Counters::new(0, None).write().unwrap();
    }
}
