//! Means over some axes of a tensor, and their gradients.

use super::super::pattern::{View, operands, orders, shorter};
use super::first;
use se_plugin::graph::Input;

/// Axes of a tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Axes {
    /// So many, from the first on.
    First(usize),
    /// The last. Its index is known where another op names it.
    Last(Option<usize>),
    /// All but the first and the next-to-last of this many: of images whose channels are in groups.
    Groups(usize),
}

impl Axes {
    /// Returns the axes that a constant names. What may be those of groups is, if `x` has so many axes.
    fn of<'g>(view: View<'g, '_>, constant: Input<'g>) -> Option<Self> {
        let mut axes = view.constant(constant)?.ints()?;
        axes.sort_unstable();
        match axes[..] {
            [-1] => Some(Self::Last(None)),
            [1, .., _] if axes == Self::of_groups(axes.len() + 2) => {
                Some(Self::Groups(axes.len() + 2))
            }
            _ => view.first_axes(constant).map(Self::First),
        }
    }

    /// Returns the axes of the elements of a group.
    fn of_groups(rank: usize) -> Vec<i64> {
        let axes = (1..rank).filter(|&axis| axis + 2 != rank);
        axes.map(|axis| axis as i64).collect()
    }

    /// Returns whether an axis of a tensor of `rank` axes is one of them.
    fn has(self, axis: usize, rank: usize) -> bool {
        match self {
            Self::First(axes) => axis < axes,
            Self::Last(_) => axis + 1 == rank,
            Self::Groups(_) => axis > 0 && axis + 2 != rank,
        }
    }

    /// Returns whether a tensor may have so many axes.
    fn fits(self, rank: usize) -> bool {
        match self {
            Self::First(axes) => axes <= rank,
            Self::Last(_) => rank > 0,
            Self::Groups(of) => of == rank,
        }
    }

    /// Returns whether a constant names them.
    pub(super) fn are<'g>(self, view: View<'g, '_>, constant: Input<'g>) -> bool {
        match self {
            Self::First(axes) => view.first_axes(constant) == Some(axes),
            Self::Last(index) => {
                let named = view.constant(constant).and_then(|axes| axes.ints());
                named.is_some_and(|named| match named[..] {
                    [axis] => axis == -1 || index.is_some_and(|index| index as i64 == axis),
                    _ => false,
                })
            }
            Self::Groups(rank) => {
                let mut named = view.constant(constant).and_then(|axes| axes.ints());
                named.iter_mut().for_each(|axes| axes.sort_unstable());
                named.is_some_and(|axes| axes == Self::of_groups(rank))
            }
        }
    }

    /// Returns the attribute of the op.
    pub(super) fn attribute(self) -> i64 {
        match self {
            Self::First(axes) => axes as i64,
            Self::Last(_) => -1,
            Self::Groups(_) => -2,
        }
    }
}

/// Mean and variance.
pub(super) struct Mean<'g> {
    pub(super) x: Input<'g>,
    /// The nodes of the mean, and of the squared differences from it.
    pub(super) mean: &'g str,
    pub(super) squares: &'g str,
    pub(super) axes: Axes,
}

impl<'g> Mean<'g> {
    /// Returns what a variance is of, if it is one.
    pub(super) fn of_variance(view: View<'g, '_>, variance: Input<'g>) -> Option<Self> {
        let sum = |input, op: &str| {
            let node = view.node(input, &[op])?;
            let [from, axes] = view.operands(input, &[op])?;
            node.attr::<bool>("keep_dims").ok().filter(|&keeps| keeps)?;
            Some((node.name(), from, Axes::of(view, axes)?))
        };
        let (_, squares, axes) = sum(variance, "Mean")?;
        let differences = view.operands(squares, &["SquaredDifference"])?;
        let squares = view.node(squares, &["SquaredDifference"])?.name();
        orders(differences).into_iter().find_map(|[x, mean]| {
            let (mean, from, of_mean) = sum(mean, "Mean")?;
            let x = view.plain(x);
            let is_mean = view.plain(from) == x && of_mean == axes;
            if let Axes::Groups(rank) = axes {
                view.search(|| extents(view, x)).filter(|extents| extents.len() == rank)?;
            }
            is_mean.then_some(Self { x, mean, squares, axes })
        })
    }

    /// Returns whether an input is the shape of `x`.
    fn is_shape(&self, view: View<'g, '_>, input: Input<'g>) -> bool {
        let of = view.operands(input, &["Shape"]).map(|[of]| view.plain(of));
        of.is_some_and(|of| of == self.x || of == first(self.squares))
    }

    /// Returns whether an input is the number of elements that a mean is of, computed from the shape.
    fn is_count(&self, view: View<'g, '_>, input: Input<'g>) -> bool {
        let find = || {
            let [product] = view.operands(input, &["Cast"])?;
            let [extents, _] = view.operands(product, &["Prod"])?;
            let [shape, axes, _] = view.operands(extents, &["GatherV2"])?;
            Some(self.is_shape(view, shape) && self.axes.are(view, axes))
        };
        find().unwrap_or(false)
    }

    /// Returns whether an input is what `x` differs from its mean.
    pub(super) fn is_difference(&self, view: View<'g, '_>, input: Input<'g>) -> bool {
        let difference =
            view.operands(input, &["Sub"]).map(|[x, mean]| [view.plain(x), view.plain(mean)]);
        difference == Some([self.x, first(self.mean)])
    }

