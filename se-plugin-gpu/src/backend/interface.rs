//! The interface of a backend: what a driver has to do for the modules above, which check and count their calls.

use super::operations::{Convolution, CooperativeMatrix, MatMul};
use super::shader::Shader;
use crate::settings::Settings;
use se_plugin::{Code, Error};
use std::ptr::NonNull;
use std::time::Duration;

/// How many bytes every GPU can push to a shader.
pub const PUSH_BYTES: usize = 128;

/// The invocations of a workgroup, along its only axis.
pub const WORKGROUP: u32 = 256;

/// A batch with this many commands is full.
pub(crate) const MOST_COMMANDS: usize = 256;

/// The commands of the largest batch: the last one may be a fill, which can be three commands.
pub const LARGEST_BATCH: usize = MOST_COMMANDS + 2;

/// A failure of a driver.
#[derive(Debug)]
pub struct BackendError {
    /// The code of the error in Python.
    pub code: Code,
    /// The failed action, as in `vulkan cannot allocate 16 bytes`.
    pub what: String,
    /// What the driver says.
    pub cause: String,
    /// The next step for the user.
    pub help: &'static str,
    /// Whether the GPU cannot be used any more in this process.
    pub is_lost: bool,
}

impl BackendError {
    /// Returns the error for a GPU with this name, or for none before one is open.
    #[cold]
    pub fn error(&self, gpu: Option<&str>) -> Error {
        let Self { code, what, cause, help, .. } = self;
        let gpu = gpu.map(|name| format!(" on `{name}`")).unwrap_or_default();
        Error::new(*code, format!("{what}{gpu}: {cause}; {help}"))
    }
}

/// The result of a driver's function.
pub type BackendResult<T = ()> = Result<T, BackendError>;

/// The kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// The GPU's, which shaders can access.
    Local,
    /// The host's, from and to which the GPU copies.
    Mapped,
}

/// Memory that a backend has allocated.
#[derive(Debug)]
pub struct Allocation<M> {
    /// The address for shaders; 0 for memory of the host.
    pub address: u64,
    /// The address for the host; `None` for memory of the GPU. The memory has a value in each byte.
    pub host: Option<NonNull<u8>>,
    /// What the backend needs in addition, such as the driver's handles.
    pub memory: M,
}

// SAFETY: the addresses are numbers, which drivers let any thread use. What the host sees is only reached through
// `Buffer::host`, which takes the buffer alone.
unsafe impl<M: Send> Send for Allocation<M> {}
// SAFETY: nothing behind a shared reference changes.
unsafe impl<M: Sync> Sync for Allocation<M> {}

/// A range of memory, which is not empty.
#[derive(Debug)]
pub struct Span<'a, M> {
    /// The memory.
    pub memory: &'a Allocation<M>,
    /// The first byte of the range.
    pub offset: u64,
    /// The length of the range.
    pub bytes: u64,
}

impl<M> Span<'_, M> {
    /// Returns the address of the first byte for shaders.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.memory.address + self.offset
    }

    /// Returns the address of the first byte for the host, in memory of the host.
    #[must_use]
    pub fn host(&self) -> Option<*mut u8> {
        self.memory.host.map(|host| host.as_ptr().wrapping_add(self.offset as usize))
    }
}

/// A GPU that a backend has found.
#[derive(Debug)]
pub struct Found<C> {
    /// The name that the driver reports.
    pub name: String,
    /// Whether it is a driver for the CPU, which may take minutes where a GPU takes milliseconds. It is opened only if a
    /// setting names it.
    pub is_software: bool,
    /// What [`Backend::open`] takes, or why the GPU cannot be used.
    pub physical_device: Result<C, String>,
}

/// A GPU that a backend has opened.
#[derive(Debug)]
pub struct Opened<B> {
    /// The backend, for this GPU.
    pub backend: B,
    /// The driver and its features, for people.
    pub driver_info: String,
    /// Bytes of device memory.
    pub total: u64,
    /// The cooperative matrices that shaders can use.
    pub cooperative: Option<CooperativeMatrix>,
}

