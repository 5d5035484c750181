//! CUDA: the driver, and NVRTC, which compiles the shaders. Both are loaded at run time.

mod compiler;
mod cublas;
mod cudnn;
mod deferred_free;
mod dlopen;
mod glsl;
mod recorder;

pub(crate) use compiler::image;
pub(crate) use glsl::{THREADS, program};

use super::driver::{
    BackendError, BackendResult, Convolution, Driver, Memory, MemoryKind, OpenedGpu, Pipeline,
    Recorder, Shader,
};
use crate::cache::Cache;
use crate::settings::Settings;
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};
use cudarc::driver::{DriverError, result};
use deferred_free::DeferredFree;
use se_plugin::{Code, Error, Result};
use std::fmt::Display;
use std::sync::{Arc, Once};

/// The capability that the programs need, for arguments that are not copied.
const LEAST_CAPABILITY: (i32, i32) = (7, 0);

/// An open GPU. It stays open until the process ends.
struct Device {
    /// The context that all users of the GPU share in this process.
    context: sys::CUcontext,
    /// The stream in which everything runs in order.
    stream: sys::CUstream,
    capability: (i32, i32),
    cublas: Option<cublas::Cublas>,
    cudnn: Option<cudnn::Cudnn>,
    cache: Option<Cache>,
}

// SAFETY: the handles are addresses that CUDA lets any thread use.
unsafe impl Send for Device {}
// SAFETY: nothing of it changes.
unsafe impl Sync for Device {}

/// A GPU of CUDA.
struct Cuda {
    device: Arc<Device>,
    frees: DeferredFree,
}

/// Restores the earlier context of a thread when it is dropped.
#[must_use]
struct ContextGuard(Option<sys::CUcontext>);

impl Drop for ContextGuard {
    fn drop(&mut self) {
        if let Some(context) = self.0 {
            // SAFETY: it was this thread's context before. There is nothing to do about an error.
            let _ = unsafe { result::ctx::set_current(context) };
        }
    }
}

/// Describes an error of CUDA while doing `what`.
#[cold]
fn failed(what: impl Display, error: DriverError) -> BackendError {
    let text = |text: std::result::Result<&std::ffi::CStr, _>| {
        text.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let is_lost = matches!(
        error.0,
        CUresult::CUDA_ERROR_DEINITIALIZED
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_CONTAINED
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_UNKNOWN
            | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
    );
    let (code, help) = match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
            (Code::ResourceExhausted, "use less memory, such as a smaller batch")
        }
        CUresult::CUDA_ERROR_NO_DEVICE => {
            (Code::NotFound, "see whether `nvidia-smi` lists the GPU, and CUDA_VISIBLE_DEVICES")
        }
        CUresult::CUDA_ERROR_LAUNCH_TIMEOUT => (
            Code::Internal,
            "a kernel took longer than the driver's limit; use a smaller batch, and restart the process",
        ),
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            (Code::FailedPrecondition, "update the GPU's driver, or use an older NVRTC")
        }
        _ if is_lost => (Code::Internal, "the GPU or its driver is gone; restart the process"),
        _ => (Code::Internal, "see the driver's messages in `dmesg`"),
    };
    let cause = format!("{}: {}", text(error.error_name()), text(error.error_string()));
    BackendError { code, what: format!("cuda cannot {what}"), cause, help, is_lost }
}

/// Describes a failure outside the driver.
#[cold]
fn broken(what: impl Display, cause: String) -> BackendError {
    BackendError {
        code: Code::Internal,
        what: format!("cuda cannot {what}"),
        cause,
        help: "report it with the versions of the driver and of NVIDIA's libraries",
        is_lost: false,
    }
}

/// Logs that a shader computes what a library cannot.
fn warn(library: &str, what: &str, cause: &str) {
    log::warn!("RUST_GPU uses its own kernels: {library} cannot {what}: {cause}");
}

/// Returns a function that describes a driver's error before a GPU is open.
fn refused(what: &str) -> impl FnOnce(DriverError) -> Error {
    move |error| failed(what, error).error(None)
}

/// Returns whether CUDA's driver can be loaded.
pub(super) fn is_there() -> bool {
    // SAFETY: the driver's library may be loaded by any process.
    unsafe { sys::is_culib_present() }
}

