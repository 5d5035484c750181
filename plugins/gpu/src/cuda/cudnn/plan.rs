//! A convolution as cuDNN describes it, ready to be enqueued.

use cudarc::cudnn::result::{self, CudnnError};
use cudarc::cudnn::sys;
use se_plugin::kernel::DType;
use se_plugin::toolkit::window::Windows;
use se_plugin_gpu::backend::{Convolution, ConvolutionKind, WindowShape};
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// The alignment of cuDNN's memory.
pub(super) const ALIGNMENT: usize = 256;
/// More algorithms than cuDNN has: 8 for results, and fewer for gradients.
const MOST_ALGORITHMS: usize = 16;

/// A descriptor of cuDNN, which is destroyed when it is dropped.
struct Descriptor<T: Copy> {
    handle: T,
    destroy: unsafe fn(T) -> Result<(), CudnnError>,
}

impl<T: Copy> Drop for Descriptor<T> {
    fn drop(&mut self) {
        // SAFETY: it was created, and nothing uses it later. There is nothing to do about an error.
        let _ = unsafe { (self.destroy)(self.handle) };
    }
}

type Tensor = Descriptor<sys::cudnnTensorDescriptor_t>;

/// Describes a tensor whose channels are its second size, and last or first in memory.
fn tensor(
    kind: sys::cudnnDataType_t,
    format: sys::cudnnTensorFormat_t,
    sizes: &[c_int],
) -> Result<Tensor, CudnnError> {
    let handle = result::create_tensor_descriptor()?;
    let descriptor = Descriptor { handle, destroy: result::destroy_tensor_descriptor };
    let (count, sizes) = (sizes.len() as c_int, sizes.as_ptr());
    // SAFETY: there are so many sizes.
    unsafe { sys::cudnnSetTensorNdDescriptorEx(handle, format, kind, count, sizes) }.result()?;
    Ok(descriptor)
}

/// The algorithm of cuDNN.
#[derive(Clone, Copy)]
enum Algorithm {
    Forward(sys::cudnnConvolutionFwdAlgo_t),
    BackwardData(sys::cudnnConvolutionBwdDataAlgo_t),
    BackwardFilter(sys::cudnnConvolutionBwdFilterAlgo_t),
}

// SAFETY: descriptors are addresses that any thread may use; nothing changes them once the plan is made.
unsafe impl Send for Plan {}
// SAFETY: nothing changes the descriptors once the plan is made, so threads may share them.
unsafe impl Sync for Plan {}

/// A convolution that is ready to be enqueued.
pub(super) struct Plan {
    images: Tensor,
    results: Tensor,
    filter: Descriptor<sys::cudnnFilterDescriptor_t>,
    convolution: Descriptor<sys::cudnnConvolutionDescriptor_t>,
    /// The filter in TensorFlow's order, with the results last, and in cuDNN's, with the results first.
    orders: [Tensor; 2],
    /// The bytes of the filter.
    bytes: usize,
    algorithm: Algorithm,
    /// The bytes of temporary memory that the algorithm needs.
    needed: usize,
}

/// What of the factors' bits is multiplied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Precision {
    /// All bits of float32, as on the CPU.
    Exact,
    /// The bits of TF32, for float32.
    Tf32,
    /// All bits of a 16-bit type.
    Short,
}

impl Precision {
    /// Returns how a convolution multiplies before an algorithm is chosen.
    fn math(self) -> sys::cudnnMathType_t {
        match self {
            Self::Exact => sys::cudnnMathType_t::CUDNN_FMA_MATH,
            // TF32, where the GPU has it.
            Self::Tf32 => sys::cudnnMathType_t::CUDNN_DEFAULT_MATH,
            Self::Short => sys::cudnnMathType_t::CUDNN_TENSOR_OP_MATH,
        }
    }

    /// Returns whether an algorithm may multiply like this.
    fn allows(self, math: sys::cudnnMathType_t) -> bool {
        use sys::cudnnMathType_t::{CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION};
        match math {
            // It would convert float32 to float16.
            CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION => self == Self::Short,
            CUDNN_TENSOR_OP_MATH => self != Self::Exact,
            _ => true,
        }
    }
}

/// Chooses the first algorithm that cuDNN suggests, among the deterministic ones that fit into the memory and compute
/// with all bits of the type. Evaluates to the algorithm and the memory that it needs.
macro_rules! choose {
    (
        $way:ident: $suggest:ident, $needed:ident, $perf:ident,
        ($cudnn:expr, $a:expr, $b:expr, $convolution:expr, $c:expr), $space:expr, $precision:expr
    ) => {{
        let mut perfs = [const { MaybeUninit::<sys::$perf>::uninit() }; MOST_ALGORITHMS];
        let mut count = 0;
        let (most, all) = (MOST_ALGORITHMS as c_int, perfs.as_mut_ptr().cast());
        // SAFETY: handle and descriptors live; there is a place for so many.
        unsafe { result::$suggest($cudnn, $a, $b, $convolution, $c, most, &raw mut count, all) }?;
        let perfs = perfs.iter().take(usize::try_from(count).unwrap_or_default());
        // SAFETY: cuDNN has written so many.
        perfs.map(|perf| unsafe { perf.assume_init_read() }).find_map(|perf| {
            if perf.status != sys::cudnnStatus_t::CUDNN_STATUS_SUCCESS
                || perf.determinism != sys::cudnnDeterminism_t::CUDNN_DETERMINISTIC
                || !$precision.allows(perf.mathType)
            {
                return None;
            }
            // The memory depends on the kind of multiplication.
            // SAFETY: handle and descriptors live.
            let needed = unsafe {
                if $precision != Precision::Exact {
                    result::set_convolution_math_type($convolution, perf.mathType).ok()?;
                }
                result::$needed($cudnn, $a, $b, $convolution, $c, perf.algo).ok()?
            };
            (needed <= $space).then_some((Algorithm::$way(perf.algo), needed))
        })
    }};
}

