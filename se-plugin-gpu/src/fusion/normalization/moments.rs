//! Mean and variance, and moving averages of them.

use super::mean::{Axes, Mean};
use super::{first, missing};
use crate::fusion::pattern::{
    View, awaited, change, has_type, operands, orders, redirect, replace_input, shorter,
};
use crate::kernels::moments::MOMENTS;
use se_plugin::Result;
use se_plugin::graph::{Graph, Input, Node};
use se_plugin::kernel::DType;

/// A mean and a variance to replace.
pub(super) struct Moments {
    mean: String,
    squares: String,
    /// `x`, or what is converted to it.
    x: String,
    dtype: DType,
    axes: i64,
    averages: Option<[Average; 2]>,
}

impl Moments {
    pub(super) fn find(view: View<'_, '_>, variance: &str) -> Option<Self> {
        let found = Mean::of_variance(view, first(variance))?;
        let [mean, variance] = [found.mean, variance].map(|name| view.graph.node(name));
        let (mean, variance) = (mean?, variance?);
        let is_one = mean.device() == variance.device()
            && [mean, variance].iter().all(|node| has_type(node, "T", DType::Float32));
        let squares = view.graph.node(found.squares)?;
        let waits = [variance, squares].iter().any(|node| awaited(node).next().is_some());
        if !is_one || waits {
            return None;
        }
        let statistics = [found.mean, variance.name()].map(first);
        let averages = match found.axes {
            Axes::First(_) => Average::of_both(view, statistics, mean),
            Axes::Last(_) | Axes::Groups(_) => None,
        };
        let (x, dtype) = shorter(view, found.x).unwrap_or((found.x, DType::Float32));
        Some(Self {
            mean: found.mean.to_owned(),
            squares: found.squares.to_owned(),
            x: x.to_string(),
            dtype,
            axes: found.axes.attribute(),
            averages,
        })
    }

    pub(super) fn apply(
        self,
        graph: &mut Graph<'_>,
        variance: &str,
        unused: &mut Vec<String>,
    ) -> Result<()> {
        let mean = graph.node_mut(&self.mean).ok_or_else(missing)?;
        let x = operands(mean).next().ok_or_else(missing)?.to_string();
        let averages = self.averages.as_ref().map_or(&[][..], |averages| &averages[..]);
        let [rest, factor] = averages.first().map_or([0.0; 2], |average| average.factors);
        let inputs = averages.iter().map(|average| average.old.clone());
        change(mean, MOMENTS, core::iter::once(self.x).chain(inputs))
            .set_attr("T", self.dtype)
            .set_attr("axes", self.axes)
            .set_attr("N", averages.len() as i64)
            .set_attr("B", 0_i64)
            .set_attr("rest", rest)
            .set_attr("factor", factor);
        for (number, average) in averages.iter().enumerate() {
            let new = Input::Data { node: &self.mean, output: 2 + number };
            redirect(graph, first(&average.node), new);
            unused.push(average.node.clone());
        }
        // The squares have the shape of `x`.
        let squares = first(&self.squares);
        for node in graph.nodes_mut().filter(|node| node.op() == "Shape") {
            replace_input(node, squares, Input::parse(&x));
        }
        redirect(graph, first(variance), Input::Data { node: &self.mean, output: 1 });
        unused.extend([variance.to_owned(), Input::parse(&x).node().to_owned()]);
        Ok(())
    }
}

/// A moving average of a mean or a variance, which is assigned to the variable that the old one was read from: the old one times
/// a factor, and the statistic times another one.
struct Average {
    node: String,
    old: String,
    factors: [f32; 2],
}

impl Average {
    /// Returns the averages of mean and variance, if there is one of each, with the same factors.
    fn of_both<'g>(
        view: View<'g, '_>,
        statistics: [Input<'g>; 2],
        mean: &Node<'_>,
    ) -> Option<[Self; 2]> {
        let [of_mean, of_variance] = statistics.map(|statistic| Self::of(view, statistic, mean));
        let both = [of_mean?, of_variance?];
        (both[0].factors == both[1].factors).then_some(both)
    }

    fn of<'g>(view: View<'g, '_>, statistic: Input<'g>, mean: &Node<'_>) -> Option<Self> {
        let sums = view.graph.nodes().filter(|node| {
            node.op() == "AddV2" && node.device() == mean.device() && node.inputs().len() == 2
        });
        let mut found = sums.filter_map(|node| {
            let terms = view.operands(first(node.name()), &["AddV2"])?;
            orders(terms).into_iter().find_map(|[old, new]| {
                let scaled = |input| {
                    let product = view.node(input, &["Mul"])?;
                    let factors = operands(product).collect::<Vec<_>>().try_into().ok()?;
                    let mut orders = orders::<Input<'_>>(factors).into_iter();
                    let found = orders.find_map(|[of, by]| Some((of, view.number(by)?)));
                    found.filter(|_| awaited(product).next().is_none())
                };
                let ((old, rest), (new, factor)) = (scaled(old)?, scaled(new)?);
                // What the average is computed from is needed before the mean.
                let is_average = view.vector(new) == statistic
                    && Self::is_assigned(view, node.name(), old)
                    && !view.reaches(mean.name(), &[old]);
                let factors = [rest, factor];
                is_average.then(|| Self {
                    node: node.name().to_owned(),
                    old: old.to_string(),
                    factors,
                })
            })
        });
        let (one, None) = (found.next()?, found.next()) else { return None };
        Some(one)
    }

    /// Returns whether a node is only assigned to the variable that `old` is the value of, so both have the same shape.
    fn is_assigned(view: View<'_, '_>, node: &str, old: Input<'_>) -> bool {
        let handle = |node: &Node<'_>| node.inputs().next().map(|handle| handle.to_string());
        let read = view.graph.node(old.node()).filter(|read| read.op() == "ReadVariableOp");
        let mut users =
            view.graph.nodes().filter(|user| user.inputs().any(|input| input.node() == node));
        let (Some(read), Some(user), None) = (read, users.next(), users.next()) else {
            return false;
        };
        user.op() == "AssignVariableOp"
            && operands(user).nth(1) == Some(first(node))
            && handle(user) == handle(read)
    }
}
