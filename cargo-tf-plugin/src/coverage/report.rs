//! The report of `coverage`: the Python modules next to this file write it, and `--json` prints it.

use serde::{Deserialize, Serialize};

/// The ops that a script ran.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Report {
    /// The TensorFlow release; `None` if the script has not imported TensorFlow.
    pub(crate) tensorflow: Option<String>,
    /// The type of the device that the report is about.
    pub(crate) device: Option<String>,
    /// The types of all devices that plugins have added.
    pub(crate) devices: Vec<String>,
    /// The function before which a dry run stopped.
    pub(crate) stopped: Option<String>,
    /// Errors while the script was watched; the report may then be incomplete.
    pub(crate) error: Option<String>,
    /// Kernels that functions lack, found before they ran.
    pub(crate) missing: Vec<Missing>,
    pub(crate) functions: u64,
    /// Functions whose ops are not in the rows.
    pub(crate) unseen: Vec<String>,
    pub(crate) rows: Vec<Row>,
    /// Copies that no op made or needs: of functions' arguments, and of tensors that the program creates.
    pub(crate) program: Copied,
}

/// A kernel that a function needs and the device does not have.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Missing {
    pub(crate) op: String,
    pub(crate) types: String,
    pub(crate) why: String,
    pub(crate) detail: String,
    /// The first function that needed it.
    pub(crate) function: String,
}

/// Where an op computes.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Where {
    /// On the device, by a kernel of the plugin.
    Device,
    /// On the device, by TensorFlow's kernel for all devices.
    Default,
    /// On the device by name, in host memory by its kernel.
    Host,
    /// On the CPU.
    Cpu,
}

/// An op with its types.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    pub(crate) op: String,
    pub(crate) types: String,
    #[serde(rename = "where")]
    pub(crate) place: Where,
    pub(crate) why: Option<String>,
    pub(crate) detail: String,
    pub(crate) runs: u64,
    /// Whether `runs` and the copies are exact. In a loop or a branch they are not: each call counts once.
    pub(crate) exact: bool,
    #[serde(flatten)]
    pub(crate) copied: Copied,
}

/// Copies to and from the device.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Copied {
    pub(crate) to_device: Copies,
    pub(crate) from_device: Copies,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Copies {
    pub(crate) copies: u64,
    /// The bytes of the copies whose size is known.
    pub(crate) bytes: u64,
    /// How many copies have a size that is not known before they run.
    pub(crate) unknown: u64,
}

impl Copied {
    pub(crate) fn is_none(&self) -> bool {
        self.to_device.copies == 0 && self.from_device.copies == 0
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.to_device.bytes + self.from_device.bytes
    }
}

impl Report {
    /// Returns why there is nothing to report, and what to do.
    pub(crate) fn problem(&self, wanted: Option<&str>) -> Option<String> {
        if self.tensorflow.is_none() {
            return Some(
                "the script did not import TensorFlow; nothing could be watched".to_owned(),
            );
        }
        if self.device.is_some() {
            return None;
        }
        let types = self.devices.join(", ");
        Some(match (wanted, self.devices.as_slice()) {
            (_, []) => "the plugin added no device; its line in the log says why (TF_CPP_MIN_LOG_LEVEL=0), and \
                        TF_SE_PLUGIN_DEVICES=0 and TF_ENABLED_DEVICE_TYPES hide devices"
                .to_owned(),
            (Some(wanted), _) => {
                format!("there is no device of the type {wanted}; plugins added {types}")
            }
            (None, _) => format!("plugins added devices of several types; name one of {types} with `--device`"),
        })
    }
}
