//! Images whose channels come first. The kernels need channels last, so such images are copied, and
//! the results are copied back.

use super::strided_copy::{Walk, strides};
use super::*;

/// Where the channels of images are: `data_format`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Last,
    First,
}

/// An output, or a temporary tensor that is copied to it in the end.
pub(super) struct Output {
    pub(super) tensor: DeviceTensor,
    first: Option<DeviceTensor>,
}

/// Copies a tensor whose channels are at another axis.
fn copy(
    context: &Run<'_>,
    op: &'static str,
    [from, to]: [&DeviceTensor; 2],
    [channel, new_channel]: [usize; 2],
) -> Result<()> {
    let out_shape = shape(to)?;
    let mut steps = strides(&shape(from)?);
    let step = steps.remove(channel);
    steps.insert(new_channel, step);
    let walk = Walk::new(&out_shape, &steps, &strides(&out_shape));
    walk.enqueue(context, op, from.into(), to)
}

impl Layout {
    /// Reads the layout of an op.
    pub(super) fn of(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let format: String = construction.attr("data_format")?;
        match format.as_str() {
            "NHWC" | "NDHWC" => Ok(Self::Last),
            "NCHW" | "NCDHW" => Ok(Self::First),
            _ => Err(Error::new(
                Code::Unimplemented,
                format!("the device has no kernels for data_format={format}"),
            )),
        }
    }

    /// Moves the number of the channels to the end, in numbers for each axis, such as sizes.
    pub(super) fn last<T>(self, mut axes: Vec<T>) -> Vec<T> {
        if self == Self::First && axes.len() > 2 {
            axes[1..].rotate_left(1);
        }
        axes
    }

    /// Returns the input with the channels last.
    pub(super) fn input(
        self,
        context: &Run<'_>,
        op: &'static str,
        index: usize,
    ) -> Result<DeviceTensor> {
        let input = context.input(index)?;
        if self == Self::Last || input.shape().len() < 3 {
            return Ok(input);
        }
        let last = context.temporary(input.dtype(), &self.last(input.shape().to_vec()))?;
        copy(context, op, [&input, &last], [1, input.shape().len() - 1])?;
        Ok(last)
    }

    /// Creates an output of this shape, whose channels are last.
    pub(super) fn output(self, context: &Run<'_>, index: usize, last: &[usize]) -> Result<Output> {
        if self == Self::Last || last.len() < 3 {
            return Ok(Output { tensor: output(context, index, last)?, first: None });
        }
        let mut first = last.to_vec();
        first[1..].rotate_right(1);
        let first = output(context, index, &first)?;
        let tensor = context.temporary(first.dtype(), &shapes::to_host(last))?;
        Ok(Output { tensor, first: Some(first) })
    }
}

impl Output {
    /// Copies the result to the output, after its computation is enqueued.
    pub(super) fn finish(&self, context: &Run<'_>, op: &'static str) -> Result<()> {
        match &self.first {
            Some(first) => copy(context, op, [&self.tensor, first], [first.shape().len() - 1, 1]),
            None => Ok(()),
        }
    }
}