/// Returns the type of cuDNN and the bytes of an element, if cuDNN may support the convolution: not empty, with sizes of 31
/// bits, and with images that are padded alike at both ends.
pub(super) fn supported(convolution: &Convolution) -> Option<(sys::cudnnDataType_t, usize)> {
    let WindowShape { images, windows, results, groups, .. } = &convolution.shape;
    let each = |of: &Windows| [of.size, of.stride, of.dilation, of.count];
    let sizes = windows.iter().flat_map(each).chain(*images).chain([*results, *groups]);
    let fits = |size: usize| size > 0 && c_int::try_from(size).is_ok();
    let mut counts = windows.iter().map(|of| of.count as c_int);
    let is_supported = sizes.into_iter().all(fits)
        && windows.iter().all(|of| c_int::try_from(of.before).is_ok())
        && counts.try_fold(images[0] as c_int, c_int::checked_mul).is_some()
        && convolution.shape.is_even();
    let data_type = match convolution.dtype {
        DType::Float32 => (sys::cudnnDataType_t::CUDNN_DATA_FLOAT, 4),
        DType::Float16 => (sys::cudnnDataType_t::CUDNN_DATA_HALF, 2),
        DType::Bfloat16 => (sys::cudnnDataType_t::CUDNN_DATA_BFLOAT16, 2),
        _ => return None,
    };
    is_supported.then_some(data_type)
}

impl Plan {
    /// Plans a convolution with cuDNN's suggestion, if that fits into the memory.
    pub(super) fn new(
        cudnn: sys::cudnnHandle_t,
        space: usize,
        convolution: &Convolution,
        tf32: bool,
    ) -> Result<Option<Self>, CudnnError> {
        use sys::cudnnTensorFormat_t::{CUDNN_TENSOR_NCHW as FIRST, CUDNN_TENSOR_NHWC as LAST};
        let Some((kind, element)) = supported(convolution) else { return Ok(None) };
        let shape = convolution.shape;
        let [count, .., channels] = shape.images.map(|size| size as c_int);
        let (results, groups) = (shape.results as c_int, shape.groups as c_int);
        let axes = if shape.is_deep { &shape.windows[..] } else { &shape.windows[1..] };
        let along = |of: fn(&Windows) -> usize| -> Vec<c_int> {
            axes.iter().map(|axis| of(axis) as c_int).collect()
        };
        let with = |first: [c_int; 2], of| [&first[..], &along(of)].concat();
        let each = channels / groups;

        let elements =
            along(|axis| axis.size).into_iter().try_fold(each, |all, size| all.checked_mul(size));
        let Some(elements) = elements else { return Ok(None) };
        let bytes = elements as usize * results as usize * element;
        let Some(space) = space.checked_sub(bytes.next_multiple_of(ALIGNMENT)) else {
            return Ok(None);
        };
        let order = |format| tensor(kind, format, &[1, results, elements, 1]);
        let orders = [order(LAST)?, order(FIRST)?];

        let images = tensor(kind, LAST, &with([count, channels], |axis| axis.input))?;
        let outcome = tensor(kind, LAST, &with([count, results], |axis| axis.count))?;
        let handle = result::create_filter_descriptor()?;
        let filter = Descriptor { handle, destroy: result::destroy_filter_descriptor };
        let all = with([results, each], |axis| axis.size);
        let length = all.len() as c_int;
        // SAFETY: there are so many sizes.
        unsafe { result::set_filternd_descriptor(handle, kind, LAST, length, all.as_ptr()) }?;

        let handle = result::create_convolution_descriptor()?;
        let described = Descriptor { handle, destroy: result::destroy_convolution_descriptor };
        let (pads, strides) = (along(|axis| axis.before), along(|axis| axis.stride));
        let dilations = along(|axis| axis.dilation);
        let precision = match kind {
            sys::cudnnDataType_t::CUDNN_DATA_FLOAT if tf32 => Precision::Tf32,
            sys::cudnnDataType_t::CUDNN_DATA_FLOAT => Precision::Exact,
            _ => Precision::Short,
        };
        let math = precision.math();
        // SAFETY: there are as many of each.
        unsafe {
            result::set_convolutionnd_descriptor(
                handle,
                pads.len() as c_int,
                pads.as_ptr(),
                strides.as_ptr(),
                dilations.as_ptr(),
                // This is what TensorFlow calls a convolution.
                sys::cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION,
                sys::cudnnDataType_t::CUDNN_DATA_FLOAT,
            )?;
            result::set_convolution_group_count(handle, groups)?;
            result::set_convolution_math_type(handle, math)?;
        }

        let (x, w, y) = (images.handle, filter.handle, outcome.handle);
        let chosen = match convolution.kind {
            ConvolutionKind::Forward => choose!(
                Forward: get_convolution_forward_algorithm,
                get_convolution_forward_workspace_size,
                cudnnConvolutionFwdAlgoPerf_t,
                (cudnn, x, w, handle, y),
                space,
                precision
            ),
            ConvolutionKind::BackwardData => choose!(
                BackwardData: get_convolution_backward_data_algorithm,
                get_convolution_backward_data_workspace_size,
                cudnnConvolutionBwdDataAlgoPerf_t,
                (cudnn, w, y, handle, x),
                space,
                precision
            ),
            ConvolutionKind::BackwardFilter => choose!(
                BackwardFilter: get_convolution_backward_filter_algorithm,
                get_convolution_backward_filter_workspace_size,
                cudnnConvolutionBwdFilterAlgoPerf_t,
                (cudnn, x, y, handle, w),
                space,
                precision
            ),
        };
        if chosen.is_none() {
            log::debug!(
                "RUST_GPU convolves by its own kernel: cuDNN has none in {space} bytes for {shape:?}"
            );
        }
        Ok(chosen.map(|(algorithm, needed)| Self {
            images,
            results: outcome,
            filter,
            convolution: described,
            orders,
            bytes,
            algorithm,
            needed,
        }))
    }

