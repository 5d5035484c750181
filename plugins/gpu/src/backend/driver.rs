//! The interface of a backend for the modules above, which check and count their calls.

use se_plugin::kernel::DType;
use se_plugin::toolkit::window::Windows;
use se_plugin::{Code, Error};
use std::fmt::{Display, Formatter};
use std::time::Duration;

/// How many bytes every GPU can push to a shader.
pub(crate) const PUSH_BYTES: usize = 128;

/// A batch with this many commands is full.
pub(super) const MOST_COMMANDS: usize = 256;

/// The commands of the largest batch: the last one may be a fill, which can be three commands.
pub(super) const LARGEST_BATCH: usize = MOST_COMMANDS + 2;

#[derive(Debug)]
pub(super) struct BackendError {
    pub(super) code: Code,
    /// The failed action, as in `vulkan cannot allocate 16 bytes`.
    pub(super) what: String,
    pub(super) cause: String,
    /// What the user can do.
    pub(super) help: &'static str,
    /// Whether the GPU cannot be used any more in this process.
    pub(super) is_lost: bool,
}

impl BackendError {
    /// Returns the error for a GPU with this name, or for none before one is open.
    #[cold]
    pub(super) fn error(&self, gpu: Option<&str>) -> Error {
        let Self { code, what, cause, help, .. } = self;
        let gpu = gpu.map(|name| format!(" on `{name}`")).unwrap_or_default();
        Error::new(*code, format!("{what}{gpu}: {cause}; {help}"))
    }
}

/// What a function of a driver returns.
pub(super) type BackendResult<T = ()> = Result<T, BackendError>;

/// The kind of memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryKind {
    /// The GPU's, which shaders can access.
    Local,
    /// The host's, from and to which the GPU copies.
    Mapped,
}

/// Memory of a driver, which [`Driver::free`] frees.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    /// The driver's handles: for Vulkan the buffer and its memory.
    pub(super) handles: [u64; 2],
    /// The address for shaders; 0 for memory of the host.
    pub(super) address: u64,
    /// The address for the host; null for memory of the GPU.
    pub(super) host: *mut u8,
}

// SAFETY: handles and addresses are numbers, which drivers let any thread use. What the host sees is only reached through
// `Buffer::host`, which takes the buffer alone.
unsafe impl Send for Memory {}
// SAFETY: nothing behind a shared reference changes.
unsafe impl Sync for Memory {}

/// A byte in memory, by its offset.
#[derive(Clone, Copy)]
pub(super) struct MemoryOffset<'a> {
    pub(super) memory: &'a Memory,
    pub(super) offset: u64,
}

/// A shader in SPIR-V, whose entry is `main`. [`program`](super::cuda::program) finds its source by the name.
pub(crate) struct Shader {
    /// Its name in messages, which is unique.
    pub(crate) name: &'static str,
    /// Words of SPIR-V in this machine's byte order.
    pub(crate) code: &'static [u8],
}

/// What a GPU's matrix units multiply at once: M x K 16-bit floats by K x N, with sums in 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CooperativeMatrix {
    pub(crate) m: u32,
    pub(crate) n: u32,
    pub(crate) k: u32,
    /// The number of invocations that compute one together.
    pub(crate) subgroup: u32,
    /// The largest tile for which the GPU has registers, in 16 rows and columns.
    pub(crate) most: u32,
    /// Whether sums can become 16-bit floats within the matrix units.
    pub(crate) stores: bool,
    /// Whether to use them also for tiles with gaps.
    pub(crate) parts: bool,
}

impl Display for CooperativeMatrix {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { m, n, k, subgroup, .. } = self;
        write!(out, "{m} x {k} by {k} x {n}, in subgroups of {subgroup}")
    }
}

impl CooperativeMatrix {
    /// The suffix of the names of shaders that use them: `shaders/cooperative.glsl`.
    pub(crate) const SHADERS: &'static str = ".cooperative";

    /// How many elements of a sum are multiplied between two barriers.
    pub(crate) const DEPTH: u32 = 32;

    /// The matrices of NVIDIA's GPUs.
    #[cfg(test)]
    pub(crate) const USUAL: Self =
        Self { m: 16, n: 16, k: 16, subgroup: 32, most: 8, stores: true, parts: true };

    /// Returns whether the shaders can divide a tile, of 16 times as many rows and columns, into such matrices.
    pub(crate) fn fits(&self, each: u32) -> bool {
        let Self { m, n, k, subgroup, most, .. } = *self;
        // As in the shaders.
        let subgroups = 256_u32.checked_div(subgroup).unwrap_or_default();
        let down = if subgroups > 8 { 4 } else { 2 };
        let Some(across) = subgroups.checked_div(down).filter(|across| *across > 0) else {
            return false;
        };
        let whole =
            |size: u32, part: u32| part > 0 && part.is_multiple_of(8) && size.is_multiple_of(part);
        each <= most
            && subgroup.is_power_of_two()
            && whole(16 * each / down, m)
            && whole(16 * each / across, n)
            && whole(Self::DEPTH, k)
    }

