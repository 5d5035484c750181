//! Convolutions: products of matrices (`shaders/convolve.comp`), or sums, if each channel has its
//! own filter (`depthwise.rs`).

use super::matrix::{self, Tiles, cooperative};
use super::reduce::sum;
use super::strided_copy::{Walk, fill, strides};
use super::window::Geometry;
use super::*;
use crate::backend::{self, ConvolutionKind, Gpu, MatMul, Operation, WindowShape};

/// From this many positions on, the gradient of a filter is computed as a sum of sums.
const POSITIONS: usize = 512;

/// A convolution: its windows, and how many channels a group has.
#[derive(Debug)]
pub(super) struct Convolution {
    pub(super) plan: WindowShape,
    pub(super) each: usize,
}

/// How many parts a sum has, how many positions a part has, and the tiles of all parts.
pub(super) struct Split {
    cooperative: Option<CooperativeMatrix>,
    pub(super) parts: usize,
    part: usize,
    tiles: Tiles,
}

impl Convolution {
    /// Creates the convolution for a filter of [size, channels of a group, results].
    fn new(geometry: &Geometry, images: &[usize], filter: &[usize]) -> Result<Self> {
        let [deep, height, width, each, results] = geometry.filters(filter)?;
        let images = geometry.images(images)?;
        let channels = images[4];
        ensure!(each > 0, wrong("filter depth must be positive, got 0"));
        let groups = channels / each;
        ensure!(
            groups * each == channels,
            wrong(format!(
                "input depth must be evenly divisible by filter depth: {channels} vs {each}"
            ))
        );
        ensure!(
            groups == 0 || results.is_multiple_of(groups),
            wrong(format!(
                "output depth must be evenly divisible by number of groups: {results} vs {groups}"
            ))
        );
        let plan = geometry.plan(images, [deep, height, width], results, groups.max(1))?;
        Ok(Self { plan, each })
    }

    /// Creates the convolution for a filter of [size, channels, results of a channel].
    fn of_channels(geometry: &Geometry, images: &[usize], filter: &[usize]) -> Result<Self> {
        let [deep, height, width, channels, each] = geometry.filters(filter)?;
        let images = geometry.images(images)?;
        ensure!(
            channels == images[4],
            wrong(format!(
                "input and filter must have the same depth: {} vs {channels}",
                images[4]
            ))
        );
        let plan =
            geometry.plan(images, [deep, height, width], channels * each, channels.max(1))?;
        Ok(Self { plan, each: 1 })
    }

    fn enqueue(
        &self,
        context: &Run<'_>,
        op: &'static str,
        kind: ConvolutionKind,
        [a, b]: [&DeviceTensor; 2],
        out: &DeviceTensor,
    ) -> Result<()> {
        let Self { plan, each } = self;
        for tensor in [a, b, out] {
            word(tensor.len())?;
        }
        if out.is_empty() {
            return Ok(());
        }
        if a.is_empty() || b.is_empty() {
            return fill(context, op, Operand::Value(0), out);
        }
        if *each == 1 && plan.groups > 1 {
            return plan.enqueue_of_channels(context, op, kind, [a, b], out);
        }
        let cooperative = cooperative(context.stream(), a.dtype(), self.sizes(kind));
        let mut split = self.split(cooperative, kind, true);
        let gpu = &context.stream().queue.gpu;
        let is_product = self.is_product(gpu, kind, a.dtype());
        let is_of_library = |of: &Self| gpu.supports_convolution(&of.convolution(kind, a.dtype()));
        if !is_product && !is_of_library(self) {
            if let Some(padded) = self.padded()
                && is_of_library(&padded)
                // Without memory for it, the shader works on the images as they are.
                && let Ok(around) = padded.images(context, a.dtype())
            {
                return self.enqueue_padded((&padded, &around), context, op, kind, [a, b], out);
            }
            split = self.split(cooperative, kind, false);
        }
        ensure_turns(context, op, matrix::turns(self.inner(kind, &split)))?;
        let launch = |out: &DeviceTensor| {
            let (types, operands) = ([a.dtype(), out.dtype()], [a.into(), b.into(), out.into()]);
            self.with(op, kind, &split, types, &operands, |launch, operation| {
                launch.enqueue_as(context.stream(), operation)
            })
        };
        if split.parts == 1 {
            return launch(out);
        }
        let sums = [split.parts as i64, out.len() as i64];
        let sums = context.temporary(DType::Float32, &sums)?;
        launch(&sums)?;
        sum(context, op, &sums, &[0], out)
    }

