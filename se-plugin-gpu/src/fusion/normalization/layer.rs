//! The gradient of layer normalization over the last axis.

use super::mean::{Axes, Inverse, Mean};
use super::{Found, Gradient, LAYER_GRADIENT, first};
use crate::fusion::pattern::{View, operands, orders, shorter};
use se_plugin::graph::{Input, Node};

/// Finds the gradient of layer normalization, of which `root` is the sum.
pub(super) fn find(view: View<'_, '_>, root: &Node<'_>) -> Option<Gradient> {
    let terms: Vec<_> = operands(view.graph.node(root.name())?).collect();
    terms.iter().find_map(|&term| {
        let factors = view.operands(term, &["Mul"])?;
        orders(factors).into_iter().find_map(|factors| {
            let sums = view.graph.nodes().filter(|node| node.op() == "Sum");
            let mut parts = sums.filter_map(|sum| Parts::find(view, factors, sum));
            parts.find_map(|parts| parts.complete(view, root, &terms, term))
        })
    })
}

/// The parts of a gradient that others are compared with.
struct Parts<'g> {
    mean: Mean<'g>,
    dy: Input<'g>,
    elements: Elements<'g>,
    /// The scale times the reciprocal root, for each element, what that is, and the scale.
    inverse: Input<'g>,
    of: Inverse<'g>,
    scale: Input<'g>,
    /// The sum of `dy`, which is the gradient of the offset, and its axes.
    offset: &'g str,
    rows: Axes,
}

impl<'g> Parts<'g> {
    /// Returns the parts for a sum of `dy` over the first axes, of which there may be several.
    fn find(view: View<'g, '_>, [dy, inverse]: [Input<'g>; 2], sum: &'g Node<'_>) -> Option<Self> {
        let [summed, axes] = operands(sum).collect::<Vec<_>>().try_into().ok()?;
        let elements = whole(view, dy);
        if view.search(|| whole(view, summed)) != elements {
            return None;
        }
        // What the sum waits for counts, too.
        whole(view, summed);
        let inverse = view.plain(inverse);
        let of = Inverse::of(view, inverse)?;
        let (scale, mut mean) = (of.scale?, Mean::of_variance(view, of.variance)?);
        matches!(mean.axes, Axes::Last(_)).then_some(())?;
        // Those are all but the last, if sums over the last one name the next axis.
        let rows = view.first_axes(axes)?;
        mean.axes = Axes::Last(Some(rows));
        let (dy, rows) = (view.plain(dy), Axes::First(rows));
        Some(Self { mean, of, scale, dy, elements, inverse, offset: sum.name(), rows })
    }

    /// Returns whether an input is the product of `dy` with another one.
    fn is_product(&self, view: View<'g, '_>, input: Input<'g>, other: Input<'g>) -> bool {
        let factors = view.operands::<2>(input, &["Mul"]);
        factors.is_some_and(|factors| {
            orders(factors)
                .into_iter()
                .any(|[dy, factor]| whole(view, dy) == self.elements && view.plain(factor) == other)
        })
    }

    /// Returns what is summed over the last axis, by its index.
    fn summed(&self, view: View<'g, '_>, input: Input<'g>) -> Option<Input<'g>> {
        let [of, axes] = view.operands(view.reshaped(input), &["Sum"])?;
        let is_named = view.constant(axes)?.ints()? != [-1];
        (is_named && self.mean.axes.are(view, axes)).then_some(of)
    }

    /// Returns whether an input is the gradient of `inverse`: the product of `dy` with what `x` differs from its mean.
    fn is_slope(&self, view: View<'g, '_>, input: Input<'g>) -> bool {
        let terms = view.operands(input, &["AddN", "AddV2", "Add"]);
        terms.is_some_and(|terms| {
            orders(terms).into_iter().any(|[of_x, of_mean]| {
                let is_negative = |factor| {
                    view.operands(factor, &["Neg"])
                        .is_some_and(|[mean]| view.plain(mean) == first(self.mean.mean))
                };
                let factors = view.operands::<2>(of_mean, &["Mul"]).unwrap_or([of_mean; 2]);
                self.is_product(view, of_x, self.mean.x)
                    && orders(factors)
                        .into_iter()
                        .any(|[dy, mean]| whole(view, dy) == self.elements && is_negative(mean))
            })
        })
    }

    /// Returns the gradient of `inverse`, from that of the variance.
    fn slope(&self, view: View<'g, '_>, of_variance: Input<'g>) -> Option<Input<'g>> {
        let [root, of_root] = view.operands(view.reshaped(of_variance), &["RsqrtGrad"])?;
        let factors = view.operands(self.summed(view, of_root)?, &["Mul"])?;
        let is_scale = |input| view.vector(input) == view.vector(self.scale);
        let [slope, _] = orders(factors).into_iter().find(|&[_, factor]| is_scale(factor))?;
        (view.plain(root) == self.of.root && self.is_slope(view, slope)).then(|| view.plain(slope))
    }

    /// Finds the other two terms, and the gradient of the scale.
    fn complete(
        &self,
        view: View<'g, '_>,
        root: &Node<'_>,
        terms: &[Input<'g>],
        product: Input<'g>,
    ) -> Option<Gradient> {
        let mean = &self.mean;
        let of_mean = terms.iter().copied().find(|&term| {
            let find = || {
                let (given, None) = mean.given(view, term, 1.0)? else { return None };
                let [sum] = view.operands(view.reshaped(given), &["Neg"])?;
                Some(self.is_product(view, self.summed(view, sum)?, self.inverse))
            };
            find().unwrap_or(false)
        })?;
        let (of_variance, slope) =
            mean.term_of_variance(view, terms, |given| self.slope(view, given))?;
        let scale = view.graph.nodes().filter(|node| node.op() == "Sum").find(|node| {
            let find = || {
                let [of, axes] = operands(node).collect::<Vec<_>>().try_into().ok()?;
                let factors = view.operands(of, &["Mul"])?.map(|factor| view.plain(factor));
                let is_right = orders(factors).contains(&[slope, self.of.root]);
                Some(is_right && self.rows.are(view, axes))
            };
            view.search(|| find().unwrap_or(false))
        })?;
        // What it waits for counts, too.
        view.node(operands(scale).next()?, &["Mul"])?;
        let offset = view.graph.node(self.offset)?;
        let found = Found {
            op: LAYER_GRADIENT,
            x: mean.x,
            dy: self.dy,
            mean: first(mean.mean),
            variance: self.of.variance,
            scale: Some(self.scale),
            axes: self.rows.attribute(),
            epsilon: self.of.epsilon,
            keep_dims: vec![scale.attr("keep_dims").ok()?, offset.attr("keep_dims").ok()?],
            sums: [vec![scale.name()], vec![self.offset]],
            terms: [product, of_mean, of_variance],
            needs: [self.of.root, slope],
        };
        Gradient::of(view, root, found)
    }
}

/// Elements of a tensor in their order, whatever its shape, and whether they were converted to float32.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Elements<'g>(Input<'g>, bool);

/// Returns what has the same elements as an input, in another shape that is that of a tensor.
pub(super) fn whole<'g>(view: View<'g, '_>, mut input: Input<'g>) -> Elements<'g> {
    let mut is_converted = false;
    loop {
        input = view.plain(input);
        if let Some([from, shape]) = view.operands(input, &["Reshape"])
            && view.node(shape, &["Shape"]).is_some()
        {
            input = from;
        } else if let Some((from, _)) = shorter(view, input) {
            (input, is_converted) = (from, true);
        } else {
            return Elements(input, is_converted);
        }
    }
}
