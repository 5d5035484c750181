//! Mean and variance of rows, and the gradient of layer normalization: `shaders/layer_norm.comp`. The ops are in [`moments`](super::moments).

use super::moments::{Attributes, kept, of_each_channel, unfit};
use super::normalize::{BatchNorm, Op};
use super::*;
use crate::backend;

/// What the shader computes.
#[derive(Clone, Copy)]
enum Rows {
    Moments,
    Gradient,
}

/// Enqueues the shader with its operands, in their order.
fn enqueue(
    context: &Run<'_>,
    op: &'static str,
    number: Rows,
    [rows, columns]: [usize; 2],
    epsilon: f32,
    tensors: [&DeviceTensor; 6],
) -> Result<()> {
    word(rows * columns)?;
    let operands = tensors.map(Operand::from);
    let is_wide =
        columns.is_multiple_of(4) && operands.iter().all(|operand| operand.is_multiple_of(16));
    let threads = columns.div_ceil(if is_wide { 4 } else { 1 });
    let workgroup = backend::WORKGROUP as usize;
    // Few turns for each thread, and few threads for each barrier.
    let across = threads.div_ceil(4).next_power_of_two().min(workgroup);
    ensure_turns(context, op, 2 * threads.div_ceil(across) + 24)?;
    let groups = rows.div_ceil(workgroup / across).min(MOST_GROUPS);
    Launch {
        op,
        shader: shader!("layer_norm"),
        constants: &[number as u32, element_type(tensors[0].dtype())?, is_wide.into()],
        operands: &operands,
        numbers: &[word(rows)?, word(columns)?, across as u32, epsilon.to_bits()],
        groups: [groups as u32, 1, 1],
    }
    .enqueue(context)
}

/// Computes mean and variance of each row of input 0.
pub(super) fn moments(context: &Run<'_>, op: &'static str) -> Result<()> {
    let x = context.input(0)?;
    let shape = shape(&x)?;
    let Some((&columns, outer)) = shape.split_last() else {
        return Err(wrong("x must have an axis, and is a scalar"));
    };
    let rows_shape = [outer, &[1]].concat();
    let (mean, variance) = (output(context, 0, &rows_shape)?, output(context, 1, &rows_shape)?);
    if mean.is_empty() {
        return Ok(());
    }
    if mean.len() == 1 {
        // Of one row, parts are summed by many workgroups: as of one channel.
        let all = [&x, &x, &x, &x, &x, &x, &mean, &variance, &x, &x].map(Operand::from);
        let norm = BatchNorm { has_scale: false, ..BatchNorm::of_training() };
        return norm.enqueue(context, op, Op::Moments, &x, 1, &all);
    }
    let tensors = [&x, &x, &x, &mean, &variance, &x];
    enqueue(context, op, Rows::Moments, [mean.len(), columns], 0.0, tensors)
}

/// Computes the gradients of layer normalization.
pub(super) fn gradient(context: &Run<'_>, op: &'static str, attributes: &Attributes) -> Result<()> {
    let [x, dy, mean, variance] = [0, 1, 2, 3].map(|at| context.input(at));
    let (x, dy, mean, variance) = (x?, dy?, mean?, variance?);
    let shape = shape(&x)?;
    let Some((&columns, outer)) = shape.split_last() else {
        return Err(wrong("x must have an axis, and is a scalar"));
    };
    let rows = outer.iter().product();
    ensure!(
        outer.len() == attributes.axes
            && attributes.has_scale
            && dy.len() == x.len()
            && [mean.len(), variance.len()] == [rows; 2],
        unfit(
            op,
            &[("x", &x), ("y_backprop", &dy), ("mean", &mean), ("variance", &variance)],
            format!("{} axes of rows", attributes.axes)
        )
    );
    let scale = of_each_channel(context, op, context.input(4)?, &[columns])?;
    let dx = context.output(0, x.shape())?;
    let sums = [(1, attributes.keep_dims[0]), (2, attributes.keep_dims[1])].map(|(at, keeps)| {
        let shape = if keeps { kept(&[columns], attributes.axes) } else { vec![columns] };
        output(context, at, &shape)
    });
    let [dscale, doffset] = sums;
    let (dscale, doffset) = (dscale?, doffset?);
    if columns == 0 {
        return Ok(());
    }
    let epsilon = attributes.epsilon;
    if rows > 0 {
        let tensors = [&x, &dy, &scale, &mean, &variance, &dx];
        enqueue(context, op, Rows::Gradient, [rows, columns], epsilon, tensors)?;
    }
    let norm = BatchNorm { epsilon, has_scale: false, ..BatchNorm::of_training() };
    let all = [&x, &x, &dy, &mean, &variance, &x, &dscale, &doffset, &x, &x];
    norm.enqueue(context, op, Op::RowGradient, &x, columns, &all.map(Operand::from))
}
