//! A bias before batch normalization, as of a convolution in Keras: the mean has it, too, so the normalized values do not, and its gradient
//! is 0. Moments and gradient then read what the bias is added to. The normalization does so, too, if nothing else needs the mean of the
//! sum; otherwise the sum becomes part of the elementwise ops that come next.

use super::{BATCH_GRADIENT, first, missing};
use crate::fusion::ops::Computation;
use crate::fusion::pattern::{
    View, awaited, operands, orders, placed, remove_unused, replace_input, users,
};
use crate::kernels::moments::MOMENTS;
use se_plugin::Result;
use se_plugin::graph::{Graph, Input, Node};
use std::cell::RefCell;

/// A bias that moments and gradients can do without.
struct Bias {
    /// The sum, and its operands.
    sum: String,
    of: [String; 2],
    moments: String,
    /// The output of the moments that is the mean of the sum.
    mean_of_sum: usize,
    /// The users of the mean that need that of the sum.
    of_mean: Vec<String>,
    /// The gradients of the normalization, and for each those of the bias.
    gradients: Vec<(String, Vec<String>)>,
    /// Other nodes that do without the sum.
    others: Vec<String>,
}

/// Leaves out all such sums on devices of this type.
pub(super) fn leave_out(graph: &mut Graph<'_>, device_type: &str) -> Result<()> {
    let mut unused = Vec::new();
    for moments in placed(graph, device_type, MOMENTS) {
        let seen = RefCell::default();
        if let Some(found) = Bias::find(View::new(graph, &seen), &moments) {
            found.apply(graph, &mut unused)?;
        }
    }
    if unused.is_empty() { Ok(()) } else { remove_unused(graph, unused) }
}

impl Bias {
    fn find(view: View<'_, '_>, name: &str) -> Option<Self> {
        let graph = view.graph;
        let moments = graph.node(name)?;
        let sum = view.node(operands(moments).next()?, &["BiasAdd"])?;
        let [x, bias] = operands(sum).collect::<Vec<_>>().try_into().ok()?;
        // All elements with one mean have one bias.
        if moments.attr::<i64>("axes").ok()? != axes_before_channels(view, x)?
            || moments.attr::<i64>("B").ok()? != 0
            || !is_last(sum)
            || sum.device() != moments.device()
            || awaited(sum).next().is_some()
            || graph.is_preserved(name).ok()?
        {
            return None;
        }
        let averages = usize::try_from(moments.attr::<i64>("N").ok()?).ok()?;
        let (mut gradients, mut others, mut fused) = (Vec::new(), Vec::new(), None);
        for user in users(graph, sum.name()) {
            let is_once =
                user.inputs().filter(|input| input.node() == sum.name()).eq([first(sum.name())]);
            let is_gradient = user.op() == BATCH_GRADIENT
                && operands(user).next() == Some(first(sum.name()))
                && operands(user).nth(2) == Some(first(name));
            match user.op() {
                _ if user.name() == name => {}
                _ if !is_once => return None,
                "Shape" => others.push(user.name().to_owned()),
                BATCH_GRADIENT if is_gradient => {
                    gradients.push((user.name().to_owned(), Self::gradients(view, user)));
                }
                _ if user.device() == sum.device()
                    && Computation::of(user).is_some()
                    && fused.is_none() =>
                {
                    fused = Some(user);
                }
                _ => return None,
            }
        }
        if gradients.is_empty() {
            return None;
        }
        let mut of_mean: Vec<_> = users(graph, name)
            .filter(|user| !gradients.iter().any(|(gradient, _)| gradient == user.name()))
            .filter(|user| operands(user).any(|input| input == first(name)))
            .map(Node::name)
            .collect();
        if let Some(fused) = fused
            && let Some(mean) = Self::mean_of(view, fused, moments)
            && only_user(view, moments, Some(0)).is_some_and(|user| mean.contains(&user))
        {
            others.push(fused.name().to_owned());
            of_mean.clear();
        }
        Some(Self {
            sum: sum.name().to_owned(),
            of: [x, bias].map(|input| input.to_string()),
            moments: name.to_owned(),
            mean_of_sum: 2 + averages,
            of_mean: of_mean.into_iter().map(str::to_owned).collect(),
            gradients,
            others,
        })
    }

