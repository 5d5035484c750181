//! Convolutions with cuDNN, if it is installed, in place of the shader `convolve`.

mod autotune;
mod descriptors;
mod plan;
mod selftest;

use super::dlopen::CUDNN;
use super::{broken, failed, state, warn};
use crate::settings::{autotune, tf32};
use cudarc::cudnn::result::{self, CudnnError};
use cudarc::cudnn::sys;
use cudarc::driver::sys::CUstream;
use descriptors::{ALIGNMENT, Layout, supported};
use plan::Plan;
use se_plugin::Result;
use se_plugin::kernel::DType;
use se_plugin_gpu::Cache;
use se_plugin_gpu::backend::{BackendError, BackendResult, Convolution, ConvolutionKind};
use se_plugin_gpu::settings::{DEFAULT_TIMEOUT, Settings};
use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

/// The memory for tensors in cuDNN's order and for temporary data of an algorithm: at most this
/// many bytes, and at most this part of the GPU's free memory.
const WORKSPACE: (usize, usize) = (1 << 30, 16);
/// How many different convolutions are kept ready.
const MOST_PLANS: usize = 4096;
/// The name of the shader among the names of plans.
const SHADER: &str = "shader";

/// The ways in which cuDNN computes a convolution: several until they were timed.
struct Ways {
    plans: Vec<Plan>,
    is_chosen: bool,
}

type Known = HashMap<Convolution, Option<Arc<Ways>>>;

/// A kind of convolution that cuDNN may compute wrongly, and whether it has volumes.
type Variant = (ConvolutionKind, DType, bool, Layout);

/// How to use cuDNN.
pub(super) struct Options {
    /// Whether float32 may be multiplied as TF32.
    tf32: bool,
    /// Whether the fastest algorithm is found by trial.
    autotune: bool,
    /// How long each round of a trial may take.
    limit: Duration,
    /// The GPU and its driver, of which choices in the cache are.
    gpu: String,
    cache: Option<Arc<Cache>>,
}

impl Options {
    /// Reads the settings. `gpu` names it and its driver.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a value that is not understood.
    pub(super) fn new(settings: &Settings, gpu: String, cache: Option<Arc<Cache>>) -> Result<Self> {
        let limit = settings.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let limit = if limit.is_zero() { Duration::MAX } else { limit };
        Ok(Self { tf32: tf32()?, autotune: autotune()?, limit, gpu, cache })
    }
}

/// Why a convolution is not enqueued.
pub(super) enum Failure {
    /// The library's, after which the shader is launched.
    Library(String),
    /// The GPU takes too long. The shader is launched, and its batch is watched.
    Hung,
    Driver(BackendError),
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        Self::Driver(error)
    }
}

/// cuDNN, opened for a GPU.
pub(super) struct Cudnn {
    handle: Mutex<Handle>,
    stream: CUstream,
    /// Its address and bytes. Commands run in order, so all use the same.
    workspace: (u64, usize),
    options: Options,
    /// `None` for those that the shader computes.
    known: Mutex<Known>,
    /// Locked while the ways to compute a convolution are timed. Whether the GPU hung meanwhile: then nothing else is tried.
    trial: Mutex<bool>,
    /// The kinds of convolutions with wrong results.
    wrong: Vec<Variant>,
    /// Logs only the first failure that is not the GPU's.
    pub(super) failed: Once,
}

struct Handle(sys::cudnnHandle_t);

// SAFETY: the handle is an address that any thread may use, one at a time.
unsafe impl Send for Handle {}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cudnn {
    /// Opens cuDNN for the context of this thread, if it is installed, and tests it: the stream is still empty.
    pub(super) fn open(
        stream: CUstream,
        free: usize,
        options: Options,
    ) -> BackendResult<Option<Self>> {
        if !CUDNN.find() {
            return Ok(None);
        }
        let version = result::get_version();
        // The error numbers are those of version 9.
        if version / 10_000 != 9 {
            let cause = format!("it is version {version}, and has to be 9, which is 9xxxx");
            return Err(broken("open cuDNN", cause));
        }
        let what = |error: CudnnError| broken("open cuDNN", text(error));
        let handle = result::create_handle().map_err(what)?;
        // SAFETY: both are of this context.
        unsafe { result::set_stream(handle, stream.cast()) }.map_err(what)?;
        let (most, part) = WORKSPACE;
        let bytes = most.min(free / part) / ALIGNMENT * ALIGNMENT;
        // SAFETY: what is in it is not read before it is written.
        let address = unsafe { cudarc::driver::result::malloc_sync(bytes + selftest::SPACE) }
            .map_err(|error| failed(format_args!("allocate {bytes} bytes for cuDNN"), error))?;
        let mut opened = Self {
            handle: Mutex::new(Handle(handle)),
            stream,
            workspace: (address, bytes),
            options,
            known: Mutex::default(),
            trial: Mutex::default(),
            wrong: Vec::new(),
            failed: Once::new(),
        };
        opened.wrong = selftest::wrong(&opened).map_err(|error| failed("try cuDNN", error))?;
        Ok(Some(opened))
    }