    /// Returns the convolution of tensors of this type.
    pub(super) fn convolution(&self, kind: ConvolutionKind, dtype: DType) -> backend::Convolution {
        backend::Convolution { kind, dtype, shape: self.plan }
    }

    /// Returns the same convolution of images that include their padding, unless they are padded evenly.
    fn padded(&self) -> Option<Self> {
        if self.plan.is_even() {
            return None;
        }
        let WindowShape { is_deep, mut images, mut windows, results, groups } = self.plan;
        for (input, of) in images[1..].iter_mut().zip(&mut windows) {
            *input =
                of.count.checked_sub(1)? * of.stride + of.size.checked_sub(1)? * of.dilation + 1;
            (of.input, of.before) = (*input, 0);
        }
        let plan = WindowShape { is_deep, images, windows, results, groups };
        Some(Self { plan, each: self.each })
    }

    /// Allocates memory for the images of this convolution.
    fn images(&self, context: &Run<'_>, dtype: DType) -> Result<DeviceTensor> {
        context.temporary(dtype, &self.plan.images.map(|size| size as i64))
    }

    /// Enqueues the convolution as [`enqueue`](Self::enqueue) does, by copying padded images.
    fn enqueue_padded(
        &self,
        (padded, around): (&Self, &DeviceTensor),
        context: &Run<'_>,
        op: &'static str,
        kind: ConvolutionKind,
        [a, b]: [&DeviceTensor; 2],
        out: &DeviceTensor,
    ) -> Result<()> {
        let (images, wider) = (self.plan.images, padded.plan.images);
        let (mut sizes, mut first) = (images, [0; 5]);
        for (axis, of) in (1..).zip(self.plan.windows) {
            first[axis] = of.before;
            sizes[axis] = images[axis].min(wider[axis].saturating_sub(of.before));
        }
        let target = strides(&wider);
        let mut walk = Walk::new(&sizes, &strides(&images), &target);
        walk.from[1] = first.iter().zip(&target).map(|(at, step)| at * *step as usize).sum();
        let zero = Operand::Value(0);
        if let ConvolutionKind::BackwardData = kind {
            padded.enqueue(context, op, kind, [a, b], around)?;
            if sizes != images {
                fill(context, op, zero, out)?;
            }
            return walk.reversed().enqueue(context, op, around.into(), out);
        }
        fill(context, op, zero, around)?;
        walk.enqueue(context, op, a.into(), around)?;
        padded.enqueue(context, op, kind, [around, b], out)
    }

    /// Returns the number of windows in all images.
    fn positions(&self) -> usize {
        let counts = self.plan.windows.iter().map(|windows| windows.count);
        self.plan.images[0] * counts.product::<usize>()
    }

    /// Returns the number of pixels in all images.
    fn places(&self) -> usize {
        self.plan.images[..4].iter().product()
    }

    /// Returns rows and columns of the product of a group.
    fn sizes(&self, kind: ConvolutionKind) -> [usize; 2] {
        let Self { plan, each } = self;
        let results = plan.results / plan.groups;
        match kind {
            ConvolutionKind::Forward => [self.positions(), results],
            ConvolutionKind::BackwardData => [self.places(), *each],
            ConvolutionKind::BackwardFilter => [plan.size() * each, results],
        }
    }

    /// Divides the results among workgroups, and sums into parts unless `is_whole`.
    pub(super) fn split(
        &self,
        cooperative: Option<CooperativeMatrix>,
        kind: ConvolutionKind,
        is_whole: bool,
    ) -> Split {
        let (groups, [rows, columns]) = (self.plan.groups, self.sizes(kind));
        // The tiles have gaps, unless they are products.
        let is_filter = kind == ConvolutionKind::BackwardFilter;
        let cooperative =
            cooperative.filter(|of| of.parts || (!is_filter && self.plan.is_pointwise()));
        let (mut parts, mut part) = (1, 0);
        if is_filter {
            // A filter is small, and its sums are long: parts of the sums are computed separately,
            // to have work for the whole GPU.
            let positions = self.positions();
            parts = if is_whole { 1 } else { Tiles::missing(cooperative, rows, columns, groups) };
            parts = parts.min(positions.div_ceil(POSITIONS)).max(1);
            if self.plan.is_pointwise() {
                // As many parts of the same size, if there are not far fewer.
                let equal = (parts / 2 + 1..=parts).rev();
                parts = { equal }.find(|parts| positions.is_multiple_of(*parts)).unwrap_or(parts);
            }
            part = positions.div_ceil(parts).max(1);
            parts = positions.div_ceil(part).max(1);
        }
        let tiles = Tiles::new(cooperative, rows, columns, groups * parts);
        Split { cooperative, parts, part, tiles }
    }

