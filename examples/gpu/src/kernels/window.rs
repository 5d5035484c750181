//! Windows over images, and pooling. The numbers are those of the ops in `shaders/window.comp`.

use super::matrix::check_format;
use super::*;
use se_plugin::toolkit::window::{Padding, Windows};

/// How windows go over images: down and right.
pub(super) struct Geometry {
    sizes: Option<[usize; 2]>,
    strides: [usize; 2],
    dilations: [usize; 2],
    padding: [Padding; 2],
}

/// The numbers of an attribute for rows and columns.
fn pair(construction: &OpKernelConstruction<'_>, name: &str) -> Result<[usize; 2]> {
    let numbers: Vec<i64> = construction.attr(name)?;
    let [1, rows, columns, 1] = numbers[..] else {
        return Err(Error::new(
            Code::Unimplemented,
            format!("`{name}` is {numbers:?}, and the device can do it for rows and columns only"),
        ));
    };
    match (usize::try_from(rows), usize::try_from(columns)) {
        (Ok(rows), Ok(columns)) if rows > 0 && columns > 0 => Ok([rows, columns]),
        _ => Err(wrong(format!("`{name}` is {numbers:?}, and has to be of positive numbers"))),
    }
}

/// The padding of an operation.
fn padding(construction: &OpKernelConstruction<'_>) -> Result<[Padding; 2]> {
    let padding: String = construction.attr("padding")?;
    Ok(match padding.as_str() {
        "VALID" => [Padding::Valid; 2],
        "SAME" => [Padding::Same; 2],
        _ => {
            let sizes: Vec<i64> = construction.attr("explicit_paddings")?;
            let wrong = || wrong(format!("explicit_paddings {sizes:?} are not understood"));
            let sizes = from_host(&sizes).map_err(|_| wrong())?;
            let [0, 0, top, bottom, left, right, 0, 0] = sizes[..] else { return Err(wrong()) };
            [Padding::Explicit(top, bottom), Padding::Explicit(left, right)]
        }
    })
}

/// Four sizes, as those of images and filters.
pub(super) fn four(shape: &[usize], what: &str) -> Result<[usize; 4]> {
    let four = <[usize; 4]>::try_from(shape);
    four.map_err(|_| wrong(format!("{what} must be 4-dimensional, and not {shape:?}")))
}

/// Windows over images, and the shape of what comes of them.
pub(super) struct Plan {
    pub(super) images: [usize; 4],
    pub(super) windows: [Windows; 2],
    pub(super) results: usize,
    /// Of channels, which a filter has each for itself.
    pub(super) groups: usize,
}

impl Geometry {
    pub(super) fn of_filters(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        check_format(construction)?;
        Ok(Self {
            sizes: None,
            strides: pair(construction, "strides")?,
            dilations: pair(construction, "dilations")?,
            padding: padding(construction)?,
        })
    }

    fn of_pools(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        check_format(construction)?;
        Ok(Self {
            sizes: Some(pair(construction, "ksize")?),
            strides: pair(construction, "strides")?,
            dilations: [1, 1],
            padding: padding(construction)?,
        })
    }

    pub(super) fn of_patches(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self {
            sizes: Some(pair(construction, "ksizes")?),
            strides: pair(construction, "strides")?,
            dilations: pair(construction, "rates")?,
            padding: padding(construction)?,
        })
    }

    /// Windows of these sizes over images.
    pub(super) fn plan(
        &self,
        images: [usize; 4],
        sizes: [usize; 2],
        results: usize,
        groups: usize,
    ) -> Result<Plan> {
        let along = |at: usize| {
            let (stride, dilation) = (self.strides[at], self.dilations[at]);
            Windows::new(images[at + 1], sizes[at], stride, dilation, self.padding[at])
        };
        Ok(Plan { images, windows: [along(0)?, along(1)?], results, groups })
    }

    pub(super) fn pools(&self, images: &[usize]) -> Result<Plan> {
        let images = four(images, "images")?;
        let sizes = self.sizes.ok_or_else(|| Error::internal("a window without a size"))?;
        self.plan(images, sizes, images[3], 1)
    }
}

impl Plan {
    /// Whether each window is one position, and each position a window, with all channels.
    pub(super) fn is_pointwise(&self) -> bool {
        let is_one = |windows: &Windows| {
            let Windows { input, size, stride, before, count, .. } = *windows;
            size == 1 && stride == 1 && before == 0 && count == input
        };
        self.groups == 1 && self.windows.iter().all(is_one)
    }