    /// Returns whether it computes this convolution. The context is that of this thread.
    pub(super) fn supports(&self, convolution: &Convolution) -> bool {
        self.ways(convolution).is_some()
    }

    /// Enqueues a convolution into the stream, if cuDNN supports it and is faster than the shader. Returns whether it did. The
    /// first time, the ways to compute it are timed; `shader` launches the shader.
    ///
    /// # Safety
    /// The context is that of this thread; the tensors are in memory of the GPU, which lives until they are computed.
    pub(super) unsafe fn enqueue(
        &self,
        convolution: &Convolution,
        tensors: [u64; 3],
        mut shader: impl FnMut() -> BackendResult,
    ) -> Result<bool, Failure> {
        // cuDNN may load several elements at once.
        if tensors.iter().any(|address| !address.is_multiple_of(16)) {
            return Ok(false);
        }
        let Some(mut ways) = self.ways(convolution) else { return Ok(false) };
        let enqueued = (|| {
            if !ways.is_chosen {
                let mut has_hung = lock(&self.trial);
                if *has_hung {
                    return Ok(false);
                }
                // SAFETY: as the caller says of context and tensors.
                let chosen = unsafe { self.choose(convolution, tensors, &mut shader) };
                *has_hung = matches!(chosen, Err(Failure::Hung));
                let Some(chosen) = chosen? else { return Ok(false) };
                ways = chosen;
            }
            let [plan] = &ways.plans[..] else { return Ok(false) };
            // SAFETY: the context is that of this thread, and the tensors of these sizes live until they are computed.
            unsafe { self.compute(plan, tensors) }
        })();
        if !matches!(enqueued, Ok(true)) {
            // The convolution is not tried again.
            lock(&self.known).insert(*convolution, None);
        }
        enqueued
    }

    /// Returns the fastest way to compute a convolution, or `None` if that is the shader.
    ///
    /// # Safety
    /// As for [`enqueue`](Self::enqueue).
    unsafe fn choose(
        &self,
        convolution: &Convolution,
        tensors: [u64; 3],
        shader: &mut dyn FnMut() -> BackendResult,
    ) -> Result<Option<Arc<Ways>>, Failure> {
        // Another thread may have chosen in the meantime.
        let Some(ways) = self.ways(convolution) else { return Ok(None) };
        if ways.is_chosen {
            return Ok(Some(ways));
        }
        let plans = &ways.plans;
        // The shader is the last one. It computes the gradient of a filter in one launch here; once it is chosen, in parts where
        // that is faster.
        let count = plans.len() + 1;
        let fastest = autotune::fastest(self.stream, self.options.limit, count, |way| {
            let Some(plan) = plans.get(way) else { return Ok(shader().map(|()| true)?) };
            // SAFETY: as the caller says of context and tensors.
            match unsafe { self.compute(plan, tensors) } {
                Err(Failure::Library(cause)) if state(self.stream).is_ok() => {
                    self.failed.call_once(|| {
                        let name = plan.name();
                        log::warn!("RUST_GPU convolves without an algorithm ({name}): {cause}");
                    });
                    Ok(false)
                }
                done => done,
            }
        })?;
        let chosen = fastest.and_then(|(way, time)| {
            let plan = plans.get(way);
            let name = plan.map_or_else(|| SHADER.into(), Plan::name);
            let Convolution { kind, dtype, shape } = convolution;
            log::info!(
                "RUST_GPU computes {kind:?} of {dtype} by {name}, the fastest of {count} ways ({time} ms); {shape:?}"
            );
            if let Some(cache) = &self.options.cache {
                cache.put(&self.key(convolution), name.as_bytes());
            }
            Some(Ways { plans: vec![plan?.clone()], is_chosen: true })
        });
        Ok(self.keep(convolution, chosen))
    }

