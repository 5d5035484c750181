//! CUDA: the driver, and NVRTC, which compiles the shaders. Both are loaded at run time.

mod commands;
mod compiler;
mod cublas;
mod cudnn;
mod deferred_free;
mod dlopen;
mod peers;

pub(crate) use compiler::image;

use crate::settings::{libraries, tf32};
use commands::Commands;
use compiler::Function;
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};
use cudarc::driver::{DriverError, result};
use deferred_free::DeferredFree;
use peers::Peers;
use se_plugin::{Code, Error, Result};
use se_plugin_gpu::Cache;
use se_plugin_gpu::backend::{
    Allocation, Backend, BackendError, BackendResult, Convolution, Found, MatMul, MemoryKind,
    Opened, Shader, Span,
};
use se_plugin_gpu::settings::Settings;
use std::fmt::Display;
use std::ptr::NonNull;
use std::sync::{Arc, Once};
use std::time::Duration;

/// The capability that the programs need, for arguments that are not copied.
const LEAST_CAPABILITY: (i32, i32) = (7, 0);

/// An open GPU. It stays open until the process ends.
struct Device {
    number: sys::CUdevice,
    /// The context that all users of the GPU share in this process.
    context: sys::CUcontext,
    /// The stream in which everything runs in order.
    stream: sys::CUstream,
    capability: (i32, i32),
    cublas: Option<cublas::Cublas>,
    cudnn: Option<cudnn::Cudnn>,
    cache: Option<Arc<Cache>>,
}

// SAFETY: the handles are addresses that CUDA lets any thread use.
unsafe impl Send for Device {}
// SAFETY: nothing of it changes.
unsafe impl Sync for Device {}

/// A GPU that can be opened.
pub(crate) struct PhysicalDevice {
    device: sys::CUdevice,
    capability: (i32, i32),
}

