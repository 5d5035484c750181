//! Batch normalization in training, which Keras and `tf.nn.moments` write as a dozen ops, and its gradient as two dozen: each of
//! them reads or writes all elements, and those here do it once or twice.
//!
//! Mean and variance become `RustGpuMoments`; the normalization by them stays a tree of elementwise ops, with what comes after it.
//! The sums and all terms of the gradient become `RustGpuBatchNormGrad`. If float32 is only in between, in mixed precision, the
//! gradient reads and writes the shorter type.

mod mean;

use super::pattern::{
    View, change, has_type, operands, orders, placed, redirect, remove_unused, shorter,
};
use crate::kernels::moments::{GRADIENT, MOMENTS};
use mean::Mean;
use se_plugin::graph::{Graph, Input, Node};
use se_plugin::kernel::DType;
use se_plugin::{Error, Result};

/// Replaces what it finds on devices of this type.
pub(super) fn replace(graph: &mut Graph<'_>, device_type: &str) -> Result<()> {
    let mut unused = Vec::new();
    // The gradient is found by the ops of the moments.
    for root in placed(graph, device_type, "AddN") {
        if let Some(found) = Gradient::find(View(graph), &root) {
            found.apply(graph, &root, &mut unused)?;
        }
    }
    for variance in placed(graph, device_type, "Mean") {
        if let Some(found) = Moments::find(View(graph), &variance)
            && !graph.is_preserved(&variance)?
        {
            found.apply(graph, &variance, &mut unused)?;
        }
    }
    if unused.is_empty() { Ok(()) } else { remove_unused(graph, unused) }
}

#[cold]
fn missing() -> Error {
    Error::internal("the graph has lost a node that was in it")
}

/// Returns the attribute of an op of this crate.
fn axes(node: &Node<'_>) -> Option<usize> {
    usize::try_from(node.attr::<i64>("axes").ok()?).ok()
}

fn first(node: &str) -> Input<'_> {
    Input::Data { node, output: 0 }
}

/// A mean and a variance to replace.
struct Moments {
    mean: String,
    squares: String,
    /// `x`, or what is converted to it.
    x: String,
    dtype: DType,
    axes: usize,
}

impl Moments {
    fn find(view: View<'_, '_>, variance: &str) -> Option<Self> {
        let found = Mean::of_variance(view, first(variance))?;
        let [mean, variance] = [found.mean, variance].map(|name| view.0.node(name));
        let (mean, variance) = (mean?, variance?);
        let is_one = mean.device() == variance.device()
            && [mean, variance].iter().all(|node| has_type(node, "T", DType::Float32));
        let waits = variance.inputs().any(|input| matches!(input, Input::Control { .. }));
        if !is_one || waits {
            return None;
        }
        let (x, dtype) = shorter(view, found.x).unwrap_or((found.x, DType::Float32));
        Some(Self {
            mean: found.mean.to_owned(),
            squares: found.squares.to_owned(),
            x: x.to_string(),
            dtype,
            axes: found.axes,
        })
    }

    fn apply(self, graph: &mut Graph<'_>, variance: &str, unused: &mut Vec<String>) -> Result<()> {
        let mean = graph.node_mut(&self.mean).ok_or_else(missing)?;
        let x = operands(mean).next().ok_or_else(missing)?.to_string();
        change(mean, MOMENTS, [self.x])
            .set_attr("T", self.dtype)
            .set_attr("axes", self.axes as i64);
        // The squares have the shape of `x`.
        let squares = first(&self.squares);
        for node in graph.nodes_mut().filter(|node| node.op() == "Shape") {
            if node.inputs().next() == Some(squares) {
                let waits = node.inputs().skip(1).map(|input| input.to_string());
                let inputs: Vec<_> = core::iter::once(x.clone()).chain(waits).collect();
                node.set_inputs(inputs);
            }
        }
        redirect(graph, first(variance), Input::Data { node: &self.mean, output: 1 });
        unused.extend([variance.to_owned(), Input::parse(&x).node().to_owned()]);
        Ok(())
    }
}

/// The gradient of a normalization to replace, with the inputs of its op.
struct Gradient {
    inputs: Vec<String>,
    dtype: DType,
    axes: usize,
    epsilon: f32,
    has_scale: bool,
    keep_dims: bool,
    /// The nodes of the sum of `dy`, which is the gradient of the offset, and of that of the scale, which the op replaces.
    offset: Option<String>,
    scale: Vec<String>,
    /// What is added to the gradient of `x`, from other uses of `x`.
    others: Vec<String>,
    /// The conversion to the shorter type.
    conversion: Option<String>,
}