    /// Enqueues a plan. Returns `false` if cuDNN does not support it.
    ///
    /// # Safety
    /// As for [`enqueue`](Self::enqueue).
    unsafe fn compute(&self, plan: &Plan, addresses: [u64; 3]) -> Result<bool, Failure> {
        let handle = lock(&self.handle);
        // SAFETY: the tensors live until they are computed, and the plan needs no more than there is of the workspace.
        match unsafe { plan.enqueue(handle.0, self.workspace.0, addresses) } {
            Ok(()) => Ok(true),
            Err(error) if is_refusal(error) => Ok(false),
            Err(error) => Err(Failure::Library(text(error))),
        }
    }

    /// Returns what a choice in the cache depends on. A plan that needs more memory than there is now is not found, and the
    /// trial is repeated.
    fn key(&self, convolution: &Convolution) -> String {
        let Options { tf32, gpu, .. } = &self.options;
        let (version, plugin) = (result::get_version(), env!("CARGO_PKG_VERSION"));
        format!("{convolution:?} on {gpu}, cuDNN {version}, tf32 {tf32}, {plugin}")
    }

    /// Returns the ways to compute a convolution, or `None` if cuDNN does not support it or the shader is faster.
    fn ways(&self, convolution: &Convolution) -> Option<Arc<Ways>> {
        supported(convolution)?;
        if let Some(known) = lock(&self.known).get(convolution) {
            return known.clone();
        }
        let kept = match &self.options {
            Options { autotune: true, cache: Some(cache), .. } => cache.get(&self.key(convolution)),
            _ => None,
        };
        let kept = kept.and_then(|kept| String::from_utf8(kept).ok());
        let ways = match kept.as_deref() {
            Some(SHADER) => None,
            kept => self.planned(convolution, kept),
        };
        self.keep(convolution, ways)
    }

    fn keep(&self, convolution: &Convolution, ways: Option<Ways>) -> Option<Arc<Ways>> {
        let ways = ways.map(Arc::new);
        let mut known = lock(&self.known);
        if known.len() >= MOST_PLANS {
            known.clear();
        }
        known.insert(*convolution, ways.clone());
        ways
    }

    /// Plans a convolution: by the plan of this name, if it is among cuDNN's, by its first suggestion if nothing is tried, or
    /// else by all.
    fn planned(&self, convolution: &Convolution, name: Option<&str>) -> Option<Ways> {
        let Options { autotune, .. } = self.options;
        let mut plans =
            self.plans(convolution, &self.layouts(convolution)).unwrap_or_else(|error| {
                if !is_refusal(error) {
                    self.failed.call_once(|| warn("cuDNN", "plan a convolution", &text(error)));
                }
                Vec::new()
            });
        let named = plans.iter().position(|plan| name.is_some_and(|name| plan.name() == name));
        let chosen = named.or((!autotune).then_some(0));
        if let Some(at) = chosen {
            plans = plans.into_iter().skip(at).take(1).collect();
        }
        (!plans.is_empty()).then_some(Ways { plans, is_chosen: chosen.is_some() })
    }

    /// Returns the layouts that are tried for a convolution: those without wrong results.
    fn layouts(&self, convolution: &Convolution) -> Vec<Layout> {
        let &Convolution { kind, dtype, ref shape } = convolution;
        let of = if self.options.autotune { &Layout::ALL[..] } else { &[Layout::Last] };
        let is_right =
            |layout: &Layout| !self.wrong.contains(&(kind, dtype, shape.is_deep, *layout));
        of.iter().copied().filter(is_right).collect()
    }

    fn plans(
        &self,
        convolution: &Convolution,
        layouts: &[Layout],
    ) -> Result<Vec<Plan>, CudnnError> {
        let handle = lock(&self.handle);
        Plan::all(handle.0, self.workspace.1, convolution, self.options.tf32, layouts)
    }
}

/// Returns whether cuDNN does not support a convolution that the shader supports.
fn is_refusal(error: CudnnError) -> bool {
    // The thousands are the kind: these parameters are not supported.
    error.0 as u32 / 1000 == 3
}

/// Returns the name of an error.
fn text(error: CudnnError) -> String {
    // SAFETY: cuDNN returns a literal for any number.
    let text = unsafe { CStr::from_ptr(sys::cudnnGetErrorString(error.0)) };
    text.to_string_lossy().into_owned()
}
