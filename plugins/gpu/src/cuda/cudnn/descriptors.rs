//! A convolution and its tensors as cuDNN describes them, in one of the layouts that it supports.

use cudarc::cudnn::result::{self, CudnnError};
use cudarc::cudnn::sys;
use se_plugin::kernel::DType;
use se_plugin::toolkit::window::Windows;
use se_plugin_gpu::backend::{Convolution, WindowShape};
use std::ffi::c_int;

/// The alignment of cuDNN's memory.
pub(super) const ALIGNMENT: usize = 256;

/// A descriptor of cuDNN, which is destroyed when it is dropped.
pub(super) struct Descriptor<T: Copy> {
    pub(super) handle: T,
    destroy: unsafe fn(T) -> Result<(), CudnnError>,
}

impl<T: Copy> Drop for Descriptor<T> {
    fn drop(&mut self) {
        // SAFETY: it was created, and nothing uses it later. There is nothing to do about an error.
        let _ = unsafe { (self.destroy)(self.handle) };
    }
}

pub(super) type Tensor = Descriptor<sys::cudnnTensorDescriptor_t>;

fn new_tensor() -> Result<Tensor, CudnnError> {
    let handle = result::create_tensor_descriptor()?;
    Ok(Descriptor { handle, destroy: result::destroy_tensor_descriptor })
}

/// Describes a tensor whose channels are its second size, and last or first in memory.
fn tensor(
    kind: sys::cudnnDataType_t,
    layout: Layout,
    sizes: &[c_int],
) -> Result<Tensor, CudnnError> {
    let descriptor = new_tensor()?;
    let (handle, count, sizes) = (descriptor.handle, sizes.len() as c_int, sizes.as_ptr());
    // SAFETY: there are so many sizes.
    unsafe { sys::cudnnSetTensorNdDescriptorEx(handle, layout.format(), kind, count, sizes) }
        .result()?;
    Ok(descriptor)
}

/// Describes a tensor whose elements are so far from each other along each axis.
fn strided(
    kind: sys::cudnnDataType_t,
    sizes: [c_int; 4],
    strides: [c_int; 4],
) -> Result<Tensor, CudnnError> {
    let descriptor = new_tensor()?;
    let (count, sizes, strides) = (sizes.len() as c_int, sizes.as_ptr(), strides.as_ptr());
    // SAFETY: there are as many sizes and strides.
    unsafe { result::set_tensornd_descriptor(descriptor.handle, kind, count, sizes, strides) }?;
    Ok(descriptor)
}

/// Where channels are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Last, as in TensorFlow: NHWC. Filters begin with the results.
    Last,
    /// Before the positions: NCHW. Images and results are converted.
    First,
}

impl Layout {
    pub(super) const ALL: [Self; 2] = [Self::Last, Self::First];

    fn format(self) -> sys::cudnnTensorFormat_t {
        match self {
            Self::Last => sys::cudnnTensorFormat_t::CUDNN_TENSOR_NHWC,
            Self::First => sys::cudnnTensorFormat_t::CUDNN_TENSOR_NCHW,
        }
    }
}

/// What of the factors' bits is multiplied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    /// All bits of float32, as on the CPU.
    Exact,
    /// The bits of TF32, for float32.
    Tf32,
    /// All bits of a 16-bit type.
    Short,
}

impl Precision {
    fn new(kind: sys::cudnnDataType_t, tf32: bool) -> Self {
        match kind {
            sys::cudnnDataType_t::CUDNN_DATA_FLOAT if tf32 => Self::Tf32,
            sys::cudnnDataType_t::CUDNN_DATA_FLOAT => Self::Exact,
            _ => Self::Short,
        }
    }

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
    pub(super) fn allows(self, math: sys::cudnnMathType_t) -> bool {
        use sys::cudnnMathType_t::{CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION};
        match math {
            // It would convert float32 to float16.
            CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION => self == Self::Short,
            CUDNN_TENSOR_OP_MATH => self != Self::Exact,
            _ => true,
        }
    }
}

/// A tensor in TensorFlow's order and in cuDNN's.
pub(super) struct Conversion {
    pub(super) ours: Tensor,
    pub(super) theirs: Tensor,
    bytes: usize,
}

impl Conversion {
    /// Returns the bytes of workspace for the tensor in cuDNN's order.
    pub(super) fn space(&self) -> usize {
        self.bytes.next_multiple_of(ALIGNMENT)
    }
}

