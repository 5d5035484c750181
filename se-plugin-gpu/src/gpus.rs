//! The GPUs of a platform, and the macro that makes a plugin of a backend.

use crate::backend::{Gpu, OpenedGpu};
use crate::device::GpuDevice;
use crate::peers::Peers;
use crate::settings::{self, Settings};
use se_plugin::kernel::DType;
use se_plugin::profiler::Timeline;
use se_plugin::{Counters, Error, Platform, Result, host_has_gpu_kernels};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A platform whose devices are those of this crate. Its [`NAME`](Platform::NAME) is the begin of the names of settings.
pub trait GpuPlatform: Platform<Device = GpuDevice> {}

impl<P: Platform<Device = GpuDevice>> GpuPlatform for P {}

/// The GPUs of a platform, which have numbers in the order in which they were opened.
pub struct Gpus {
    all: Vec<(Arc<Gpu>, Counters)>,
    peers: Arc<Peers>,
}

impl Gpus {
    /// Opens the GPUs of a platform with `open`, such as [`backend::open`](crate::backend::open).
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a setting that is not understood; those of `open`.
    pub fn open<P: GpuPlatform>(open: fn(&Settings) -> Result<Vec<OpenedGpu>>) -> Result<Self> {
        let gpus = Self::open_with(P::NAME, timeline::<P>(), open)?;
        for (dtype, is_quick) in &QUICK {
            if gpus.all.iter().any(|(gpu, _)| gpu.multiplies_quickly(*dtype)) {
                is_quick.store(true, Ordering::Relaxed);
            }
        }
        Ok(gpus)
    }

    fn open_with(
        prefix: &'static str,
        timeline: &'static Timeline,
        open: fn(&Settings) -> Result<Vec<OpenedGpu>>,
    ) -> Result<Self> {
        let settings = Settings::of_environment(prefix)?;
        let opened = open(&settings)?.into_iter().enumerate();
        let all = opened.map(|(ordinal, opened)| {
            let gpu = Gpu::new(ordinal, opened, &settings, timeline);
            let counters = Counters::new(ordinal, settings.counters.clone());
            let counters = counters.with_device_name(&gpu.name);
            (Arc::new(gpu), counters)
        });
        Ok(Self { all: all.collect(), peers: Arc::default() })
    }

    /// Returns the number of GPUs.
    #[must_use]
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns whether all GPUs compute with float64, unless a setting forbids it.
    #[must_use]
    pub fn have_float64(&self) -> bool {
        self.all.iter().all(|(gpu, _)| gpu.has_float64)
    }

    /// Creates the device of a GPU.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is no such GPU; those of the driver.
    pub fn device(&self, ordinal: usize) -> Result<GpuDevice> {
        let none = || Error::invalid_argument(format!("there is no GPU {ordinal}"));
        let (gpu, counters) = self.all.get(ordinal).ok_or_else(none)?;
        GpuDevice::new(gpu, &self.peers, counters.clone())
    }
}

impl fmt::Debug for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.iter().map(|(gpu, _)| &gpu.name)).finish()
    }
}

/// Whether a GPU of this process multiplies matrices of a type by matrix units or by a library.
static QUICK: [(DType, AtomicBool); 2] =
    [(DType::Float16, AtomicBool::new(false)), (DType::Bfloat16, AtomicBool::new(false))];

/// Returns whether a GPU of this process multiplies matrices of a type of 16 bits by matrix units or by a library.
pub(crate) fn multiplies_quickly(dtype: DType) -> bool {
    QUICK.iter().any(|(of, is_quick)| *of == dtype && is_quick.load(Ordering::Relaxed))
}

/// Returns the commands of all streams, for TensorFlow's profiler. A library has one platform, so one timeline.
#[must_use]
pub fn timeline<P: GpuPlatform>() -> &'static Timeline {
    static TIMELINE: OnceLock<Timeline> = OnceLock::new();
    TIMELINE.get_or_init(|| Timeline::new(P::device_type()))
}