/// Opens the GPU that the settings name, or else the first one.
///
/// # Errors
/// `FAILED_PRECONDITION` without the driver or NVRTC; `NOT_FOUND` without such a GPU, with a reason for each GPU.
pub(super) fn open(settings: &Settings) -> Result<OpenedGpu> {
    if !is_there() {
        return Err(Error::failed_precondition(
            "CUDA has no driver here: cannot load `libcuda.so.1`; install the driver of the GPU",
        ));
    }
    compiler::load()?;
    result::init().map_err(refused("start"))?;
    let mut reasons = Vec::new();
    for ordinal in 0..result::device::get_count().map_err(refused("list the GPUs"))? {
        let device = result::device::get(ordinal).map_err(refused("list the GPUs"))?;
        let name = result::device::get_name(device).map_err(refused("name a GPU"))?;
        let attribute = |attribute| {
            // SAFETY: the device is one of this driver.
            unsafe { result::device::get_attribute(device, attribute) }
                .map_err(refused("describe a GPU"))
        };
        let capability = (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let is_wanted = |wanted: &str| name.to_lowercase().contains(&wanted.to_lowercase());
        if !settings.device_name.as_deref().is_none_or(is_wanted) {
            reasons.push(format!("`{name}`: RUST_GPU_DEVICE_NAME does not name it"));
        } else if capability < LEAST_CAPABILITY {
            reasons.push(format!(
                "`{name}`: its compute capability is {}.{}, and the least is {}.{}",
                capability.0, capability.1, LEAST_CAPABILITY.0, LEAST_CAPABILITY.1
            ));
        } else {
            match create(device, capability, &name, settings) {
                Ok(opened) => return Ok(opened),
                Err(error) => reasons.push(format!("`{name}`: {}", error.message())),
            }
        }
    }
    Err(Error::not_found(format!(
        "CUDA has no GPU that can be used: {}; name another one with RUST_GPU_DEVICE_NAME",
        reasons.join("; ")
    )))
}

fn create(
    device: sys::CUdevice,
    capability: (i32, i32),
    name: &str,
    settings: &Settings,
) -> Result<OpenedGpu> {
    // SAFETY: the device is one of this driver.
    let context =
        unsafe { result::primary_ctx::retain(device) }.map_err(refused("open the GPU"))?;
    // Not released later: a GPU stays open until the process ends.
    open_in(context, capability, name, settings).inspect_err(|_| {
        // SAFETY: it was retained, and nothing uses it. There is nothing to do about an error.
        let _ = unsafe { result::primary_ctx::release(device) };
    })
}

/// Opens the GPU whose context this is.
fn open_in(
    context: sys::CUcontext,
    capability: (i32, i32),
    name: &str,
    settings: &Settings,
) -> Result<OpenedGpu> {
    let none = std::ptr::null_mut();
    let mut device =
        Device { context, stream: none, capability, cublas: None, cudnn: None, cache: None };
    let unnamed = |failure: BackendError| failure.error(None);
    let entered = device.enter().map_err(unnamed)?;
    device.stream = result::stream::create(result::stream::StreamKind::NonBlocking)
        .map_err(refused("create a stream"))?;
    // It is better to find out now, while Vulkan can still be used, whether the driver accepts what
    // the compiler makes. The cache is not used for that.
    device.compile(&Shader { name: "band", code: &[] }, &[4]).map_err(unnamed)?;
    device.cache = settings.cache.as_deref().and_then(Cache::open);
    let without = |what, failure: BackendError| {
        log::warn!("RUST_GPU {what}: {}", failure.error(None).message());
    };
    let free = || {
        let info = result::mem_get_info().map_err(refused("see how much memory there is"));
        info.map(|(free, _)| free)
    };
    if settings.libraries {
        device.cublas = cublas::Cublas::open(device.stream).unwrap_or_else(|failure| {
            without("multiplies matrices without cuBLAS", failure);
            None
        });
        device.cudnn = cudnn::Cudnn::open(device.stream, free()?).unwrap_or_else(|failure| {
            without("convolves without cuDNN", failure);
            None
        });
    }
    // Memory that others and the libraries use does not count.
    let free = free()?;
    drop(entered);
    let device = Arc::new(device);
    let frees = DeferredFree::new(&device).map_err(unnamed)?;
    let driver_info = driver_info(&device).map_err(refused("query the driver's version"))?;
    let driver = Box::new(Cuda { device, frees });
    Ok(OpenedGpu {
        driver,
        name: name.to_owned(),
        driver_info,
        total: free as u64,
        // cuBLAS uses them.
        cooperative: None,
        is_software: false,
    })
}

/// Returns the driver and its features, as in `CUDA 12.9 (compute capability 9.0, cuBLAS)`.
fn driver_info(device: &Device) -> Result<String, DriverError> {
    let mut version = 0;
    // SAFETY: it is a place for a number.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result()?;
    let libraries = [(device.cublas.is_some(), ", cuBLAS"), (device.cudnn.is_some(), ", cuDNN")];
    let libraries = libraries.map(|(is_there, name)| if is_there { name } else { "" }).concat();
    let (major, minor) = device.capability;
    Ok(format!(
        "CUDA {}.{} (compute capability {major}.{minor}{libraries})",
        version / 1000,
        version % 1000 / 10
    ))
}

impl Device {
    /// Makes the context current in this thread, as each function of CUDA needs it. Other libraries may have their own
    /// context there, such as TensorFlow for CUDA or PyTorch; it is restored afterwards.
    fn enter(&self) -> BackendResult<ContextGuard> {
        let what = |error| failed("use the GPU", error);
        let before = result::ctx::get_current().map_err(what)?;
        if before == Some(self.context) {
            return Ok(ContextGuard(None));
        }
        // SAFETY: the context was retained, for good.
        unsafe { result::ctx::set_current(self.context) }.map_err(what)?;
        Ok(ContextGuard(before))
    }

    /// Does the same for a thread of the device, where nothing is restored.
    fn enter_for_good(&self) -> BackendResult {
        let mut entered = self.enter()?;
        entered.0 = None;
        Ok(())
    }

    /// Logs the first failure of a library; the shader computes the same. Fails if the GPU is lost, which the error of a
    /// library does not show.
    fn library_failed(
        &self,
        library: &str,
        what: &str,
        logged: &Once,
        cause: &str,
    ) -> BackendResult {
        // SAFETY: the stream is this context's.
        match unsafe { sys::cuStreamQuery(self.stream) } {
            CUresult::CUDA_SUCCESS | CUresult::CUDA_ERROR_NOT_READY => {
                logged.call_once(|| warn(library, what, cause));
                Ok(())
            }
            lost => Err(failed(what, DriverError(lost))),
        }
    }
}

impl Driver for Cuda {
    fn allocate(&self, bytes: u64, kind: MemoryKind) -> BackendResult<Memory> {
        let _entered = self.device.enter()?;
        match kind {
            MemoryKind::Local => {
                let address = deferred_free::allocate(&self.frees, bytes)?;
                Ok(Memory { handles: [0; 2], address, host: std::ptr::null_mut() })
            }
            MemoryKind::Mapped => {
                let size = bytes as usize;
                // SAFETY: any thread may use the memory.
                let host = unsafe { result::malloc_host(size, 0) }
                    .map_err(|error| failed(format_args!("allocate {bytes} bytes"), error))?;
                let host = host.cast::<u8>();
                // SAFETY: there are so many bytes, which CUDA does not fill.
                unsafe { host.write_bytes(0, size) };
                Ok(Memory { handles: [0; 2], address: 0, host })
            }
        }
    }

    unsafe fn free(&self, memory: &Memory) {
        // SAFETY: `allocate` made the memory, and nothing uses it.
        unsafe { self.frees.free(memory) };
    }

    fn recorder(&self) -> BackendResult<Box<dyn Recorder>> {
        Ok(Box::new(recorder::CudaRecorder::new(&self.device)?))
    }

    fn compile(&self, shader: &Shader, constants: &[u32]) -> BackendResult<Pipeline> {
        let _entered = self.device.enter()?;
        self.device.compile(shader, constants)
    }

    fn supports_convolution(&self, convolution: &Convolution) -> bool {
        let supports = |cudnn: &cudnn::Cudnn| {
            self.device.enter().is_ok_and(|_entered| cudnn.supports(convolution))
        };
        self.device.cudnn.as_ref().is_some_and(supports)
    }
}
