//! Tensors, and the computation of convolutions.

use super::{Handle, INVALID, WORKSPACE, of};
use crate::SLOW;
use crate::abi::abort;
use crate::abi::elements::{Elements, Kind, allows_tf32, tf32};
use crate::abi::memory::Region;
use crate::abi::queue::on_device;
use crate::device::current;
use crate::stream::Stream;
use cudarc::cudnn::sys::{
    cudaStream_t, cudnnConvolutionDescriptor_t, cudnnDataType_t, cudnnFilterDescriptor_t,
    cudnnHandle_t, cudnnStatus_t, cudnnTensorDescriptor_t, cudnnTensorFormat_t,
};
use std::ffi::c_void;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The state of a descriptor of a tensor or filter: the sizes, of which the second is the number of channels, and the
/// steps in elements along each axis.
#[derive(Clone, Default)]
pub(super) struct Tensor {
    pub(super) kind: Option<Kind>,
    pub(super) sizes: Vec<i64>,
    pub(super) strides: Vec<i64>,
}

/// The state of a descriptor of a convolution.
#[derive(Clone, Default)]
pub(super) struct Convolution {
    /// The padding, stride and dilation of each axis.
    pub(super) axes: Vec<[i64; 3]>,
    pub(super) groups: i64,
    pub(super) is_exact: bool,
}

impl Tensor {
    pub(super) fn new(
        kind: cudnnDataType_t,
        format: cudnnTensorFormat_t,
        sizes: Vec<i64>,
    ) -> Result<Self, cudnnStatus_t> {
        let kind = match kind {
            cudnnDataType_t::CUDNN_DATA_FLOAT => Kind::F32,
            cudnnDataType_t::CUDNN_DATA_HALF => Kind::F16,
            cudnnDataType_t::CUDNN_DATA_BFLOAT16 => Kind::Bf16,
            _ => return Err(cudnnStatus_t::CUDNN_STATUS_NOT_SUPPORTED),
        };
        if sizes.len() < 4 || sizes.iter().any(|&size| size < 1) {
            return Err(INVALID);
        }
        // The axes, from the innermost one on.
        let mut order: Vec<_> = (0..sizes.len()).rev().collect();
        if format == cudnnTensorFormat_t::CUDNN_TENSOR_NHWC {
            order.retain(|&axis| axis != 1);
            order.insert(0, 1);
        }
        let (mut strides, mut next) = (vec![0; sizes.len()], 1);
        for axis in order {
            strides[axis] = next;
            next *= sizes[axis];
        }
        Ok(Self { kind: Some(kind), sizes, strides })
    }

    /// Makes a tensor with these steps along each axis.
    pub(super) fn strided(
        kind: cudnnDataType_t,
        sizes: Vec<i64>,
        strides: Vec<i64>,
    ) -> Result<Self, cudnnStatus_t> {
        if strides.iter().any(|&stride| stride < 1) {
            return Err(INVALID);
        }
        Ok(Self { strides, ..Self::new(kind, cudnnTensorFormat_t::CUDNN_TENSOR_NCHW, sizes)? })
    }

    /// Returns the index of the element at this place.
    pub(super) fn index(&self, place: &[i64]) -> i64 {
        place.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum()
    }

    /// Returns its elements at an address. Fails if the descriptor was not set.
    pub(super) fn elements(&self, at: *const c_void) -> Result<Elements, cudnnStatus_t> {
        let kind = self.kind.ok_or(INVALID)?;
        Ok(Elements { at: at.addr(), kind })
    }
}

/// Returns all places along axes of these sizes.
pub(super) fn places(sizes: &[i64]) -> Vec<Vec<i64>> {
    sizes.iter().fold(vec![Vec::new()], |all, &size| {
        let longer = |place: &Vec<i64>, at| [&place[..], &[at]].concat();
        all.iter().flat_map(|place| (0..size).map(move |at| longer(place, at))).collect()
    })
}

