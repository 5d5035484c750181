//! Products of matrices and biases.

use super::*;
use crate::math::product;
use core::marker::PhantomData;

struct MatMul<T> {
    transpose: [bool; 2],
    elements: PhantomData<T>,
}

#[kernel(op = "MatMul", types(T = [f32, f64, f16, bf16]))]
impl<T: Floating> Kernel for MatMul<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let transpose = [construction.attr("transpose_a")?, construction.attr("transpose_b")?];
        Ok(Self { transpose, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let (a, b) = (context.input(0)?, context.input(1)?);
        let (a_shape, b_shape) = (shape(&a)?, shape(&b)?);
        if a_shape.len() != 2 || b_shape.len() != 2 {
            return Err(wrong(format!(
                "MatMul takes matrices, and not the shapes {a_shape:?} and {b_shape:?}"
            )));
        }
        multiply::<T>(context, "MatMul", self.transpose)
    }
}

/// Products of the matrices of two batches, which are broadcast.
struct BatchMatMul<T> {
    transpose: [bool; 2],
    elements: PhantomData<T>,
}

#[kernel(op = "BatchMatMulV2", types(T = [f32, f64, f16, bf16]))]
impl<T: Floating> Kernel for BatchMatMul<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let transpose = [construction.attr("adj_x")?, construction.attr("adj_y")?];
        Ok(Self { transpose, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        multiply::<T>(context, "BatchMatMulV2", self.transpose)
    }
}

/// Multiplies the matrices in the last two axes of the inputs. The other axes are broadcast.
fn multiply<T: Floating>(
    context: &mut Run<'_>,
    op: &'static str,
    [transpose_a, transpose_b]: [bool; 2],
) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    let (a_shape, b_shape) = (shape(&a)?, shape(&b)?);
    let out_shape = shapes::matmul_shape(&a_shape, &b_shape, transpose_a, transpose_b)?;
    let out = output(context, 0, &out_shape)?;
    launch(context, op, [&a, &b], [&out], move |[a, b], [out]| {
        let (a, b) = (view::<T>(a, &a_shape)?, view::<T>(b, &b_shape)?);
        let out = view_mut::<T>(out, &out_shape)?;
        product::multiply_batches(a, b, out, transpose_a, transpose_b);
        Ok(())
    })
}

/// Checks that channels come last: the kernels support only `NHWC`.
pub(super) fn check_format(construction: &OpKernelConstruction<'_>) -> Result<()> {
    let format: String = construction.attr("data_format")?;
    ensure!(
        format == "NHWC",
        Error::new(
            Code::Unimplemented,
            format!("the device has kernels for data_format=NHWC only, and not for {format}")
        )
    );
    Ok(())
}

struct BiasAdd<T>(PhantomData<T>);

#[kernel(op = "BiasAdd", types(T = [f32, f64, f16, bf16]))]
impl<T: Floating> Kernel for BiasAdd<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        check_format(construction)?;
        Ok(Self(PhantomData))
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let (value, bias) = (context.input(0)?, context.input(1)?);
        let (shape, bias_shape) = (shape(&value)?, shape(&bias)?);
        if bias_shape.len() != 1 || shape.len() < 2 || shape.last() != bias_shape.last() {
            return Err(wrong(format!(
                "Must provide as many biases as the last dimension of the input tensor: {bias_shape:?} vs. \
                 {shape:?}"
            )));
        }
        let out = output(context, 0, &shape)?;
        let broadcast = Broadcast::new([&shape, &bias_shape])?;
        launch(context, "BiasAdd", [&value, &bias], [&out], move |[value, bias], [out]| {
            let (value, bias) = (elements::<T>(value)?, elements::<T>(bias)?);
            loops::zip(value, bias, elements_mut::<T>(out)?, &broadcast, T::plus);
            Ok(())
        })
    }
}

struct BiasAddGrad<T>(PhantomData<T>);

#[kernel(op = "BiasAddGrad", types(T = [f32, f64, f16, bf16]))]
impl<T: Floating> Kernel for BiasAddGrad<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        check_format(construction)?;
        Ok(Self(PhantomData))
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let gradient = context.input(0)?;
        let shape = shape(&gradient)?;
        let Some(&channels) = shape.last().filter(|_| shape.len() > 1) else {
            return Err(wrong("Input tensor must be at least 2D"));
        };
        let out = output(context, 0, &[channels])?;
        launch(context, "BiasAddGrad", [&gradient], [&out], move |[gradient], [out]| {
            let (gradient, out) = (elements::<T>(gradient)?, elements_mut::<T>(out)?);
            let axes: Vec<_> = (0..shape.len() - 1).collect();
            loops::reduce(gradient, &shape, &axes, out, 0.0, |sum, x| sum + x.to_f64(), T::from_f64)
        })
    }
}
