//! The settings in environment variables; the table is in `lib.rs`.

use crate::cache;
use se_plugin::{Error, Result};
use std::env::VarError;
use std::path::PathBuf;
use std::time::Duration;

/// The API through which a GPU is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Cuda,
    Vulkan,
}

impl Backend {
    /// Parses the value of a setting.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "cuda" => Some(Self::Cuda),
            "vulkan" => Some(Self::Vulkan),
            _ => None,
        }
    }
}

/// How the GPU is opened and used.
pub(crate) struct Settings {
    /// The API to use; by default CUDA, or else Vulkan.
    pub(crate) backend: Option<Backend>,
    /// A part of the GPU's name. By default the first GPU that is not software.
    pub(crate) device_name: Option<String>,
    /// The most device memory to use, in bytes.
    pub(crate) memory: Option<u64>,
    /// How long a batch may take; zero for no limit.
    pub(crate) timeout: Option<Duration>,
    /// Whether cooperative matrices may be used.
    pub(crate) cooperative: bool,
    /// Whether NVIDIA's libraries may be used.
    pub(crate) libraries: bool,
    /// The directory for compiled programs.
    pub(crate) cache: Option<PathBuf>,
    /// The file for counts.
    pub(crate) counters: Option<PathBuf>,
}

impl Settings {
    /// Reads the settings.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a value that is not understood.
    pub(crate) fn of_environment() -> Result<Self> {
        fuses()?;
        let backend = "RUST_GPU_BACKEND=cuda or RUST_GPU_BACKEND=vulkan";
        let mib = |text: &str| text.parse::<u64>().ok()?.checked_mul(1 << 20);
        let seconds = |text: &str| {
            let seconds = text.parse().ok()?;
            let limit = Duration::try_from_secs_f64(seconds).ok()?;
            (seconds == 0.0 || !limit.is_zero()).then_some(limit)
        };
        let timeout = "RUST_GPU_TIMEOUT_S=300, 0 for no limit";
        let cache =
            parsed(cache::SETTING, cache::parse, "RUST_GPU_CACHE=/var/cache/gpu, 0 for none")?;
        Ok(Self {
            backend: parsed("RUST_GPU_BACKEND", Backend::parse, backend)?,
            device_name: setting("RUST_GPU_DEVICE_NAME")?,
            memory: parsed("RUST_GPU_MEMORY_MIB", mib, "RUST_GPU_MEMORY_MIB=512")?,
            timeout: parsed("RUST_GPU_TIMEOUT_S", seconds, timeout)?,
            cooperative: flag("RUST_GPU_COOPERATIVE_MATRICES")?,
            libraries: flag("RUST_GPU_NVIDIA_LIBRARIES")?,
            cache: cache.unwrap_or_else(cache::of_user),
            counters: setting("RUST_GPU_COUNTERS")?.map(Into::into),
        })
    }
}

/// Returns whether ops are fused.
///
/// # Errors
/// `INVALID_ARGUMENT` for a value that is not understood.
pub(crate) fn fuses() -> Result<bool> {
    flag("RUST_GPU_FUSE")
}

/// Returns the device type in the settings, if there is one.
pub(crate) fn device_type() -> Option<String> {
    setting("RUST_GPU_TYPE").unwrap_or_default()
}

/// Reads an environment variable that is not empty.
fn setting(name: &str) -> Result<Option<String>> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(value)) => Err(Error::invalid_argument(format!(
            "{name}={} is not understood: it is not UTF-8",
            value.display()
        ))),
    }
}

/// Reads and parses a setting, if there is one.
fn parsed<T>(name: &str, parse: impl Fn(&str) -> Option<T>, example: &str) -> Result<Option<T>> {
    let Some(text) = setting(name)? else { return Ok(None) };
    let parsed = parse(&text).ok_or_else(|| {
        Error::invalid_argument(format!("{name}={text} is not understood; write {example}"))
    });
    parsed.map(Some)
}

/// Reads a setting that turns something off.
fn flag(name: &str) -> Result<bool> {
    let flag = |text: &str| match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    };
    Ok(parsed(name, flag, &format!("{name}=0 or {name}=1"))?.unwrap_or(true))
}
