//! The functions of cuDNN for convolutions. A call that a GPU might not compute, or not exactly, ends the process.

mod convolved;

use crate::fault;
use convolved::{Convolution, Convolved, Direction, Tensor, places, prepare};
use cudarc::cudnn::sys::{
    cudaStream_t, cudnnConvolutionBwdDataAlgo_t, cudnnConvolutionBwdDataAlgoPerf_t,
    cudnnConvolutionBwdFilterAlgo_t, cudnnConvolutionBwdFilterAlgoPerf_t,
    cudnnConvolutionDescriptor_t, cudnnConvolutionFwdAlgo_t, cudnnConvolutionFwdAlgoPerf_t,
    cudnnConvolutionMode_t, cudnnDataType_t, cudnnDeterminism_t, cudnnFilterDescriptor_t,
    cudnnHandle_t, cudnnMathType_t, cudnnStatus_t, cudnnTensorDescriptor_t, cudnnTensorFormat_t,
};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;

const INVALID: cudnnStatus_t = cudnnStatus_t::CUDNN_STATUS_BAD_PARAM;

/// The bytes of workspace for the algorithm to choose.
const WORKSPACE: usize = 1000;

/// The state of a handle: its stream.
type Handle = Mutex<usize>;

/// Calls a function, unless its fault happens.
fn called(name: &str, function: impl FnOnce() -> Result<(), cudnnStatus_t>) -> cudnnStatus_t {
    if fault::happens(name) {
        return match fault::is_silent() {
            true => cudnnStatus_t::CUDNN_STATUS_SUCCESS,
            false => cudnnStatus_t::CUDNN_STATUS_EXECUTION_FAILED,
        };
    }
    function().err().unwrap_or(cudnnStatus_t::CUDNN_STATUS_SUCCESS)
}

/// Defines functions of cuDNN, which return an error or nothing.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        /// # Safety
        /// The caller follows cuDNN's rules for this function.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "cuDNN's name")]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> cudnnStatus_t {
            called(stringify!($name), || $body)
        }
    )*};
}

/// # Safety
/// The caller follows cuDNN's rules for this function.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "cuDNN's name")]
pub(crate) unsafe extern "C" fn cudnnGetVersion() -> usize {
    9_02_01
}

/// # Safety
/// The caller follows cuDNN's rules for this function.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "cuDNN's name")]
pub(crate) unsafe extern "C" fn cudnnGetErrorString(status: cudnnStatus_t) -> *const c_char {
    match status {
        cudnnStatus_t::CUDNN_STATUS_EXECUTION_FAILED => c"CUDNN_STATUS_EXECUTION_FAILED".as_ptr(),
        _ => c"another error".as_ptr(),
    }
}

/// Creates a descriptor or handle, and writes it.
///
/// # Safety
/// A pointer may be written there.
unsafe fn create<T, D: Default>(to: *mut *mut T) -> Result<(), cudnnStatus_t> {
    // SAFETY: a pointer may be written to `to`.
    unsafe { to.write(Box::into_raw(Box::<D>::default()).cast()) };
    Ok(())
}

/// # Safety
/// [`create`] made it, and nothing uses it later.
unsafe fn destroy<T, D>(descriptor: *mut T) -> Result<(), cudnnStatus_t> {
    // SAFETY: `create` made the descriptor as a `D`, and nothing uses it later.
    drop(unsafe { Box::from_raw(descriptor.cast::<D>()) });
    Ok(())
}

/// # Safety
/// [`create`] made it, and it is not destroyed.
unsafe fn of<T, D: Clone>(descriptor: *mut T) -> D {
    // SAFETY: `create` made the descriptor as a `Mutex<D>`, and it is not destroyed.
    unsafe { &*descriptor.cast::<Mutex<D>>() }.lock().unwrap().clone()
}

/// # Safety
/// The pointer leads to `count` numbers.
unsafe fn numbers(count: c_int, from: *const c_int) -> Vec<i64> {
    // SAFETY: there are `count` numbers at `from`.
    (0..count as usize).map(|at| unsafe { from.add(at).read() }.into()).collect()
}