    /// Returns whether the shaders can use them on a GPU with this much shared memory, in bytes.
    pub(super) fn is_usable(&self, shared: u32) -> bool {
        let needed = || 2 * 640 * 16 + 256 / self.subgroup * self.m * self.n * 4;
        [4, 8].into_iter().any(|each| self.fits(each)) && needed() <= shared
    }
}

/// A compiled shader with its constants: a handle of the driver, which is valid as long as the GPU.
#[derive(Clone, Copy)]
pub(crate) struct Pipeline(pub(super) u64);

/// Products of the matrices `a` and `b`, `rows` x `inner` and `inner` x `columns`. They are
/// consecutive in memory, or, if a stride is 0, the same for all products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatMul {
    pub(crate) dtype: DType,
    /// Whether `a` and `b` are transposed.
    pub(crate) transpose: [bool; 2],
    pub(crate) rows: usize,
    pub(crate) inner: usize,
    pub(crate) columns: usize,
    pub(crate) batch: usize,
    /// How many elements there are from one `a`, and one `b`, to the next.
    pub(crate) strides: [usize; 2],
}

/// The computation of a convolution: the numbers of the ops in `shaders/convolve.comp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ConvolutionKind {
    /// The results, from images and a filter.
    Forward,
    /// The gradient of the images, from that of the results and a filter.
    BackwardData,
    /// The gradient of the filter, from images and the gradient of the results.
    BackwardFilter,
}

/// Windows over images, and the shape of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WindowShape {
    /// Whether images are volumes. Others have a depth of 1.
    pub(crate) is_deep: bool,
    /// Their number, depth, rows, columns and channels.
    pub(crate) images: [usize; 5],
    pub(crate) windows: [Windows; 3],
    pub(crate) results: usize,
    /// The groups of channels, each with its own filters.
    pub(crate) groups: usize,
}

impl WindowShape {
    /// Returns whether images are padded alike at both ends, as cuDNN requires it.
    pub(crate) fn is_even(&self) -> bool {
        self.windows.iter().all(|of| {
            let reach = of.size.saturating_sub(1) * of.dilation + 1;
            let rest = (of.input + 2 * of.before).checked_sub(reach);
            rest.is_some_and(|rest| rest / of.stride + 1 == of.count)
        })
    }
}

/// A convolution whose tensors have one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Convolution {
    pub(crate) kind: ConvolutionKind,
    pub(crate) dtype: DType,
    pub(crate) shape: WindowShape,
}

/// What a launch computes, for backends with a library for that.
#[derive(Clone)]
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
    pub(crate) pipeline: Pipeline,
    /// What the shader takes, of at most [`PUSH_BYTES`].
    pub(crate) push: Vec<u8>,
    /// The number of workgroups.
    pub(crate) groups: [u32; 3],
}

/// A GPU as a backend opens it.
pub(super) struct OpenedGpu {
    pub(super) driver: Box<dyn Driver>,
    /// The name that the driver reports.
    pub(super) name: String,
    /// The driver and its features, for people.
    pub(super) driver_info: String,
    /// Bytes of device memory.
    pub(super) total: u64,
    /// The cooperative matrices that shaders can use.
    pub(super) cooperative: Option<CooperativeMatrix>,
    /// Whether it is a driver for the CPU, which may take minutes where a GPU takes milliseconds.
    pub(super) is_software: bool,
}

/// An open GPU. Any thread may call any of its functions, except in a fork.
pub(super) trait Driver: Send + Sync {
    /// Allocates memory of at least one byte.
    fn allocate(&self, bytes: u64, kind: MemoryKind) -> BackendResult<Memory>;

    /// Frees memory.
    /// # Safety
    /// The memory is of this driver, the GPU does not use it, and nothing uses it later.
    unsafe fn free(&self, memory: &Memory);

    /// Creates a recorder, which records one batch at a time.
    fn recorder(&self) -> BackendResult<Box<dyn Recorder>>;

    /// Compiles a shader with these values of its specialization constants 0, 1, ….
    fn compile(&self, shader: &Shader, constants: &[u32]) -> BackendResult<Pipeline>;

    /// Returns whether a library computes this convolution in place of the shader.
    fn supports_convolution(&self, _convolution: &Convolution) -> bool {
        false
    }
}

