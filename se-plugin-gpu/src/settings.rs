//! The settings in environment variables, whose names begin with that of the platform.

use crate::cache;
use se_plugin::{Error, Result};
use std::env::VarError;
use std::path::PathBuf;
use std::time::Duration;

/// How long a batch may take without a setting: five times the longest limit of a driver, that of `amdgpu` for compute: 60 s.
/// NVIDIA's driver has none for a GPU without a display, so a batch of large matrix products may take longer than that.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// How a GPU is opened and used. For a platform named `MY_GPU`:
///
/// | Environment variable | Meaning |
/// |---|---|
/// | `MY_GPU_DEVICE_NAME` | part of the name of the GPUs to use; without it, all GPUs that are not software |
/// | `MY_GPU_MEMORY_MIB` | the most device memory to use, in MiB; all by default |
/// | `MY_GPU_TIMEOUT_S` | after so many seconds without a finished batch of work the GPU counts as hung. 300 by default; 0 means no limit, the default for software |
/// | `MY_GPU_TYPE` | the type of the device, in place of the plugin's |
/// | `MY_GPU_FUSE` | `0`: elementwise ops that follow each other in a graph are not fused |
/// | `MY_GPU_FUSE_ATTENTION` | `1`: attention is one op for all types; `0`: for none. By default it is for float32, and for types of 16 bits that no GPU of the process multiplies by matrix units or a library |
/// | `MY_GPU_COOPERATIVE_MATRICES` | `0`: products of float16 are computed without the matrix units |
/// | `MY_GPU_FLOAT64` | `0`: ops compute with float64 on the CPU |
/// | `MY_GPU_CACHE` | the directory for compiled programs, or `0` for none; `~/.cache/tensorflow-my-gpu` by default |
/// | `MY_GPU_COUNTERS` | a file to which the GPU's name, how often each kernel ran, and the bytes of its tensors are written, whenever a tensor is copied to the host |
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The name of the platform, with which the names of settings and log lines begin.
    pub prefix: &'static str,
    /// A part of the GPUs' names. By default all GPUs that are not software.
    pub device_name: Option<String>,
    /// The most device memory to use, in bytes.
    pub memory: Option<u64>,
    /// How long a batch may take; zero for no limit, `None` for [`DEFAULT_TIMEOUT`] or, with software, no limit.
    pub timeout: Option<Duration>,
    /// Whether cooperative matrices may be used.
    pub cooperative: bool,
    /// Whether ops may compute with float64.
    pub float64: bool,
    /// The directory for compiled programs.
    pub cache: Option<PathBuf>,
    /// The file for counts.
    pub counters: Option<PathBuf>,
}

impl Settings {
    /// Returns the defaults, without compiled programs on disk.
    #[must_use]
    pub fn new(prefix: &'static str) -> Self {
        Self {
            prefix,
            device_name: None,
            memory: None,
            timeout: None,
            cooperative: true,
            float64: true,
            cache: None,
            counters: None,
        }
    }

    /// Reads the settings.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a value that is not understood.
    pub fn of_environment(prefix: &'static str) -> Result<Self> {
        fuses(prefix)?;
        fuses_attention(prefix)?;
        let name = |setting: &str| format!("{prefix}_{setting}");
        let mib = |text: &str| text.parse::<u64>().ok()?.checked_mul(1 << 20);
        let seconds = |text: &str| {
            let seconds = text.parse().ok()?;
            let limit = Duration::try_from_secs_f64(seconds).ok()?;
            (seconds == 0.0 || !limit.is_zero()).then_some(limit)
        };
        let directory = format!("/var/cache/{}, 0 for none", prefix.to_lowercase());
        let cache = parsed(&name("CACHE"), cache::parse, &directory)?;
        Ok(Self {
            prefix,
            device_name: text(&name("DEVICE_NAME"))?,
            memory: parsed(&name("MEMORY_MIB"), mib, "512")?,
            timeout: parsed(&name("TIMEOUT_S"), seconds, "300, 0 for no limit")?,
            cooperative: flag(&name("COOPERATIVE_MATRICES"), true)?,
            float64: flag(&name("FLOAT64"), true)?,
            cache: cache.unwrap_or_else(|| cache::of_user(prefix)),
            counters: text(&name("COUNTERS"))?.map(Into::into),
        })
    }

    /// Returns the full name of a setting, such as `MY_GPU_DEVICE_NAME` for `DEVICE_NAME`.
    #[must_use]
    pub fn name(&self, setting: &str) -> String {
        format!("{}_{setting}", self.prefix)
    }
}

/// Returns whether ops are fused.
///
/// # Errors
/// `INVALID_ARGUMENT` for a value that is not understood.
pub(crate) fn fuses(prefix: &str) -> Result<bool> {
    flag(&format!("{prefix}_FUSE"), true)
}

/// Returns whether attention is one op, for all types or for none, if that is set.
///
/// # Errors
/// `INVALID_ARGUMENT` for a value that is not understood.
pub(crate) fn fuses_attention(prefix: &str) -> Result<Option<bool>> {
    optional_flag(&format!("{prefix}_FUSE_ATTENTION"))
}

/// Reads an environment variable that is not empty.
///
/// # Errors
/// `INVALID_ARGUMENT` if it is not UTF-8.
pub fn text(name: &str) -> Result<Option<String>> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(value)) => Err(Error::invalid_argument(format!(
            "{name}={} is not understood: it is not UTF-8",
            value.display()
        ))),
    }
}

/// Reads and parses an environment variable, if there is one. `example` is a value, for the error.
///
/// # Errors
/// `INVALID_ARGUMENT` for a value that is not understood.
pub fn parsed<T>(
    name: &str,
    parse: impl Fn(&str) -> Option<T>,
    example: &str,
) -> Result<Option<T>> {
    let Some(text) = text(name)? else { return Ok(None) };
    let parsed = parse(&text).ok_or_else(|| {
        Error::invalid_argument(format!("{name}={text} is not understood; write {name}={example}"))
    });
    parsed.map(Some)
}

/// Reads an environment variable that turns something on or off, of which `default` is the usual state.
///
/// # Errors
/// `INVALID_ARGUMENT` for a value that is neither 0 nor 1.
pub fn flag(name: &str, default: bool) -> Result<bool> {
    Ok(optional_flag(name)?.unwrap_or(default))
}

fn optional_flag(name: &str) -> Result<Option<bool>> {
    let flag = |text: &str| match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    };
    parsed(name, flag, &format!("0 or {name}=1"))
}
