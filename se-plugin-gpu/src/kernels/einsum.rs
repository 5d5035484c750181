//! `Einsum`, computed as products of matrices.

use super::reduce::sum;
use super::strided_copy::{Walk, fill, strides};
use super::*;
use crate::backend::MatMul;
use se_plugin::toolkit::einsum::Einsum;
use se_plugin::toolkit::ops::inputs;

const OP: &str = "Einsum";

fn sizes(labels: &[Strides<3>]) -> Shape {
    labels.iter().map(|label| label.len).collect()
}

fn count(labels: &[Strides<3>]) -> usize {
    sizes(labels).iter().product()
}

/// Returns whether a tensor of the equation has its elements in the order of these labels.
fn is_dense(labels: &[Strides<3>], tensor: usize) -> bool {
    let mut pairs = labels.iter().zip(strides(&sizes(labels)));
    pairs.all(|(label, dense)| label.len == 1 || label.strides[tensor] as isize == dense)
}

/// Returns a walk from a tensor of the equation to one that has its elements in the order of these labels.
fn walk(labels: &[Strides<3>], tensor: usize) -> Walk {
    let (sizes, steps) = (sizes(labels), labels.iter().map(|label| label.strides[tensor] as isize));
    Walk::new(&sizes, &steps.collect::<Vec<_>>(), &strides(&sizes))
}

fn temporary(run: &Run<'_>, like: &DeviceTensor, count: usize) -> Result<DeviceTensor> {
    run.temporary(like.dtype(), &[count as i64])
}

/// Returns an input in the order of these labels, with sums along the labels that it alone has.
fn arranged(
    run: &Run<'_>,
    input: &DeviceTensor,
    number: usize,
    order: &[Strides<3>],
    alone: &[Strides<3>],
) -> Result<DeviceTensor> {
    if alone.is_empty() && is_dense(order, number) {
        return Ok(input.clone());
    }
    let all = run.temporary(input.dtype(), &[count(order) as i64, count(alone) as i64])?;
    walk(&[order, alone].concat(), number).enqueue(run, OP, input.into(), &all)?;
    if alone.is_empty() {
        return Ok(all);
    }
    let sums = temporary(run, input, count(order))?;
    sum(run, OP, &all, &[1], &sums)?;
    Ok(sums)
}

/// Returns an input as matrices, and whether they are transposed.
fn matrices(
    run: &Run<'_>,
    input: &DeviceTensor,
    number: usize,
    [batch, rows, columns]: [&[Strides<3>]; 3],
    alone: &[Strides<3>],
) -> Result<(DeviceTensor, bool)> {
    if alone.is_empty() && is_dense(&[batch, columns, rows].concat(), number) {
        return Ok((input.clone(), true));
    }
    let order = [batch, rows, columns].concat();
    Ok((arranged(run, input, number, &order, alone)?, false))
}

fn compute(run: &Run<'_>, equation: &str) -> Result<()> {
    let tensors = inputs(run, "inputs")?;
    let shapes = tensors.iter().map(shape).collect::<Result<Vec<_>>>()?;
    let shapes: Vec<_> = shapes.iter().map(|shape| &shape[..]).collect();
    let einsum = Einsum::new(equation, &shapes)?;
    let out = output(run, 0, einsum.shape())?;
    if einsum.is_empty() {
        return fill(run, OP, Operand::Value(0), &out);
    }
    // Returns labels in the order that they have in an input.
    let labels = |steps: [bool; 3], number: usize| {
        let mut labels = einsum.labels(steps);
        labels.sort_by_key(|label| std::cmp::Reverse(label.strides[number]));
        labels
    };
    let (batch, inner) = (labels([true; 3], 0), labels([true, true, false], 0));
    let (rows, columns) = (labels([true, false, true], 0), labels([false, true, true], 1));
    let of_a = labels([true, false, false], 0);
    let order = [&batch[..], &rows, &columns].concat();
    // A label that occurs twice in the output is its diagonal.
    let is_whole = count(&order) == out.len() && is_dense(&order, 2);
    let result = match &tensors[..] {
        [a, b] => {
            let (a, ta) = matrices(run, a, 0, [&batch, &rows, &inner], &of_a)?;
            let of_b = labels([false, true, false], 1);
            let (b, tb) = matrices(run, b, 1, [&batch, &inner, &columns], &of_b)?;
            let result = if is_whole { out.clone() } else { temporary(run, &out, count(&order))? };
            for tensor in [&a, &b, &result] {
                word(tensor.len())?;
            }
            let [rows, inner, columns] = [&rows, &inner, &columns].map(|labels| count(labels));
            let product = MatMul {
                dtype: out.dtype(),
                transpose: [ta, tb],
                rows,
                inner,
                columns,
                batch: count(&batch),
                strides: [rows * inner, inner * columns],
            };
            let operands = [(&a).into(), (&b).into(), (&result).into()];
            product.enqueue(run, OP, operands)?;
            if is_whole {
                return Ok(());
            }
            result
        }
        [a] => arranged(run, a, 0, &order, &of_a)?,
        _ => return Err(Error::internal("an einsum of more than two inputs")),
    };
    if count(&order) != out.len() {
        fill(run, OP, Operand::Value(0), &out)?;
    }
    walk(&order, 2).reversed().enqueue(run, OP, (&result).into(), &out)
}

kernels! {
    types (T = [f32, f16, bf16, f64])
    "Einsum" EinsumKernel [String = |op| op.attr("equation")] () = |run, _, equation| compute(run, equation);
}
