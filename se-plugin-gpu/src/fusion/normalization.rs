//! Batch normalization in training, layer and group normalization. Keras and `tf.nn.moments` write them as a dozen ops, and their gradients as
//! two dozen: each of them reads or writes all elements, and those here do it once or twice.
//!
//! Mean and variance become `RustGpuMoments`; the normalization by them stays a tree of elementwise ops, with what comes after it.
//! The sums and all terms of the gradient become `RustGpuBatchNormGrad`, `RustGpuLayerNormGrad` or `RustGpuGroupNormGrad`. If float32
//! is only in between, in mixed precision, the gradient reads and writes the shorter type.

mod batch;
mod bias;
mod group;
mod layer;
mod mean;
mod moments;

use super::matcher::REFERENCES;
use super::pattern::{
    View, awaited, change, first, has_blocking_ops, has_type, missing, operands, placed, redirect,
    remove_unused, shorter,
};
use crate::kernels::moments::{BATCH_GRADIENT, GROUP_GRADIENT, LAYER_GRADIENT};
use moments::Moments;
use se_plugin::Result;
use se_plugin::graph::{Graph, Input, Node};
use se_plugin::kernel::DType;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Replaces what it finds on devices of this type.
pub(super) fn replace(graph: &mut Graph<'_>, device_type: &str) -> Result<()> {
    let mut unused = Vec::new();
    // Two reads of memory that changes are not the same `x`; and what is one op waits for all of its inputs.
    if graph.nodes().any(|node| REFERENCES.contains(&node.op())) || has_blocking_ops(graph) {
        return Ok(());
    }
    // The gradient is found by the ops of the moments.
    for root in placed(graph, device_type, "AddN") {
        let seen = RefCell::default();
        if let Some(found) = Gradient::find(View::new(graph, &seen), &root) {
            found.apply(graph, &root, &mut unused)?;
        }
    }
    for variance in placed(graph, device_type, "Mean") {
        let seen = RefCell::default();
        if let Some(found) = Moments::find(View::new(graph, &seen), &variance) {
            found.apply(graph, &variance, &mut unused)?;
        }
    }
    if unused.is_empty() {
        return Ok(());
    }
    remove_unused(graph, unused)?;
    bias::leave_out(graph, device_type)
}

/// Returns the attribute of an op of this crate.
fn axes(node: &Node<'_>) -> Option<i64> {
    node.attr("axes").ok()
}