/// A recorder: it records the commands of a batch, sends them and waits for them. All batches of a
/// GPU run in the order in which they are sent, as far as other threads can see.
///
/// The calls for a batch are `begin`, then commands with a [`mark`](Self::mark) behind each,
/// `send`, `wait` until it returns `true`, `times` if it was measured, and `reset`.
pub(super) trait Recorder: Send {
    /// Begins a batch, and measures its times if `is_measured`.
    ///
    /// # Safety
    /// It is the first call, or follows [`reset`](Self::reset).
    unsafe fn begin(&mut self, is_measured: bool) -> BackendResult;

    /// Copies bytes.
    /// # Safety
    /// The batch has begun; both ranges are within their memory, do not overlap, and live until the batch is done.
    unsafe fn copy(
        &mut self,
        target: MemoryOffset<'_>,
        source: MemoryOffset<'_>,
        bytes: u64,
    ) -> BackendResult;

    /// Fills a range with a word.
    ///
    /// # Safety
    /// The batch has begun; the range is not empty, within its memory, which lives until the batch is done; both ends are
    /// multiples of 4 from the first byte of the memory.
    unsafe fn fill(&mut self, target: MemoryOffset<'_>, word: u32, bytes: u64) -> BackendResult;

    /// Runs a shader.
    ///
    /// # Safety
    /// The batch has begun; the pipeline is of this driver; `push` is what its shader takes, and the memory at the addresses
    /// in it, which are those of the tensors too, lives until the batch is done.
    unsafe fn dispatch(&mut self, shader: &Dispatch) -> BackendResult;

    /// Multiplies matrices: by the shader, unless the backend has a library.
    ///
    /// # Safety
    /// As for [`dispatch`](Self::dispatch); the matrices have these sizes.
    unsafe fn matmul(&mut self, _product: &MatMul, shader: &Dispatch) -> BackendResult {
        // SAFETY: both functions require the same of the shader.
        unsafe { self.dispatch(shader) }
    }

    /// Computes a convolution: by the shader, unless the backend has a library.
    ///
    /// # Safety
    /// As for [`dispatch`](Self::dispatch); the tensors have these sizes.
    unsafe fn convolve(&mut self, _convolution: &Convolution, shader: &Dispatch) -> BackendResult {
        // SAFETY: both functions require the same of the shader.
        unsafe { self.dispatch(shader) }
    }

    /// Ends a command: later ones, and the host, see what it wrote. Records the time if the batch is measured.
    ///
    /// # Safety
    /// The batch has begun.
    unsafe fn mark(&mut self) -> BackendResult;

    /// Sends the batch to the GPU.
    ///
    /// # Safety
    /// The batch has begun, and each of its commands was marked.
    unsafe fn send(&mut self) -> BackendResult;

    /// Waits for the batch that was sent, for at most `limit`. Returns whether it is done.
    fn wait(&mut self, limit: Duration) -> BackendResult<bool>;

    /// Returns begin and end of each command of a measured batch, in nanoseconds of the GPU's clock, if it has one.
    fn times(&mut self) -> BackendResult<Option<Vec<[i64; 2]>>>;

    /// Prepares the recorder for the next batch.
    ///
    /// # Safety
    /// The batch that was sent last is done.
    unsafe fn reset(&mut self) -> BackendResult;

    /// Frees the driver's objects. No other call follows.
    ///
    /// # Safety
    /// The GPU does not execute a batch of it.
    unsafe fn destroy(&mut self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_divided_as_the_gpus_have_it() {
        let of = |[m, n, k]: [u32; 3], subgroup, most| {
            let matrix = CooperativeMatrix { m, n, k, subgroup, most, stores: true, parts: true };
            ([4, 8].map(|each| matrix.fits(each)), matrix.is_usable(32 << 10))
        };
        for (name, matrix, subgroup, most, fits, is_usable) in [
            ("NVIDIA", [16, 16, 16], 32, 8, [true, true], true),
            ("NVIDIA, short", [16, 8, 16], 32, 8, [true, true], true),
            ("AMD", [16, 16, 16], 64, 8, [true, true], true),
            ("Intel", [8, 16, 16], 32, 4, [true, false], true),
            ("Intel, 16", [8, 16, 16], 16, 4, [true, false], true),
            ("lavapipe", [8, 8, 8], 8, 8, [true, true], true),
            ("too wide", [64, 64, 16], 32, 8, [false, false], false),
            ("no multiple of eight", [4, 4, 4], 32, 8, [false, false], false),
            ("too deep", [16, 16, 64], 32, 8, [false, false], false),
            ("none together", [16, 16, 16], 0, 8, [false, false], false),
        ] {
            assert_eq!(of(matrix, subgroup, most), (fits, is_usable), "{name}");
        }
        assert!(!CooperativeMatrix::USUAL.is_usable(16 << 10));
    }
}
