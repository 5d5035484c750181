//! The GPU.

use super::clock::Clock;
use super::erased::{Driver, Program, Recorder};
use super::interface::BackendError;
use super::open::OpenedGpu;
use super::operations::{Convolution, CooperativeMatrix, MatMul};
use super::shader::Shader;
use super::watchdog::Watchdog;
use crate::settings::Settings;
use se_plugin::kernel::DType;
use se_plugin::profiler::Timeline;
use se_plugin::{Code, Error, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Compiled shaders by name, GLSL of a plugin's own, and constants, found without an allocation.
type Programs = HashMap<(&'static str, Option<&'static str>), HashMap<Vec<u32>, Program>>;

/// An open GPU.
pub(crate) struct Gpu {
    pub(super) driver: Box<dyn Driver>,
    programs: Mutex<Programs>,
    /// Held while a shader is compiled, so that none is compiled twice, and compiled ones can be launched meanwhile.
    compiling: Mutex<()>,
    pub(super) clock: Clock,
    /// Bytes of device memory that are allocated.
    pub(super) used: AtomicU64,
    pub(super) watchdog: Watchdog,
    /// Bytes of device memory.
    pub(crate) total: u64,
    /// The begin of the names of settings, and of log lines.
    pub(crate) prefix: &'static str,
    /// Its number among the devices of the platform.
    pub(crate) ordinal: usize,
    /// The commands of all streams, for TensorFlow's profiler.
    pub(crate) timeline: &'static Timeline,
    /// The name that the driver reports.
    pub(crate) name: String,
    /// The driver and its features.
    pub(crate) driver_info: String,
    /// Whether it is a driver for the CPU.
    pub(crate) is_software: bool,
    /// How many turns the loops of an invocation may take together, if the driver has a limit.
    pub(crate) most_turns: Option<usize>,
    /// Whether shaders compute with float64: the driver supports it, and no setting forbids it.
    pub(crate) has_float64: bool,
    /// The cooperative matrices that the driver has, unless a setting forbids them.
    pub(crate) offered: Option<CooperativeMatrix>,
    /// The cooperative matrices that kernels use, once they were tested.
    pub(crate) cooperative: Mutex<Option<Option<CooperativeMatrix>>>,
    /// The process that opened the GPU. A fork has the memory of a driver, but not its threads.
    process: u32,
}

impl Gpu {
    /// Uses a GPU that a backend has opened.
    pub(crate) fn new(
        ordinal: usize,
        opened: OpenedGpu,
        settings: &Settings,
        timeline: &'static Timeline,
    ) -> Self {
        let mut watchdog = Watchdog::new(settings.prefix, opened.is_software);
        if let Some(limit) = settings.timeout {
            watchdog.set_limit(limit);
        }
        let has_float64 = settings.float64 && opened.driver.supports_float64();
        Self {
            has_float64,
            driver: opened.driver,
            programs: Mutex::default(),
            compiling: Mutex::default(),
            clock: Clock::default(),
            used: AtomicU64::new(0),
            watchdog,
            total: opened.total.min(settings.memory.unwrap_or(u64::MAX)),
            prefix: settings.prefix,
            timeline,
            ordinal,
            name: opened.name,
            driver_info: opened.driver_info,
            is_software: opened.is_software,
            most_turns: opened.most_turns,
            offered: opened.cooperative,
            cooperative: Mutex::default(),
            process: std::process::id(),
        }
    }

    /// Returns how many bytes of device memory are allocated.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns whether matrices of this type are multiplied by matrix units or by a library.
    pub(crate) fn multiplies_quickly(&self, dtype: DType) -> bool {
        let (lines, elements) = (512, 64);
        let product = MatMul {
            dtype,
            transpose: [false, true],
            rows: lines,
            inner: elements,
            columns: lines,
            batch: 1,
            strides: [lines * elements; 2],
        };
        self.driver.supports_matmul(&product) || dtype == DType::Float16 && self.offered.is_some()
    }

    /// Fails in a fork, before it takes a lock or calls the driver.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` in a fork.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(Error::failed_precondition(
            "this process is a fork of the one that opened the GPU, whose driver it cannot use; \
             start processes with `spawn`",
        ))
    }

    /// Returns how the GPU was lost, if it was. Nothing more is sent to it then, and nothing that it may use is freed.
    pub(crate) fn lost(&self) -> Option<Error> {
        self.watchdog.lost()
    }

    /// Converts a failure of the driver to an error, and marks the GPU as lost if it is.
    #[cold]
    pub(super) fn failed(&self, failure: &BackendError) -> Error {
        self.watchdog.failed(&self.name, failure)
    }

    pub(super) fn recorder(&self) -> Result<Box<dyn Recorder>> {
        self.check_process()?;
        self.driver.recorder().map_err(|failure| self.failed(&failure))
    }

    /// Returns the shader with these values of its specialization constants 0, 1, …, compiled on the first call.
    ///
    /// # Errors
    /// Those of the driver.
    pub(crate) fn program(&self, shader: &Shader, constants: &[u32]) -> Result<Program> {
        self.check_process()?;
        if let Some(program) = self.compiled(shader, constants) {
            return Ok(program);
        }
        if !self.has_float64 && shader.computes_with_float64() {
            let settings = self.driver.supports_float64().then_some(self.prefix);
            return Err(without_float64(&self.name, shader.name(), settings));
        }
        self.lost().map_or(Ok(()), Err)?;
        let _one = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have compiled it meanwhile.
        if let Some(program) = self.compiled(shader, constants) {
            return Ok(program);
        }
        let compiled = self.watchdog.compile(|| self.driver.compile(shader, constants));
        let program = compiled.map_err(|failure| self.failed(&failure))?;
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        programs.entry((shader.name, shader.glsl)).or_default().insert(constants.to_vec(), program);
        Ok(program)
    }

    /// Returns whether a library computes these products in place of the shader.
    pub(crate) fn supports_matmul(&self, product: &MatMul) -> bool {
        self.check_process().is_ok() && self.driver.supports_matmul(product)
    }

    /// Returns whether a library computes this convolution in place of the shader.
    pub(crate) fn supports_convolution(&self, convolution: &Convolution) -> bool {
        self.check_process().is_ok() && self.driver.supports_convolution(convolution)
    }

    fn compiled(&self, shader: &Shader, constants: &[u32]) -> Option<Program> {
        let programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        programs.get(&(shader.name, shader.glsl))?.get(constants).copied()
    }
}

/// The error for a shader of doubles. `settings` is the prefix of the setting that forbids them; with `None` the GPU lacks them.
#[cold]
fn without_float64(gpu: &str, shader: &str, settings: Option<&str>) -> Error {
    let cause = match settings {
        Some(prefix) => format!("{prefix}_FLOAT64 is 0: unset it"),
        None => format!("`{gpu}` cannot: use another GPU"),
    };
    Error::new(
        Code::Unimplemented,
        format!(
            "`{shader}` computes with float64, as some ops do for all types, and {cause}, or run the op on the CPU with `tf.device(\"/CPU:0\")`"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_without_float64_names_its_cause() {
        let error = |settings| without_float64("Some GPU", "some.double", settings).to_string();
        let (set, lacks) = (error(Some("MY_GPU")), error(None));
        assert!(
            set.contains("MY_GPU_FLOAT64 is 0: unset it") && !set.contains("Some GPU"),
            "{set}"
        );
        assert!(lacks.contains("`Some GPU` cannot") && !lacks.contains("_FLOAT64"), "{lacks}");
    }
}
