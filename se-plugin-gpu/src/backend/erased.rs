//! A backend without its type, so that streams, devices and kernels are compiled once for all backends.

use super::interface::{Allocation, Backend, BackendError, BackendResult, MemoryKind, Span};
use super::operations::{Convolution, MatMul};
use super::shader::Shader;
use se_plugin::Code;
use std::any::Any;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// Memory of a backend.
pub(crate) struct Memory {
    pub(super) address: u64,
    pub(super) host: Option<NonNull<u8>>,
    /// The `Allocation` of the backend.
    allocation: Box<dyn Any + Send + Sync>,
}

// SAFETY: the address is a number. What the host sees is only reached through `Buffer::host`, which takes the buffer alone.
unsafe impl Send for Memory {}
// SAFETY: nothing behind a shared reference changes.
unsafe impl Sync for Memory {}

/// A range of memory.
#[derive(Clone, Copy)]
pub(crate) struct Range<'a> {
    pub(super) memory: &'a Memory,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// A compiled shader with its constants, of a backend. It lives as long as the process, as GPUs do.
pub(crate) type Program = &'static (dyn Any + Send + Sync);

/// The computation of a launch, for backends with a library for it.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// Only the shader computes it.
    Shader,
    MatMul(MatMul),
    /// Boxed: it is eight times as large as other launches.
    Convolution(Box<Convolution>),
}

/// A launch of a shader.
pub(crate) struct Dispatch {
    pub(crate) operation: Operation,
    /// The addresses of the tensors of a product or a convolution.
    pub(crate) tensors: [u64; 3],
    pub(crate) program: Program,
    /// The push constants of the shader, at most [`PUSH_BYTES`](super::PUSH_BYTES).
    pub(crate) push: Vec<u8>,
    /// The number of workgroups.
    pub(crate) groups: [u32; 3],
}

/// [`Backend`] without its types; the functions have the same contracts.
pub(crate) trait Driver: Send + Sync {
    fn allocate(&self, bytes: u64, kind: MemoryKind) -> BackendResult<Memory>;
    /// # Safety
    /// As for [`Backend::free`].
    unsafe fn free(&self, memory: Memory);
    fn compile(&self, shader: &Shader, constants: &[u32]) -> BackendResult<Program>;
    fn recorder(&self) -> BackendResult<Box<dyn Recorder>>;
    fn supports_float64(&self) -> bool;
    fn supports_matmul(&self, product: &MatMul) -> bool;
    fn supports_convolution(&self, convolution: &Convolution) -> bool;
    fn supports_peer_copies(&self) -> bool;
    /// Returns the backend, an `Arc` of its type.
    fn backend(&self) -> &dyn Any;
}

/// A batch of a [`Backend`] without its types; the functions have the same contracts.
pub(crate) trait Recorder: Send {
    /// # Safety
    /// As for [`Backend::begin`].
    unsafe fn begin(&mut self, is_measured: bool) -> BackendResult;
    /// # Safety
    /// As for [`Backend::copy`].
    unsafe fn copy(&mut self, target: Range<'_>, source: Range<'_>) -> BackendResult;
    /// # Safety
    /// As for [`Backend::copy_from_peer`].
    unsafe fn copy_from_peer(
        &mut self,
        target: Range<'_>,
        peer: &dyn Driver,
        source: Range<'_>,
    ) -> BackendResult<bool>;
    /// # Safety
    /// As for [`Backend::fill`].
    unsafe fn fill(&mut self, target: Range<'_>, word: u32) -> BackendResult;
    /// Launches a shader, unless a library computes its operation.
    ///
    /// # Safety
    /// As for [`Backend::launch`], and that of the operation.
    unsafe fn dispatch(&mut self, shader: &Dispatch) -> BackendResult;
    /// # Safety
    /// As for [`Backend::mark`].
    unsafe fn mark(&mut self) -> BackendResult;
    /// # Safety
    /// As for [`Backend::send`].
    unsafe fn send(&mut self) -> BackendResult;
    fn wait(&mut self, limit: Duration) -> BackendResult<bool>;
    fn times(&mut self) -> BackendResult<Option<Vec<[i64; 2]>>>;
    /// # Safety
    /// As for [`Backend::reset`].
    unsafe fn reset(&mut self) -> BackendResult;
    /// Frees the driver's objects. No other call follows.
    ///
    /// # Safety
    /// As for [`Backend::destroy`].
    unsafe fn destroy(&mut self);
}

/// An open GPU of a backend.
pub(super) struct Erased<B>(Arc<B>);

impl<B: Backend> Erased<B> {
    pub(super) fn new(backend: B) -> Self {
        Self(Arc::new(backend))
    }
}

/// Returns the error for memory or programs of another backend, which the modules above do not mix.
#[cold]
fn of_another<B: Backend>() -> BackendError {
    BackendError {
        code: Code::Internal,
        what: format!("{} cannot use an object of another backend", B::NAME),
        cause: String::from("its type is another"),
        help: "report it",
        is_lost: false,
    }
}

/// Calls a backend. After a panic nobody knows what the driver does, so the GPU is lost: the threads that wait for it go on.
fn call<B: Backend, T>(call: impl FnOnce() -> BackendResult<T>) -> BackendResult<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(BackendError {
            code: Code::Internal,
            what: format!("the backend {} has panicked", B::NAME),
            cause: text.unwrap_or_else(|| String::from("it does not say why")),
            help: "report it to the plugin's author, with the message above; restart the process",
            is_lost: true,
        })
    })
}