    /// Finds the term of a gradient that is the variance's, and what `slope` finds in the gradient of the variance.
    pub(super) fn term_of_variance(
        &self,
        view: View<'g, '_>,
        terms: &[Input<'g>],
        slope: impl Fn(Input<'g>) -> Option<Input<'g>>,
    ) -> Option<(Input<'g>, Input<'g>)> {
        terms.iter().find_map(|&term| match self.given(view, term, 2.0)? {
            (given, Some(other)) if self.is_difference(view, other) => Some((term, slope(given)?)),
            _ => None,
        })
    }

    /// Returns what is given to all elements along the axes by the gradient of a mean, times `factor`: `of` may have one more
    /// factor, which is returned too.
    pub(super) fn given(
        &self,
        view: View<'g, '_>,
        of: Input<'g>,
        factor: f32,
    ) -> Option<(Input<'g>, Option<Input<'g>>)> {
        let mut product = Product { constant: 1.0, divisors: Vec::new(), others: Vec::new() };
        product.take(view, of, 4);
        let spread = |&input: &Input<'g>| view.node(input, &["Tile", "BroadcastTo"]).is_some();
        let at = product.others.iter().position(spread)?;
        let spread = product.others.swap_remove(at);
        let [from, sizes] = view.operands(spread, &["Tile", "BroadcastTo"])?;
        let count = match view.constant(sizes).and_then(|sizes| sizes.ints()) {
            Some(sizes) => {
                let rank = sizes.len();
                let is_tile = view.node(spread, &["Tile"]).is_some();
                let all = sizes.iter().enumerate();
                let (of_mean, rest): (Vec<_>, Vec<_>) =
                    all.partition(|&(axis, _)| self.axes.has(axis, rank));
                let is_plain = !is_tile || rest.iter().all(|&(_, &times)| times == 1);
                (self.axes.fits(rank) && is_plain)
                    .then(|| of_mean.iter().map(|&(_, &extent)| extent as f32).product::<f32>())
            }
            None => None,
        };
        let is_of_shape = || self.is_shape(view, sizes);
        let is_mean = match product.divisors[..] {
            // Factors are rounded.
            [] => (product.constant * count? - factor).abs() < 1e-6 * factor,
            [divisor] => {
                (count.is_some() || is_of_shape())
                    && self.is_count(view, divisor)
                    && product.constant == factor
            }
            _ => false,
        };
        let other = match product.others[..] {
            [] => None,
            [other] => Some(other),
            _ => return None,
        };
        is_mean.then_some((from, other))
    }
}

/// Returns the extents that a tensor is reshaped to, with -1 for those that are not known. It may be converted then.
pub(super) fn extents<'g>(view: View<'g, '_>, x: Input<'g>) -> Option<Vec<i64>> {
    let x = shorter(view, x).map_or(x, |(from, _)| view.plain(from));
    let [_, shape] = view.operands(x, &["Reshape"])?;
    if let Some(parts) = view.node(shape, &["Pack"]) {
        let known = |part| match view.constant(part)?.ints()?[..] {
            [only] => Some(only),
            _ => None,
        };
        return Some(operands(parts).map(|part| known(part).unwrap_or(-1)).collect());
    }
    view.constant(shape)?.ints()
}

/// What `x` is multiplied by: the reciprocal root of the variance, and the scale.
#[derive(Clone, Copy)]
pub(super) struct Inverse<'g> {
    pub(super) root: Input<'g>,
    pub(super) scale: Option<Input<'g>>,
    /// The variance as it is used, which may be in another shape.
    pub(super) variance: Input<'g>,
    pub(super) epsilon: f32,
}

impl<'g> Inverse<'g> {
    pub(super) fn of(view: View<'g, '_>, inverse: Input<'g>) -> Option<Self> {
        let is_root = |input| view.node(input, &["Rsqrt"]).is_some();
        let (root, scale) = match view.operands(inverse, &["Mul"]) {
            Some(factors) => {
                let [root, scale] = orders(factors).into_iter().find(|&[root, _]| is_root(root))?;
                (root, Some(scale))
            }
            None => (inverse, None),
        };
        let [sum] = view.operands(root, &["Rsqrt"])?;
        let terms = view.operands(sum, &["AddV2", "Add"])?;
        let (variance, epsilon) = orders(terms)
            .into_iter()
            .find_map(|[variance, epsilon]| Some((variance, view.number(epsilon)?)))?;
        Some(Self { root: view.plain(root), scale, variance, epsilon })
    }
}

/// The factors of a product.
struct Product<'g> {
    constant: f32,
    divisors: Vec<Input<'g>>,
    others: Vec<Input<'g>>,
}

impl<'g> Product<'g> {
    fn take(&mut self, view: View<'g, '_>, input: Input<'g>, depth: usize) {
        if let Some(number) = view.number(input) {
            self.constant *= number;
        } else if depth > 0
            && let Some(factors) = view.operands::<2>(input, &["Mul"])
        {
            factors.into_iter().for_each(|factor| self.take(view, factor, depth - 1));
        } else if depth > 0
            && let Some([a, b]) = view.operands(input, &["RealDiv"])
        {
            self.take(view, a, depth - 1);
            match view.number(b) {
                Some(number) => self.constant /= number,
                None => self.divisors.push(b),
            }
        } else {
            self.others.push(view.plain(input));
        }
    }
}
