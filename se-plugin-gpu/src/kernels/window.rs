//! Windows over images. The numbers are those of the ops in `shaders/window.comp`.

use super::data_format::Layout;
use super::*;
use crate::backend::WindowShape;
use se_plugin::toolkit::window::{Padding, Windows};

/// How windows move over images: through volumes, down and right. Images are volumes with a depth of one.
pub(super) struct Geometry {
    pub(super) layout: Layout,
    /// Two, or three for volumes.
    axes: usize,
    sizes: Option<[usize; 3]>,
    strides: [usize; 3],
    dilations: [usize; 3],
    padding: [Padding; 3],
}

/// Returns the numbers of an attribute along the axes; 1 for the depth of images.
fn along(
    construction: &OpKernelConstruction<'_>,
    name: &str,
    axes: usize,
    layout: Layout,
) -> Result<[usize; 3]> {
    let numbers: Vec<i64> = layout.last(construction.attr(name)?);
    let along = match &numbers[..] {
        [1, along @ .., 1] if along.len() == axes => along,
        _ => {
            return Err(Error::new(
                Code::Unimplemented,
                format!(
                    "`{name}` is {numbers:?}, and the device can do it for the {axes} axes of images only"
                ),
            ));
        }
    };
    let mut sizes = [1; 3];
    for (size, &number) in sizes.iter_mut().rev().zip(along.iter().rev()) {
        *size = usize::try_from(number).ok().filter(|&size| size > 0).ok_or_else(|| {
            wrong(format!("`{name}` is {numbers:?}, and has to be of positive numbers"))
        })?;
    }
    Ok(sizes)
}

/// Reads the padding of an op.
fn padding(construction: &OpKernelConstruction<'_>, layout: Layout) -> Result<[Padding; 3]> {
    let padding: String = construction.attr("padding")?;
    Ok(match padding.as_str() {
        "VALID" => [Padding::Valid; 3],
        "SAME" => [Padding::Same; 3],
        _ => {
            let sizes: Vec<i64> = construction.attr("explicit_paddings")?;
            let wrong = || wrong(format!("explicit_paddings {sizes:?} are not understood"));
            let sizes = from_host(&sizes).map_err(|_| wrong())?;
            let pairs = layout.last(sizes.chunks(2).collect());
            let [[0, 0], [top, bottom], [left, right], [0, 0]] = pairs[..] else {
                return Err(wrong());
            };
            let (top, bottom, left, right) = (*top, *bottom, *left, *right);
            [Padding::Valid, Padding::Explicit(top, bottom), Padding::Explicit(left, right)]
        }
    })
}

impl Geometry {
    pub(super) fn of_filters(construction: &OpKernelConstruction<'_>, axes: usize) -> Result<Self> {
        let layout = Layout::of(construction)?;
        let dilations = along(construction, "dilations", axes, layout)?;
        Self::new(construction, axes, layout, None, dilations)
    }

    pub(super) fn of_pools(construction: &OpKernelConstruction<'_>, axes: usize) -> Result<Self> {
        let layout = Layout::of(construction)?;
        let sizes = along(construction, "ksize", axes, layout)?;
        Self::new(construction, axes, layout, Some(sizes), [1; 3])
    }

    fn new(
        construction: &OpKernelConstruction<'_>,
        axes: usize,
        layout: Layout,
        sizes: Option<[usize; 3]>,
        dilations: [usize; 3],
    ) -> Result<Self> {
        let strides = along(construction, "strides", axes, layout)?;
        let padding = padding(construction, layout)?;
        Ok(Self { layout, axes, sizes, strides, dilations, padding })
    }

    pub(super) fn is_deep(&self) -> bool {
        self.axes == 3
    }

    /// Returns the sizes of images.
    pub(super) fn images(&self, shape: &[usize]) -> Result<[usize; 5]> {
        match (self.axes, shape) {
            (2, &[images, rows, columns, channels]) => Ok([images, 1, rows, columns, channels]),
            _ => self.five(shape, "images"),
        }
    }

    /// Returns the sizes of filters.
    pub(super) fn filters(&self, shape: &[usize]) -> Result<[usize; 5]> {
        match (self.axes, shape) {
            (2, &[rows, columns, channels, results]) => Ok([1, rows, columns, channels, results]),
            _ => self.five(shape, "filters"),
        }
    }

    fn five(&self, shape: &[usize], what: &str) -> Result<[usize; 5]> {
        let sizes = <[usize; 5]>::try_from(shape).ok().filter(|_| self.is_deep());
        let axes = self.axes + 2;
        sizes.ok_or_else(|| wrong(format!("{what} must be {axes}-dimensional, and not {shape:?}")))
    }

    pub(super) fn of_patches(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let layout = Layout::Last;
        let along = |name| along(construction, name, 2, layout);
        Ok(Self {
            layout,
            axes: 2,
            sizes: Some(along("ksizes")?),
            strides: along("strides")?,
            dilations: along("rates")?,
            padding: padding(construction, layout)?,
        })
    }