/// The parts of a gradient that others are compared with.
struct Parts<'g> {
    mean: Mean<'g>,
    dy: Input<'g>,
    /// The scale times the reciprocal root; the latter; and the scale.
    inverse: Input<'g>,
    root: Input<'g>,
    scale: Option<Input<'g>>,
}

impl<'g> Parts<'g> {
    /// Returns the parts, the variance in the shape that it is used in, and epsilon, from the product of `dy`.
    fn find(view: View<'g, '_>, [dy, inverse]: [Input<'g>; 2]) -> Option<(Self, Input<'g>, f32)> {
        let inverse = view.vector(inverse);
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
        let mean = Mean::of_variance(view, view.vector(variance))?;
        let (dy, root) = (view.plain(dy), view.plain(root));
        Some((Self { mean, dy, inverse, root, scale }, variance, epsilon))
    }

    /// Returns whether an input is the sum of the products of `dy` and `x`.
    fn is_sum_of_products(&self, view: View<'g, '_>, input: Input<'g>) -> bool {
        let find = || {
            let [products, axes] = view.operands(view.vector(input), &["Sum"])?;
            let factors = view.operands(products, &["Mul"])?.map(|factor| view.plain(factor));
            let is_right = orders(factors).contains(&[self.dy, self.mean.x]);
            Some(is_right && view.first_axes(axes)? == self.mean.axes)
        };
        find().unwrap_or(false)
    }

    /// Returns the node of the sum of `dy`. It may be that of a gradient which was found before: of two normalizations whose
    /// results are added.
    fn sum<'a>(&self, view: View<'g, 'a>, input: Input<'g>) -> Option<&'g Node<'a>> {
        let input = view.vector(input);
        if let Input::Data { node, output: 2 } = input {
            let other = view.0.node(node).filter(|node| node.op() == GRADIENT)?;
            let dy = view.plain(operands(other).nth(1)?);
            let is_same =
                dy == self.dy || shorter(view, self.dy).is_some_and(|(from, _)| from == dy);
            return Some(other).filter(|_| is_same && axes(other) == Some(self.mean.axes));
        }
        let [of, axes] = view.operands(input, &["Sum"])?;
        let is_right = view.plain(of) == self.dy && view.first_axes(axes)? == self.mean.axes;
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
        let slope = match self.scale {
            None => of_root,
            Some(scale) => {
                let factors = view.operands(of_root, &["Mul"])?;
                let is_scale = |input| view.vector(input) == view.vector(scale);
                orders(factors).into_iter().find(|&[_, factor]| is_scale(factor))?[0]
            }
        };
        (view.plain(root) == self.root && self.is_slope(view, slope)).then(|| view.vector(slope))
    }

    /// Returns whether an input is what `x` differs from its mean.
    fn is_difference(&self, view: View<'g, '_>, input: Input<'g>) -> bool {
        let difference =
            view.operands(input, &["Sub"]).map(|[x, mean]| [view.plain(x), view.plain(mean)]);
        difference == Some([self.mean.x, first(self.mean.mean)])
    }
}

impl Gradient {
    fn find(view: View<'_, '_>, root: &str) -> Option<Self> {
        let root = view.0.node(root).filter(|root| has_type(root, "T", DType::Float32))?;
        let terms: Vec<_> = operands(root).collect();
        if terms.len() < 3 {
            return None;
        }
        terms.iter().find_map(|&term| {
            let factors = view.operands(term, &["Mul"])?;
            orders(factors).into_iter().find_map(|factors| {
                let (parts, variance, epsilon) = Parts::find(view, factors)?;
                Self::of(view, root, &terms, term, &parts, (variance, epsilon))
            })
        })
    }

