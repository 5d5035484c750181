//! Convolutions: products of matrices (`shaders/convolve.comp`), or sums, if each channel has its
//! own filter (`shaders/window.comp`).

use super::matrix::{self, Products, Tiles};
use super::reduce::sum;
use super::transpose::{Walk, fill, strides};
use super::window::{self, Geometry, Plan, windows};
use super::*;

/// The computation: the numbers of the ops in `shaders/convolve.comp`.
#[derive(Clone, Copy)]
pub(super) enum What {
    /// The results, from images and a filter.
    Results,
    /// The gradient of the images, from that of the results and a filter.
    Images,
    /// The gradient of the filter, from images and the gradient of the results.
    Filter,
}

/// From this many positions on, the gradient of a filter is computed as a sum of sums.
const POSITIONS: usize = 512;

/// A convolution: its windows, and how many channels a group has.
pub(super) struct Convolution {
    pub(super) plan: Plan,
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
        what: What,
        [a, b]: [&DeviceTensor; 2],
        out: &DeviceTensor,
    ) -> Result<()> {
        let Self { plan, each } = self;
        if *each == 1 && plan.groups > 1 {
            let number = match what {
                What::Results => window::CONVOLVE,
                What::Images => window::IMAGE_GRADIENT,
                What::Filter => window::FILTER_GRADIENT,
            };
            return plan.enqueue(context, op, number, [a, b, b], out);
        }
        for tensor in [a, b, out] {
            word(tensor.len())?;
        }
        if out.is_empty() {
            return Ok(());
        }
        if a.is_empty() || b.is_empty() {
            return fill(context, op, Operand::Value(0), out);
        }
        let cooperative = cooperative(context.stream(), a.dtype(), self.sizes(what));
        let types = [a.dtype(), out.dtype()];
        let mut split = self.split(cooperative, what, true);
        let gpu = &context.stream().queue.gpu;
        let is_of_library = |of: &Self| {
            let split = of.split(cooperative, what, true);
            of.with(op, what, &split, types, &[], |launch| {
                Ok(gpu.convolves(launch.shader, launch.constants, launch.numbers))
            })
        };
        if !gpu.has_convolutions() {
            split = self.split(cooperative, what, false);
        } else if !is_of_library(self)? {
            if let Some(padded) = self.padded()
                && is_of_library(&padded)?
                // Without memory for it, the shader works on the images as they are.
                && let Ok(around) = padded.images(context, a.dtype())
            {
                return self.enqueue_padded((&padded, &around), context, op, what, [a, b], out);
            }
            split = self.split(cooperative, what, false);
        }
        ensure_turns(context, op, matrix::turns(self.inner(what, &split)))?;
        let launch = |out: &DeviceTensor| {
            let (types, operands) = ([a.dtype(), out.dtype()], [a.into(), b.into(), out.into()]);
            self.with(op, what, &split, types, &operands, |launch| launch.enqueue(context))
        };
        if split.parts == 1 {
            return launch(out);
        }
        let sums = [split.parts as i64, out.len() as i64];
        let sums = context.temporary(DType::Float32, &sums)?;
        launch(&sums)?;
        sum(context, op, &sums, &[0], out)
    }

    /// Returns whether images are padded alike on both sides, as libraries require it.
    fn is_even(&self) -> bool {
        self.plan.windows.iter().all(|of| {
            let reach = of.size.saturating_sub(1) * of.dilation + 1;
            let rest = (of.input + 2 * of.before).checked_sub(reach);
            rest.is_some_and(|rest| rest / of.stride + 1 == of.count)
        })
    }

    /// Returns the same convolution of images that include their padding, unless they are padded evenly.
    fn padded(&self) -> Option<Self> {
        if self.is_even() {
            return None;
        }
        let Plan { is_deep, mut images, mut windows, results, groups } = self.plan;
        for (input, of) in images[1..].iter_mut().zip(&mut windows) {
            *input =
                of.count.checked_sub(1)? * of.stride + of.size.checked_sub(1)? * of.dilation + 1;
            (of.input, of.before) = (*input, 0);
        }
        let plan = Plan { is_deep, images, windows, results, groups };
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
        what: What,
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
        if let What::Images = what {
            padded.enqueue(context, op, what, [a, b], around)?;
            if sizes != images {
                fill(context, op, zero, out)?;
            }
            return walk.reversed().enqueue(context, op, around.into(), out);
        }
        fill(context, op, zero, around)?;
        walk.enqueue(context, op, a.into(), around)?;
        padded.enqueue(context, op, what, [around, b], out)
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
    fn sizes(&self, what: What) -> [usize; 2] {
        let Self { plan, each } = self;
        let results = plan.results / plan.groups;
        match what {
            What::Results => [self.positions(), results],
            What::Images => [self.places(), *each],
            What::Filter => [plan.size() * each, results],
        }
    }

    /// Divides the results among workgroups, and sums into parts unless `is_whole`.
    pub(super) fn split(
        &self,
        cooperative: Option<CooperativeMatrix>,
        what: What,
        is_whole: bool,
    ) -> Split {
        let (groups, [rows, columns]) = (self.plan.groups, self.sizes(what));
        // The tiles have gaps, unless they are products.
        let cooperative = cooperative.filter(|of| of.parts || self.product(what).is_some());
        let (mut parts, mut part) = (1, 0);
        if let What::Filter = what {
            // A filter is small, and its sums are long: parts of the sums are computed separately,
            // to have work for the whole GPU.
            let positions = self.positions();
            parts = if is_whole { 1 } else { Tiles::missing(cooperative, rows, columns, groups) };
            parts = parts.min(positions.div_ceil(POSITIONS)).max(1);
            part = positions.div_ceil(parts).max(1);
            parts = positions.div_ceil(part).max(1);
        }
        let tiles = Tiles::new(cooperative, rows, columns, groups * parts);
        Split { cooperative, parts, part, tiles }
    }

    /// Returns the number of elements of a sum.
    fn inner(&self, what: What, split: &Split) -> usize {
        match what {
            What::Results => self.plan.size() * self.each,
            What::Images => self.plan.size() * self.plan.results / self.plan.groups.max(1),
            What::Filter => split.part,
        }
    }

    /// Returns a pointwise convolution as a product, in which images are one matrix with a row for each position.
    fn product(&self, what: What) -> Option<Products> {
        let Self { plan, each } = self;
        let (transposed, inner, columns) = match what {
            _ if !plan.is_pointwise() => return None,
            What::Results => (false, *each, plan.results),
            What::Images => (true, plan.results, *each),
            What::Filter => return None,
        };
        let (rows, transposed) = (self.places(), [false, transposed]);
        Some(Products { transposed, rows, inner, columns, count: 1, steps: [0, 0] })
    }

    /// Passes the launch, whose result is that of all parts, to `then` and returns what that returns.
    pub(super) fn with<R>(
        &self,
        op: &'static str,
        what: What,
        split: &Split,
        [input, out]: [DType; 2],
        operands: &[Operand<'_>],
        then: impl FnOnce(&Launch<'_>) -> Result<R>,
    ) -> Result<R> {
        if let Some(product) = self.product(what) {
            return product.with(split.cooperative, op, out, operands, then);
        }
        // Neighbours are channels, or results, of a group.
        let lines = [self.each, self.plan.results / self.plan.groups.max(1)];
        let (shader, constants) = split.tiles.shader(
            [shader!("convolve"), shader!("convolve.cooperative")],
            &[what as u32, element_type(input)?, element_type(out)?, self.plan.is_deep.into()],
            split.tiles.is_wide(operands, &lines),
        );
        then(&Launch {
            op,
            shader,
            constants: &constants,
            operands,
            numbers: &self.plan.numbers(split.part)?,
            groups: split.tiles.groups,
        })
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
    convolution.enqueue(run, op, What::Results, [&images, &filter], &out.tensor)?;
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
    convolution.enqueue(run, op, What::Images, [&gradient, &filter], &out.tensor)?;
    out.finish(run, op)
}

fn filter_gradient(run: &Run<'_>, op: &'static str, geometry: &Geometry, new: New) -> Result<()> {
    let filter_shape = host_shape(run, 1)?;
    let layout = geometry.layout;
    let (images, gradient) = (layout.input(run, op, 0)?, layout.input(run, op, 2)?);
    let convolution = new(geometry, &shape(&images)?, &filter_shape)?;
    convolution.plan.check(&gradient, "out_backprop")?;
    let out = output(run, 0, &filter_shape)?;
    convolution.enqueue(run, op, What::Filter, [&images, &gradient], &out)
}

/// Does the same as [`image_gradient`], with the shape of the images as an input.
fn sized(run: &Run<'_>, op: &'static str, geometry: &Geometry, new: New) -> Result<()> {
    image_gradient(run, op, geometry, &geometry.layout.last(host_shape(run, 0)?), new)
}

windows! {
    "Conv2D" Conv2d of_filters 2 () =
        |run, op, geometry| results(run, op, geometry, Convolution::new);
    "Conv3D" Conv3d of_filters 3 () =
        |run, op, geometry| results(run, op, geometry, Convolution::new);
    "Conv2DBackpropInput" Conv2dInputGradient of_filters 2 ("input_sizes") = |run, op, geometry| {
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
    "Conv3DBackpropInputV2" Conv3dInputGradient of_filters 3 ("input_sizes") =
        |run, op, geometry| sized(run, op, geometry, Convolution::new);
    "Conv2DBackpropFilter" Conv2dFilterGradient of_filters 2 ("filter_sizes") =
        |run, op, geometry| filter_gradient(run, op, geometry, Convolution::new);
    "Conv3DBackpropFilterV2" Conv3dFilterGradient of_filters 3 ("filter_sizes") =
        |run, op, geometry| filter_gradient(run, op, geometry, Convolution::new);
    "DepthwiseConv2dNative" DepthwiseConv2d of_filters 2 () =
        |run, op, geometry| results(run, op, geometry, Convolution::of_channels);
    "DepthwiseConv2dNativeBackpropInput" DepthwiseInputGradient of_filters 2 ("input_sizes") =
        |run, op, geometry| sized(run, op, geometry, Convolution::of_channels);
    "DepthwiseConv2dNativeBackpropFilter" DepthwiseFilterGradient of_filters 2 ("filter_sizes") =
        |run, op, geometry| filter_gradient(run, op, geometry, Convolution::of_channels);
}