    /// Returns the number of elements of a sum.
    fn inner(&self, kind: ConvolutionKind, split: &Split) -> usize {
        match kind {
            ConvolutionKind::Forward => self.plan.size() * self.each,
            ConvolutionKind::BackwardData => {
                self.plan.size() * self.plan.results / self.plan.groups.max(1)
            }
            ConvolutionKind::BackwardFilter => split.part,
        }
    }

    /// Returns a pointwise convolution as a product, in which images are one matrix with a row for each position. The gradient of a
    /// filter is a sum over positions: each part, of the same size, is a product.
    fn product(&self, kind: ConvolutionKind, dtype: DType, parts: usize) -> Option<MatMul> {
        let Self { plan, each } = self;
        if !plan.is_pointwise() {
            return None;
        }
        let places = self.places();
        let (transpose, [rows, inner, columns]) = match kind {
            ConvolutionKind::Forward => ([false; 2], [places, *each, plan.results]),
            ConvolutionKind::BackwardData => ([false, true], [places, plan.results, *each]),
            ConvolutionKind::BackwardFilter if places.is_multiple_of(parts) => {
                ([true, false], [*each, places / parts, plan.results])
            }
            ConvolutionKind::BackwardFilter => return None,
        };
        let strides = if parts > 1 { [inner * rows, inner * columns] } else { [0; 2] };
        Some(MatMul { dtype, transpose, rows, inner, columns, batch: parts, strides })
    }

    /// Returns whether the convolution is one product. That of a filter's gradient is a long sum for few workgroups, which only a
    /// library divides.
    pub(super) fn is_product(&self, gpu: &Gpu, kind: ConvolutionKind, dtype: DType) -> bool {
        let product = self.product(kind, dtype, 1);
        product
            .is_some_and(|of| kind != ConvolutionKind::BackwardFilter || gpu.supports_matmul(&of))
    }

