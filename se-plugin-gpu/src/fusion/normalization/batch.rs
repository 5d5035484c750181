//! The gradient of batch normalization.

use super::mean::{Axes, Inverse, Mean};
use super::{BATCH_GRADIENT, Found, Gradient, axes, first};
use crate::fusion::pattern::{View, operands, orders, shorter};
use se_plugin::graph::{Input, Node};

/// The parts of a gradient that others are compared with.
struct Parts<'g> {
    mean: Mean<'g>,
    /// The number of the first axes.
    axes: usize,
    dy: Input<'g>,
    /// The scale times the reciprocal root, and what that is.
    inverse: Input<'g>,
    of: Inverse<'g>,
}

impl<'g> Parts<'g> {
    fn find(view: View<'g, '_>, [dy, inverse]: [Input<'g>; 2]) -> Option<Self> {
        let inverse = view.vector(inverse);
        let of = Inverse::of(view, inverse)?;
        let mean = Mean::of_variance(view, view.vector(of.variance))?;
        let Axes::First(axes) = mean.axes else { return None };
        Some(Self { mean, axes, dy: view.plain(dy), inverse, of })
    }

    /// Returns whether a vector along the last axis has axes of size 1 before it, if its node tells that.
    fn has_all_axes(&self, view: View<'g, '_>, vector: Input<'g>) -> Option<bool> {
        if let Some([_, shape]) = view.operands(vector, &["Reshape"]) {
            return match view.constant(shape)?.ints()?.len() {
                1 => Some(false),
                len => (len == self.axes + 1).then_some(true),
            };
        }
        let node = view.node(vector, &["Squeeze", "Sum", "Mean"])?;
        if node.op() == "Squeeze" { Some(false) } else { node.attr("keep_dims").ok() }
    }

    /// Returns whether an input is the sum of the products of `dy` and `x`.
    fn is_sum_of_products(&self, view: View<'g, '_>, input: Input<'g>) -> bool {
        let find = || {
            let [products, axes] = view.operands(view.vector(input), &["Sum"])?;
            let factors = view.operands(products, &["Mul"])?.map(|factor| view.plain(factor));
            let is_right = orders(factors).contains(&[self.dy, self.mean.x]);
            Some(is_right && self.mean.axes.are(view, axes))
        };
        find().unwrap_or(false)
    }

    /// Returns the node of the sum of `dy`. It may be that of a gradient which was found before: of two normalizations whose
    /// results are added.
    fn sum<'a>(&self, view: View<'g, 'a>, input: Input<'g>) -> Option<&'g Node<'a>> {
        let input = view.vector(input);
        if let Input::Data { node, output: 2 } = input {
            let other = view.graph.node(node).filter(|node| node.op() == BATCH_GRADIENT)?;
            let dy = view.plain(operands(other).nth(1)?);
            let is_same =
                dy == self.dy || shorter(view, self.dy).is_some_and(|(from, _)| from == dy);
            return Some(other)
                .filter(|_| is_same && axes(other) == Some(self.mean.axes.attribute()));
        }
        let [of, axes] = view.operands(input, &["Sum"])?;
        let is_right = view.plain(of) == self.dy && self.mean.axes.are(view, axes);
        view.node(input, &["Sum"]).filter(|_| is_right)
    }