/// What is found of the gradient of a normalization, whose parts are in the graph.
struct Found<'g> {
    op: &'static str,
    x: Input<'g>,
    dy: Input<'g>,
    mean: Input<'g>,
    variance: Input<'g>,
    scale: Option<Input<'g>>,
    axes: i64,
    epsilon: f32,
    keep_dims: Vec<bool>,
    /// The nodes of the gradients of scale and offset, which the op replaces.
    sums: [Vec<&'g str>; 2],
    /// The terms of the gradient of `x`.
    terms: [Input<'g>; 3],
    /// Other nodes that are on the same device.
    needs: [Input<'g>; 2],
}

/// The gradient of a normalization to replace, with the inputs of its op.
struct Gradient {
    op: &'static str,
    inputs: Vec<String>,
    dtype: DType,
    axes: i64,
    epsilon: f32,
    has_scale: bool,
    keep_dims: Vec<bool>,
    /// The nodes of the gradients of scale and offset.
    sums: [Vec<String>; 2],
    /// What is added to the gradient of `x`, from other uses of `x`.
    others: Vec<String>,
    /// The conversion to the shorter type.
    conversion: Option<String>,
    /// What replaced nodes wait for.
    waits: BTreeSet<String>,
    /// What the root has to wait for.
    own: BTreeSet<String>,
}

impl Gradient {
    fn find(view: View<'_, '_>, root: &str) -> Option<Self> {
        let root = view.node(first(root), &["AddN"])?;
        if !has_type(root, "T", DType::Float32) || operands(root).count() < 3 {
            return None;
        }
        view.attempt(|| batch::find(view, root))
            .or_else(|| view.attempt(|| layer::find(view, root)))
            .or_else(|| group::find(view, root))
    }

    /// Returns what to replace, unless something else needs it.
    fn of<'g>(view: View<'g, '_>, root: &Node<'_>, found: Found<'g>) -> Option<Self> {
        let Found { x, dy, mean, variance, scale, .. } = found;
        let others = operands(root).filter(|term| !found.terms.contains(term));
        let others: Vec<_> = others.map(|term| term.to_string()).collect();
        let needed: Vec<_> = [x, dy, mean, variance].into_iter().chain(scale).collect();
        // What uses the sums must not be needed for them, nor wait for something else.
        let sums: Vec<_> = found.sums.iter().flatten().copied().collect();
        let is_free = |sum: &&str| {
            view.graph.node(sum).is_some_and(|sum| awaited(sum).next().is_none())
                && !view.reaches(sum, &needed)
        };
        if others.len() + 3 != operands(root).count()
            || !sums.iter().all(is_free)
            || found.needs.iter().any(|input| !is_on(view, *input, root))
        {
            return None;
        }
        let waits = Self::waits(view, root, &sums, &needed)?;
        let own = awaited(root).flat_map(|name| view.instead(name, &needed));
        let own = own.map(|name| format!("^{name}")).collect();
        let conversion =
            if others.is_empty() { Conversion::find(view, root, [x, dy]) } else { None };
        let (first_two, dtype, conversion) = match conversion {
            Some(found) => (found.inputs, found.dtype, Some(found.node.to_owned())),
            None => ([x, dy], DType::Float32, None),
        };
        Some(Self {
            op: found.op,
            inputs: first_two.iter().chain(&needed[2..]).map(ToString::to_string).collect(),
            dtype,
            axes: found.axes,
            epsilon: found.epsilon,
            has_scale: scale.is_some(),
            keep_dims: found.keep_dims,
            sums: found.sums.map(|sums| sums.into_iter().map(str::to_owned).collect()),
            others,
            conversion,
            waits,
            own,
        })
    }

    /// Returns the nodes that the op has to wait for, because nodes that it replaces do. Returns `None` if that is a cycle.
    fn waits(
        view: View<'_, '_>,
        root: &Node<'_>,
        sums: &[&str],
        needed: &[Input<'_>],
    ) -> Option<BTreeSet<String>> {
        let mut waits = BTreeSet::new();
        for name in view.awaited() {
            let awaited = [Input::Control { node: name }];
            if name == root.name() || view.reaches(root.name(), &awaited) {
                return None;
            }
            if view.is_implied(name, needed) {
                continue;
            }
            // The sums would wait for what needs them.
            if sums.iter().any(|sum| view.reaches(sum, &awaited)) {
                return None;
            }
            waits.extend(view.instead(name, needed).into_iter().map(|name| format!("^{name}")));
        }
        Some(waits)
    }

    fn apply<'a>(self, graph: &mut Graph<'a>, root: &str, unused: &mut Vec<String>) -> Result<()> {
        let terms = graph.node(root).map(|root| operands(root).map(|term| term.node().to_owned()));
        unused.extend(terms.ok_or_else(missing)?);
        let node = graph.node_mut(root).ok_or_else(missing)?;
        unused.extend(awaited(node).map(str::to_owned));
        let inputs: Vec<_> =
            operands(node).map(|input| input.to_string()).chain(self.own).collect();
        node.set_inputs(inputs);
        let name = match self.others[..] {
            [] => root.to_owned(),
            // Another node adds the rest.
            [..] => {
                let name = graph.free_name(&format!("{root}/normalization"));
                let sum = graph.node_mut(root).ok_or_else(missing)?;
                let mut node = Node::new(name.clone(), self.op);
                node.set_device(sum.device().to_owned());
                let terms = self.others.len() as i64 + 1;
                let inputs = core::iter::once(name.clone()).chain(self.others);
                change(sum, "AddN", inputs).set_attr("T", DType::Float32).set_attr("N", terms);
                graph.add_node(node)?;
                name
            }
        };
        let node = graph.node_mut(&name).ok_or_else(missing)?;
        // Those of the root are there already.
        let own: Vec<_> = awaited(node).map(|name| format!("^{name}")).collect();
        let waits = self.waits.into_iter().filter(|wait| !own.contains(wait));
        change(node, self.op, self.inputs.into_iter().chain(waits))
            .set_attr("T", self.dtype)
            .set_attr("axes", self.axes)
            .set_attr("epsilon", self.epsilon)
            .set_attr("keep_dims", self.keep_dims)
            .set_attr("N", i64::from(self.has_scale));
        if self.op == BATCH_GRADIENT {
            node.set_attr("B", 0_i64);
        }
        for (output, sums) in self.sums.iter().enumerate() {
            for sum in sums {
                redirect(graph, first(sum), Input::Data { node: &name, output: output + 1 });
            }
        }
        if let Some(conversion) = self.conversion {
            let node = graph.node_mut(&conversion).ok_or_else(missing)?;
            change(node, "Identity", [name]).set_attr("T", self.dtype);
        }
        unused.extend(self.sums.into_iter().flatten());
        Ok(())
    }
}

/// Returns whether the node of an input is on the device of another one.
fn is_on(view: View<'_, '_>, input: Input<'_>, other: &Node<'_>) -> bool {
    view.graph.node(input.node()).is_some_and(|node| node.device() == other.device())
}

/// `x` and `dy` before they were converted to float32, and the conversion of the gradient to their type.
struct Conversion<'g> {
    inputs: [Input<'g>; 2],
    dtype: DType,
    node: &'g str,
}

impl<'g> Conversion<'g> {
    fn find(view: View<'g, '_>, root: &Node<'_>, [x, dy]: [Input<'g>; 2]) -> Option<Self> {
        let ((x, dtype), (dy, of_dy)) = (shorter(view, x)?, shorter(view, dy)?);
        let mut users = view
            .graph
            .nodes()
            .filter(|node| node.inputs().any(|input| input.node() == root.name()));
        let (node, None) = (users.next()?, users.next()) else { return None };
        let is_back = node.op() == "Cast"
            && node.device() == root.device()
            && has_type(node, "DstT", dtype)
            && of_dy == dtype
            && !view.graph.is_preserved(root.name()).unwrap_or(true);
        is_back.then_some(Self { inputs: [x, dy], dtype, node: node.name() })
    }
}

#[cfg(test)]
mod tests;