/// Returns the stream of a handle, and the blocks of tensors. Supports only the scalars 1 and 0.
///
/// # Safety
/// `cudnnCreate` made the handle, and the scalars are floats.
pub(super) unsafe fn prepare(
    handle: cudnnHandle_t,
    [alpha, beta]: [*const c_void; 2],
    tensors: &[(&Tensor, *const c_void)],
) -> Result<(Arc<Stream>, Vec<Arc<Region>>), cudnnStatus_t> {
    // SAFETY: both scalars are floats.
    if unsafe { (alpha.cast::<f32>().read(), beta.cast::<f32>().read()) } != (1.0, 0.0) {
        return Err(cudnnStatus_t::CUDNN_STATUS_NOT_SUPPORTED);
    }
    let hold = |(tensor, at): &(&Tensor, *const c_void)| {
        let bytes =
            tensor.sizes.iter().product::<i64>() as usize * tensor.elements(*at)?.kind.size();
        on_device(at.addr() as u64, bytes).map_err(|_| INVALID)
    };
    let held = tensors.iter().map(hold).collect::<Result<_, _>>()?;
    // SAFETY: `cudnnCreate` made the handle.
    let stream = *unsafe { &*handle.cast::<Handle>() }.lock().unwrap();
    Ok((current().stream(stream as cudaStream_t).map_err(|_| INVALID)?, held))
}

/// The tensor that is computed from the other two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    BackwardData,
    BackwardFilter,
}

/// A convolution of images by a filter, and its results.
pub(super) struct Convolved {
    images: Tensor,
    filter: Tensor,
    results: Tensor,
    pub(super) of: Convolution,
}

impl Convolved {
    /// # Safety
    /// The descriptors were created, and are not destroyed.
    pub(super) unsafe fn new(
        images: cudnnTensorDescriptor_t,
        filter: cudnnFilterDescriptor_t,
        results: cudnnTensorDescriptor_t,
        convolution: cudnnConvolutionDescriptor_t,
    ) -> Result<Self, cudnnStatus_t> {
        // SAFETY: the three descriptors were created, and are not destroyed.
        let [images, filter, results] = unsafe { [of(images), of(filter), of(results)] };
        // SAFETY: the descriptor was created, and is not destroyed.
        let of: Convolution = unsafe { of(convolution) };
        let (x, w, y): (&Tensor, &Tensor, &Tensor) = (&images, &filter, &results);
        let has_axes = [x, w, y].iter().all(|tensor| tensor.sizes.len() == of.axes.len() + 2);
        let count = |at: usize| {
            let [padding, stride, dilation] = of.axes[at];
            let rest = x.sizes[at + 2] + 2 * padding - ((w.sizes[at + 2] - 1) * dilation + 1);
            if rest < 0 { 0 } else { rest / stride + 1 }
        };
        let fits = has_axes
            && x.kind == w.kind
            && x.kind == y.kind
            && x.sizes[0] == y.sizes[0]
            && x.sizes[1] == w.sizes[1] * of.groups
            && y.sizes[1] == w.sizes[0]
            && y.sizes[1] % of.groups == 0
            && (0..of.axes.len()).all(|at| y.sizes[at + 2] == count(at));
        if !fits {
            return Err(INVALID);
        }
        if x.kind == Some(Kind::F32) && !of.is_exact && !allows_tf32() {
            abort("a convolution of float32 loses bits");
        }
        Ok(Self { images, filter, results, of })
    }