    /// Finds the other two terms.
    fn of<'g>(
        view: View<'g, '_>,
        root: &'g Node<'_>,
        terms: &[Input<'g>],
        product: Input<'g>,
        parts: &Parts<'g>,
        (variance, epsilon): (Input<'g>, f32),
    ) -> Option<Self> {
        let mean = &parts.mean;
        let (of_mean, sum) =
            terms.iter().find_map(|&term| match mean.given(view, term, 1.0)? {
                (given, None) => Some((term, parts.negative_sum(view, given, parts.inverse)?)),
                _ => None,
            })?;
        let (of_variance, slope) =
            terms.iter().find_map(|&term| match mean.given(view, term, 2.0)? {
                (given, Some(other)) if parts.is_difference(view, other) => {
                    Some((term, parts.slope(view, given)?))
                }
                _ => None,
            })?;
        let scale = view.0.nodes().filter(|node| {
            let factors = operands(node).map(|input| view.plain(input)).collect::<Vec<_>>();
            let is_both = |factors: [Input<'_>; 2]| orders(factors).contains(&[slope, parts.root]);
            node.op() == "Mul" && <[_; 2]>::try_from(factors).is_ok_and(is_both)
        });
        let scale: Vec<_> = scale.map(|node| node.name().to_owned()).collect();
        let others = terms.iter().filter(|term| ![product, of_mean, of_variance].contains(term));
        let others: Vec<_> = others.map(ToString::to_string).collect();
        let inputs = [parts.mean.x, parts.dy, first(mean.mean), variance];
        let needed: Vec<_> = inputs.iter().copied().chain(parts.scale).collect();
        let offset = Some(sum.name().to_owned()).filter(|_| sum.op() != GRADIENT);
        // What uses the sums must not be needed for them.
        let mut sums = offset.iter().chain(&scale);
        if others.len() + 3 != terms.len()
            || sums.any(|sum| view.reaches(sum, &needed))
            || [parts.root, slope].iter().any(|input| !is_on(view, *input, root))
        {
            return None;
        }
        let conversion =
            if others.is_empty() { Conversion::find(view, root, inputs) } else { None };
        let (first_two, dtype, conversion) = match conversion {
            Some(found) => (found.inputs, found.dtype, Some(found.node.to_owned())),
            None => ([parts.mean.x, parts.dy], DType::Float32, None),
        };
        Some(Self {
            inputs: first_two.iter().chain(&needed[2..]).map(ToString::to_string).collect(),
            dtype,
            axes: mean.axes,
            epsilon,
            has_scale: parts.scale.is_some(),
            keep_dims: sum.attr("keep_dims").ok()?,
            offset,
            scale,
            others,
            conversion,
        })
    }

    fn apply<'a>(self, graph: &mut Graph<'a>, root: &str, unused: &mut Vec<String>) -> Result<()> {
        let terms = graph.node(root).map(|root| operands(root).map(|term| term.node().to_owned()));
        unused.extend(terms.ok_or_else(missing)?);
        let name = match self.others[..] {
            [] => root.to_owned(),
            // Another node adds the rest.
            [..] => {
                let name = graph.free_name(&format!("{root}/batch_norm"));
                let sum = graph.node_mut(root).ok_or_else(missing)?;
                let mut node = Node::new(name.clone(), GRADIENT);
                node.set_device(sum.device().to_owned());
                let terms = self.others.len() as i64 + 1;
                let inputs = core::iter::once(name.clone()).chain(self.others);
                change(sum, "AddN", inputs).set_attr("T", DType::Float32).set_attr("N", terms);
                graph.add_node(node)?;
                name
            }
        };
        let node = graph.node_mut(&name).ok_or_else(missing)?;
        change(node, GRADIENT, self.inputs)
            .set_attr("T", self.dtype)
            .set_attr("axes", self.axes as i64)
            .set_attr("epsilon", self.epsilon)
            .set_attr("keep_dims", self.keep_dims)
            .set_attr("N", i64::from(self.has_scale));
        for (output, replaced) in [(1, &self.scale[..]), (2, self.offset.as_slice())] {
            for node in replaced {
                redirect(graph, first(node), Input::Data { node: &name, output });
            }
        }
        if let Some(conversion) = self.conversion {
            let node = graph.node_mut(&conversion).ok_or_else(missing)?;
            change(node, "Identity", [name]).set_attr("T", self.dtype);
        }
        unused.extend(self.scale.into_iter().chain(self.offset));
        Ok(())
    }
}

/// Returns whether the node of an input is on the device of another one.
fn is_on(view: View<'_, '_>, input: Input<'_>, other: &Node<'_>) -> bool {
    view.0.node(input.node()).is_some_and(|node| node.device() == other.device())
}

/// `x` and `dy` before they were converted to float32, and the conversion of the gradient to their type.
struct Conversion<'g> {
    inputs: [Input<'g>; 2],
    dtype: DType,
    node: &'g str,
}

impl<'g> Conversion<'g> {
    fn find(view: View<'g, '_>, root: &Node<'_>, [x, dy, ..]: [Input<'g>; 4]) -> Option<Self> {
        let ((x, dtype), (dy, of_dy)) = (shorter(view, x)?, shorter(view, dy)?);
        let mut users =
            view.0.nodes().filter(|node| node.inputs().any(|input| input.node() == root.name()));
        let (node, None) = (users.next()?, users.next()) else { return None };
        let is_back = node.op() == "Cast"
            && node.device() == root.device()
            && has_type(node, "DstT", dtype)
            && of_dy == dtype
            && !view.0.is_preserved(root.name()).unwrap_or(true);
        is_back.then_some(Self { inputs: [x, dy], dtype, node: node.name() })
    }
}

#[cfg(test)]
mod tests;
