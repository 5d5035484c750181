//! How patterns look at the nodes of a graph, and remove those that they replace.

use super::matcher::{CONTROL_FLOW, placed_with};
use crate::launch::is_short;
use se_plugin::graph::{Constant, Graph, Input, Node};
use se_plugin::kernel::DType;
use se_plugin::{Error, Result};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

/// Ops that a pass may remove if nothing uses their results: they have no effects.
pub(super) const PURE: [&str; 40] = [
    "Add",
    "AddN",
    "AddV2",
    "All",
    "BiasAdd",
    "BiasAddGrad",
    "BroadcastGradientArgs",
    "BroadcastTo",
    "Cast",
    "Const",
    "Einsum",
    "Fill",
    "GatherV2",
    "Identity",
    "IsFinite",
    "LogicalAnd",
    "MatrixBandPart",
    "Mean",
    "Mul",
    "Neg",
    "OnesLike",
    "Pack",
    "Prod",
    "RealDiv",
    "Reciprocal",
    "Reshape",
    "Rsqrt",
    "RsqrtGrad",
    "SelectV2",
    "Shape",
    "Softmax",
    "Sqrt",
    "SquaredDifference",
    "Squeeze",
    "StopGradient",
    "StridedSlice",
    "Sub",
    "Sum",
    "Tile",
    "ZerosLike",
];

/// Ops whose order the edges of a graph do not tell: one waits for another, which may wait for anything.
const BLOCKING: [&str; 6] = ["Queue", "Stage", "Barrier", "Mutex", "_Recv", "_Send"];

/// Returns whether a node may have to wait for one that it does not depend on. A node that waits for more could wait for ever.
pub(super) fn has_blocking_ops(graph: &Graph<'_>) -> bool {
    graph.nodes().any(|node| BLOCKING.iter().any(|part| node.op().contains(part)))
}

/// A graph, as patterns look at it: each node is reached from one that uses it.
#[derive(Clone, Copy)]
pub(super) struct View<'g, 'a> {
    pub(super) graph: &'g Graph<'a>,
    /// The nodes that were looked at.
    seen: &'g RefCell<BTreeSet<String>>,
}

impl<'g, 'a> View<'g, 'a> {
    /// Returns a view that adds the nodes that it looks at to `seen`.
    pub(super) fn new(graph: &'g Graph<'a>, seen: &'g RefCell<BTreeSet<String>>) -> Self {
        Self { graph, seen }
    }

    /// Returns the node whose first output an input is, if it is one of these ops. Its value is not fed.
    pub(super) fn node(self, input: Input<'g>, ops: &[&str]) -> Option<&'g Node<'a>> {
        let Input::Data { node, output: 0 } = self.plain(input) else { return None };
        let node = self.graph.node(node).filter(|node| ops.contains(&node.op()))?;
        self.is_free(node.name()).then_some(node)
    }

    /// Returns whether a node's value is neither fetched nor fed, and remembers the node.
    fn is_free(self, name: &str) -> bool {
        self.seen.borrow_mut().insert(name.to_owned());
        self.graph.is_preserved(name).is_ok_and(|is_preserved| !is_preserved)
    }