    pub(super) fn shape(&self) -> Shape {
        vec![self.images[0], self.windows[0].count, self.windows[1].count, self.results]
    }

    pub(super) fn check_gradient(&self, gradient: &DeviceTensor) -> Result<()> {
        let (found, expected) = (shape(gradient)?, self.shape());
        if found == expected {
            return Ok(());
        }
        Err(wrong(format!("the gradient has the shape {found:?} and not {expected:?}")))
    }

    /// What `shaders/window.glsl` has after the tensors; `count` is what the shader counts.
    pub(super) fn numbers(&self, count: usize) -> Result<Vec<u32>> {
        let mut numbers = vec![word(count)?];
        for size in self.images.into_iter().chain([self.results]) {
            numbers.push(word(size)?);
        }
        let [down, right] = &self.windows;
        for of in [
            |windows: &Windows| windows.size,
            |windows: &Windows| windows.stride,
            |windows: &Windows| windows.dilation,
            |windows: &Windows| windows.before,
            |windows: &Windows| windows.count,
        ] {
            numbers.extend([word(of(down))?, word(of(right))?]);
        }
        numbers.push(word(self.groups)?);
        Ok(numbers)
    }

    /// Enqueues an op of `shaders/window.comp`.
    pub(super) fn enqueue(
        &self,
        context: &Run<'_>,
        op: &'static str,
        number: u32,
        [a, b]: [&DeviceTensor; 2],
        out: &DeviceTensor,
    ) -> Result<()> {
        for tensor in [a, b, out] {
            word(tensor.len())?;
        }
        let (count, groups) = if number == FILTER_GRADIENT {
            // A workgroup computes 16 results of an element of the filter.
            let units = self.windows[0].size * self.windows[1].size * self.results.div_ceil(16);
            (units, groups(units.saturating_mul(256)))
        } else {
            (out.len(), groups(out.len()))
        };
        Launch {
            op,
            shader: shader!("window"),
            constants: &[number, element_type(out.dtype())?],
            operands: &[a.into(), b.into(), out.into()],
            numbers: &self.numbers(count)?,
            groups,
        }
        .enqueue(context)
    }
}

/// Ops of `shaders/window.comp` for filters that have each channel for itself.
pub(super) const CONVOLVE: u32 = 4;
pub(super) const IMAGE_GRADIENT: u32 = 5;
pub(super) const FILTER_GRADIENT: u32 = 6;

/// Kernels with a geometry: `$body` gets the run, the name of the op and the geometry.
macro_rules! windows {
    ($($op:literal $name:ident $new:ident ($($host:literal)?) = $body:expr;)*) => {
        crate::kernels::attributed! {
            types [f32, f16, bf16]
            $($op $name = Geometry::$new $(host ($host))?, $body;)*
        }
    };
}
pub(super) use windows;

fn pool(run: &Run<'_>, op: &'static str, geometry: &Geometry, number: u32) -> Result<()> {
    let images = run.input(0)?;
    let plan = geometry.pools(&shape(&images)?)?;
    plan.enqueue(run, op, number, [&images, &images], &output(run, 0, &plan.shape())?)
}

windows! {
    "MaxPool" MaxPool of_pools () = |run, op, geometry| pool(run, op, geometry, 0);
    "AvgPool" AvgPool of_pools () = |run, op, geometry| pool(run, op, geometry, 1);
    "MaxPoolGrad" MaxPoolGrad of_pools () = |run, op, geometry| {
        let (images, gradient) = (run.input(0)?, run.input(2)?);
        let image_shape = shape(&images)?;
        let plan = geometry.pools(&image_shape)?;
        plan.check_gradient(&gradient)?;
        plan.enqueue(run, op, 2, [&images, &gradient], &output(run, 0, &image_shape)?)
    };
    "AvgPoolGrad" AvgPoolGrad of_pools ("orig_input_shape") = |run, op, geometry| {
        let (image_shape, gradient) = (host_shape(run, 0)?, run.input(1)?);
        let plan = geometry.pools(&image_shape)?;
        plan.check_gradient(&gradient)?;
        plan.enqueue(run, op, 3, [&gradient, &gradient], &output(run, 0, &image_shape)?)
    };
}