/// Returns the type of the devices of a platform: that of the setting `TYPE`, or else `wanted`; but the platform's own
/// [`TYPE`](Platform::TYPE) in place of `GPU`, in a TensorFlow with GPU kernels of its own or beside another plugin with that type; a
/// warning says so.
#[must_use]
pub fn device_type<P: GpuPlatform>(wanted: &'static str) -> &'static str {
    static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
    let chosen = || settings::text(&format!("{}_TYPE", P::NAME)).unwrap_or_default();
    let default = if wanted == "GPU" && host_has_gpu_kernels() { P::TYPE } else { wanted };
    CHOSEN.get_or_init(chosen).as_deref().unwrap_or_else(|| {
        if default != wanted {
            log::warn!(
                "the device type is {default} and not {wanted}: kernels for {wanted} are registered already, by this TensorFlow, \
                 which was built for GPUs, or by another plugin; remove one of the two, or write /device:{default}:0 and set {}_TYPE={default}",
                P::NAME
            );
        }
        default
    })
}

/// Exports a plugin for the GPUs of a backend, with groups of [`ops`](crate::ops).
///
/// ```ignore
/// se_plugin_gpu::plugin! {
///     /// GPUs with OpenCL.
///     pub Ocl, name = "OPENCL", type = "GPU", backend = OpenCl, ops = [all]
/// }
/// ```
///
/// It defines the platform, a type without public fields. `name` is the platform's name, the begin of the names of its
/// [settings](crate::settings::Settings), and the type of its devices where they cannot be of `type`: in a TensorFlow with GPU
/// kernels of its own, no plugin's device can be a `GPU`. In place of `backend = B`, `open = function` opens the GPUs, for a
/// plugin that chooses among backends.
#[macro_export]
macro_rules! plugin {
    (
        $(#[$attribute:meta])* $visibility:vis $platform:ident, name = $name:literal, type = $type:literal,
        backend = $backend:ty, ops = [$($group:ident),+ $(,)?] $(,)?
    ) => {
        $crate::plugin! {
            $(#[$attribute])* $visibility $platform, name = $name, type = $type,
            open = $crate::backend::open::<$backend>, ops = [$($group),+]
        }
    };
    (
        $(#[$attribute:meta])* $visibility:vis $platform:ident, name = $name:literal, type = $type:literal,
        open = $open:expr, ops = [$($group:ident),+ $(,)?] $(,)?
    ) => {
        $(#[$attribute])*
        #[derive(Debug)]
        $visibility struct $platform($crate::Gpus);

        #[$crate::__private::device_plugin(
            graph_pass = $crate::Fusion::<$platform>::new(),
            profiler = $crate::timeline::<$platform>(),
            crate = $crate::__private::se_plugin
        )]
        impl $crate::__private::se_plugin::Platform for $platform {
            const NAME: &'static str = $name;
            const TYPE: &'static str = $name;
            type Device = $crate::GpuDevice;

            fn device_type() -> &'static str {
                $crate::device_type::<Self>($type)
            }
            fn new() -> $crate::__private::se_plugin::Result<Self> {
                $crate::Gpus::open::<Self>($open).map(Self)
            }
            fn device_count(&self) -> $crate::__private::se_plugin::Result<usize> {
                ::core::result::Result::Ok(self.0.count())
            }
            fn open(&self, ordinal: usize) -> $crate::__private::se_plugin::Result<$crate::GpuDevice> {
                self.0.device(ordinal)
            }
            fn is_optional(op: &str, types: &[(&str, $crate::__private::DType)]) -> bool {
                $crate::ops::need_float64(op, types)
            }
            fn has_optional_kernels(&self) -> bool {
                self.0.have_float64()
            }
        }

        $crate::__private::se_plugin::register_kernels!($platform: $($crate::ops::$group),+);
    };
}
