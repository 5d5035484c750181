//! CUDA: the driver, and NVRTC, which compiles the shaders. Both are looked for at run time.

mod compiler;
mod libraries;
mod products;
mod recorder;

pub(crate) use compiler::image;

use super::card::Opened;
use super::driver::{Done, Driver, Failure, Kind, Memory, Pipeline, Recorder, Shader};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};
use cudarc::driver::{DriverError, result};
use se_plugin::{Code, Error, Result};
use std::fmt::Display;
use std::sync::Arc;

/// What the programs need: arguments that are not copied.
const LEAST_CAPABILITY: (i32, i32) = (7, 0);

/// An open card. It stays open until the process ends.
struct Card {
    /// The one that all users of the card share in this process.
    context: sys::CUcontext,
    /// Where everything runs, one after the other.
    stream: sys::CUstream,
    capability: (i32, i32),
    cublas: Option<products::Cublas>,
}

// SAFETY: the handles are addresses that CUDA lets any thread use.
unsafe impl Send for Card {}
// SAFETY: nothing of it changes.
unsafe impl Sync for Card {}

/// CUDA's name of a thing, as [`Driver`] has it.
struct Cuda(Arc<Card>);

/// What CUDA returned while doing `what`.
#[cold]
fn failed(what: impl Display, error: DriverError) -> Failure {
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
            | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
    );
    let (code, help) = match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
            (Code::ResourceExhausted, "use less memory, such as a smaller batch")
        }
        CUresult::CUDA_ERROR_NO_DEVICE => {
            (Code::NotFound, "see whether `nvidia-smi` lists the card, and CUDA_VISIBLE_DEVICES")
        }
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            (Code::FailedPrecondition, "update the card's driver, or use an older NVRTC")
        }
        _ if is_lost => (Code::Internal, "the card or its driver is gone; restart the process"),
        _ => (Code::Internal, "see the driver's messages in `dmesg`"),
    };
    let cause = format!("{}: {}", text(error.error_name()), text(error.error_string()));
    Failure { code, what: format!("cuda cannot {what}"), cause, help, is_lost }
}

/// Before a card is open.
fn refused(what: &str) -> impl FnOnce(DriverError) -> Error {
    move |error| failed(what, error).error(None)
}

/// Whether there is a driver of CUDA.
pub(super) fn is_there() -> bool {
    // SAFETY: the driver's library may be loaded by any process.
    unsafe { sys::is_culib_present() }
}

/// Opens the card whose name contains `wanted`, or else the first.
///
/// # Errors
/// `FAILED_PRECONDITION` without the driver or NVRTC; `NOT_FOUND` without such a card, with each card's reason.
pub(super) fn open(wanted: Option<&str>) -> Result<Opened> {
    if !is_there() {
        return Err(Error::failed_precondition(
            "CUDA has no driver here: cannot load `libcuda.so.1`; install the driver of the card",
        ));
    }
    compiler::load()?;
    result::init().map_err(refused("start"))?;
    let mut reasons = Vec::new();
    for ordinal in 0..result::device::get_count().map_err(refused("list the cards"))? {
        let device = result::device::get(ordinal).map_err(refused("list the cards"))?;
        let name = result::device::get_name(device).map_err(refused("name a card"))?;
        let attribute = |attribute| {
            // SAFETY: the device is one of this driver.
            unsafe { result::device::get_attribute(device, attribute) }
                .map_err(refused("describe a card"))
        };
        let capability = (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let is_wanted = |wanted: &str| name.to_lowercase().contains(&wanted.to_lowercase());
        if !wanted.is_none_or(is_wanted) {
            reasons.push(format!("`{name}`: RUST_GPU_CARD does not name it"));
        } else if capability < LEAST_CAPABILITY {
            reasons.push(format!(
                "`{name}`: its compute capability is {}.{}, and the least is {}.{}",
                capability.0, capability.1, LEAST_CAPABILITY.0, LEAST_CAPABILITY.1
            ));
        } else {
            return create(device, capability, name);
        }
    }
    Err(Error::not_found(format!(
        "CUDA has no card that can be used: {}; name another one with RUST_GPU_CARD",
        reasons.join("; ")
    )))
}

fn create(device: sys::CUdevice, capability: (i32, i32), name: String) -> Result<Opened> {
    // SAFETY: the device is one of this driver. It is not released: a card stays open until the process ends.
    let context =
        unsafe { result::primary_ctx::retain(device) }.map_err(refused("open the card"))?;
    // SAFETY: the context was retained.
    unsafe { result::ctx::set_current(context) }.map_err(refused("open the card"))?;
    let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
        .map_err(refused("create a stream"))?;
    // What others use is not there.
    let (free, _) = result::mem_get_info().map_err(refused("see how much memory there is"))?;
    let cublas = products::Cublas::open(stream).map_err(|failure| failure.error(Some(&name)))?;
    let driver = Box::new(Cuda(Arc::new(Card { context, stream, capability, cublas })));
    Ok(Opened { driver, name, total: free as u64, is_software: false })
}

impl Card {
    /// Makes the context that of this thread, as each function of CUDA needs it.
    fn enter(&self) -> Done {
        // SAFETY: the context was retained, for good.
        unsafe { result::ctx::set_current(self.context) }
            .map_err(|error| failed("use the card", error))
    }
}

impl Driver for Cuda {
    fn allocate(&self, bytes: u64, kind: Kind) -> Done<Memory> {
        self.0.enter()?;
        let what = |error| failed(format_args!("allocate {bytes} bytes"), error);
        let size = bytes as usize;
        match kind {
            Kind::Local => {
                // SAFETY: what is in the memory is not read before it is written, but by those who ask for it.
                let address = unsafe { result::malloc_sync(size) }.map_err(what)?;
                Ok(Memory { handles: [0; 2], address, host: std::ptr::null_mut() })
            }
            Kind::Mapped => {
                // SAFETY: any thread may use the memory.
                let host = unsafe { result::malloc_host(size, 0) }.map_err(what)?;
                let host = host.cast::<u8>();
                // SAFETY: there are so many bytes, which CUDA does not fill.
                unsafe { host.write_bytes(0, size) };
                Ok(Memory { handles: [0; 2], address: 0, host })
            }
        }
    }

    unsafe fn free(&self, memory: &Memory) {
        if self.0.enter().is_err() {
            return;
        }
        // An error is one of earlier work, which is noted where it is waited for.
        let _ = match memory.host.is_null() {
            // SAFETY: `allocate` made it, and nothing uses it, as the caller says.
            true => unsafe { result::free_sync(memory.address) },
            // SAFETY: as above.
            false => unsafe { result::free_host(memory.host.cast()) },
        };
    }

    fn recorder(&self) -> Done<Box<dyn Recorder>> {
        Ok(Box::new(recorder::Commands::new(&self.0)?))
    }

    fn compile(&self, shader: &Shader, constants: &[u32]) -> Done<Pipeline> {
        self.0.enter()?;
        self.0.compile(shader, constants)
    }
}
