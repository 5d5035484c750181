//! The gradient of group normalization, whose tensors have axes of images, of places, of groups and of the channels of a group.

use super::layer::{Elements, whole};
use super::mean::{Axes, Inverse, Mean, extents};
use super::{Found, GROUP_GRADIENT, Gradient, first};
use crate::fusion::pattern::{View, operands, orders};
use core::ops::Range;
use se_plugin::graph::{Input, Node};

/// Finds the gradient of group normalization, of which `root` is the sum.
pub(super) fn find(view: View<'_, '_>, root: &Node<'_>) -> Option<Gradient> {
    let terms: Vec<_> = operands(view.graph.node(root.name())?).collect();
    terms.iter().find_map(|&term| {
        let factors = view.operands(term, &["Mul"])?;
        orders(factors).into_iter().find_map(|factors| {
            view.attempt(|| Parts::find(view, factors)?.complete(view, root, &terms, term))
        })
    })
}

/// The parts of a gradient that others are compared with.
struct Parts<'g> {
    mean: Mean<'g>,
    /// The number of axes.
    rank: usize,
    /// Whether each group has one channel. Sums over the channels of a group may then be left out.
    is_narrow: bool,
    dy: Input<'g>,
    elements: Elements<'g>,
    /// The scale times the reciprocal root, for each channel of each image, what that is, and the scale.
    inverse: Input<'g>,
    of: Inverse<'g>,
    scale: Input<'g>,
}

/// Returns an input before it got the shape of another tensor.
fn same<'g>(view: View<'g, '_>, mut input: Input<'g>) -> Input<'g> {
    loop {
        input = view.plain(input);
        match view.operands(input, &["Reshape"]) {
            Some([from, shape]) if view.node(shape, &["Shape"]).is_some() => input = from,
            _ => return input,
        }
    }
}

/// Returns an input, or what it is the negative of, which changes the sign.
fn absolute<'g>(view: View<'g, '_>, input: Input<'g>, is_negative: &mut bool) -> Input<'g> {
    let mut input = same(view, input);
    while let Some([of]) = view.operands(input, &["Neg"]) {
        *is_negative = !*is_negative;
        input = same(view, of);
    }
    input
}

impl<'g> Parts<'g> {
    fn find(view: View<'g, '_>, [dy, inverse]: [Input<'g>; 2]) -> Option<Self> {
        let inverse = view.plain(inverse);
        let of = Inverse::of(view, inverse)?;
        let (scale, mean) = (of.scale?, Mean::of_variance(view, of.variance)?);
        let Axes::Groups(rank) = mean.axes else { return None };
        let &width = view.search(|| extents(view, mean.x))?.last()?;
        let elements = whole(view, dy);
        let dy = view.plain(dy);
        // One that is not known could be 0.
        (width > 0).then_some(Self {
            mean,
            rank,
            is_narrow: width == 1,
            dy,
            elements,
            inverse,
            of,
            scale,
        })
    }

    /// Returns what is summed over these axes, and the node of the sum.
    fn summed<'a>(
        view: View<'g, 'a>,
        input: Input<'g>,
        axes: impl Iterator<Item = usize>,
    ) -> Option<(Input<'g>, &'g Node<'a>)> {
        let input = same(view, input);
        let [of, named] = view.operands(input, &["Sum"])?;
        let mut named = view.constant(named)?.ints()?;
        named.sort_unstable();
        let is_right = named.into_iter().eq(axes.map(|axis| axis as i64));
        Some((of, view.node(input, &["Sum"])?)).filter(|_| is_right)
    }

    /// Returns what is summed over the channels of each group, and perhaps the places, of which it has one.
    fn of_group(&self, view: View<'g, '_>, input: Input<'g>) -> Option<Input<'g>> {
        let last = self.rank - 1;
        let sum = view.attempt(|| Self::summed(view, input, last..=last)).or_else(|| {
            let axes = self.places().chain([last]);
            view.attempt(|| Self::summed(view, input, axes))
        });
        match sum {
            Some((of, sum)) => sum.attr("keep_dims").ok().filter(|&keeps| keeps).map(|_: bool| of),
            None => self.is_narrow.then(|| same(view, input)),
        }
    }

    fn places(&self) -> Range<usize> {
        1..self.rank - 2
    }

    /// Returns what is summed over all places, for each channel of each image.
    fn of_places<'a>(
        &self,
        view: View<'g, 'a>,
        input: Input<'g>,
    ) -> Option<(Input<'g>, &'g Node<'a>)> {
        let sum = Self::summed(view, input, self.places())?;
        sum.1.attr("keep_dims").ok().filter(|&keeps| keeps)?;
        Some(sum)
    }

