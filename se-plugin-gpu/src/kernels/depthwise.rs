//! Convolutions of each channel by itself: `shaders/depthwise.comp`.

use super::reduce::sum;
use super::*;
use crate::backend::{self, ConvolutionKind, WindowShape};

/// Workgroups that keep a GPU busy.
const BUSY: usize = 1024;

/// The positions in a turn of a loop of the shader, and the elements of a row of the filter that have sums of their own.
const EACH: usize = 4;
const TAPS: usize = 4;

/// How the gradient of a filter is divided among workgroups.
struct Sums {
    /// The threads along the results.
    across: usize,
    /// The workgroups of a part, and the positions in it.
    units: usize,
    part: usize,
    parts: usize,
}

impl WindowShape {
    fn sums(&self, is_wide: bool) -> Sums {
        let [deep, down, right] = &self.windows;
        let threads = self.results.div_ceil(if is_wide { 4 } else { 1 });
        let across = threads.next_power_of_two().min(if is_wide { 8 } else { 32 });
        let units = deep.size * down.size * right.size.div_ceil(TAPS) * threads.div_ceil(across);
        let positions = self.images[0] * self.windows.iter().map(|of| of.count).product::<usize>();
        let least = backend::WORKGROUP as usize / across * 2 * EACH;
        let parts = BUSY.div_ceil(units.max(1)).min(positions.div_ceil(least)).max(1);
        let part = positions.div_ceil(parts).max(1);
        Sums { across, units, part, parts: positions.div_ceil(part).max(1) }
    }

    /// Returns the turns of the loops for a result, or for a sum.
    fn turns_of_channels(&self, kind: ConvolutionKind, sums: &Sums) -> usize {
        let [deep, down, right] = &self.windows;
        let each = match kind {
            ConvolutionKind::Forward => 1,
            ConvolutionKind::BackwardData => 1 + self.results / self.images[4].max(1),
            ConvolutionKind::BackwardFilter => {
                return (sums.part * sums.across).div_ceil(256 * EACH) + 10 * TAPS;
            }
        };
        let area = down.size.saturating_mul(right.size.saturating_mul(each).saturating_add(1));
        deep.size.saturating_mul(area.saturating_add(1))
    }

    /// Enqueues a convolution in which each channel has its own filter. Tensors are not empty, and 32 bits count their elements.
    pub(super) fn enqueue_of_channels(
        &self,
        context: &Run<'_>,
        op: &'static str,
        kind: ConvolutionKind,
        [a, b]: [&DeviceTensor; 2],
        out: &DeviceTensor,
    ) -> Result<()> {
        let is_aligned = [a, b, out].iter().all(|tensor| Operand::from(*tensor).is_multiple_of(16));
        let is_wide =
            is_aligned && self.results == self.images[4] && self.results.is_multiple_of(4);
        let sums = self.sums(is_wide);
        ensure_turns(context, op, self.turns_of_channels(kind, &sums))?;
        let launch = |out: &DeviceTensor, count, across: usize, groups| {
            Launch {
                op,
                shader: shader!("depthwise"),
                constants: &[
                    kind as u32,
                    element_type(a.dtype())?,
                    element_type(out.dtype())?,
                    self.is_deep.into(),
                    is_wide.into(),
                    across as u32,
                ],
                operands: &[a.into(), b.into(), out.into()],
                numbers: &self.numbers(count)?,
                groups,
            }
            .enqueue(context)
        };
        if kind != ConvolutionKind::BackwardFilter {
            let count = out.len() / if is_wide { 4 } else { 1 };
            return launch(out, count, 1, groups(count));
        }
        let Sums { across, units, part, parts } = sums;
        let groups = [units.min(MOST_GROUPS) as u32, parts as u32, 1];
        if parts == 1 {
            return launch(out, part, across, groups);
        }
        let pieces = context.temporary(DType::Float32, &[parts as i64, out.len() as i64])?;
        launch(&pieces, part, across, groups)?;
        sum(context, op, &pieces, &[0], out)
    }
}