    /// # Safety
    /// The context is that of this thread; the tensors have these addresses, as the shader takes them, and the workspace has what
    /// was planned, in memory of the GPU, which lives until they are computed.
    pub(super) unsafe fn enqueue(
        &self,
        handle: sys::cudnnHandle_t,
        workspace: u64,
        [a, b, out]: [u64; 3],
    ) -> Result<(), CudnnError> {
        let (one, zero) = (1.0_f32, 0.0_f32);
        let (one, zero) = ((&raw const one).cast(), (&raw const zero).cast());
        let [ours, theirs] = &self.orders;
        let filter = workspace;
        let space = (workspace + self.bytes.next_multiple_of(ALIGNMENT) as u64) as *mut _;
        let (x, w, y) = (self.images.handle, self.filter.handle, self.results.handle);
        let convolution = self.convolution.handle;
        // SAFETY: handle and descriptors live; the filters have these sizes.
        let order = |of: &Tensor, from: u64, to: &Tensor, out: u64| unsafe {
            let (from, out) = (from as *const _, out as *mut _);
            sys::cudnnTransformTensor(handle, one, of.handle, from, zero, to.handle, out).result()
        };
        if !matches!(self.algorithm, Algorithm::BackwardFilter(_)) {
            order(ours, b, theirs, filter)?;
        }
        // SAFETY: handle and descriptors live; the tensors have these sizes, and the workspace has what is needed.
        unsafe {
            match self.algorithm {
                Algorithm::Forward(algorithm) => result::convolution_forward(
                    handle,
                    one,
                    x,
                    a as *const _,
                    w,
                    filter as *const _,
                    convolution,
                    algorithm,
                    space,
                    self.needed,
                    zero,
                    y,
                    out as *mut _,
                ),
                Algorithm::BackwardData(algorithm) => result::convolution_backward_data(
                    handle,
                    one,
                    w,
                    filter as *const _,
                    y,
                    a as *const _,
                    convolution,
                    algorithm,
                    space,
                    self.needed,
                    zero,
                    x,
                    out as *mut _,
                ),
                Algorithm::BackwardFilter(algorithm) => result::convolution_backward_filter(
                    handle,
                    one,
                    x,
                    a as *const _,
                    y,
                    b as *const _,
                    convolution,
                    algorithm,
                    space,
                    self.needed,
                    zero,
                    w,
                    filter as *mut _,
                ),
            }?;
        }
        if matches!(self.algorithm, Algorithm::BackwardFilter(_)) {
            order(theirs, filter, ours, out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::selftest::SHAPES;
    use super::*;

    #[test]
    fn cudnn_gets_even_windows_and_sizes_of_31_bits() {
        let is_supported = |dtype, change: fn(&mut WindowShape)| {
            let [_, mut shape] = SHAPES;
            change(&mut shape);
            supported(&Convolution { kind: ConvolutionKind::Forward, dtype, shape }).is_some()
        };
        assert!(is_supported(DType::Bfloat16, |_| {}));
        assert!(!is_supported(DType::Float64, |_| {}));
        // One row behind the images; no images; too many channels; too many windows.
        assert!(!is_supported(DType::Float32, |shape| shape.windows[1].count = 4));
        assert!(!is_supported(DType::Float32, |shape| shape.images[0] = 0));
        assert!(!is_supported(DType::Float32, |shape| shape.images[4] = 1 << 31));
        assert!(!is_supported(DType::Float32, |shape| shape.images[0] = 1 << 27));
    }
}
