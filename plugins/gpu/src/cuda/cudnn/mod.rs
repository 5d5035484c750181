//! Convolutions with cuDNN, if it is installed, in place of the shader `convolve`.

mod plan;
mod selftest;

use super::dlopen::CUDNN;
use super::{broken, failed, warn};
use cudarc::cudnn::result::{self, CudnnError};
use cudarc::cudnn::sys;
use cudarc::driver::sys::CUstream;
use plan::{ALIGNMENT, Plan, supported};
use se_plugin::kernel::DType;
use se_plugin_gpu::backend::{BackendResult, Convolution, ConvolutionKind};
use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

/// The memory for filters in cuDNN's order and for temporary data of an algorithm: at most this
/// many bytes, and at most this part of the GPU's free memory.
const WORKSPACE: (usize, usize) = (256 << 20, 16);
/// How many different convolutions are kept ready.
const MOST_PLANS: usize = 4096;

type Plans = HashMap<Convolution, Option<Arc<Plan>>>;

/// A kind of convolution that cuDNN may compute wrongly, and whether it has volumes.
type Variant = (ConvolutionKind, DType, bool);

/// cuDNN, opened for a GPU.
pub(super) struct Cudnn {
    handle: Mutex<Handle>,
    /// Its address and bytes. Commands run in order, so all use the same.
    workspace: (u64, usize),
    /// Whether float32 may be multiplied as TF32.
    tf32: bool,
    /// `None` for those that cuDNN does not support.
    plans: Mutex<Plans>,
    /// The kinds of convolutions with wrong results.
    wrong: Vec<Variant>,
    /// Logs only the first failure that is not the GPU's.
    pub(super) failed: Once,
}

struct Handle(sys::cudnnHandle_t);

// SAFETY: the handle is an address that any thread may use, one at a time.
unsafe impl Send for Handle {}

impl Cudnn {
    /// Opens cuDNN for the context of this thread, if it is installed, and tests it: the stream is still empty.
    pub(super) fn open(stream: CUstream, free: usize, tf32: bool) -> BackendResult<Option<Self>> {
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
            workspace: (address, bytes),
            tf32,
            plans: Mutex::default(),
            wrong: Vec::new(),
            failed: Once::new(),
        };
        opened.wrong =
            selftest::wrong(&opened, stream).map_err(|error| failed("try cuDNN", error))?;
        Ok(Some(opened))
    }

    /// Returns whether it computes this convolution. The context is that of this thread.
    pub(super) fn supports(&self, convolution: &Convolution) -> bool {
        self.plan(convolution).is_some()
    }

    /// Enqueues a convolution into the stream, if cuDNN supports it. Returns whether it does.
    ///
    /// # Safety
    /// The context is that of this thread; the tensors are in memory of the GPU, which lives until they are computed.
    pub(super) unsafe fn enqueue(
        &self,
        convolution: &Convolution,
        tensors: [u64; 3],
    ) -> Result<bool, String> {
        // cuDNN may load several elements at once.
        if tensors.iter().any(|address| !address.is_multiple_of(16)) {
            return Ok(false);
        }
        let Some(plan) = self.plan(convolution) else { return Ok(false) };
        // SAFETY: the context is that of this thread, and the tensors of these sizes live until they are computed.
        let enqueued = unsafe { self.compute(&plan, tensors) };
        let Err(error) = enqueued else { return Ok(true) };
        // The convolution is not tried again.
        self.plans().insert(*convolution, None);
        if is_refusal(error) { Ok(false) } else { Err(text(error)) }
    }

    /// Enqueues a plan.
    ///
    /// # Safety
    /// As for [`enqueue`](Self::enqueue).
    unsafe fn compute(&self, plan: &Plan, addresses: [u64; 3]) -> Result<(), CudnnError> {
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the tensors live until they are computed, and the plan needs no more than there is of the workspace.
        unsafe { plan.enqueue(handle.0, self.workspace.0, addresses) }
    }

    fn plans(&self) -> MutexGuard<'_, Plans> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the plan for a convolution, or `None` if cuDNN does not support it.
    fn plan(&self, convolution: &Convolution) -> Option<Arc<Plan>> {
        let Convolution { kind, dtype, shape } = convolution;
        if self.wrong.contains(&(*kind, *dtype, shape.is_deep)) || supported(convolution).is_none()
        {
            return None;
        }
        if let Some(known) = self.plans().get(convolution) {
            return known.clone();
        }
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = Plan::new(handle.0, self.workspace.1, convolution, self.tf32);
        drop(handle);
        let plan = plan.unwrap_or_else(|error| {
            if !is_refusal(error) {
                self.failed.call_once(|| warn("cuDNN", "plan a convolution", &text(error)));
            }
            None
        });
        let mut plans = self.plans();
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        let plan = plan.map(Arc::new);
        plans.insert(*convolution, plan.clone());
        plan
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
