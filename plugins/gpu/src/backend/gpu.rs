//! The GPU.

use super::clock::Clock;
use super::driver::{
    BackendError, Convolution, CooperativeMatrix, Driver, Pipeline, Recorder, Shader,
};
use super::watchdog::Watchdog;
use super::{cuda, vulkan};
use crate::settings::{Backend, Settings};
use se_plugin::{Error, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Compiled shaders by name and constants, found without an allocation.
type Pipelines = HashMap<&'static str, HashMap<Vec<u32>, Pipeline>>;

/// An open GPU.
pub(crate) struct Gpu {
    pub(super) driver: Box<dyn Driver>,
    pipelines: Mutex<Pipelines>,
    /// Held while a shader is compiled, so that none is compiled twice, and compiled ones can be launched meanwhile.
    compiling: Mutex<()>,
    pub(super) clock: Clock,
    /// Bytes of device memory that are allocated.
    pub(super) used: AtomicU64,
    pub(super) watchdog: Watchdog,
    /// Bytes of device memory.
    pub(crate) total: u64,
    /// The name that the driver reports.
    pub(crate) name: String,
    /// The driver and its features.
    pub(crate) driver_info: String,
    /// Whether it is a driver for the CPU.
    pub(crate) is_software: bool,
    /// The cooperative matrices that the driver has, unless a setting forbids them.
    pub(crate) offered: Option<CooperativeMatrix>,
    /// The cooperative matrices that kernels use, once they were tested.
    pub(crate) cooperative: Mutex<Option<Option<CooperativeMatrix>>>,
    /// The process that opened the GPU. A fork has the memory of a driver, but not its threads.
    process: u32,
}

impl Gpu {
    /// Opens a GPU.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` without the libraries; `NOT_FOUND` without such a GPU, with each GPU's reason.
    pub(crate) fn open(settings: &Settings) -> Result<Self> {
        let opened = match settings.backend {
            Some(Backend::Cuda) => cuda::open(settings)?,
            Some(Backend::Vulkan) => vulkan::open(settings)?,
            None => match cuda::open(settings) {
                Ok(opened) => opened,
                // Without CUDA's driver, the machine is not meant to use CUDA.
                Err(_) if !cuda::is_there() => vulkan::open(settings)?,
                Err(without) => {
                    let why = without.message();
                    let opened = vulkan::open(settings).map_err(|error| {
                        Error::new(error.code(), format!("{}; and {why}", error.message()))
                    })?;
                    log::warn!("RUST_GPU uses Vulkan for `{}`, and not CUDA: {why}", opened.name);
                    opened
                }
            },
        };
        Ok(Self {
            driver: opened.driver,
            pipelines: Mutex::default(),
            compiling: Mutex::default(),
            clock: Clock::default(),
            used: AtomicU64::new(0),
            watchdog: Watchdog::new(opened.is_software),
            total: opened.total,
            name: opened.name,
            driver_info: opened.driver_info,
            is_software: opened.is_software,
            offered: opened.cooperative,
            cooperative: Mutex::default(),
            process: std::process::id(),
        })
    }

    /// Returns how many turns the loops of an invocation may take together. Mesa's driver for the CPU leaves them then,
    /// silently: `LP_MAX_TGSI_LOOP_ITERATIONS` of llvmpipe, one counter for all loops of a shader.
    pub(crate) fn most_turns(&self) -> Option<usize> {
        self.is_software.then_some(65_535)
    }

    /// Returns how many bytes of device memory are allocated.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
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

    /// Replaces the default limit, after which a GPU counts as hung. 0 means no limit.
    pub(crate) fn set_timeout(&mut self, limit: Duration) {
        self.watchdog.set_limit(limit);
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
    pub(crate) fn pipeline(&self, shader: &Shader, constants: &[u32]) -> Result<Pipeline> {
        self.check_process()?;
        if let Some(pipeline) = self.compiled(shader, constants) {
            return Ok(pipeline);
        }
        self.lost().map_or(Ok(()), Err)?;
        let _one = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have compiled it meanwhile.
        if let Some(pipeline) = self.compiled(shader, constants) {
            return Ok(pipeline);
        }
        let compiled = self.driver.compile(shader, constants);
        let pipeline = compiled.map_err(|failure| self.failed(&failure))?;
        let mut pipelines = self.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        pipelines.entry(shader.name).or_default().insert(constants.to_vec(), pipeline);
        Ok(pipeline)
    }

    /// Returns whether a library computes this convolution in place of the shader.
    pub(crate) fn supports_convolution(&self, convolution: &Convolution) -> bool {
        self.check_process().is_ok() && self.driver.supports_convolution(convolution)
    }

    fn compiled(&self, shader: &Shader, constants: &[u32]) -> Option<Pipeline> {
        let pipelines = self.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        pipelines.get(shader.name)?.get(constants).copied()
    }
}