/// An API for GPUs, such as Vulkan; a value is one open GPU.
///
/// The crate calls the functions from any thread, several at once, but not in a fork. It has checked each range, keeps memory
/// until nothing uses it, and turns each error into one in Python. Once an error has
/// [`is_lost`](BackendError::is_lost), or a batch is not done in time, it calls nothing more and frees nothing.
///
/// Work is done in batches. All batches of a GPU run in the order in which they are sent, as far as other threads can see; so do the
/// commands of one batch. The calls for a batch are [`begin`](Self::begin), then commands with a [`mark`](Self::mark) behind each,
/// [`send`](Self::send), [`wait`](Self::wait) until it returns `true`, [`times`](Self::times) if it was measured, and
/// [`reset`](Self::reset), after which it begins again. A driver with an in-order queue can enqueue each command at once, and
/// keep only an event at the end in its batch.
///
/// # Safety
/// [`allocate`](Self::allocate) returns memory that has at least as many bytes as were requested, until it is freed; those at
/// `host` have values, and nothing else uses them. [`wait`](Self::wait) returns `true` only once the GPU does nothing more for the
/// batch and for those sent before it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a backend for GPUs",
    note = "write `unsafe impl se_plugin_gpu::backend::Backend for {Self}`"
)]
pub unsafe trait Backend: Sized + Send + Sync + 'static {
    /// The name of the API, for messages.
    const NAME: &'static str;

    /// How many turns the loops of an invocation may take together on a GPU that is software, whose driver leaves them then
    /// silently, such as Mesa's; `None` for no limit.
    const SOFTWARE_TURNS: Option<usize> = None;

    /// A GPU that can be opened.
    type PhysicalDevice;
    /// What the backend keeps of memory in addition to its addresses.
    type Memory: Send + Sync + 'static;
    /// A compiled shader. It is used until the process ends.
    type Program: Send + Sync + 'static;
    /// A batch of commands, or the event at its end. One thread at a time uses it.
    type Batch: Send + 'static;

    /// Lists the GPUs in the order of preference. This may load drivers: see [`se_plugin::driver`].
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if the driver or a library is missing; others of the driver.
    fn list() -> se_plugin::Result<Vec<Found<Self::PhysicalDevice>>>;

    /// Opens a GPU, which stays open until the process ends.
    ///
    /// # Errors
    /// Those of the driver, and of GPUs that lack something.
    fn open(
        physical_device: Self::PhysicalDevice,
        settings: &Settings,
    ) -> se_plugin::Result<Opened<Self>>;

    /// Allocates memory of at least one byte.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is not enough.
    fn allocate(&self, bytes: u64, kind: MemoryKind) -> BackendResult<Allocation<Self::Memory>>;

    /// Frees memory.
    ///
    /// # Safety
    /// [`allocate`](Self::allocate) of this GPU has returned it, and the GPU does not use it.
    unsafe fn free(&self, memory: Allocation<Self::Memory>);

    /// Compiles a shader with these values of its specialization constants 0, 1, ….
    ///
    /// # Errors
    /// Those of the compiler.
    fn compile(&self, shader: &Shader, constants: &[u32]) -> BackendResult<Self::Program>;

    /// Creates a batch, which records nothing yet.
    ///
    /// # Errors
    /// Those of the driver.
    fn batch(&self) -> BackendResult<Self::Batch>;

    /// Begins a batch, and measures its times if `is_measured`.
    ///
    /// # Errors
    /// Those of the driver.
    ///
    /// # Safety
    /// It is the first call for the batch, or follows [`reset`](Self::reset).
    unsafe fn begin(&self, _batch: &mut Self::Batch, _is_measured: bool) -> BackendResult {
        Ok(())
    }

    /// Copies a range to another, which is equally long.
    ///
    /// # Errors
    /// Those of the driver.
    ///
    /// # Safety
    /// The batch has begun; both ranges are within their memory, do not overlap, and live until the batch is done.
    unsafe fn copy(
        &self,
        batch: &mut Self::Batch,
        target: Span<'_, Self::Memory>,
        source: Span<'_, Self::Memory>,
    ) -> BackendResult;

    /// Returns whether [`copy_from_peer`](Self::copy_from_peer) may copy; otherwise it is not called.
    fn supports_peer_copies(&self) -> bool {
        false
    }

    /// Copies a range of memory of `peer`, another GPU of this process, to an equally long one of this GPU. Returns `false` if it has
    /// enqueued nothing; then the bytes go through the host, and the batch has a mark behind no command. The work that wrote the
    /// source is done, and `peer` does not change the source until the batch is done.
    ///
    /// # Errors
    /// Those of the driver.
    ///
    /// # Safety
    /// The batch has begun; both ranges are within their memory, which lives until the batch is done.
    unsafe fn copy_from_peer(
        &self,
        _batch: &mut Self::Batch,
        _target: Span<'_, Self::Memory>,
        _peer: &Self,
        _source: Span<'_, Self::Memory>,
    ) -> BackendResult<bool> {
        Ok(false)
    }

    /// Fills a range with a word.
    ///
    /// # Errors
    /// Those of the driver.
    ///
    /// # Safety
    /// The batch has begun; the range is within its memory, which lives until the batch is done; both ends are multiples of 4
    /// from the first byte of the memory.
    unsafe fn fill(
        &self,
        batch: &mut Self::Batch,
        target: Span<'_, Self::Memory>,
        word: u32,
    ) -> BackendResult;

    /// Runs a shader in this many workgroups of [`WORKGROUP`] invocations. `push` is what its source declares as
    /// `push_constant`, at most [`PUSH_BYTES`].
    ///
    /// # Errors
    /// Those of the driver.
    ///
    /// # Safety
    /// The batch has begun; the program is of this GPU; `push` is what its shader takes, and the memory at the addresses in it
    /// lives until the batch is done.
    unsafe fn launch(
        &self,
        batch: &mut Self::Batch,
        program: &Self::Program,
        push: &[u8],
        groups: [u32; 3],
    ) -> BackendResult;

    /// Ends a command: later ones, and the host, see what it wrote. Records the time if the batch is measured.
    ///
    /// # Errors
    /// Those of the driver.
    ///
    /// # Safety
    /// The batch has begun.
    unsafe fn mark(&self, _batch: &mut Self::Batch) -> BackendResult {
        Ok(())
    }

    /// Sends the batch to the GPU.
    ///
    /// # Errors
    /// Those of the driver.
    ///
    /// # Safety
    /// The batch has begun, and each of its commands was marked.
    unsafe fn send(&self, batch: &mut Self::Batch) -> BackendResult;

    /// Waits for the batch that was sent, for at most `limit`. Returns whether it is done.
    ///
    /// # Errors
    /// Those of the driver.
    fn wait(&self, batch: &mut Self::Batch, limit: Duration) -> BackendResult<bool>;

    /// Returns begin and end of each command of a measured batch that is done, in nanoseconds of the GPU's clock, if it has one.
    ///
    /// # Errors
    /// Those of the driver.
    fn times(&self, _batch: &mut Self::Batch) -> BackendResult<Option<Vec<[i64; 2]>>> {
        Ok(None)
    }

    /// Prepares the batch for the next commands.
    ///
    /// # Errors
    /// Those of the driver.
    ///
    /// # Safety
    /// The batch is done.
    unsafe fn reset(&self, _batch: &mut Self::Batch) -> BackendResult {
        Ok(())
    }

    /// Frees the driver's objects of a batch. A batch of a lost GPU is not freed.
    ///
    /// # Safety
    /// The GPU does not execute the batch.
    unsafe fn destroy(&self, batch: Self::Batch) {
        drop(batch);
    }

    /// Returns whether shaders can compute with float64. Those that do are compiled only then, and TensorFlow runs their ops on the CPU
    /// otherwise.
    fn supports_float64(&self) -> bool {
        false
    }

    /// Returns whether a library computes these products in place of the shader. It divides long sums of few results itself.
    fn supports_matmul(&self, _product: &MatMul) -> bool {
        false
    }

    /// Multiplies matrices by a library: `a`, `b` and the product are at these addresses. Returns `false` if it has enqueued
    /// nothing; then the shader is launched.
    ///
    /// # Errors
    /// Those of the driver.
    ///
    /// # Safety
    /// The batch has begun; the matrices have these sizes, and live until the batch is done.
    unsafe fn matmul(
        &self,
        _batch: &mut Self::Batch,
        _product: &MatMul,
        _matrices: [u64; 3],
    ) -> BackendResult<bool> {
        Ok(false)
    }

    /// Returns whether a library computes this convolution in place of the shader.
    fn supports_convolution(&self, _convolution: &Convolution) -> bool {
        false
    }

    /// Computes a convolution by a library: its two operands and the result are at these addresses. Returns `false` if it leaves
    /// the convolution to the shader, which is launched then. To compare their times, it can launch the shader itself, any number
    /// of times: `shader` does.
    ///
    /// # Errors
    /// Those of the driver.
    ///
    /// # Safety
    /// The batch has begun; the tensors have these sizes, and live until the batch is done.
    unsafe fn convolve(
        &self,
        _batch: &mut Self::Batch,
        _convolution: &Convolution,
        _tensors: [u64; 3],
        _shader: &mut dyn FnMut(&mut Self::Batch) -> BackendResult,
    ) -> BackendResult<bool> {
        Ok(false)
    }
}