/// A convolution whose tensors have a layout.
pub(super) struct Described {
    pub(super) images: Tensor,
    pub(super) filter: Descriptor<sys::cudnnFilterDescriptor_t>,
    pub(super) results: Tensor,
    pub(super) convolution: Descriptor<sys::cudnnConvolutionDescriptor_t>,
    pub(super) precision: Precision,
    /// How images, filter and results are converted, unless TensorFlow's order is cuDNN's.
    pub(super) conversions: [Option<Conversion>; 3],
}

// SAFETY: descriptors are addresses that any thread may use.
unsafe impl Send for Described {}
// SAFETY: only the kind of multiplication changes, while the handle of cuDNN is locked.
unsafe impl Sync for Described {}

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

impl Described {
    /// Describes a convolution, if cuDNN may support it.
    pub(super) fn new(
        convolution: &Convolution,
        layout: Layout,
        tf32: bool,
    ) -> Result<Option<Self>, CudnnError> {
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
        let sizes = [[count, channels], [results, each], [count, results]];
        let parts: [fn(&Windows) -> usize; 3] =
            [|axis| axis.input, |axis| axis.size, |axis| axis.count];

        // The positions of each tensor, if all of its elements can be counted.
        let mut positions = [0; 3];
        for ((positions, of), [a, b]) in positions.iter_mut().zip(parts).zip(sizes) {
            let all = along(of).into_iter().try_fold(1_i32, i32::checked_mul);
            let Some(all) = all else { return Ok(None) };
            // Of images and results only those of one position are steps.
            let counted = if layout == Layout::First { all } else { 1 };
            if a.checked_mul(b).and_then(|of_all| of_all.checked_mul(counted)).is_none() {
                return Ok(None);
            }
            *positions = all;
        }
        let bytes = |at: usize| {
            let [a, b] = sizes[at];
            a as usize * b as usize * positions[at] as usize * element
        };
        let moved = |at: usize| -> Result<_, CudnnError> {
            let [a, b] = sizes[at];
            let of = [a, b, positions[at], 1];
            let (ours, theirs) = (tensor(kind, Layout::Last, &of)?, tensor(kind, layout, &of)?);
            Ok(Some(Conversion { ours, theirs, bytes: bytes(at) }))
        };
        let conversions = match layout {
            Layout::Last => {
                // TensorFlow's filters end with the results.
                let Some(rest) = each.checked_mul(positions[1]) else { return Ok(None) };
                let order = |layout| tensor(kind, layout, &[1, results, rest, 1]);
                let (ours, theirs) = (order(Layout::Last)?, order(Layout::First)?);
                [None, Some(Conversion { ours, theirs, bytes: bytes(1) }), None]
            }
            Layout::First => {
                let of = [results, each, positions[1], 1];
                let ours = strided(kind, of, [1, results, results * each, 1])?;
                let theirs = tensor(kind, Layout::First, &of)?;
                [moved(0)?, Some(Conversion { ours, theirs, bytes: bytes(1) }), moved(2)?]
            }
        };

        let images = tensor(kind, layout, &with(sizes[0], parts[0]))?;
        let outcome = tensor(kind, layout, &with(sizes[2], parts[2]))?;
        let handle = result::create_filter_descriptor()?;
        let filter = Descriptor { handle, destroy: result::destroy_filter_descriptor };
        let all = with(sizes[1], parts[1]);
        let (format, length) = (layout.format(), all.len() as c_int);
        // SAFETY: there are so many sizes.
        unsafe { result::set_filternd_descriptor(handle, kind, format, length, all.as_ptr()) }?;

        let handle = result::create_convolution_descriptor()?;
        let described = Descriptor { handle, destroy: result::destroy_convolution_descriptor };
        let (pads, strides) = (along(|axis| axis.before), along(|axis| axis.stride));
        let dilations = along(|axis| axis.dilation);
        let precision = Precision::new(kind, tf32);
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
            result::set_convolution_math_type(handle, precision.math())?;
        }
        Ok(Some(Self {
            images,
            filter,
            results: outcome,
            convolution: described,
            precision,
            conversions,
        }))
    }

    /// Returns the bytes of workspace for tensors in cuDNN's order.
    pub(super) fn space(&self) -> usize {
        self.conversions.iter().flatten().map(Conversion::space).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::selftest::SHAPES;
    use super::*;
    use se_plugin_gpu::backend::ConvolutionKind;

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