impl<B: Backend> Driver for Erased<B> {
    fn allocate(&self, bytes: u64, kind: MemoryKind) -> BackendResult<Memory> {
        let allocation = call::<B, _>(|| self.0.allocate(bytes, kind))?;
        let (address, host) = (allocation.address, allocation.host);
        Ok(Memory { address, host, allocation: Box::new(allocation) })
    }

    unsafe fn free(&self, memory: Memory) {
        if let Ok(allocation) = memory.allocation.downcast::<Allocation<B::Memory>>() {
            let free = || {
                // SAFETY: `allocate` of this GPU has returned it, and the GPU does not use it, as the caller says.
                unsafe { self.0.free(*allocation) };
                Ok(())
            };
            // A panic has been reported; the memory is not needed any more.
            let _ = call::<B, _>(free);
        }
    }

    fn compile(&self, shader: &Shader, constants: &[u32]) -> BackendResult<Program> {
        Ok(Box::leak(Box::new(call::<B, _>(|| self.0.compile(shader, constants))?)))
    }

    fn recorder(&self) -> BackendResult<Box<dyn Recorder>> {
        let batch = ManuallyDrop::new(call::<B, _>(|| self.0.batch())?);
        Ok(Box::new(ErasedBatch { backend: Arc::clone(&self.0), batch }))
    }

    fn supports_float64(&self) -> bool {
        call::<B, _>(|| Ok(self.0.supports_float64())).unwrap_or(false)
    }

    fn supports_matmul(&self, product: &MatMul) -> bool {
        call::<B, _>(|| Ok(self.0.supports_matmul(product))).unwrap_or(false)
    }

    fn supports_convolution(&self, convolution: &Convolution) -> bool {
        call::<B, _>(|| Ok(self.0.supports_convolution(convolution))).unwrap_or(false)
    }

    fn supports_peer_copies(&self) -> bool {
        call::<B, _>(|| Ok(self.0.supports_peer_copies())).unwrap_or(false)
    }

    fn backend(&self) -> &dyn Any {
        &self.0
    }
}

/// A batch of a backend.
struct ErasedBatch<B: Backend> {
    backend: Arc<B>,
    /// Not dropped for a GPU that was lost, which may still be executing it.
    batch: ManuallyDrop<B::Batch>,
}