functions! {
    cudnnCreate(handle: *mut cudnnHandle_t) {
        // SAFETY: a handle may be written there.
        unsafe { create::<_, Handle>(handle) }
    }

    cudnnSetStream(handle: cudnnHandle_t, stream: cudaStream_t) {
        // SAFETY: `cudnnCreate` made it.
        *unsafe { &*handle.cast::<Handle>() }.lock().unwrap() = stream.addr();
        Ok(())
    }

    cudnnCreateTensorDescriptor(descriptor: *mut cudnnTensorDescriptor_t) {
        // SAFETY: a descriptor may be written there.
        unsafe { create::<_, Mutex<Tensor>>(descriptor) }
    }

    cudnnDestroyTensorDescriptor(descriptor: cudnnTensorDescriptor_t) {
        // SAFETY: `cudnnCreateTensorDescriptor` made it.
        unsafe { destroy::<_, Mutex<Tensor>>(descriptor) }
    }

    cudnnSetTensorNdDescriptorEx(
        descriptor: cudnnTensorDescriptor_t,
        format: cudnnTensorFormat_t,
        kind: cudnnDataType_t,
        count: c_int,
        sizes: *const c_int,
    ) {
        // SAFETY: there are so many sizes.
        let tensor = Tensor::new(kind, format, unsafe { numbers(count, sizes) })?;
        // SAFETY: `cudnnCreateTensorDescriptor` made it.
        *unsafe { &*descriptor.cast::<Mutex<Tensor>>() }.lock().unwrap() = tensor;
        Ok(())
    }

    cudnnSetTensorNdDescriptor(
        descriptor: cudnnTensorDescriptor_t,
        kind: cudnnDataType_t,
        count: c_int,
        sizes: *const c_int,
        strides: *const c_int,
    ) {
        // SAFETY: there are so many of each.
        let [sizes, strides] = unsafe { [numbers(count, sizes), numbers(count, strides)] };
        let tensor = Tensor::strided(kind, sizes, strides)?;
        // SAFETY: `cudnnCreateTensorDescriptor` made it.
        *unsafe { &*descriptor.cast::<Mutex<Tensor>>() }.lock().unwrap() = tensor;
        Ok(())
    }

    cudnnCreateFilterDescriptor(descriptor: *mut cudnnFilterDescriptor_t) {
        // SAFETY: a descriptor may be written there.
        unsafe { create::<_, Mutex<Tensor>>(descriptor) }
    }

    cudnnDestroyFilterDescriptor(descriptor: cudnnFilterDescriptor_t) {
        // SAFETY: `cudnnCreateFilterDescriptor` made it.
        unsafe { destroy::<_, Mutex<Tensor>>(descriptor) }
    }

    cudnnSetFilterNdDescriptor(
        descriptor: cudnnFilterDescriptor_t,
        kind: cudnnDataType_t,
        format: cudnnTensorFormat_t,
        count: c_int,
        sizes: *const c_int,
    ) {
        // SAFETY: there are so many sizes.
        let tensor = Tensor::new(kind, format, unsafe { numbers(count, sizes) })?;
        // SAFETY: `cudnnCreateFilterDescriptor` made it.
        *unsafe { &*descriptor.cast::<Mutex<Tensor>>() }.lock().unwrap() = tensor;
        Ok(())
    }

    cudnnCreateConvolutionDescriptor(descriptor: *mut cudnnConvolutionDescriptor_t) {
        // SAFETY: a descriptor may be written there.
        unsafe { create::<_, Mutex<Convolution>>(descriptor) }
    }

    cudnnDestroyConvolutionDescriptor(descriptor: cudnnConvolutionDescriptor_t) {
        // SAFETY: `cudnnCreateConvolutionDescriptor` made it.
        unsafe { destroy::<_, Mutex<Convolution>>(descriptor) }
    }

    cudnnSetConvolutionNdDescriptor(
        descriptor: cudnnConvolutionDescriptor_t,
        count: c_int,
        paddings: *const c_int,
        strides: *const c_int,
        dilations: *const c_int,
        mode: cudnnConvolutionMode_t,
        computed: cudnnDataType_t,
    ) {
        // SAFETY: there are so many of each.
        let all = unsafe { [paddings, strides, dilations].map(|from| numbers(count, from)) };
        let axes: Vec<_> = (0..count as usize).map(|at| [all[0][at], all[1][at], all[2][at]]).collect();
        let is_wrong = |axis: &[i64; 3]| axis[0] < 0 || axis[1] < 1 || axis[2] < 1;
        if axes.iter().any(is_wrong) {
            return Err(INVALID);
        }
        if mode != cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION
            || computed != cudnnDataType_t::CUDNN_DATA_FLOAT
        {
            return Err(cudnnStatus_t::CUDNN_STATUS_NOT_SUPPORTED);
        }
        let new = Convolution { axes, groups: 1, is_exact: false };
        // SAFETY: `cudnnCreateConvolutionDescriptor` made it.
        *unsafe { &*descriptor.cast::<Mutex<Convolution>>() }.lock().unwrap() = new;
        Ok(())
    }

    cudnnSetConvolutionGroupCount(descriptor: cudnnConvolutionDescriptor_t, groups: c_int) {
        // SAFETY: `cudnnCreateConvolutionDescriptor` made it.
        unsafe { &*descriptor.cast::<Mutex<Convolution>>() }.lock().unwrap().groups = groups.into();
        Ok(())
    }

    cudnnSetConvolutionMathType(
        descriptor: cudnnConvolutionDescriptor_t,
        math: cudnnMathType_t,
    ) {
        // SAFETY: `cudnnCreateConvolutionDescriptor` made it.
        let convolution = unsafe { &*descriptor.cast::<Mutex<Convolution>>() };
        convolution.lock().unwrap().is_exact = math == cudnnMathType_t::CUDNN_FMA_MATH;
        Ok(())
    }

    cudnnTransformTensor(
        handle: cudnnHandle_t,
        alpha: *const c_void,
        from_descriptor: cudnnTensorDescriptor_t,
        from: *const c_void,
        beta: *const c_void,
        to_descriptor: cudnnTensorDescriptor_t,
        to: *mut c_void,
    ) {
        // SAFETY: the descriptors were made, and live.
        let tensors = unsafe { [of::<_, Tensor>(from_descriptor), of(to_descriptor)] };
        if tensors[0].sizes != tensors[1].sizes {
            return Err(INVALID);
        }
        let used = [(&tensors[0], from), (&tensors[1], to.cast_const())];
        // SAFETY: as cuDNN says of the handle and the scalars.
        let (stream, held) = unsafe { prepare(handle, [alpha, beta], &used)? };
        let [from, to] = [tensors[0].elements(from)?, tensors[1].elements(to)?];
        stream.run(move || {
            let [of_from, of_to] = &tensors;
            for at in places(&of_from.sizes) {
                let (from_at, to_at) = (of_from.index(&at), of_to.index(&at));
                // SAFETY: the tensors have these elements, and their blocks are held.
                unsafe { to.set(to_at, from.get(from_at)) };
            }
            drop(held);
            Ok(())
        });
        Ok(())
    }
}

