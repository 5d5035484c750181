//! Softmax and its losses. The numbers are those of the ops in `shaders/softmax.comp`.

use super::*;

/// Rows of logits and of labels.
struct Rows {
    rows: usize,
    classes: usize,
    logits: Steps,
    labels: Steps,
}

/// The elements from one row to the next, and from one class to the next.
#[derive(Clone, Copy)]
struct Steps {
    row: usize,
    class: usize,
}

impl Steps {
    /// Returns the steps of dense rows.
    fn dense(classes: usize) -> Self {
        Self { row: classes, class: 1 }
    }

    /// Returns the steps of a tensor of this shape, which is broadcast to rows.
    fn of(shape: &[usize]) -> Self {
        let class = shape.last().copied().unwrap_or(1);
        let has_rows = shape.len() == 2 && shape[0] != 1;
        Self { row: if has_rows { class } else { 0 }, class: (class != 1).into() }
    }
}

/// From this many classes on, a workgroup computes a row, else a thread does.
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
    let each_lane = if is_wide { rows.classes.div_ceil(256) } else { rows.classes };
    ensure_turns(context, op, 3 * each_lane + 24)?;
    Launch {
        op,
        shader: match out.dtype() {
            DType::Float64 => shader!("softmax.double"),
            _ => shader!("softmax"),
        },
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
            rows.logits.row as u32,
            rows.labels.row as u32,
            rows.logits.class as u32,
            rows.labels.class as u32,
        ],
        groups: groups_of(rows.rows, is_wide),
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
    let steps = Steps::dense(classes);
    let rows = Rows { rows, classes, logits: steps, labels: steps };
    enqueue(context, op, number, &logits, None, &out, &rows)
}

kernels! {
    types (T = [f32, f16, bf16, f64])
    "Softmax" Softmax () = |run, op| softmax(run, op, 0);
    "LogSoftmax" LogSoftmax () = |run, op| softmax(run, op, 1);
    "SoftmaxCrossEntropyWithLogits" CrossEntropy () = |run, op| {
        let (logits, labels) = (run.input(0)?, run.input(1)?);
        let (shape, label_shape) = (shape(&logits)?, shape(&labels)?);
        let both = shapes::broadcast_shape(&shape, &label_shape)?;
        let [rows, classes] = both[..] else {
            return Err(wrong(format!(
                "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional, and not {both:?}"
            )));
        };
        let (loss, gradient) = (output(run, 0, &[rows])?, output(run, 1, &both)?);
        let (logit_steps, label_steps) = (Steps::of(&shape), Steps::of(&label_shape));
        let rows = Rows { rows, classes, logits: logit_steps, labels: label_steps };
        enqueue(run, op, 2, &logits, Some((&labels, &loss)), &gradient, &rows)
    };
    types (T = [f32, f16, bf16, f64], Tlabels = [i32, i64])
    "SparseSoftmaxCrossEntropyWithLogits" SparseCrossEntropy () = |context, op| {
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
        let steps = Steps::dense(classes);
        let rows = Rows { rows, classes, logits: steps, labels: steps };
        enqueue(context, op, 3, &logits, Some((&labels, &loss)), &gradient, &rows)
    };
}