    /// Returns the nodes of the gradient of a bias, from that of the sum.
    fn gradients(view: View<'_, '_>, of_sum: &Node<'_>) -> Vec<String> {
        let is_of_bias = |node: &&Node<'_>| {
            node.op() == "BiasAddGrad"
                && is_last(node)
                && node.device() == of_sum.device()
                && operands(node).next().is_some_and(|of| view.plain(of) == first(of_sum.name()))
        };
        let found = view.search(|| view.graph.nodes().filter(is_of_bias).collect::<Vec<_>>());
        found.into_iter().map(|node| node.name().to_owned()).collect()
    }

    /// If the user of the sum is part of `x * slope + (offset - mean * slope)`, which may have more terms: returns the nodes
    /// from the product of the mean to the mean.
    fn mean_of<'g>(
        view: View<'g, '_>,
        user: &'g Node<'_>,
        moments: &Node<'_>,
    ) -> Option<Vec<&'g str>> {
        // In mixed precision the sum is converted first.
        let (from, scaled) = match user.op() {
            "Cast" => (first(user.name()), view.graph.node(only_user(view, user, None)?)?),
            _ => (operands(moments).next()?, user),
        };
        let factors: [_; 2] = operands(scaled).collect::<Vec<_>>().try_into().ok()?;
        let is_product = scaled.op() == "Mul";
        let [_, slope] = orders(factors).into_iter().find(|of| is_product && of[0] == from)?;
        let sums = sums_of(view, scaled)?;
        users(view.graph, slope.node()).find_map(|product| {
            let factors: [_; 2] = operands(product).collect::<Vec<_>>().try_into().ok()?;
            let by_slope = |[mean, by]: &[Input<'_>; 2]| {
                *by == slope && view.vector(*mean) == first(moments.name())
            };
            let [mut mean, _] =
                orders(factors).into_iter().find(|of| product.op() == "Mul" && by_slope(of))?;
            let shift = view.graph.node(only_user(view, product, None)?)?;
            let is_shift =
                shift.op() == "Sub" && operands(shift).nth(1) == Some(first(product.name()));
            let is_one_sum = is_shift && sums_of(view, shift)?.iter().any(|sum| sums.contains(sum));
            // Each node on the way has one user.
            let mut way = vec![product.name()];
            while is_one_sum && mean != first(moments.name()) {
                let node = view.graph.node(mean.node())?;
                only_user(view, node, None)?;
                way.push(node.name());
                mean = operands(node).next()?;
            }
            is_one_sum.then_some(way)
        })
    }

    fn apply(self, graph: &mut Graph<'_>, unused: &mut Vec<String>) -> Result<()> {
        let [x, bias] = &self.of;
        let moments = graph.node_mut(&self.moments).ok_or_else(missing)?;
        let mut inputs: Vec<_> = operands(moments).map(|input| input.to_string()).collect();
        x.clone_into(inputs.first_mut().ok_or_else(missing)?);
        inputs.push(bias.clone());
        inputs.extend(awaited(moments).map(|node| format!("^{node}")));
        moments.set_inputs(inputs).set_attr("B", 1_i64);
        let mean_of_sum = Input::Data { node: &self.moments, output: self.mean_of_sum };
        for user in &self.of_mean {
            let node = graph.node_mut(user).ok_or_else(missing)?;
            replace_input(node, first(&self.moments), mean_of_sum);
        }
        let gradients = self.gradients.iter().map(|(gradient, _)| gradient);
        for user in self.others.iter().chain(gradients) {
            let node = graph.node_mut(user).ok_or_else(missing)?;
            replace_input(node, first(&self.sum), Input::parse(x));
        }
        for (gradient, of_bias) in &self.gradients {
            let node = graph.node_mut(gradient).ok_or_else(missing)?;
            node.set_attr("B", i64::from(!of_bias.is_empty()));
            for of in of_bias {
                super::redirect(graph, first(of), Input::Data { node: gradient, output: 3 });
                unused.push(of.clone());
            }
        }
        unused.push(self.sum);
        Ok(())
    }
}

/// Returns the number of axes before the last one of a value, if its op tells that.
fn axes_before_channels<'g>(view: View<'g, '_>, value: Input<'g>) -> Option<i64> {
    match view.graph.node(view.plain(value).node())?.op() {
        "Conv2D" | "Conv2DBackpropInput" | "DepthwiseConv2dNative" => Some(3),
        "Conv3D" | "Conv3DBackpropInputV2" => Some(4),
        "MatMul" => Some(1),
        _ => None,
    }
}

/// Returns whether a bias is along the last axis.
fn is_last(node: &Node<'_>) -> bool {
    node.attr::<String>("data_format").is_ok_and(|format| format == "NHWC")
}

/// Returns the only node that uses a value of a node, or this output of it, if the value is not fetched.
fn only_user<'g>(view: View<'g, '_>, node: &Node<'_>, output: Option<usize>) -> Option<&'g str> {
    let is_used = |input: Input<'_>| match (input, output) {
        (Input::Data { node: of, output: found }, Some(output)) => {
            of == node.name() && found == output
        }
        (input, _) => input.node() == node.name(),
    };
    let mut users = view.graph.nodes().filter(|user| {
        user.inputs().any(is_used) && !(output.is_some() && user.op() == BATCH_GRADIENT)
    });
    let (user, None) = (users.next()?, users.next()) else { return None };
    (!view.graph.is_preserved(node.name()).unwrap_or(true)).then(|| user.name())
}

/// Returns the sums that a value is a term of, if nothing else uses it, nor any of them but the last.
fn sums_of<'g>(view: View<'g, '_>, term: &Node<'_>) -> Option<Vec<&'g str>> {
    let mut sums = Vec::new();
    let mut next = only_user(view, term, None);
    while let Some(node) = next.and_then(|name| view.graph.node(name))
        && ["Add", "AddN", "AddV2"].contains(&node.op())
    {
        sums.push(node.name());
        next = only_user(view, node, None);
    }
    (!sums.is_empty()).then_some(sums)
}
