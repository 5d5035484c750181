//! Convolutions.

use super::matrix::check_format;
use super::*;
use crate::math::convolve::{self, Grid, Padding, Windows};
use core::marker::PhantomData;

/// The strides, dilations and padding of a convolution.
pub(super) struct Geometry {
    strides: [usize; 2],
    dilations: [usize; 2],
    padding: [Padding; 2],
}

/// Returns the numbers of an attribute for rows and columns. Those for images and channels must be 1.
pub(super) fn pair(construction: &OpKernelConstruction<'_>, name: &str) -> Result<[usize; 2]> {
    let numbers: Vec<i64> = construction.attr(name)?;
    let [1, rows, columns, 1] = numbers[..] else {
        return Err(Error::new(
            Code::Unimplemented,
            format!("`{name}` is {numbers:?}, and the device can do it for rows and columns only"),
        ));
    };
    let positive = |number: i64| {
        usize::try_from(number).ok().filter(|&number| number > 0).ok_or_else(|| {
            wrong(format!("`{name}` is {numbers:?}, and has to be of positive numbers"))
        })
    };
    Ok([positive(rows)?, positive(columns)?])
}

/// Returns the padding of an operation for rows and columns.
pub(super) fn padding(construction: &OpKernelConstruction<'_>) -> Result<[Padding; 2]> {
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

impl Geometry {
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        check_format(construction)?;
        Ok(Self {
            strides: pair(construction, "strides")?,
            dilations: pair(construction, "dilations")?,
            padding: padding(construction)?,
        })
    }

    /// Returns the windows over images of shape `images` for a filter of shape `filter`.
    fn grid(&self, images: &[usize], filter: &[usize]) -> Result<Grid> {
        let (&[_, rows, columns, channels], &[height, width, depth, _]) = (images, filter) else {
            return Err(wrong(format!(
                "images and filters must be 4-dimensional, and not {images:?} and {filter:?}"
            )));
        };
        if depth != channels {
            return Err(Error::new(
                Code::Unimplemented,
                format!(
                    "the images have {channels} channels and the filter is for {depth}; the device cannot \
                     convolve groups of channels"
                ),
            ));
        }
        let windows = |at: usize, input, size| {
            Windows::new(input, size, self.strides[at], self.dilations[at], self.padding[at])
        };
        Ok([windows(0, rows, height)?, windows(1, columns, width)?])
    }
}

/// Returns the shape of the result of a convolution.
fn results(images: &[usize], grid: &Grid, channels: usize) -> Shape {
    vec![images[0], grid[0].count, grid[1].count, channels]
}

/// Checks the shape of a gradient.
pub(super) fn check_gradient(shape: &[usize], expected: &[usize]) -> Result<()> {
    ensure!(
        shape == expected,
        wrong(format!("the gradient has the shape {shape:?} and not {expected:?}"))
    );
    Ok(())
}

struct Conv2D<T> {
    geometry: Geometry,
    elements: PhantomData<T>,
}

#[kernel(op = "Conv2D", types(T = [f32, f64, f16, bf16]))]
impl<T: Floating> Kernel for Conv2D<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { geometry: Geometry::new(construction)?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let (images, filter) = (context.input(0)?, context.input(1)?);
        let (image_shape, filter_shape) = (shape(&images)?, shape(&filter)?);
        let grid = self.geometry.grid(&image_shape, &filter_shape)?;
        let out_shape = results(&image_shape, &grid, filter_shape[3]);
        let out = output(context, 0, &out_shape)?;
        launch(context, "Conv2D", [&images, &filter], [&out], move |[images, filter], [out]| {
            let (images, filter) = (view::<T>(images, &image_shape)?, view(filter, &filter_shape)?);
            convolve::convolve(images, filter, view_mut(out, &out_shape)?, grid);
            Ok(())
        })
    }
}

struct InputGradient<T> {
    geometry: Geometry,
    elements: PhantomData<T>,
}

#[kernel(
    op = "Conv2DBackpropInput",
    types(T = [f32, f64, f16, bf16]),
    host_memory("input_sizes")
)]
impl<T: Floating> Kernel for InputGradient<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { geometry: Geometry::new(construction)?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let mut image_shape = from_host(&context.host_integers(0)?)?;
        let (filter, gradient) = (context.input(1)?, context.input(2)?);
        let (filter_shape, gradient_shape) = (shape(&filter)?, shape(&gradient)?);
        // `input_sizes` may hold only the sizes of rows and columns.
        if let ([rows, columns], [images, ..], [.., channels, _]) =
            (&image_shape[..], &gradient_shape[..], &filter_shape[..])
        {
            image_shape = vec![*images, *rows, *columns, *channels];
        }
        let grid = self.geometry.grid(&image_shape, &filter_shape)?;
        check_gradient(&gradient_shape, &results(&image_shape, &grid, filter_shape[3]))?;
        let out = output(context, 0, &image_shape)?;
        let (op, ins) = ("Conv2DBackpropInput", [&filter, &gradient]);
        launch(context, op, ins, [&out], move |[filter, gradient], [out]| {
            let (filter, gradient) =
                (view::<T>(filter, &filter_shape)?, view(gradient, &gradient_shape)?);
            convolve::input_gradient(filter, gradient, view_mut(out, &image_shape)?, grid);
            Ok(())
        })
    }
}

struct FilterGradient<T> {
    geometry: Geometry,
    elements: PhantomData<T>,
}

#[kernel(
    op = "Conv2DBackpropFilter",
    types(T = [f32, f64, f16, bf16]),
    host_memory("filter_sizes")
)]
impl<T: Floating> Kernel for FilterGradient<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { geometry: Geometry::new(construction)?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let filter_shape = from_host(&context.host_integers(1)?)?;
        let (images, gradient) = (context.input(0)?, context.input(2)?);
        let (image_shape, gradient_shape) = (shape(&images)?, shape(&gradient)?);
        let grid = self.geometry.grid(&image_shape, &filter_shape)?;
        check_gradient(&gradient_shape, &results(&image_shape, &grid, filter_shape[3]))?;
        let out = output(context, 0, &filter_shape)?;
        let (op, ins) = ("Conv2DBackpropFilter", [&images, &gradient]);
        launch(context, op, ins, [&out], move |[images, gradient], [out]| {
            let (images, gradient) =
                (view::<T>(images, &image_shape)?, view(gradient, &gradient_shape)?);
            convolve::filter_gradient(images, gradient, view_mut(out, &filter_shape)?, grid);
            Ok(())
        })
    }
}