    /// Returns the sum of `dy`, if an input is that.
    fn sum<'a>(&self, view: View<'g, 'a>, input: Input<'g>) -> Option<&'g Node<'a>> {
        let (of, sum) = self.of_places(view, input)?;
        (whole(view, of) == self.elements).then_some(sum)
    }

    /// Returns the sum of `dy`, if an input is the negative of its product with another one.
    fn negative_sum<'a>(
        &self,
        view: View<'g, 'a>,
        product: Input<'g>,
        other: Input<'g>,
        mut is_negative: bool,
    ) -> Option<&'g Node<'a>> {
        let mut product = absolute(view, product, &mut is_negative);
        // A sum over places of which there is one changes nothing.
        if let Some((of, _)) = view.attempt(|| self.of_places(view, product)) {
            product = of;
        }
        let factors = view.operands(product, &["Mul"])?;
        let factors = factors.map(|factor| absolute(view, factor, &mut is_negative));
        let mut sums = orders(factors).into_iter().filter(|&[_, factor]| factor == other);
        sums.find_map(|[sum, _]| self.sum(view, sum)).filter(|_| is_negative)
    }

    /// Returns whether an input is the sum of the products of `dy` and `x`.
    fn is_sum_of_products(&self, view: View<'g, '_>, input: Input<'g>) -> bool {
        let find = || {
            let factors = view.operands(self.of_places(view, input)?.0, &["Mul"])?;
            let is_right = |[dy, x]: [Input<'g>; 2]| {
                whole(view, dy) == self.elements && view.plain(x) == self.mean.x
            };
            Some(orders(factors).into_iter().any(is_right))
        };
        find().unwrap_or(false)
    }

    /// Returns the gradient of `inverse`, from that of the variance.
    fn slope(&self, view: View<'g, '_>, of_variance: Input<'g>) -> Option<Input<'g>> {
        let [root, of_root] = view.operands(same(view, of_variance), &["RsqrtGrad"])?;
        let factors = view.operands(self.of_group(view, of_root)?, &["Mul"])?;
        let is_scale = |input| view.plain(input) == view.plain(self.scale);
        let [slope, _] = orders(factors).into_iter().find(|&[_, factor]| is_scale(factor))?;
        let terms = view.operands(view.plain(slope), &["AddN", "AddV2", "Add"])?;
        let is_slope = orders(terms).into_iter().any(|[of_x, of_mean]| {
            self.is_sum_of_products(view, of_x)
                && self.negative_sum(view, of_mean, first(self.mean.mean), false).is_some()
        });
        (view.plain(root) == self.of.root && is_slope).then(|| view.plain(slope))
    }

    /// Finds the other two terms, and the gradients of scale and offset.
    fn complete(
        &self,
        view: View<'g, '_>,
        root: &Node<'_>,
        terms: &[Input<'g>],
        product: Input<'g>,
    ) -> Option<Gradient> {
        let mean = &self.mean;
        let (of_mean, sum) = terms.iter().find_map(|&term| {
            let (given, None) = mean.given(view, term, 1.0)? else { return None };
            let mut is_negative = false;
            let products = absolute(view, given, &mut is_negative);
            let products = self.of_group(view, products)?;
            Some((term, self.negative_sum(view, products, self.inverse, is_negative)?))
        })?;
        let (of_variance, slope) =
            mean.term_of_variance(view, terms, |given| self.slope(view, given))?;
        let sums = || view.graph.nodes().filter(|node| node.op() == "Sum");
        let of_images = |node: &'g Node<'_>| Self::summed(view, first(node.name()), 0..1);
        let is_of_scale = |node: &'g Node<'_>| {
            let factors = view.operands(of_images(node)?.0, &["Mul"])?;
            let factors = factors.map(|factor| view.plain(factor));
            Some(orders(factors).contains(&[slope, self.of.root]))
        };
        let scale = sums().find(|node| view.search(|| is_of_scale(node) == Some(true)))?;
        // What it waits for counts, too.
        view.node(operands(scale).next()?, &["Mul"])?;
        let is_of_offset = |node: &'g Node<'_>| {
            same(view, of_images(node)?.0).eq(&first(sum.name())).then_some(())
        };
        // A layer may have no offset.
        let offset = sums().find(|node| view.search(|| is_of_offset(node).is_some()));
        let keeps = |node: &Node<'_>| node.attr::<bool>("keep_dims").ok();
        let found = Found {
            op: GROUP_GRADIENT,
            x: mean.x,
            dy: self.dy,
            mean: first(mean.mean),
            variance: self.of.variance,
            scale: Some(self.scale),
            axes: self.rank as i64 - 3,
            epsilon: self.of.epsilon,
            keep_dims: vec![keeps(scale)?, offset.map_or(Some(true), keeps)?],
            sums: [vec![scale.name()], offset.map(Node::name).into_iter().collect()],
            terms: [product, of_mean, of_variance],
            needs: [self.of.root, slope],
        };
        Gradient::of(view, root, found)
    }
}
