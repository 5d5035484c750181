//! The backend: memory, and commands that copy a little or do nothing.

use se_plugin_gpu::backend::{
    Allocation, Backend, BackendResult, Convolution, ConvolutionKind, Found, MatMul, MemoryKind,
    Opened, Shader, Span,
};
use se_plugin_gpu::settings::Settings;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::time::Duration;

/// The memory of the device, as much as a large GPU has. The system provides only what is written.
const TOTAL: u64 = 64 << 30;
/// Longer copies are not done.
const MOST_COPIED: u64 = 64 << 10;

/// A GPU that computes nothing.
#[derive(Debug)]
pub struct Dry;

/// Returns the address of a range, of the device or of the host.
fn address(span: &Span<'_, Vec<u8>>) -> *mut u8 {
    span.host().unwrap_or_else(|| with_exposed_provenance_mut(span.address() as usize))
}

// SAFETY: a `Vec` has so many bytes, which are zeros until they are written; commands are done when they return.
unsafe impl Backend for Dry {
    const NAME: &'static str = "Dry";
    type PhysicalDevice = ();
    type Memory = Vec<u8>;
    type Program = ();
    type Batch = ();

    fn list() -> se_plugin::Result<Vec<Found<()>>> {
        let name = String::from("dry");
        Ok(vec![Found { name, is_software: false, physical_device: Ok(()) }])
    }

    fn open((): (), _settings: &Settings) -> se_plugin::Result<Opened<Self>> {
        let driver_info = String::from("nothing");
        Ok(Opened { backend: Self, driver_info, total: TOTAL, cooperative: None })
    }

    fn allocate(&self, bytes: u64, kind: MemoryKind) -> BackendResult<Allocation<Vec<u8>>> {
        let mut memory = vec![0; bytes as usize];
        let first = memory.as_mut_ptr();
        Ok(match kind {
            MemoryKind::Local => {
                Allocation { address: first.expose_provenance() as u64, host: None, memory }
            }
            MemoryKind::Mapped => Allocation { address: 0, host: NonNull::new(first), memory },
        })
    }

    unsafe fn free(&self, memory: Allocation<Vec<u8>>) {
        drop(memory);
    }

    fn supports_float64(&self) -> bool {
        true
    }

    fn compile(&self, _shader: &Shader, _constants: &[u32]) -> BackendResult {
        Ok(())
    }

    fn batch(&self) -> BackendResult {
        Ok(())
    }

    unsafe fn copy(
        &self,
        (): &mut (),
        target: Span<'_, Vec<u8>>,
        source: Span<'_, Vec<u8>>,
    ) -> BackendResult {
        let (to, from) = (address(&target), address(&source));
        let is_to_host = target.host().is_some();
        if is_to_host {
            eprintln!("dry: {} bytes to the host", target.bytes);
        }
        if is_to_host && target.bytes == 1 {
            // SAFETY: the range has a byte, within memory that lives.
            unsafe { to.write(1) };
        } else if target.bytes <= MOST_COPIED {
            // SAFETY: both ranges are within memory that lives, and do not overlap.
            unsafe { to.copy_from_nonoverlapping(from, target.bytes as usize) };
        }
        Ok(())
    }

    unsafe fn fill(&self, (): &mut (), _target: Span<'_, Vec<u8>>, _word: u32) -> BackendResult {
        Ok(())
    }

    unsafe fn launch(
        &self,
        (): &mut (),
        (): &(),
        _push: &[u8],
        _groups: [u32; 3],
    ) -> BackendResult {
        Ok(())
    }

    unsafe fn send(&self, (): &mut ()) -> BackendResult {
        Ok(())
    }

    fn wait(&self, (): &mut (), _limit: Duration) -> BackendResult<bool> {
        Ok(true)
    }

    unsafe fn matmul(
        &self,
        (): &mut (),
        _product: &MatMul,
        _matrices: [u64; 3],
    ) -> BackendResult<bool> {
        Ok(true)
    }

    fn supports_convolution(&self, convolution: &Convolution) -> bool {
        convolution.shape.is_even()
    }

    unsafe fn convolve(
        &self,
        (): &mut (),
        convolution: &Convolution,
        _tensors: [u64; 3],
        _shader: &mut dyn FnMut(&mut ()) -> BackendResult,
    ) -> BackendResult<bool> {
        let is_pointwise =
            convolution.shape.windows.iter().all(|of| of.size == 1 && of.stride == 1);
        if is_pointwise && convolution.kind == ConvolutionKind::BackwardFilter {
            eprintln!("dry: the gradient of a 1 x 1 filter is a convolution");
        }
        Ok(true)
    }
}
