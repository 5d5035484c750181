//! The type of the platform, which kernels and the graph pass have as a parameter.

use crate::backend::Gpu;
use se_plugin::profiler::Timeline;
use se_plugin::{Counters, Platform};
use std::sync::{Arc, LazyLock};

/// The platform: one GPU.
pub struct GpuPlatform {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) counters: Counters,
}

/// The commands of all streams, for TensorFlow's profiler.
pub(crate) static TIMELINE: LazyLock<Timeline> =
    LazyLock::new(|| Timeline::new(GpuPlatform::device_type()));
