//! A convolution by one of cuDNN's algorithms, ready to be enqueued.

use super::descriptors::{Conversion, Described, Layout, Precision, Tensor};
use super::is_refusal;
use cudarc::cudnn::result::{self, CudnnError};
use cudarc::cudnn::sys;
use se_plugin_gpu::backend::{Convolution, ConvolutionKind};
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// More algorithms than cuDNN has: 8 for results, and fewer for gradients.
const MOST_ALGORITHMS: usize = 16;

/// How many suggestions for a layout are used: cuDNN begins with those that it expects to be fast, and each is loaded for its trial.
const MOST_USED: usize = 4;

/// The algorithm of cuDNN.
#[derive(Clone, Copy, Debug)]
enum Algorithm {
    Forward(sys::cudnnConvolutionFwdAlgo_t),
    BackwardData(sys::cudnnConvolutionBwdDataAlgo_t),
    BackwardFilter(sys::cudnnConvolutionBwdFilterAlgo_t),
}

/// A convolution that is ready to be enqueued.
#[derive(Clone)]
pub(super) struct Plan {
    of: Arc<Described>,
    pub(super) layout: Layout,
    algorithm: Algorithm,
    math: sys::cudnnMathType_t,
    /// The bytes of temporary memory that the algorithm needs.
    needed: usize,
}

/// Evaluates to the plans for the algorithms that cuDNN suggests first: the deterministic ones that fit into the memory and
/// compute with all bits of the type.
macro_rules! suggested {
    (
        $way:ident: $suggest:ident, $needed:ident, $perf:ident,
        ($cudnn:expr, $a:expr, $b:expr, $c:expr), $of:expr, $layout:expr, $space:expr
    ) => {{
        let (of, convolution) = (&$of, $of.convolution.handle);
        let mut perfs = [const { MaybeUninit::<sys::$perf>::uninit() }; MOST_ALGORITHMS];
        let mut count = 0;
        let (most, all) = (MOST_ALGORITHMS as c_int, perfs.as_mut_ptr().cast());
        // SAFETY: handle and descriptors live; there is a place for so many.
        unsafe { result::$suggest($cudnn, $a, $b, convolution, $c, most, &raw mut count, all) }?;
        let perfs = perfs.iter().take(usize::try_from(count).unwrap_or_default());
        // SAFETY: cuDNN has written so many.
        let perfs = perfs.map(|perf| unsafe { perf.assume_init_read() });
        let plans = perfs.filter_map(|perf| {
            if perf.status != sys::cudnnStatus_t::CUDNN_STATUS_SUCCESS
                || perf.determinism != sys::cudnnDeterminism_t::CUDNN_DETERMINISTIC
                || !of.precision.allows(perf.mathType)
            {
                return None;
            }
            let (algorithm, math) = (Algorithm::$way(perf.algo), perf.mathType);
            let plan = Plan { of: Arc::clone(of), layout: $layout, algorithm, math, needed: 0 };
            // The memory depends on the kind of multiplication.
            plan.set_math().ok()?;
            // SAFETY: handle and descriptors live.
            let needed = unsafe { result::$needed($cudnn, $a, $b, convolution, $c, perf.algo) };
            let needed = needed.ok()?;
            (needed <= $space).then_some(Plan { needed, ..plan })
        });
        plans.take(MOST_USED).collect::<Vec<_>>()
    }};
}

impl Plan {
    /// Plans a convolution with each of cuDNN's suggestions that fit into the memory, those of the first layout first. The
    /// handle is locked.
    pub(super) fn all(
        cudnn: sys::cudnnHandle_t,
        space: usize,
        convolution: &Convolution,
        tf32: bool,
        layouts: &[Layout],
    ) -> Result<Vec<Self>, CudnnError> {
        let mut plans = Vec::new();
        for &layout in layouts {
            match Self::of_layout(cudnn, space, convolution, tf32, layout) {
                Ok(others) => plans.extend(others),
                Err(error) if plans.is_empty() && !is_refusal(error) => return Err(error),
                Err(_) => {}
            }
        }
        if plans.is_empty() {
            let shape = convolution.shape;
            log::debug!(
                "RUST_GPU convolves by its own kernel: cuDNN has none in {space} bytes for {shape:?}"
            );
        }
        Ok(plans)
    }

