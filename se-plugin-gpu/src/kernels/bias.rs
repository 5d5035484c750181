//! Adds a number to each channel.

use super::data_format::Layout;
use super::elementwise;
use super::reduce::sum;
use super::*;

kernels! {
    types (T = [f32, f16, bf16, f64])
    "BiasAdd" BiasAdd [Layout = Layout::of] () = |context, op, layout| {
        let (input, bias) = (context.input(0)?, context.input(1)?);
        let (shape, mut bias_shape) = (shape(&input)?, shape(&bias)?);
        let axis = check(*layout, &shape, &bias_shape)?;
        bias_shape.resize(shape.len() - axis, 1);
        let broadcast = Broadcast::new([&shape, &bias_shape])?;
        let out = output(context, 0, broadcast.shape())?;
        elementwise::run(context, op, [0, 0], [&input, &bias], &out, broadcast.axes())
    };
    "BiasAddGrad" BiasAddGrad [Layout = Layout::of] () = |context, op, layout| {
        let gradient = context.input(0)?;
        let shape = shape(&gradient)?;
        let channel = channels(*layout, &shape)?;
        let axes: Vec<_> = (0..shape.len()).filter(|&axis| axis != channel).collect();
        sum(context, op, &gradient, &axes, &output(context, 0, &[shape[channel]])?)
    };
}

/// Returns the axis of the channels, if the shapes are those of `BiasAdd`.
///
/// # Errors
/// `INVALID_ARGUMENT` for another number of biases than of channels.
pub(super) fn check(layout: Layout, shape: &[usize], bias_shape: &[usize]) -> Result<usize> {
    let axis = channels(layout, shape)?;
    ensure!(
        bias_shape.len() == 1 && shape[axis] == bias_shape[0],
        wrong(format!(
            "Must provide as many biases as the channel dimension of the input tensor: {bias_shape:?} vs. {shape:?}"
        ))
    );
    Ok(axis)
}

/// Returns the axis of the channels.
fn channels(layout: Layout, shape: &[usize]) -> Result<usize> {
    ensure!(shape.len() >= 2, wrong(format!("Input tensor must be at least 2D: {shape:?}")));
    Ok(if layout == Layout::First { 1 } else { shape.len() - 1 })
}