    /// Passes the launch, whose result is that of all parts, to `then`, and returns what `then` returns.
    pub(super) fn with<R>(
        &self,
        op: &'static str,
        kind: ConvolutionKind,
        split: &Split,
        [input, out]: [DType; 2],
        operands: &[Operand<'_>],
        then: impl FnOnce(&Launch<'_>, Operation) -> Result<R>,
    ) -> Result<R> {
        // Parts of a sum are more precise than it is.
        let is_whole = split.parts == 1 && input == out;
        if input == out
            && let Some(product) = self.product(kind, out, split.parts)
        {
            return product.with(split.cooperative, op, operands, then);
        }
        // Neighbours are channels, or results, of a group.
        let lines = [self.each, self.plan.results / self.plan.groups.max(1)];
        let (shader, constants) = split.tiles.shader(
            [shader!("convolve"), shader!("convolve.cooperative")],
            &[kind as u32, element_type(input)?, element_type(out)?, self.plan.is_deep.into()],
            split.tiles.is_wide(operands, &lines),
        );
        let launch = Launch {
            op,
            shader,
            constants: &constants,
            operands,
            numbers: &self.plan.numbers(split.part)?,
            groups: split.tiles.groups,
        };
        let convolution = || Operation::Convolution(Box::new(self.convolution(kind, input)));
        then(&launch, if is_whole { convolution() } else { Operation::Shader })
    }
}

type New = fn(&Geometry, &[usize], &[usize]) -> Result<Convolution>;

fn results(run: &Run<'_>, op: &'static str, geometry: &Geometry, new: New) -> Result<()> {
    let (images, filter) = (geometry.layout.input(run, op, 0)?, run.input(1)?);
    ensure!(
        !geometry.is_deep() || !filter.is_empty(),
        wrong("filter must not have zero elements (i.e. all dimensions must be non-zero)")
    );
    let convolution = new(geometry, &shape(&images)?, &shape(&filter)?)?;
    let out = geometry.layout.output(run, 0, &convolution.plan.shape())?;
    convolution.enqueue(run, op, ConvolutionKind::Forward, [&images, &filter], &out.tensor)?;
    out.finish(run, op)
}

fn image_gradient(
    run: &Run<'_>,
    op: &'static str,
    geometry: &Geometry,
    image_shape: &[usize],
    new: New,
) -> Result<()> {
    let (filter, gradient) = (run.input(1)?, geometry.layout.input(run, op, 2)?);
    let convolution = new(geometry, image_shape, &shape(&filter)?)?;
    convolution.plan.check(&gradient, "out_backprop")?;
    let out = geometry.layout.output(run, 0, image_shape)?;
    convolution.enqueue(
        run,
        op,
        ConvolutionKind::BackwardData,
        [&gradient, &filter],
        &out.tensor,
    )?;
    out.finish(run, op)
}

fn filter_gradient(run: &Run<'_>, op: &'static str, geometry: &Geometry, new: New) -> Result<()> {
    let filter_shape = host_shape(run, 1)?;
    let layout = geometry.layout;
    let (images, gradient) = (layout.input(run, op, 0)?, layout.input(run, op, 2)?);
    let convolution = new(geometry, &shape(&images)?, &filter_shape)?;
    convolution.plan.check(&gradient, "out_backprop")?;
    let out = output(run, 0, &filter_shape)?;
    convolution.enqueue(run, op, ConvolutionKind::BackwardFilter, [&images, &gradient], &out)
}

/// Does the same as [`image_gradient`], with the shape of the images as an input.
fn sized(run: &Run<'_>, op: &'static str, geometry: &Geometry, new: New) -> Result<()> {
    image_gradient(run, op, geometry, &geometry.layout.last(host_shape(run, 0)?), new)
}

kernels! {
    types (T = [f32, f16, bf16])
    "Conv2D" Conv2d [Geometry = |op| Geometry::of_filters(op, 2)] () =
        |run, op, geometry| results(run, op, geometry, Convolution::new);
    "Conv3D" Conv3d [Geometry = |op| Geometry::of_filters(op, 3)] () =
        |run, op, geometry| results(run, op, geometry, Convolution::new);
    "Conv2DBackpropInput" Conv2dInputGradient [Geometry = |op| Geometry::of_filters(op, 2)]
        (host_memory("input_sizes")) = |run, op, geometry| {
        let mut image_shape = geometry.layout.last(host_shape(run, 0)?);
        // The sizes may only be those of rows and columns.
        if let [rows, columns] = image_shape[..] {
            let (filter, gradient) = (shape(&run.input(1)?)?, shape(&run.input(2)?)?);
            let gradient = geometry.images(&geometry.layout.last(gradient))?;
            let filter = geometry.filters(&filter)?;
            image_shape = vec![gradient[0], rows, columns, filter[3]];
        }
        image_gradient(run, op, geometry, &image_shape, Convolution::new)
    };
    "Conv3DBackpropInputV2" Conv3dInputGradient [Geometry = |op| Geometry::of_filters(op, 3)] (host_memory("input_sizes")) =
        |run, op, geometry| sized(run, op, geometry, Convolution::new);
    "Conv2DBackpropFilter" Conv2dFilterGradient [Geometry = |op| Geometry::of_filters(op, 2)] (host_memory("filter_sizes")) =
        |run, op, geometry| filter_gradient(run, op, geometry, Convolution::new);
    "Conv3DBackpropFilterV2" Conv3dFilterGradient [Geometry = |op| Geometry::of_filters(op, 3)] (host_memory("filter_sizes")) =
        |run, op, geometry| filter_gradient(run, op, geometry, Convolution::new);
    "DepthwiseConv2dNative" DepthwiseConv2d [Geometry = |op| Geometry::of_filters(op, 2)] () =
        |run, op, geometry| results(run, op, geometry, Convolution::of_channels);
    "DepthwiseConv2dNativeBackpropInput" DepthwiseInputGradient [Geometry = |op| Geometry::of_filters(op, 2)] (host_memory("input_sizes")) =
        |run, op, geometry| sized(run, op, geometry, Convolution::of_channels);
    "DepthwiseConv2dNativeBackpropFilter" DepthwiseFilterGradient [Geometry = |op| Geometry::of_filters(op, 2)] (host_memory("filter_sizes")) =
        |run, op, geometry| filter_gradient(run, op, geometry, Convolution::of_channels);
}
