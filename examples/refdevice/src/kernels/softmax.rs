//! Softmax and its loss.

use super::*;
use crate::math::softmax;
use core::marker::PhantomData;

kernels! {
    Floating [f32, f64, f16, bf16]
    "Softmax" Softmax = |context, op| {
        let logits = context.input(0)?;
        let shape = shape(&logits)?;
        let Some((&classes, batches)) = shape.split_last() else {
            return Err(wrong("logits must have >= 1 dimension, got a scalar"));
        };
        let rows = [shapes::count(batches), classes];
        let out = output(context, 0, &shape)?;
        launch(context, op, [&logits], [&out], move |[logits], [out]| {
            softmax::softmax(view::<T>(logits, &rows)?, view_mut(out, &rows)?);
            Ok(())
        })
    };
}

struct SparseCrossEntropy<T>(PhantomData<T>);

#[kernel(
    op = "SparseSoftmaxCrossEntropyWithLogits",
    types(T = [f32, f64, f16, bf16], Tlabels = [i32, i64])
)]
impl<T: Floating> Kernel for SparseCrossEntropy<T> {
    type Platform = RefPlatform;

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
                "logits and labels must have the same first dimension, and at least one class: got logits \
                 shape {shape:?} and labels shape {label_shape:?}"
            )));
        }
        let (loss, gradient) = (output(context, 0, &[rows])?, output(context, 1, &shape)?);
        let is_small = labels.dtype() == DType::Int32;
        let op = "SparseSoftmaxCrossEntropyWithLogits";
        let outs = [&loss, &gradient];
        launch(context, op, [&logits, &labels], outs, move |[logits, labels], [loss, gradient]| {
            let labels = indices(labels, is_small, &[rows])?;
            let logits = view::<T>(logits, &shape)?;
            let (loss, gradient) = (view_mut(loss, &[rows])?, view_mut(gradient, &shape)?);
            softmax::sparse_cross_entropy(logits, labels.view(), loss, gradient);
            Ok(())
        })
    }
}
