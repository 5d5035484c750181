//! The settings in environment variables that only this plugin has; the table is in `lib.rs`.

use se_plugin::Result;
use se_plugin_gpu::settings::{flag, parsed};

/// The API through which a GPU is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Cuda,
    Vulkan,
    OpenCl,
}

impl Api {
    /// Parses the value of a setting.
    fn parse(name: &str) -> Option<Self> {
        match name {
            "cuda" => Some(Self::Cuda),
            "vulkan" => Some(Self::Vulkan),
            "opencl" => Some(Self::OpenCl),
            _ => None,
        }
    }
}

/// Returns the API to use, if there is one in the settings.
///
/// # Errors
/// `INVALID_ARGUMENT` for a value that is not understood.
pub(crate) fn api() -> Result<Option<Api>> {
    parsed("RUST_GPU_BACKEND", Api::parse, "cuda, vulkan or opencl")
}

/// Returns whether NVIDIA's libraries may be used.
///
/// # Errors
/// `INVALID_ARGUMENT` for a value that is not understood.
pub(crate) fn libraries() -> Result<bool> {
    flag("RUST_GPU_NVIDIA_LIBRARIES", true)
}

/// Returns whether NVIDIA's libraries may multiply float32 as TF32.
///
/// # Errors
/// `INVALID_ARGUMENT` for a value that is not understood.
pub(crate) fn tf32() -> Result<bool> {
    flag("RUST_GPU_TF32", false)
}

/// Returns whether the fastest way to convolve is found by trial, with cuDNN. By default it is, unless TensorFlow's variable for
/// the same results in each process is set.
///
/// # Errors
/// `INVALID_ARGUMENT` for a value that is not understood.
pub(crate) fn autotune() -> Result<bool> {
    let same = std::env::var_os("TF_DETERMINISTIC_OPS");
    flag("RUST_GPU_CUDNN_AUTOTUNE", same.is_none_or(|value| value != "1" && value != "true"))
}