/// Returns the range with the backend's type.
fn span<B: Backend>(range: Range<'_>) -> BackendResult<Span<'_, B::Memory>> {
    let Range { memory, offset, bytes } = range;
    let memory = memory.allocation.downcast_ref::<Allocation<B::Memory>>();
    memory.map(|memory| Span { memory, offset, bytes }).ok_or_else(of_another::<B>)
}

impl<B: Backend> Recorder for ErasedBatch<B> {
    unsafe fn begin(&mut self, is_measured: bool) -> BackendResult {
        // SAFETY: it is the first call, or follows `reset`, as the caller says.
        call::<B, _>(|| unsafe { self.backend.begin(&mut self.batch, is_measured) })
    }

    unsafe fn copy(&mut self, target: Range<'_>, source: Range<'_>) -> BackendResult {
        let (target, source) = (span::<B>(target)?, span::<B>(source)?);
        // SAFETY: the caller promises the same of batch and ranges.
        call::<B, _>(|| unsafe { self.backend.copy(&mut self.batch, target, source) })
    }

    unsafe fn copy_from_peer(
        &mut self,
        target: Range<'_>,
        peer: &dyn Driver,
        source: Range<'_>,
    ) -> BackendResult<bool> {
        let (target, source) = (span::<B>(target)?, span::<B>(source)?);
        let peer = peer.backend().downcast_ref::<Arc<B>>().ok_or_else(of_another::<B>)?;
        // SAFETY: the caller promises the same of batch, ranges and peer.
        call::<B, _>(|| unsafe {
            self.backend.copy_from_peer(&mut self.batch, target, peer, source)
        })
    }

    unsafe fn fill(&mut self, target: Range<'_>, word: u32) -> BackendResult {
        let target = span::<B>(target)?;
        // SAFETY: the caller promises the same of batch and range.
        call::<B, _>(|| unsafe { self.backend.fill(&mut self.batch, target, word) })
    }

    unsafe fn dispatch(&mut self, shader: &Dispatch) -> BackendResult {
        let (backend, batch) = (&*self.backend, &mut *self.batch);
        let program = shader.program.downcast_ref::<B::Program>().ok_or_else(of_another::<B>)?;
        // SAFETY: the caller promises the same of batch, program and arguments.
        let mut launch = |batch: &mut B::Batch| unsafe {
            backend.launch(batch, program, &shader.push, shader.groups)
        };
        // SAFETY: the batch has begun, and the tensors are those of the operation and live long enough, as the caller says.
        let is_done = call::<B, _>(|| unsafe {
            match &shader.operation {
                Operation::Shader => Ok(false),
                Operation::MatMul(product) => backend.matmul(batch, product, shader.tensors),
                Operation::Convolution(convolution) => {
                    backend.convolve(batch, convolution, shader.tensors, &mut launch)
                }
            }
        })?;
        if is_done { Ok(()) } else { call::<B, _>(|| launch(batch)) }
    }

    unsafe fn mark(&mut self) -> BackendResult {
        // SAFETY: the batch has begun, as the caller says.
        call::<B, _>(|| unsafe { self.backend.mark(&mut self.batch) })
    }

    unsafe fn send(&mut self) -> BackendResult {
        // SAFETY: the batch has begun, and its commands were marked, as the caller says.
        call::<B, _>(|| unsafe { self.backend.send(&mut self.batch) })
    }

    fn wait(&mut self, limit: Duration) -> BackendResult<bool> {
        call::<B, _>(|| self.backend.wait(&mut self.batch, limit))
    }

    fn times(&mut self) -> BackendResult<Option<Vec<[i64; 2]>>> {
        call::<B, _>(|| self.backend.times(&mut self.batch))
    }

    unsafe fn reset(&mut self) -> BackendResult {
        // SAFETY: the batch is done, as the caller says.
        call::<B, _>(|| unsafe { self.backend.reset(&mut self.batch) })
    }

    unsafe fn destroy(&mut self) {
        let destroy = || {
            // SAFETY: no other call follows, as the caller says, so that the batch is taken once; the GPU is not at it.
            unsafe { self.backend.destroy(ManuallyDrop::take(&mut self.batch)) };
            Ok(())
        };
        // A panic has been reported; the batch is not needed any more.
        let _ = call::<B, _>(destroy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Found, Opened};
    use crate::settings::Settings;

    /// A backend that panics wherever it can.
    struct Panics;

    // SAFETY: nothing is allocated, and no batch is done.
    unsafe impl Backend for Panics {
        const NAME: &'static str = "panics";
        type PhysicalDevice = ();
        type Memory = ();
        type Program = ();
        type Batch = ();

        fn list() -> se_plugin::Result<Vec<Found<()>>> {
            Ok(Vec::new())
        }
        fn open((): (), _settings: &Settings) -> se_plugin::Result<Opened<Self>> {
            panic!("open")
        }
        fn allocate(&self, _: u64, _: MemoryKind) -> BackendResult<Allocation<()>> {
            panic!("allocate {}", 1)
        }
        unsafe fn free(&self, _: Allocation<()>) {
            panic!("free")
        }
        fn compile(&self, _: &Shader, _: &[u32]) -> BackendResult<()> {
            panic!("compile")
        }
        fn batch(&self) -> BackendResult<()> {
            Ok(())
        }
        unsafe fn copy(&self, (): &mut (), _: Span<'_, ()>, _: Span<'_, ()>) -> BackendResult {
            panic!("copy")
        }
        unsafe fn fill(&self, (): &mut (), _: Span<'_, ()>, _: u32) -> BackendResult {
            panic!("fill")
        }
        unsafe fn launch(&self, (): &mut (), (): &(), _: &[u8], _: [u32; 3]) -> BackendResult {
            panic!("launch")
        }
        unsafe fn send(&self, (): &mut ()) -> BackendResult {
            panic!("send")
        }
        fn wait(&self, (): &mut (), _: Duration) -> BackendResult<bool> {
            panic!("wait")
        }
        unsafe fn destroy(&self, (): ()) {
            panic!("destroy")
        }
    }

    #[test]
    fn a_backend_that_panics_loses_the_gpu_and_no_thread() {
        fn lost<T>(result: BackendResult<T>) -> String {
            let failure = result.err().expect("it panics");
            assert!(failure.is_lost);
            failure.error(None).to_string()
        }
        let gpu = Erased::new(Panics);
        let text = lost(gpu.allocate(1, MemoryKind::Local));
        assert!(text.contains("the backend panics has panicked: allocate 1; report it"), "{text}");
        assert!(lost(gpu.compile(&Shader::of_crate("band", &[]), &[4])).contains("compile"));
        let mut batch = gpu.recorder().expect("a batch");
        let allocation = Allocation { address: 8, host: None, memory: () };
        let memory = Memory { address: 8, host: None, allocation: Box::new(allocation) };
        let range = Range { memory: &memory, offset: 0, bytes: 4 };
        let dispatch = Dispatch {
            operation: Operation::Shader,
            tensors: [0; 3],
            program: &(),
            push: Vec::new(),
            groups: [1; 3],
        };
        // SAFETY: the backend has no memory and no driver.
        unsafe {
            assert!(lost(batch.copy(range, range)).contains("copy"));
            assert!(lost(batch.fill(range, 0)).contains("fill"));
            assert!(lost(batch.dispatch(&dispatch)).contains("launch"));
            assert!(lost(batch.send()).contains("send"));
            batch.destroy();
            gpu.free(memory);
        }
        assert!(lost(gpu.recorder().expect("a batch").wait(Duration::ZERO)).contains("wait"));
    }
}