    /// Calls `with` with the indices of an image's element, of the filter's and of the result's, for each product.
    fn products(&self, mut with: impl FnMut(i64, i64, i64)) {
        let Self { images, filter, results, of } = self;
        let (each, of_group) = (filter.sizes[1], results.sizes[1] / of.groups);
        let (windows, elements) = (places(&results.sizes[2..]), places(&filter.sizes[2..]));
        let whole = |first, channel, place: &[i64]| [&[first, channel], place].concat();
        for image in 0..images.sizes[0] {
            for window in &windows {
                for element in &elements {
                    let along = |(at, axis): (usize, &[i64; 3])| {
                        window[at] * axis[1] + element[at] * axis[2] - axis[0]
                    };
                    let place: Vec<_> = of.axes.iter().enumerate().map(along).collect();
                    let is_in = |(at, size): (&i64, &i64)| (0..*size).contains(at);
                    if !place.iter().zip(&images.sizes[2..]).all(is_in) {
                        continue;
                    }
                    for result in 0..results.sizes[1] {
                        let first = result / of_group * each;
                        for channel in 0..each {
                            with(
                                images.index(&whole(image, first + channel, &place)),
                                filter.index(&whole(result, channel, element)),
                                results.index(&whole(image, result, window)),
                            );
                        }
                    }
                }
            }
        }
    }

    /// Ends the process if `algorithm` is not among those to choose from the suggestions: `other` and `best`, and `coarse`, which
    /// loses bits of float32. Returns how much longer it takes.
    pub(super) fn must_be<T: PartialEq>(
        &self,
        algorithm: T,
        [coarse, best, other]: [T; 3],
    ) -> Duration {
        if algorithm == best {
            let slow = std::env::var(SLOW).ok().and_then(|text| text.parse().ok());
            return Duration::from_millis(slow.unwrap_or_default());
        }
        if algorithm != other && (self.of.is_exact || algorithm != coarse) {
            abort("a convolution by an algorithm that is not to be chosen");
        }
        Duration::ZERO
    }

    /// Enqueues the computation of `what`, which takes so much longer than it does.
    ///
    /// # Safety
    /// The handle, the scalars and the addresses of images, filter, results and workspace follow cuDNN's rules.
    pub(super) unsafe fn enqueue(
        self,
        handle: cudnnHandle_t,
        scalars: [*const c_void; 2],
        direction: Direction,
        [x, w, y]: [*const c_void; 3],
        (workspace, bytes): (*mut c_void, usize),
        longer: Duration,
    ) -> Result<(), cudnnStatus_t> {
        if bytes < WORKSPACE || on_device(workspace.addr() as u64, bytes).is_err() {
            abort("a convolution without its workspace");
        }
        let used = [(&self.images, x), (&self.filter, w), (&self.results, y)];
        // SAFETY: `cudnnCreate` made the handle, and the scalars are floats.
        let (stream, held) = unsafe { prepare(handle, scalars, &used)? };
        let all = [self.images.elements(x)?, self.filter.elements(w)?, self.results.elements(y)?];
        stream.run(move || {
            thread::sleep(longer);
            let [x, w, y] = all;
            let (out, of_out) = match direction {
                Direction::Forward => (y, &self.results),
                Direction::BackwardData => (x, &self.images),
                Direction::BackwardFilter => (w, &self.filter),
            };
            let is_tf32 = self.images.kind == Some(Kind::F32) && !self.of.is_exact;
            let factor = |number: f32| if is_tf32 { tf32(number) } else { number };
            let mut sums = vec![0.0_f32; of_out.sizes.iter().product::<i64>() as usize];
            self.products(|image, filter, result| {
                // SAFETY: the tensors have these elements, and their blocks are held.
                unsafe {
                    match direction {
                        Direction::Forward => {
                            sums[result as usize] += factor(x.get(image)) * factor(w.get(filter));
                        }
                        Direction::BackwardData => {
                            sums[image as usize] += factor(y.get(result)) * factor(w.get(filter));
                        }
                        Direction::BackwardFilter => {
                            sums[filter as usize] += factor(x.get(image)) * factor(y.get(result));
                        }
                    }
                }
            });
            for (at, sum) in sums.into_iter().enumerate() {
                // SAFETY: `out` has as many elements as there are sums, and its block is held.
                unsafe { out.set(at as i64, sum) };
            }
            drop(held);
            Ok(())
        });
        Ok(())
    }
}
