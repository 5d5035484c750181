//! The mask of attention, which Keras combines with ones in the shape of the scores, and with a triangle for causal attention.

use crate::fusion::pattern::{View, operands};
use se_plugin::graph::Input;

/// What chooses scores.
pub(super) struct Mask<'g> {
    /// The whole of it.
    pub(super) condition: Input<'g>,
    /// The part that is a tensor.
    pub(super) tensor: Option<Input<'g>>,
    /// Whether each line sees only those up to its own.
    pub(super) is_causal: bool,
    /// What is in place of other scores.
    pub(super) masked: f32,
}

impl<'g> Mask<'g> {
    /// Returns the parts of a condition. The nodes that were looked at have the shape of the scores.
    pub(super) fn of(view: View<'g, '_>, condition: Input<'g>, masked: f32) -> Self {
        let mut found = Self { condition, tensor: None, is_causal: false, masked };
        if view.search(|| found.take(view, condition)).is_none() {
            (found.tensor, found.is_causal) = (Some(condition), false);
        }
        found
    }

    /// Adds a part. Returns `None` for a second tensor.
    fn take(&mut self, view: View<'g, '_>, part: Input<'g>) -> Option<()> {
        if let Some(parts) = view.operands::<2>(part, &["LogicalAnd"]) {
            return parts.into_iter().try_for_each(|part| self.take(view, part));
        }
        // It would be broadcast to the scores anyway.
        if let Some([from, _]) = view.operands(part, &["BroadcastTo"]) {
            return self.take(view, from);
        }
        if is_ones(view, part) {
            return Some(());
        }
        if is_triangle(view, part) {
            self.is_causal = true;
            return Some(());
        }
        self.tensor.replace(part).is_none().then_some(())
    }
}

fn is_ones<'g>(view: View<'g, '_>, part: Input<'g>) -> bool {
    let find = || {
        let [_, value] = view.operands(part, &["Fill"])?;
        Some(view.constant(value)?.bools()? == [true])
    };
    view.node(part, &["OnesLike"]).is_some() || find().unwrap_or(false)
}

/// Returns whether a part is the lower triangle of ones, with the lines of query and key.
fn is_triangle<'g>(view: View<'g, '_>, part: Input<'g>) -> bool {
    let find = || {
        let with_axes = view.node(part, &["StridedSlice"])?;
        // `[None, None, :, :]`.
        let masks =
            ["begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask"];
        let masks = masks.map(|name| with_axes.attr::<i64>(name).unwrap_or(-1));
        (masks == [12, 12, 3, 0, 0]).then_some(())?;
        let [ones, below, above] =
            view.operands(operands(with_axes).next()?, &["MatrixBandPart"])?;
        let is_number = |input, number: i64| {
            let constant = view.constant(input).and_then(|constant| constant.ints());
            constant.is_some_and(|all| all == [number])
        };
        let is_lower =
            view.constant(below)?.ints()?.iter().all(|&below| below < 0) && is_number(above, 0);
        let [sizes, value] = view.operands(ones, &["Fill"])?;
        let is_true = view.constant(value)?.bools()? == [true];
        let sizes: [_; 2] = view.operands(sizes, &["Pack"])?;
        let is_size = |size: Input<'g>, axis: i64| {
            let find = || {
                let [shape, first, end, _]: [_; 4] = view.operands(size, &["StridedSlice"])?;
                let [of] = view.operands(shape, &["Shape"])?;
                Some(is_number(first, axis) && is_number(end, axis + 1) && is_score(view, of))
            };
            find().unwrap_or(false)
        };
        Some(is_lower && is_true && is_size(sizes[0], 2) && is_size(sizes[1], 3))
    };
    find().unwrap_or(false)
}

fn is_score<'g>(view: View<'g, '_>, of: Input<'g>) -> bool {
    let ops = ["Einsum", "Cast", "Mul", "Add", "AddV2"];
    view.looked_at(of) && view.node(of, &ops).is_some()
}
