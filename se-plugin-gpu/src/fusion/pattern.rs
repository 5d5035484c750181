//! How patterns look at the nodes of a graph, and remove those that they replace.

use se_plugin::Result;
use se_plugin::graph::{Constant, Graph, Input, Node};
use std::collections::{BTreeSet, HashMap};

/// Ops that a pass may remove if nothing uses their results: they have no effects.
const PURE: [&str; 23] = [
    "Add",
    "AddN",
    "AddV2",
    "BroadcastTo",
    "Cast",
    "Const",
    "GatherV2",
    "Identity",
    "Mean",
    "Mul",
    "Neg",
    "Prod",
    "RealDiv",
    "Reshape",
    "Rsqrt",
    "RsqrtGrad",
    "Shape",
    "SquaredDifference",
    "Squeeze",
    "StopGradient",
    "Sub",
    "Sum",
    "Tile",
];

/// A graph, as patterns look at it: each node is reached from one that uses it.
#[derive(Clone, Copy)]
pub(super) struct View<'g, 'a>(pub(super) &'g Graph<'a>);

impl<'g, 'a> View<'g, 'a> {
    /// Returns the node whose first output an input is, if it is one of these ops.
    pub(super) fn node(self, input: Input<'g>, ops: &[&str]) -> Option<&'g Node<'a>> {
        let Input::Data { node, output: 0 } = self.plain(input) else { return None };
        self.0.node(node).filter(|node| ops.contains(&node.op()))
    }

    /// Returns the operands of the node whose first output an input is, if it is one of these ops and has so many.
    pub(super) fn operands<const N: usize>(
        self,
        input: Input<'g>,
        ops: &[&str],
    ) -> Option<[Input<'g>; N]> {
        operands(self.node(input, ops)?).collect::<Vec<_>>().try_into().ok()
    }

    /// Returns the input that an input is equal to: the first one of `Identity` and the like.
    pub(super) fn plain(self, mut input: Input<'g>) -> Input<'g> {
        while let Input::Data { node, output: 0 } = input
            && let Some(node) = self.0.node(node)
            && matches!(node.op(), "Identity" | "StopGradient")
            && let Some(from) = operands(node).next()
        {
            input = from;
        }
        input
    }

    /// Returns the input that has the same elements: before it became a vector along the last axis.
    pub(super) fn vector(self, mut input: Input<'g>) -> Input<'g> {
        loop {
            input = self.plain(input);
            let Some(node) = self.node(input, &["Reshape", "Squeeze"]) else { return input };
            let mut from = operands(node);
            let Some(elements) = from.next() else { return input };
            let shape =
                from.next().map(|shape| self.constant(shape).and_then(|shape| shape.ints()));
            match shape {
                None => {}
                Some(Some(shape)) if shape.iter().rev().skip(1).all(|&extent| extent == 1) => {}
                Some(_) => return input,
            }
            input = elements;
        }
    }

    /// Returns the constant that an input is.
    pub(super) fn constant(self, input: Input<'g>) -> Option<Constant> {
        self.node(input, &["Const"])?.attr("value").ok()
    }

    /// Returns the only element of a constant.
    pub(super) fn number(self, input: Input<'g>) -> Option<f32> {
        match self.constant(input)?.floats()?[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns the number of axes if a constant is that of the first ones: 0, 1, …
    pub(super) fn first_axes(self, input: Input<'g>) -> Option<usize> {
        let mut axes = self.constant(input)?.ints()?;
        axes.sort_unstable();
        let is_first = axes.iter().enumerate().all(|(at, &axis)| axis == at as i64);
        (is_first && !axes.is_empty()).then_some(axes.len())
    }

    /// Returns whether a node is needed to compute one of these inputs.
    pub(super) fn reaches(self, node: &str, inputs: &[Input<'g>]) -> bool {
        let mut seen = BTreeSet::new();
        let mut waiting: Vec<_> = inputs.iter().map(|input| input.node()).collect();
        while let Some(name) = waiting.pop() {
            if name == node {
                return true;
            }
            if seen.insert(name)
                && let Some(node) = self.0.node(name)
            {
                waiting.extend(node.inputs().map(Input::node));
            }
        }
        false
    }
}

/// Returns the values that a node gets.
pub(super) fn operands<'g>(node: &'g Node<'_>) -> impl Iterator<Item = Input<'g>> {
    node.inputs().filter(|input| matches!(input, Input::Data { .. }))
}

/// Returns both orders of two operands.
pub(super) fn orders<T: Copy>([a, b]: [T; 2]) -> [[T; 2]; 2] {
    [[a, b], [b, a]]
}

/// Lets all users of a value use another one. Nodes that wait for its node still do.
pub(super) fn redirect(graph: &mut Graph<'_>, from: Input<'_>, to: Input<'_>) {
    for node in graph.nodes_mut() {
        if node.inputs().any(|input| input == from) {
            let inputs = node.inputs().map(|input| if input == from { to } else { input });
            let inputs: Vec<_> = inputs.map(|input| input.to_string()).collect();
            node.set_inputs(inputs);
        }
    }
}

/// Removes these nodes, and what they alone need, as far as nothing else uses them and they have no effects.
///
/// # Errors
/// Fails if TensorFlow does not say which nodes must stay.
pub(super) fn remove_unused(graph: &mut Graph<'_>, mut names: Vec<String>) -> Result<()> {
    let mut users: HashMap<String, usize> = HashMap::new();
    for input in graph.nodes().flat_map(Node::inputs) {
        *users.entry(input.node().to_owned()).or_default() += 1;
    }
    while let Some(name) = names.pop() {
        let is_used = users.get(&name).is_some_and(|&users| users > 0);
        let is_pure = graph.node(&name).is_some_and(|node| PURE.contains(&node.op()));
        if is_used || !is_pure || graph.is_preserved(&name)? {
            continue;
        }
        for input in graph.remove_node(&name)?.inputs() {
            if let Some(users) = users.get_mut(input.node()) {
                *users -= 1;
            }
            names.push(input.node().to_owned());
        }
    }
    Ok(())
}