    /// Plans windows of these sizes over images.
    pub(super) fn plan(
        &self,
        images: [usize; 5],
        sizes: [usize; 3],
        results: usize,
        groups: usize,
    ) -> Result<WindowShape> {
        let along = |at: usize| {
            let (stride, dilation) = (self.strides[at], self.dilations[at]);
            Windows::new(images[at + 1], sizes[at], stride, dilation, self.padding[at])
        };
        let windows = [along(0)?, along(1)?, along(2)?];
        Ok(WindowShape { is_deep: self.is_deep(), images, windows, results, groups })
    }

    pub(super) fn pools(&self, images: &[usize]) -> Result<WindowShape> {
        let images = self.images(images)?;
        let sizes = self.sizes.ok_or_else(|| Error::internal("a window without a size"))?;
        self.plan(images, sizes, images[4], 1)
    }
}

impl WindowShape {
    /// Returns whether each window is one position, and each position a window, with all channels.
    pub(super) fn is_pointwise(&self) -> bool {
        let is_one = |windows: &Windows| {
            let Windows { input, size, stride, before, count, .. } = *windows;
            size == 1 && stride == 1 && before == 0 && count == input
        };
        self.groups == 1 && self.windows.iter().all(is_one)
    }

    /// Returns the number of elements in a window.
    pub(super) fn size(&self) -> usize {
        self.windows.iter().map(|windows| windows.size).product()
    }

    pub(super) fn shape(&self) -> Shape {
        let [deep, down, right] = self.windows.map(|windows| windows.count);
        let deep = self.is_deep.then_some(deep);
        [self.images[0]].into_iter().chain(deep).chain([down, right, self.results]).collect()
    }

    /// Checks that a tensor has the shape of the results.
    pub(super) fn check(&self, tensor: &DeviceTensor, what: &str) -> Result<()> {
        let (actual, expected) = (shape(tensor)?, self.shape());
        if actual == expected {
            return Ok(());
        }
        Err(wrong(format!("Expected {what} shape to be {expected:?}, but got {actual:?}")))
    }

    /// Returns the numbers for `shaders/window.glsl` behind the tensors; `count` is the number of the shader's items.
    pub(super) fn numbers(&self, count: usize) -> Result<Vec<u32>> {
        let [images, depth, rows, columns, channels] = self.images;
        let [deep, down, right] = &self.windows;
        let mut numbers = vec![count, images, rows, columns, channels, self.results];
        for of in [
            |windows: &Windows| windows.size,
            |windows: &Windows| windows.stride,
            |windows: &Windows| windows.dilation,
            |windows: &Windows| windows.before,
            |windows: &Windows| windows.count,
        ] {
            numbers.extend([of(down), of(right)]);
        }
        numbers.extend([self.groups, depth]);
        numbers.extend([deep.size, deep.stride, deep.dilation, deep.before, deep.count]);
        for Windows { size, stride, dilation, count, .. } in self.windows {
            // The offset of the last element of the last window.
            let last = size.saturating_sub(1).saturating_mul(dilation);
            word(count.saturating_sub(1).saturating_mul(stride).saturating_add(last))?;
        }
        numbers.into_iter().map(word).collect()
    }

    /// Returns the turns of the loops of `shaders/window.comp` for a result.
    fn turns(&self, number: u32) -> usize {
        let [deep, down, right] = &self.windows;
        let product = |of: [usize; 3]| of.into_iter().fold(1, usize::saturating_mul);
        let area = down.size.saturating_mul(right.size.saturating_add(1));
        let each = if number == FIRST_GRADIENT { area } else { 0 };
        // Drivers for the CPU let eight threads go through loops together, each with its own windows over its element.
        let over =
            self.windows.each_ref().map(|windows| windows.size.div_ceil(windows.stride.max(1)));
        let visits = product(over).saturating_mul(8).min(self.size());
        deep.size.saturating_mul(area.saturating_add(1)).saturating_add(visits.saturating_mul(each))
    }

    /// Enqueues an op of `shaders/window.comp`, on up to three tensors.
    pub(super) fn enqueue(
        &self,
        context: &Run<'_>,
        op: &'static str,
        number: u32,
        [a, b, c]: [&DeviceTensor; 3],
        out: &DeviceTensor,
    ) -> Result<()> {
        for tensor in [a, b, c, out] {
            word(tensor.len())?;
        }
        ensure_turns(context, op, self.turns(number))?;
        Launch {
            op,
            shader: shader!("window"),
            constants: &[number, element_type(out.dtype())?, self.is_deep.into()],
            operands: &[a.into(), b.into(), c.into(), out.into()],
            numbers: &self.numbers(out.len())?,
            groups: groups(out.len()),
        }
        .enqueue(context)
    }
}

/// The gradient of pooling: to the first of the greatest of each window.
pub(super) const FIRST_GRADIENT: u32 = 2;
