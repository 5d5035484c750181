//! Softmax and its losses. The numbers are those of the ops in `shaders/softmax.comp`.

use super::*;
use core::marker::PhantomData;

/// Rows of logits, from one of which to the next are `in_step` elements, and `labels_step` of labels.
struct Rows {
    rows: usize,
    classes: usize,
    in_step: usize,
    labels_step: usize,
}

/// From so many classes on, a workgroup computes a row, not a thread.
const WIDE: usize = 256;

fn enqueue(
    context: &Run<'_>,
    op: &'static str,
    number: u32,
    logits: &DeviceTensor,
    loss: Option<(&DeviceTensor, &DeviceTensor)>,
    out: &DeviceTensor,
    rows: &Rows,
) -> Result<()> {
    let (labels, loss) = loss.unwrap_or((logits, out));
    word(logits.len().max(out.len()))?;
    let is_wide = rows.classes >= WIDE;
    Launch {
        op,
        shader: shader!("softmax"),
        constants: &[
            number,
            element_type(out.dtype())?,
            element_type(labels.dtype())?,
            is_wide.into(),
        ],
        operands: &[logits.into(), labels.into(), loss.into(), out.into()],
        numbers: &[
            rows.rows as u32,
            rows.classes as u32,
            rows.in_step as u32,
            rows.labels_step as u32,
        ],
        groups: groups(if is_wide { rows.rows.saturating_mul(256) } else { rows.rows }),
    }
    .enqueue(context)
}

fn softmax(context: &Run<'_>, op: &'static str, number: u32) -> Result<()> {
    let logits = context.input(0)?;
    let shape = shape(&logits)?;
    let Some((&classes, batches)) = shape.split_last() else {
        return Err(wrong("logits must have >= 1 dimension, got a scalar"));
    };
    let out = output(context, 0, &shape)?;
    let rows = shapes::count(batches);
    let rows = Rows { rows, classes, in_step: classes, labels_step: 0 };
    enqueue(context, op, number, &logits, None, &out, &rows)
}

kernels! {
    types [f32, f16, bf16]
    "Softmax" Softmax = |run, op| softmax(run, op, 0);
    "LogSoftmax" LogSoftmax = |run, op| softmax(run, op, 1);
    "SoftmaxCrossEntropyWithLogits" CrossEntropy = |run, op| {
        let (logits, labels) = (run.input(0)?, run.input(1)?);
        let (shape, label_shape) = (shape(&logits)?, shape(&labels)?);
        let both = shapes::broadcast_shape(&shape, &label_shape)?;
        let [rows, classes] = both[..] else {
            return Err(wrong(format!(
                "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional, and not {both:?}"
            )));
        };
        let step = |shape: &[usize]| match *shape {
            [own, last] if last == classes => Some(if own == 1 { 0 } else { classes }),
            [last] if last == classes => Some(0),
            _ => None,
        };
        let (Some(in_step), Some(labels_step)) = (step(&shape), step(&label_shape)) else {
            return Err(Error::new(Code::Unimplemented, format!("{op} cannot broadcast classes")));
        };
        let (loss, gradient) = (output(run, 0, &[rows])?, output(run, 1, &both)?);
        let rows = Rows { rows, classes, in_step, labels_step };
        enqueue(run, op, 2, &logits, Some((&labels, &loss)), &gradient, &rows)
    };
}

struct SparseCrossEntropy<T>(PhantomData<T>);

#[kernel(
    op = "SparseSoftmaxCrossEntropyWithLogits",
    types(T = [f32, f16, bf16], Tlabels = [i32, i64])
)]
impl<T: Element> Kernel for SparseCrossEntropy<T> {
    type Platform = GpuPlatform;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let (logits, labels) = (context.input(0)?, context.input(1)?);
        let (shape, label_shape) = (shape(&logits)?, shape(&labels)?);
        let [rows, classes] = shape[..] else {
            return Err(wrong(format!("logits must be 2-D, but got shape {shape:?}")));
        };
        if label_shape != [rows] || (classes == 0 && rows > 0) {
            return Err(wrong(format!(
                "logits and labels must have the same first dimension, and at least one class: got logits shape \
                 {shape:?} and labels shape {label_shape:?}"
            )));
        }
        let (loss, gradient) = (output(context, 0, &[rows])?, output(context, 1, &shape)?);
        let rows = Rows { rows, classes, in_step: classes, labels_step: 0 };
        let op = "SparseSoftmaxCrossEntropyWithLogits";
        enqueue(context, op, 3, &logits, Some((&labels, &loss)), &gradient, &rows)
    }
}