    /// Returns the node of the sum of `dy`, from the negative of its product with another vector.
    fn negative_sum<'a>(
        &self,
        view: View<'g, 'a>,
        product: Input<'g>,
        other: Input<'g>,
    ) -> Option<&'g Node<'a>> {
        let mut is_negative = false;
        let mut absolute = |input| {
            let input = view.vector(input);
            match view.operands(input, &["Neg"]) {
                Some([input]) => {
                    is_negative = !is_negative;
                    view.vector(input)
                }
                None => input,
            }
        };
        let product = absolute(product);
        let factors = view.operands(product, &["Mul"])?.map(absolute);
        let sums = orders(factors).into_iter().filter(|&[_, factor]| factor == other);
        sums.map(|[sum, _]| self.sum(view, sum)).find(Option::is_some)?.filter(|_| is_negative)
    }

    /// Returns whether an input is the gradient of `inverse`: the sum of the products of `dy` with what `x` differs from its mean.
    fn is_slope(&self, view: View<'g, '_>, input: Input<'g>) -> bool {
        let terms = view.operands(view.vector(input), &["AddN", "AddV2", "Add"]);
        terms.is_some_and(|terms| {
            orders(terms).into_iter().any(|[products, means]| {
                self.is_sum_of_products(view, products)
                    && self.negative_sum(view, means, first(self.mean.mean)).is_some()
            })
        })
    }

    /// Returns the gradient of `inverse`, from that of the variance.
    fn slope(&self, view: View<'g, '_>, of_variance: Input<'g>) -> Option<Input<'g>> {
        let [root, of_root] = view.operands(view.vector(of_variance), &["RsqrtGrad"])?;
        let of_root = view.vector(of_root);
        let slope = match self.of.scale {
            None => of_root,
            Some(scale) => {
                let factors = view.operands(of_root, &["Mul"])?;
                let is_scale = |input| view.vector(input) == view.vector(scale);
                orders(factors).into_iter().find(|&[_, factor]| is_scale(factor))?[0]
            }
        };
        (view.plain(root) == self.of.root && self.is_slope(view, slope)).then(|| view.vector(slope))
    }
}

/// Finds the gradient of batch normalization, of which `root` is the sum.
pub(super) fn find(view: View<'_, '_>, root: &Node<'_>) -> Option<Gradient> {
    let terms: Vec<_> = operands(view.graph.node(root.name())?).collect();
    terms.iter().find_map(|&term| {
        let factors = view.operands(term, &["Mul"])?;
        orders(factors)
            .into_iter()
            .find_map(|factors| Parts::find(view, factors)?.complete(view, root, &terms, term))
    })
}

impl<'g> Parts<'g> {
    /// Finds the other two terms.
    fn complete(
        &self,
        view: View<'g, '_>,
        root: &Node<'_>,
        terms: &[Input<'g>],
        product: Input<'g>,
    ) -> Option<Gradient> {
        let (parts, mean) = (self, &self.mean);
        let (of_mean, sum) =
            terms.iter().find_map(|&term| match mean.given(view, term, 1.0)? {
                (given, None) => Some((term, parts.negative_sum(view, given, parts.inverse)?)),
                _ => None,
            })?;
        let (of_variance, slope) =
            mean.term_of_variance(view, terms, |given| parts.slope(view, given))?;
        let scale = view.graph.nodes().filter(|node| {
            let factors = || operands(node).map(|input| view.plain(input)).collect::<Vec<_>>();
            let is_both =
                |factors: [Input<'_>; 2]| orders(factors).contains(&[slope, parts.of.root]);
            node.op() == "Mul" && <[_; 2]>::try_from(view.search(factors)).is_ok_and(is_both)
        });
        // The op's output has the shape of the variance and the scale. A sum of another shape stays.
        let products = view.operands::<2>(slope, &["AddN", "AddV2", "Add"])?;
        let products = products.into_iter().find(|&term| self.is_sum_of_products(view, term))?;
        // The sum is broadcast to the root of the variance.
        let is_alike = match self.has_all_axes(view, self.of.variance)? {
            true => true,
            false => self.has_all_axes(view, products) == Some(false),
        };
        let scale: Vec<_> = scale.filter(|_| is_alike).map(Node::name).collect();
        let offset = sum.name();
        let keep_dims = match sum.op() {
            "Sum" => vec![sum.attr("keep_dims").ok()?],
            _ => sum.attr("keep_dims").ok()?,
        };
        let found = Found {
            op: BATCH_GRADIENT,
            x: mean.x,
            dy: parts.dy,
            mean: first(mean.mean),
            variance: self.of.variance,
            scale: parts.of.scale,
            axes: mean.axes.attribute(),
            epsilon: self.of.epsilon,
            keep_dims,
            sums: [scale, Some(offset).filter(|_| sum.op() == "Sum").into_iter().collect()],
            terms: [product, of_mean, of_variance],
            needs: [parts.of.root, slope],
        };
        Gradient::of(view, root, found)
    }
}