    /// Returns whether a node that was looked at is computed from these inputs and constants alone. Then who has the inputs, and waits
    /// for what the nodes wait for that were looked at, need not wait for it.
    pub(super) fn is_implied(self, node: &'g str, inputs: &[Input<'_>]) -> bool {
        self.sources(node, inputs).is_empty()
    }

    /// Returns what a node that was looked at is computed from, and that was not looked at: neither constants nor these inputs.
    pub(super) fn sources(self, node: &'g str, inputs: &[Input<'_>]) -> BTreeSet<&'g str> {
        let seen = self.seen.borrow();
        let (mut done, mut sources) = (BTreeSet::new(), BTreeSet::new());
        let mut waiting = vec![node];
        while let Some(name) = waiting.pop() {
            let is_input = inputs.iter().any(|input| input.node() == name);
            if is_input && name != node || !done.insert(name) {
                continue;
            }
            match self.graph.node(name) {
                Some(node) if node.op() == "Const" || seen.contains(name) => {
                    waiting.extend(operands(node).map(Input::node));
                }
                _ => {
                    sources.insert(name);
                }
            }
        }
        sources
    }

    /// Returns what to wait for instead of a node, which is replaced if it was looked at: for what it is computed from.
    pub(super) fn instead(self, node: &'g str, inputs: &[Input<'_>]) -> BTreeSet<&'g str> {
        let is_seen = self.seen.borrow().contains(node);
        let sources = if is_seen { self.sources(node, inputs) } else { [node].into() };
        // Who waits for one of these does not wait for its output.
        let is_flow = |name: &&str| {
            self.graph.node(name).is_none_or(|node| CONTROL_FLOW.contains(&node.op()))
        };
        if sources.iter().any(is_flow) { [node].into() } else { sources }
    }

    /// Looks at nodes that may have nothing to do with the pattern, and forgets them.
    pub(super) fn search<T>(self, search: impl FnOnce() -> T) -> T {
        let before = self.seen.borrow().clone();
        let found = search();
        self.seen.replace(before);
        found
    }

    /// Looks for something, and forgets the nodes that were looked at unless it is found.
    pub(super) fn attempt<T>(self, find: impl FnOnce() -> Option<T>) -> Option<T> {
        let before = self.seen.borrow().clone();
        let found = find();
        if found.is_none() {
            self.seen.replace(before);
        }
        found
    }

    /// Returns the nodes that were looked at.
    pub(super) fn nodes(self) -> impl Iterator<Item = &'g Node<'a>> {
        let names = self.seen.borrow().clone();
        names.into_iter().filter_map(move |name| self.graph.node(&name))
    }

    /// Returns whether the node of an input was looked at.
    pub(super) fn looked_at(self, input: Input<'_>) -> bool {
        self.seen.borrow().contains(input.node())
    }

    /// Returns whether two inputs are equal, without looking at nodes for the pattern.
    pub(super) fn is_same(self, one: Input<'g>, other: Input<'g>) -> bool {
        self.search(|| self.plain(one) == self.plain(other))
    }

    /// Returns the nodes that those which were looked at wait for.
    pub(super) fn awaited(self) -> BTreeSet<&'g str> {
        let seen = self.seen.borrow();
        let nodes = seen.iter().filter_map(|name| self.graph.node(name));
        nodes.flat_map(awaited).collect()
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
            && let Some(node) = self.graph.node(node)
            && matches!(node.op(), "Identity" | "StopGradient")
            && let Some(from) = operands(node).next()
            && self.is_free(node.name())
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

    /// Returns the input that has the same elements in another shape.
    pub(super) fn reshaped(self, mut input: Input<'g>) -> Input<'g> {
        while let Some(node) = self.node(input, &["Reshape", "Squeeze"])
            && let Some(from) = operands(node).next()
        {
            input = self.plain(from);
        }
        input
    }

    /// Returns the constant that an input is.
    pub(super) fn constant(self, input: Input<'g>) -> Option<Constant> {
        self.node(input, &["Const"])?.attr("value").ok()
    }

    /// Returns the value of a scalar constant.
    pub(super) fn number(self, input: Input<'g>) -> Option<f32> {
        let constant = self.constant(input).filter(|constant| constant.shape().is_empty())?;
        match constant.floats()?[..] {
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
                && let Some(node) = self.graph.node(name)
            {
                waiting.extend(node.inputs().map(Input::node));
            }
        }
        false
    }
}

/// The error of a pass that removed a node too many.
#[cold]
pub(super) fn missing() -> Error {
    Error::internal("the graph has lost a node that was in it")
}