    fn of_layout(
        cudnn: sys::cudnnHandle_t,
        space: usize,
        convolution: &Convolution,
        tf32: bool,
        layout: Layout,
    ) -> Result<Vec<Self>, CudnnError> {
        let Some(of) = Described::new(convolution, layout, tf32)? else { return Ok(Vec::new()) };
        let Some(space) = space.checked_sub(of.space()) else { return Ok(Vec::new()) };
        let of = Arc::new(of);
        let (x, w, y) = (of.images.handle, of.filter.handle, of.results.handle);
        Ok(match convolution.kind {
            ConvolutionKind::Forward => suggested!(
                Forward: get_convolution_forward_algorithm,
                get_convolution_forward_workspace_size,
                cudnnConvolutionFwdAlgoPerf_t,
                (cudnn, x, w, y), of, layout, space
            ),
            ConvolutionKind::BackwardData => suggested!(
                BackwardData: get_convolution_backward_data_algorithm,
                get_convolution_backward_data_workspace_size,
                cudnnConvolutionBwdDataAlgoPerf_t,
                (cudnn, w, y, x), of, layout, space
            ),
            ConvolutionKind::BackwardFilter => suggested!(
                BackwardFilter: get_convolution_backward_filter_algorithm,
                get_convolution_backward_filter_workspace_size,
                cudnnConvolutionBwdFilterAlgoPerf_t,
                (cudnn, x, y, w), of, layout, space
            ),
        })
    }

    /// Returns what distinguishes it from other plans for the convolution.
    pub(super) fn name(&self) -> String {
        let Self { layout, algorithm, math, .. } = self;
        format!("cuDNN: channels {layout:?}, {algorithm:?}, {math:?}").to_lowercase()
    }

    /// Sets how the algorithm multiplies. All bits of float32 are multiplied in any case.
    fn set_math(&self) -> Result<(), CudnnError> {
        if self.of.precision == Precision::Exact {
            return Ok(());
        }
        // SAFETY: the descriptor lives, and nobody else uses it while the handle is locked.
        unsafe { result::set_convolution_math_type(self.of.convolution.handle, self.math) }
    }

    /// Enqueues the convolution. The handle is locked.
    ///
    /// # Safety
    /// The context is that of this thread; the tensors have these addresses, as the shader takes them, and the workspace has what
    /// was planned, in memory of the GPU, which lives until they are computed.
    pub(super) unsafe fn enqueue(
        &self,
        handle: sys::cudnnHandle_t,
        workspace: u64,
        tensors: [u64; 3],
    ) -> Result<(), CudnnError> {
        let (one, zero) = (1.0_f32, 0.0_f32);
        let (one, zero) = ((&raw const one).cast(), (&raw const zero).cast());
        let of = &*self.of;
        // The places of images, filter and results among the operands and what is computed.
        let (order, out) = match self.algorithm {
            Algorithm::Forward(_) => ([0, 1, 2], 2),
            Algorithm::BackwardData(_) => ([2, 1, 0], 0),
            Algorithm::BackwardFilter(_) => ([0, 2, 1], 1),
        };
        let given = order.map(|at| tensors[at]);
        let (mut used, mut space) = (given, workspace);
        for (used, conversion) in used.iter_mut().zip(&of.conversions) {
            if let Some(conversion) = conversion {
                (*used, space) = (space, space + conversion.space() as u64);
            }
        }
        let convert = |from: &Tensor, source: u64, to: &Tensor, target: u64| {
            let (source, target) = (source as *const _, target as *mut _);
            let (from, to) = (from.handle, to.handle);
            // SAFETY: handle and descriptors live; the tensors have these sizes.
            unsafe { sys::cudnnTransformTensor(handle, one, from, source, zero, to, target) }
                .result()
        };
        for (at, conversion) in of.conversions.iter().enumerate() {
            if let Some(Conversion { ours, theirs, .. }) = conversion
                && at != out
            {
                convert(ours, given[at], theirs, used[at])?;
            }
        }
        self.set_math()?;
        let (x, w, y) = (of.images.handle, of.filter.handle, of.results.handle);
        let ([images, filter, results], space) = (used, space as *mut _);
        let (convolution, needed) = (of.convolution.handle, self.needed);
        // SAFETY: handle and descriptors live; the tensors have these sizes, and the workspace has what is needed.
        unsafe {
            match self.algorithm {
                Algorithm::Forward(algorithm) => result::convolution_forward(
                    handle,
                    one,
                    x,
                    images as *const _,
                    w,
                    filter as *const _,
                    convolution,
                    algorithm,
                    space,
                    needed,
                    zero,
                    y,
                    results as *mut _,
                ),
                Algorithm::BackwardData(algorithm) => result::convolution_backward_data(
                    handle,
                    one,
                    w,
                    filter as *const _,
                    y,
                    results as *const _,
                    convolution,
                    algorithm,
                    space,
                    needed,
                    zero,
                    x,
                    images as *mut _,
                ),
                Algorithm::BackwardFilter(algorithm) => result::convolution_backward_filter(
                    handle,
                    one,
                    x,
                    images as *const _,
                    y,
                    results as *const _,
                    convolution,
                    algorithm,
                    space,
                    needed,
                    zero,
                    w,
                    filter as *mut _,
                ),
            }?;
        }
        match &of.conversions[out] {
            Some(Conversion { ours, theirs, .. }) => convert(theirs, used[out], ours, given[out]),
            None => Ok(()),
        }
    }
}