/// A GPU of CUDA.
pub(crate) struct Cuda {
    device: Arc<Device>,
    frees: DeferredFree,
    peers: Peers,
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

/// Returns the error of a stream of this thread's context, after which its GPU cannot be used any more.
fn state(stream: sys::CUstream) -> Result<(), DriverError> {
    // SAFETY: the stream is one of the context.
    match unsafe { sys::cuStreamQuery(stream) } {
        CUresult::CUDA_SUCCESS | CUresult::CUDA_ERROR_NOT_READY => Ok(()),
        lost => Err(DriverError(lost)),
    }
}

/// Returns a function that describes a driver's error before a GPU is open.
fn refused(what: &str) -> impl FnOnce(DriverError) -> Error {
    move |error| failed(what, error).error(None)
}

/// Returns whether CUDA's driver can be loaded.
pub(crate) fn is_there() -> bool {
    // SAFETY: the driver's library may be loaded by any process.
    unsafe { sys::is_culib_present() }
}

/// Lists the GPUs.
fn list() -> Result<Vec<Found<PhysicalDevice>>> {
    if !is_there() {
        return Err(Error::failed_precondition(
            "CUDA has no driver here: cannot load `libcuda.so.1`; install the driver of the GPU",
        ));
    }
    compiler::load()?;
    result::init().map_err(refused("start"))?;
    let count = result::device::get_count().map_err(refused("list the GPUs"))?;
    (0..count).map(found).collect()
}

/// Describes the GPU of this number.
fn found(ordinal: i32) -> Result<Found<PhysicalDevice>> {
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
    let physical_device = match capability >= LEAST_CAPABILITY {
        true => Ok(PhysicalDevice { device, capability }),
        false => Err(format!(
            "its compute capability is {}.{}, and the least is {}.{}",
            capability.0, capability.1, LEAST_CAPABILITY.0, LEAST_CAPABILITY.1
        )),
    };
    Ok(Found { name, is_software: false, physical_device })
}

fn open(
    PhysicalDevice { device, capability }: PhysicalDevice,
    settings: &Settings,
) -> Result<Opened<Cuda>> {
    // SAFETY: the device is one of this driver.
    let context =
        unsafe { result::primary_ctx::retain(device) }.map_err(refused("open the GPU"))?;
    // Not released later: a GPU stays open until the process ends.
    open_in(device, context, capability, settings).inspect_err(|_| {
        // SAFETY: it was retained, and nothing uses it. There is nothing to do about an error.
        let _ = unsafe { result::primary_ctx::release(device) };
    })
}

/// Opens the GPU whose context this is.
fn open_in(
    number: sys::CUdevice,
    context: sys::CUcontext,
    capability: (i32, i32),
    settings: &Settings,
) -> Result<Opened<Cuda>> {
    let none = std::ptr::null_mut();
    let mut device = Device {
        number,
        context,
        stream: none,
        capability,
        cublas: None,
        cudnn: None,
        cache: None,
    };
    let unnamed = |failure: BackendError| failure.error(None);
    let entered = device.enter().map_err(unnamed)?;
    device.stream = result::stream::create(result::stream::StreamKind::NonBlocking)
        .map_err(refused("create a stream"))?;
    // It is better to find out now, while Vulkan can still be used, whether the driver accepts what
    // the compiler makes. The cache is not used for that.
    // SAFETY: it is not launched.
    let trial = unsafe { Shader::named("band") };
    device.compile(&trial, &[4]).map_err(unnamed)?;
    device.cache = Cache::open(settings).map(Arc::new);
    let without = |what, failure: BackendError| {
        log::warn!("RUST_GPU {what}: {}", failure.error(None).message());
    };
    let free = || {
        let info = result::mem_get_info().map_err(refused("see how much memory there is"));
        info.map(|(free, _)| free)
    };
    let tf32 = tf32()?;
    let name = result::device::get_name(number).map_err(refused("name a GPU"))?;
    let driver = driver_info(&device).map_err(refused("query the driver's version"))?;
    let gpu = format!("{name}, {driver}");
    let options = cudnn::Options::new(settings, gpu, device.cache.clone())?;
    if libraries()? {
        device.cublas = cublas::Cublas::open(device.stream, tf32).unwrap_or_else(|failure| {
            without("multiplies matrices without cuBLAS", failure);
            None
        });
        let opened = cudnn::Cudnn::open(device.stream, free()?, options);
        device.cudnn = opened.unwrap_or_else(|failure| {
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
    let backend = Cuda { device, frees, peers: Peers::default() };
    // cuBLAS uses the matrix units.
    Ok(Opened { backend, driver_info, total: free as u64, cooperative: None })
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

    /// Returns whether the GPU has failed for good.
    fn is_lost(&self) -> bool {
        self.enter().map_or(true, |_entered| state(self.stream).is_err())
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
        state(self.stream).map_err(|lost| failed(what, lost))?;
        logged.call_once(|| warn(library, what, cause));
        Ok(())
    }
}

// SAFETY: mapped memory has so many bytes, which are zeros; the event of a batch is behind its commands in the only stream.
unsafe impl Backend for Cuda {
    const NAME: &'static str = "CUDA";
    type PhysicalDevice = PhysicalDevice;
    /// The addresses are all that CUDA needs.
    type Memory = ();
    type Program = Function;
    type Batch = Commands;

    fn list() -> Result<Vec<Found<PhysicalDevice>>> {
        list()
    }

    fn open(physical_device: PhysicalDevice, settings: &Settings) -> Result<Opened<Self>> {
        open(physical_device, settings)
    }

    fn supports_float64(&self) -> bool {
        true
    }

    fn allocate(&self, bytes: u64, kind: MemoryKind) -> BackendResult<Allocation<()>> {
        let _entered = self.device.enter()?;
        match kind {
            MemoryKind::Local => {
                let address = deferred_free::allocate(&self.frees, bytes)?;
                Ok(Allocation { address, host: None, memory: () })
            }
            MemoryKind::Mapped => {
                let size = bytes as usize;
                // SAFETY: any thread may use the memory.
                let host = unsafe { result::malloc_host(size, 0) }
                    .map_err(|error| failed(format_args!("allocate {bytes} bytes"), error))?;
                let host = host.cast::<u8>();
                // SAFETY: there are so many bytes, which CUDA does not fill.
                unsafe { host.write_bytes(0, size) };
                Ok(Allocation { address: 0, host: NonNull::new(host), memory: () })
            }
        }
    }

    unsafe fn free(&self, memory: Allocation<()>) {
        // SAFETY: `allocate` made the memory, and nothing uses it.
        unsafe { self.frees.free(memory) };
    }

    fn compile(&self, shader: &Shader, constants: &[u32]) -> BackendResult<Function> {
        let _entered = self.device.enter()?;
        self.device.compile(shader, constants)
    }

    fn batch(&self) -> BackendResult<Commands> {
        Commands::new(&self.device)
    }

    unsafe fn begin(&self, batch: &mut Commands, is_measured: bool) -> BackendResult {
        batch.begin(is_measured);
        Ok(())
    }

    unsafe fn copy(
        &self,
        batch: &mut Commands,
        target: Span<'_, ()>,
        source: Span<'_, ()>,
    ) -> BackendResult {
        // SAFETY: both ranges are within memory that lives until the batch is done, as the caller says.
        unsafe { batch.copy(&self.device, target, source) }
    }

    fn supports_peer_copies(&self) -> bool {
        true
    }

    unsafe fn copy_from_peer(
        &self,
        batch: &mut Commands,
        target: Span<'_, ()>,
        peer: &Self,
        source: Span<'_, ()>,
    ) -> BackendResult<bool> {
        let _entered = batch.enter(&self.device)?;
        // SAFETY: the context is that of this thread; both ranges are within memory that lives until the batch is done, as the
        // caller says.
        unsafe { self.peers.copy(&self.device, target, &peer.device, source) }
    }

    unsafe fn fill(&self, batch: &mut Commands, target: Span<'_, ()>, word: u32) -> BackendResult {
        // SAFETY: the range is aligned, and within memory that lives until the batch is done, as the caller says.
        unsafe { batch.fill(&self.device, target, word) }
    }

    unsafe fn launch(
        &self,
        batch: &mut Commands,
        program: &Function,
        push: &[u8],
        groups: [u32; 3],
    ) -> BackendResult {
        // SAFETY: the caller promises the same of the program and its arguments.
        unsafe { batch.launch(&self.device, program, push, groups) }
    }

    unsafe fn mark(&self, batch: &mut Commands) -> BackendResult {
        batch.mark(&self.device)
    }

    unsafe fn send(&self, batch: &mut Commands) -> BackendResult {
        batch.send(&self.device)
    }

    fn wait(&self, batch: &mut Commands, limit: Duration) -> BackendResult<bool> {
        batch.wait(&self.device, limit)
    }

    fn times(&self, batch: &mut Commands) -> BackendResult<Option<Vec<[i64; 2]>>> {
        batch.times(&self.device)
    }

    unsafe fn destroy(&self, batch: Commands) {
        // SAFETY: the GPU does not execute the batch, as the caller says.
        unsafe { batch.destroy(&self.device) };
    }

    fn supports_matmul(&self, product: &MatMul) -> bool {
        self.device.cublas.is_some() && cublas::supports(product)
    }

    unsafe fn matmul(
        &self,
        batch: &mut Commands,
        product: &MatMul,
        matrices: [u64; 3],
    ) -> BackendResult<bool> {
        let Some(cublas) = &self.device.cublas else { return Ok(false) };
        let _entered = batch.enter(&self.device)?;
        // SAFETY: the context is that of this thread; the matrices have these sizes, and live until the batch is done.
        let enqueued = unsafe { cublas.enqueue(product, matrices) };
        enqueued.or_else(|cause| {
            let what = "multiply matrices";
            self.device.library_failed("cuBLAS", what, &cublas.failed, &cause).map(|()| false)
        })
    }

    fn supports_convolution(&self, convolution: &Convolution) -> bool {
        let supports = |cudnn: &cudnn::Cudnn| {
            self.device.enter().is_ok_and(|_entered| cudnn.supports(convolution))
        };
        self.device.cudnn.as_ref().is_some_and(supports)
    }

    unsafe fn convolve(
        &self,
        batch: &mut Commands,
        convolution: &Convolution,
        tensors: [u64; 3],
        shader: &mut dyn FnMut(&mut Commands) -> BackendResult,
    ) -> BackendResult<bool> {
        let Some(cudnn) = &self.device.cudnn else { return Ok(false) };
        let _entered = batch.enter(&self.device)?;
        // SAFETY: the context is that of this thread; the tensors have these sizes, and live until the batch is done.
        let enqueued = unsafe { cudnn.enqueue(convolution, tensors, || shader(batch)) };
        let cause = match enqueued {
            Ok(is_done) => return Ok(is_done),
            Err(cudnn::Failure::Driver(failure)) => return Err(failure),
            Err(cudnn::Failure::Library(cause)) => cause,
            Err(cudnn::Failure::Hung) => "the GPU takes too long".into(),
        };
        self.device.library_failed("cuDNN", "convolve", &cudnn.failed, &cause).map(|()| false)
    }
}