/// Returns the first output of a node.
pub(super) fn first(node: &str) -> Input<'_> {
    Input::Data { node, output: 0 }
}

/// Returns the values that a node gets.
pub(super) fn operands<'g>(node: &'g Node<'_>) -> impl Iterator<Item = Input<'g>> {
    node.inputs().filter(|input| matches!(input, Input::Data { .. }))
}

/// Returns the nodes that use a value of a node, or wait for it.
pub(super) fn users<'g, 'a>(
    graph: &'g Graph<'a>,
    name: &str,
) -> impl Iterator<Item = &'g Node<'a>> {
    graph.nodes().filter(move |node| node.inputs().any(|input| input.node() == name))
}

/// Returns the names of the nodes of an op on devices of this type.
pub(super) fn placed(graph: &Graph<'_>, device_type: &str, op: &str) -> Vec<String> {
    let nodes = graph.nodes().filter(|node| node.op() == op);
    let nodes = nodes.filter(|node| super::is_placed_on(node, device_type));
    nodes.map(|node| node.name().to_owned()).collect()
}

/// Returns whether an attribute is this type.
pub(super) fn has_type(node: &Node<'_>, attribute: &str, dtype: DType) -> bool {
    node.attr::<DType>(attribute).is_ok_and(|found| found == dtype)
}

/// Returns the 16-bit float that a float32 is converted from, and its type.
pub(super) fn shorter<'g>(view: View<'g, '_>, input: Input<'g>) -> Option<(Input<'g>, DType)> {
    let node = view.node(input, &["Cast"]).filter(|node| has_type(node, "DstT", DType::Float32))?;
    let dtype = node.attr("SrcT").ok().filter(|&dtype| is_short(dtype))?;
    Some((operands(node).next()?, dtype))
}

/// Returns the nodes that a node waits for.
pub(super) fn awaited<'g>(node: &'g Node<'_>) -> impl Iterator<Item = &'g str> {
    node.inputs().filter(|input| matches!(input, Input::Control { .. })).map(Input::node)
}

/// Returns both orders of two operands.
pub(super) fn orders<T: Copy>([a, b]: [T; 2]) -> [[T; 2]; 2] {
    [[a, b], [b, a]]
}

/// Lets all users of a value use another one. Nodes that wait for its node still do.
pub(super) fn redirect(graph: &mut Graph<'_>, from: Input<'_>, to: Input<'_>) {
    for node in graph.nodes_mut() {
        replace_input(node, from, to);
    }
}

/// Lets a node use another value.
pub(super) fn replace_input(node: &mut Node<'_>, from: Input<'_>, to: Input<'_>) {
    if node.inputs().any(|input| input == from) {
        let inputs = node.inputs().map(|input| if input == from { to } else { input });
        let inputs: Vec<_> = inputs.map(|input| input.to_string()).collect();
        node.set_inputs(inputs);
    }
}

/// Makes a node one of another op, with these inputs, before the nodes that it waits for, and without the attributes of its op.
pub(super) fn change<'n, 'a>(
    node: &'n mut Node<'a>,
    op: &str,
    inputs: impl IntoIterator<Item = String>,
) -> &'n mut Node<'a> {
    // Attributes that TensorFlow added begin with `_`; they stay.
    let attributes = node.attr_names().filter(|name| !name.starts_with('_'));
    for name in attributes.map(str::to_owned).collect::<Vec<_>>() {
        node.remove_attr(&name);
    }
    let waits = node.inputs().filter(|input| matches!(input, Input::Control { .. }));
    let waits: Vec<_> = waits.map(|input| input.to_string()).collect();
    node.set_op(op).set_inputs(inputs.into_iter().chain(waits))
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
    let named: BTreeSet<_> = graph.nodes().flat_map(placed_with).collect();
    while let Some(name) = names.pop() {
        let is_used = users.get(&name).is_some_and(|&users| users > 0) || named.contains(&name);
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
