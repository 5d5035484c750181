//! Pooling.

use super::convolve::{check_gradient, padding, pair};
use super::matrix::check_format;
use super::*;
use crate::math::convolve::{Grid, Padding, Windows};
use crate::math::pool;
use core::marker::PhantomData;

/// The sizes, strides and padding of a pooling operation.
struct Geometry {
    sizes: [usize; 2],
    strides: [usize; 2],
    padding: [Padding; 2],
}

impl Geometry {
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        check_format(construction)?;
        Ok(Self {
            sizes: pair(construction, "ksize")?,
            strides: pair(construction, "strides")?,
            padding: padding(construction)?,
        })
    }

    /// Returns the windows over images of this shape, and the shape of the result.
    fn grid(&self, images: &[usize]) -> Result<(Grid, Shape)> {
        let &[images, rows, columns, channels] = images else {
            return Err(wrong(format!("images must be 4-dimensional, and not {images:?}")));
        };
        let windows = |at: usize, input| {
            Windows::new(input, self.sizes[at], self.strides[at], 1, self.padding[at])
        };
        let grid = [windows(0, rows)?, windows(1, columns)?];
        let shape = vec![images, grid[0].count, grid[1].count, channels];
        Ok((grid, shape))
    }
}

struct MaxPool<T> {
    geometry: Geometry,
    elements: PhantomData<T>,
}

#[kernel(op = "MaxPool", types(T = [f32, f64, f16, bf16]))]
impl<T: Floating> Kernel for MaxPool<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { geometry: Geometry::new(construction)?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let input = context.input(0)?;
        let shape = shape(&input)?;
        let (grid, out_shape) = self.geometry.grid(&shape)?;
        let out = output(context, 0, &out_shape)?;
        launch(context, "MaxPool", [&input], [&out], move |[input], [out]| {
            pool::greatest(view::<T>(input, &shape)?, view_mut(out, &out_shape)?, grid);
            Ok(())
        })
    }
}

struct MaxPoolGrad<T> {
    geometry: Geometry,
    elements: PhantomData<T>,
}

#[kernel(op = "MaxPoolGrad", types(T = [f32, f64, f16, bf16]))]
impl<T: Floating> Kernel for MaxPoolGrad<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { geometry: Geometry::new(construction)?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let (input, gradient) = (context.input(0)?, context.input(2)?);
        let (in_shape, gradient_shape) = (shape(&input)?, shape(&gradient)?);
        let (grid, out_shape) = self.geometry.grid(&in_shape)?;
        check_gradient(&gradient_shape, &out_shape)?;
        let out = output(context, 0, &in_shape)?;
        let ins = [&input, &gradient];
        launch(context, "MaxPoolGrad", ins, [&out], move |[input, gradient], [out]| {
            let (input, gradient) =
                (view::<T>(input, &in_shape)?, view(gradient, &gradient_shape)?);
            pool::greatest_gradient(input, gradient, view_mut(out, &in_shape)?, grid);
            Ok(())
        })
    }
}