/// Writes suggestions: an algorithm that is not deterministic, one that needs too much memory, one that loses bits of
/// float32, and two others, of which the first is said to be the best.
macro_rules! suggest {
    ($perf:ident [$($algo:expr),*], $most:ident, $count:ident, $all:ident) => {{
        use cudnnDeterminism_t::{CUDNN_DETERMINISTIC, CUDNN_NON_DETERMINISTIC};
        use cudnnMathType_t::{CUDNN_FMA_MATH, CUDNN_TENSOR_OP_MATH};
        let what = [
            (0, CUDNN_NON_DETERMINISTIC, CUDNN_FMA_MATH),
            (1 << 40, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH),
            (WORKSPACE, CUDNN_DETERMINISTIC, CUDNN_TENSOR_OP_MATH),
            (WORKSPACE, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH),
            (WORKSPACE, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH),
        ];
        let most = usize::try_from($most).unwrap_or_default();
        let all = [$($algo),*].into_iter().zip(what).take(most).enumerate();
        let written = all.len();
        for (at, (algo, (memory, determinism, mathType))) in all {
            let status = cudnnStatus_t::CUDNN_STATUS_SUCCESS;
            let (time, reserved) = (1.0, [0; 3]);
            let one = $perf { algo, status, time, memory, determinism, mathType, reserved };
            // SAFETY: there is a place for so many.
            unsafe { $all.add(at).write(one) };
        }
        // SAFETY: a number may be written there.
        unsafe { $count.write(written as c_int) };
        Ok(())
    }};
}

functions! {
    cudnnGetConvolutionForwardAlgorithm_v7(
        _handle: cudnnHandle_t,
        images: cudnnTensorDescriptor_t,
        filter: cudnnFilterDescriptor_t,
        convolution: cudnnConvolutionDescriptor_t,
        results: cudnnTensorDescriptor_t,
        most: c_int,
        count: *mut c_int,
        all: *mut cudnnConvolutionFwdAlgoPerf_t,
    ) {
        // SAFETY: the descriptors were made, and live.
        unsafe { Convolved::new(images, filter, results, convolution) }?;
        use cudnnConvolutionFwdAlgo_t as Algorithm;
        suggest!(cudnnConvolutionFwdAlgoPerf_t [
            Algorithm::CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
            Algorithm::CUDNN_CONVOLUTION_FWD_ALGO_FFT,
            Algorithm::CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
            Algorithm::CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
            Algorithm::CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD
        ], most, count, all)
    }

    cudnnGetConvolutionForwardWorkspaceSize(
        _handle: cudnnHandle_t,
        images: cudnnTensorDescriptor_t,
        filter: cudnnFilterDescriptor_t,
        convolution: cudnnConvolutionDescriptor_t,
        results: cudnnTensorDescriptor_t,
        algorithm: cudnnConvolutionFwdAlgo_t,
        bytes: *mut usize,
    ) {
        // SAFETY: the descriptors were made, and live.
        unsafe { Convolved::new(images, filter, results, convolution) }?;
        let is_large = algorithm == cudnnConvolutionFwdAlgo_t::CUDNN_CONVOLUTION_FWD_ALGO_FFT;
        // SAFETY: a number may be written there.
        unsafe { bytes.write(if is_large { 1 << 40 } else { WORKSPACE }) };
        Ok(())
    }

    cudnnConvolutionForward(
        handle: cudnnHandle_t,
        alpha: *const c_void,
        images: cudnnTensorDescriptor_t,
        x: *const c_void,
        filter: cudnnFilterDescriptor_t,
        w: *const c_void,
        convolution: cudnnConvolutionDescriptor_t,
        algorithm: cudnnConvolutionFwdAlgo_t,
        workspace: *mut c_void,
        bytes: usize,
        beta: *const c_void,
        results: cudnnTensorDescriptor_t,
        y: *mut c_void,
    ) {
        // SAFETY: the descriptors were made, and live.
        let convolved = unsafe { Convolved::new(images, filter, results, convolution) }?;
        use cudnnConvolutionFwdAlgo_t as Algorithm;
        let longer = convolved.must_be(algorithm, [Algorithm::CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, Algorithm::CUDNN_CONVOLUTION_FWD_ALGO_GEMM, Algorithm::CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD]);
        let (scalars, tensors) = ([alpha, beta], [x, w, y.cast_const()]);
        // SAFETY: as cuDNN says of all of them.
        unsafe { convolved.enqueue(handle, scalars, Direction::Forward, tensors, (workspace, bytes), longer) }
    }

    cudnnGetConvolutionBackwardDataAlgorithm_v7(
        _handle: cudnnHandle_t,
        filter: cudnnFilterDescriptor_t,
        results: cudnnTensorDescriptor_t,
        convolution: cudnnConvolutionDescriptor_t,
        images: cudnnTensorDescriptor_t,
        most: c_int,
        count: *mut c_int,
        all: *mut cudnnConvolutionBwdDataAlgoPerf_t,
    ) {
        // SAFETY: the descriptors were made, and live.
        unsafe { Convolved::new(images, filter, results, convolution) }?;
        use cudnnConvolutionBwdDataAlgo_t as Algorithm;
        suggest!(cudnnConvolutionBwdDataAlgoPerf_t [
            Algorithm::CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
            Algorithm::CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT,
            Algorithm::CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED,
            Algorithm::CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
            Algorithm::CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD
        ], most, count, all)
    }

    cudnnGetConvolutionBackwardDataWorkspaceSize(
        _handle: cudnnHandle_t,
        filter: cudnnFilterDescriptor_t,
        results: cudnnTensorDescriptor_t,
        convolution: cudnnConvolutionDescriptor_t,
        images: cudnnTensorDescriptor_t,
        algorithm: cudnnConvolutionBwdDataAlgo_t,
        bytes: *mut usize,
    ) {
        // SAFETY: the descriptors were made, and live.
        unsafe { Convolved::new(images, filter, results, convolution) }?;
        let is_large = algorithm == cudnnConvolutionBwdDataAlgo_t::CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT;
        // SAFETY: a number may be written there.
        unsafe { bytes.write(if is_large { 1 << 40 } else { WORKSPACE }) };
        Ok(())
    }

    cudnnConvolutionBackwardData(
        handle: cudnnHandle_t,
        alpha: *const c_void,
        filter: cudnnFilterDescriptor_t,
        w: *const c_void,
        results: cudnnTensorDescriptor_t,
        y: *const c_void,
        convolution: cudnnConvolutionDescriptor_t,
        algorithm: cudnnConvolutionBwdDataAlgo_t,
        workspace: *mut c_void,
        bytes: usize,
        beta: *const c_void,
        images: cudnnTensorDescriptor_t,
        x: *mut c_void,
    ) {
        // SAFETY: the descriptors were made, and live.
        let convolved = unsafe { Convolved::new(images, filter, results, convolution) }?;
        use cudnnConvolutionBwdDataAlgo_t as Algorithm;
        let longer = convolved.must_be(algorithm, [Algorithm::CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, Algorithm::CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, Algorithm::CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD]);
        let (scalars, tensors) = ([alpha, beta], [x.cast_const(), w, y]);
        // SAFETY: as cuDNN says of all of them.
        unsafe { convolved.enqueue(handle, scalars, Direction::BackwardData, tensors, (workspace, bytes), longer) }
    }

    cudnnGetConvolutionBackwardFilterAlgorithm_v7(
        _handle: cudnnHandle_t,
        images: cudnnTensorDescriptor_t,
        results: cudnnTensorDescriptor_t,
        convolution: cudnnConvolutionDescriptor_t,
        filter: cudnnFilterDescriptor_t,
        most: c_int,
        count: *mut c_int,
        all: *mut cudnnConvolutionBwdFilterAlgoPerf_t,
    ) {
        // SAFETY: the descriptors were made, and live.
        unsafe { Convolved::new(images, filter, results, convolution) }?;
        use cudnnConvolutionBwdFilterAlgo_t as Algorithm;
        suggest!(cudnnConvolutionBwdFilterAlgoPerf_t [
            Algorithm::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
            Algorithm::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT,
            Algorithm::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED,
            Algorithm::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
            Algorithm::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD
        ], most, count, all)
    }

    cudnnGetConvolutionBackwardFilterWorkspaceSize(
        _handle: cudnnHandle_t,
        images: cudnnTensorDescriptor_t,
        results: cudnnTensorDescriptor_t,
        convolution: cudnnConvolutionDescriptor_t,
        filter: cudnnFilterDescriptor_t,
        algorithm: cudnnConvolutionBwdFilterAlgo_t,
        bytes: *mut usize,
    ) {
        // SAFETY: the descriptors were made, and live.
        unsafe { Convolved::new(images, filter, results, convolution) }?;
        let is_large = algorithm == cudnnConvolutionBwdFilterAlgo_t::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT;
        // SAFETY: a number may be written there.
        unsafe { bytes.write(if is_large { 1 << 40 } else { WORKSPACE }) };
        Ok(())
    }

    cudnnConvolutionBackwardFilter(
        handle: cudnnHandle_t,
        alpha: *const c_void,
        images: cudnnTensorDescriptor_t,
        x: *const c_void,
        results: cudnnTensorDescriptor_t,
        y: *const c_void,
        convolution: cudnnConvolutionDescriptor_t,
        algorithm: cudnnConvolutionBwdFilterAlgo_t,
        workspace: *mut c_void,
        bytes: usize,
        beta: *const c_void,
        filter: cudnnFilterDescriptor_t,
        w: *mut c_void,
    ) {
        // SAFETY: the descriptors were made, and live.
        let convolved = unsafe { Convolved::new(images, filter, results, convolution) }?;
        use cudnnConvolutionBwdFilterAlgo_t as Algorithm;
        let longer = convolved.must_be(algorithm, [Algorithm::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, Algorithm::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, Algorithm::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD]);
        let (scalars, tensors) = ([alpha, beta], [x, w.cast_const(), y]);
        // SAFETY: as cuDNN says of all of them.
        unsafe { convolved.enqueue(handle, scalars, Direction::BackwardFilter, tensors, (workspace, bytes), longer) }
    }
}
