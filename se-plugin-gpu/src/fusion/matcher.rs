//! Finds nodes of a graph that can be fused: only the result of the last one is used by other nodes.
//!
//! Control dependencies on them are allowed if they can be moved to the inputs: see [`redirect`].
//!
//! This module does not depend on the GPU, or on which ops there are.

use se_plugin::Result;
use se_plugin::graph::{Graph, Input, Node};
use std::collections::{BTreeSet, HashMap};

/// Where a node of a [`Tree`] gets an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// One of the tree's inputs.
    Input(usize),
    /// An earlier node of the tree.
    Step(usize),
}

/// Nodes that can be fused into one, with the name and the place of the last. A node may have
/// several users, if all are in the tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    /// The names of the nodes, each after those whose results it uses, with their operands.
    pub(crate) steps: Vec<(String, Vec<Operand>)>,
    /// The inputs of the nodes, each once.
    pub(crate) inputs: Vec<String>,
}

/// How many elements the result of a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Few, as of a parameter.
    Small,
    /// As many as its inputs.
    OfInputs,
    /// Many, or it is not known how many.
    Large,
}

/// The size limits of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) steps: usize,
    pub(crate) inputs: usize,
}

/// A control dependency on one of these is not one on its output, which may have no value or be in another loop frame.
pub(super) const CONTROL_FLOW: [&str; 12] = [
    "Switch",
    "RefSwitch",
    "_SwitchN",
    "Merge",
    "RefMerge",
    "Enter",
    "RefEnter",
    "Exit",
    "RefExit",
    "NextIteration",
    "RefNextIteration",
    "LoopCond",
];

/// Ops of memory that changes: a reader also sees later changes.
pub(super) const REFERENCES: [&str; 6] =
    ["Variable", "VariableV2", "TemporaryVariable", "InplaceUpdate", "InplaceAdd", "InplaceSub"];

/// Returns the trees of at least two nodes in a graph. Nodes with the same `kind` can be in one tree, and those without a kind are in none.
/// With it comes how many steps a node takes, as the last of a tree at least one. The ops have one output and no side effects. Where
/// not all fit into a tree, those whose `extent` is small are left out first.
///
/// # Errors
/// Fails if TensorFlow does not say which nodes must stay.
pub(crate) fn find<K: PartialEq>(
    graph: &Graph<'_>,
    kind: impl Fn(&Node<'_>) -> Option<(K, usize)>,
    extent: impl Fn(&Node<'_>) -> Extent,
    limits: Limits,
) -> Result<Vec<Tree>> {
    let nodes: Vec<_> = graph.nodes().collect();
    let kinds: Vec<_> = nodes.iter().map(|node| kind(node)).collect();
    if kinds.iter().flatten().nth(1).is_none() {
        return Ok(Vec::new());
    }
    let extents = nodes.iter().map(|node| extent(node)).collect();
    let search = Search::new(graph, nodes, kinds, extents, limits);
    let mut is_taken = vec![false; search.nodes.len()];
    let mut trees = Vec::new();
    for root in search.users_first() {
        if is_taken[root] {
            continue;
        }
        let members = search.grow(root, &is_taken)?;
        if members.len() > 1 {
            members.iter().for_each(|&member| is_taken[member] = true);
            trees.push(search.tree(&members));
        }
    }
    Ok(trees)
}

/// Returns the names of the nodes with which a node has to be placed.
pub(super) fn placed_with(node: &Node<'_>) -> Vec<String> {
    let classes = node.attr::<Vec<String>>("_class").unwrap_or_default();
    let names = classes.iter().filter_map(|class| class.strip_prefix("loc:@"));
    names.map(str::to_owned).collect()
}

struct Search<'g, 'a, K> {
    graph: &'g Graph<'a>,
    nodes: Vec<&'g Node<'a>>,
    kinds: Vec<Option<(K, usize)>>,
    is_small: Vec<bool>,
    limits: Limits,
    places: HashMap<&'g str, usize>,
    /// For each node the nodes that use its first output, once for each use.
    users: Vec<Vec<usize>>,
    /// Whether another output of the node is used, or another node has to be placed with it.
    is_named: Vec<bool>,
    /// Whether the node has a control dependency on it.
    is_awaited: Vec<bool>,
    /// Whether the graph has memory that changes.
    has_references: bool,
}

impl<'g, 'a, K: PartialEq> Search<'g, 'a, K> {
    fn new(
        graph: &'g Graph<'a>,
        nodes: Vec<&'g Node<'a>>,
        kinds: Vec<Option<(K, usize)>>,
        extents: Vec<Extent>,
        limits: Limits,
    ) -> Self {
        let places: HashMap<_, _> =
            nodes.iter().enumerate().map(|(at, node)| (node.name(), at)).collect();
        let mut users = vec![Vec::new(); nodes.len()];
        let mut is_named = vec![false; nodes.len()];
        let mut is_awaited = is_named.clone();
        for (at, node) in nodes.iter().enumerate() {
            for input in node.inputs() {
                let Some(&from) = places.get(input.node()) else { continue };
                match input {
                    Input::Data { output: 0, .. } => users[from].push(at),
                    Input::Data { .. } => is_named[from] = true,
                    Input::Control { .. } => is_awaited[from] = true,
                }
            }
            for name in placed_with(node) {
                if let Some(&other) = places.get(&*name).filter(|&&other| other != at) {
                    is_named[other] = true;
                }
            }
        }
        let has_references = nodes.iter().any(|node| REFERENCES.contains(&node.op()));
        let is_small = small(&nodes, &places, &extents);
        Self {
            graph,
            nodes,
            kinds,
            is_small,
            limits,
            places,
            users,
            is_named,
            is_awaited,
            has_references,
        }
    }

    /// Returns the nodes whose first outputs a node uses, once for each use.
    fn producers(&self, node: usize) -> impl Iterator<Item = usize> {
        self.nodes[node].inputs().filter_map(|input| match input {
            Input::Data { node, output: 0 } => self.places.get(node).copied(),
            _ => None,
        })
    }

    /// Returns the nodes that have a kind, each after those that use it.
    fn users_first(&self) -> Vec<usize> {
        let has_kind = |&node: &usize| self.kinds[node].is_some();
        let count = |users: &Vec<usize>| users.iter().filter(|&user| has_kind(user)).count();
        let mut waiting: Vec<_> = self.users.iter().map(count).collect();
        let all = (0..self.nodes.len()).filter(has_kind);
        let mut ready: Vec<_> = all.filter(|&node| waiting[node] == 0).collect();
        let mut order = Vec::new();
        while let Some(node) = ready.pop() {
            order.push(node);
            for producer in self.producers(node).filter(has_kind) {
                waiting[producer] -= 1;
                if waiting[producer] == 0 {
                    ready.push(producer);
                }
            }
        }
        order
    }

    /// Returns the tree that ends with a node; each node comes before those whose results it uses.
    ///
    /// A node that joins has no users outside. So the inputs of the tree do not depend on its
    /// result, and the tree as one node is not in a cycle.
    fn grow(&self, root: usize, is_taken: &[bool]) -> Result<Vec<usize>> {
        let mut members = vec![root];
        'grow: loop {
            let all = || members.iter().flat_map(|&member| self.producers(member));
            let large = all().filter(|&candidate| !self.is_small[candidate]);
            for candidate in large.chain(all().filter(|&candidate| self.is_small[candidate])) {
                if !is_taken[candidate] && self.can_join(candidate, &members)? {
                    members.push(candidate);
                    continue 'grow;
                }
            }
            return Ok(members);
        }
    }

    fn can_join(&self, candidate: usize, members: &[usize]) -> Result<bool> {
        let together = [members, &[candidate]].concat();
        let kind = |node: usize| self.kinds[node].as_ref().map(|(kind, _)| kind);
        let steps = together.iter().filter_map(|&node| Some(self.kinds[node].as_ref()?.1));
        // The last node has a result of its own.
        let steps = steps.enumerate().map(|(at, steps)| if at == 0 { steps.max(1) } else { steps });
        let can = steps.sum::<usize>() <= self.limits.steps
            && !members.contains(&candidate)
            && kind(candidate) == kind(members[0])
            && !self.is_named[candidate]
            && self.users[candidate].iter().all(|user| members.contains(user))
            && self.inputs(&together).len() <= self.limits.inputs
            && self.can_be_awaited(&together);
        Ok(can && !self.graph.is_preserved(self.nodes[candidate].name())?)
    }

    /// Returns whether control dependencies on members, except the last node of the tree, can be moved to the inputs.
    ///
    /// They cannot if an input is a reference: the tree may then read it after the node that waited has changed it.
    /// Members with their own control dependencies are excluded, so that no node inherits them from tree to tree.
    fn can_be_awaited(&self, members: &[usize]) -> bool {
        let is_plain = |input: Input<'_>| {
            let place = self.places.get(input.node());
            matches!(input, Input::Data { .. })
                && place.is_none_or(|&place| !CONTROL_FLOW.contains(&self.nodes[place].op()))
        };
        let others = &members[1..];
        !others.iter().any(|&member| self.is_awaited[member])
            || !self.has_references
                && others.iter().all(|&member| self.nodes[member].inputs().all(is_plain))
    }

    /// Returns the inputs of members from other nodes, each once.
    fn inputs(&self, members: &[usize]) -> Vec<Input<'g>> {
        let mut inputs = Vec::new();
        for input in members.iter().rev().flat_map(|&member| self.nodes[member].inputs()) {
            let is_data = matches!(input, Input::Data { .. });
            if is_data && self.step(members, input).is_none() && !inputs.contains(&input) {
                inputs.push(input);
            }
        }
        inputs
    }

    /// Returns the step of a tree whose result an input is.
    fn step(&self, members: &[usize], input: Input<'_>) -> Option<usize> {
        let Input::Data { node, output: 0 } = input else { return None };
        let place = self.places.get(node)?;
        members.iter().rev().position(|member| member == place)
    }

    fn tree(&self, members: &[usize]) -> Tree {
        let inputs = self.inputs(members);
        let operand = |input| match self.step(members, input) {
            Some(step) => Some(Operand::Step(step)),
            None => inputs.iter().position(|&other| other == input).map(Operand::Input),
        };
        let steps = members.iter().rev().map(|&member| {
            let node = self.nodes[member];
            let data = node.inputs().filter(|input| matches!(input, Input::Data { .. }));
            (node.name().to_owned(), data.filter_map(operand).collect())
        });
        Tree { steps: steps.collect(), inputs: inputs.iter().map(ToString::to_string).collect() }
    }
}

/// Returns which nodes have small results: these, and those that are computed from them alone.
fn small(nodes: &[&Node<'_>], places: &HashMap<&str, usize>, extents: &[Extent]) -> Vec<bool> {
    // All users of each node, and how many inputs are not known to be small.
    let (mut users, mut large) = (vec![Vec::new(); nodes.len()], vec![0; nodes.len()]);
    for (at, node) in nodes.iter().enumerate() {
        for input in node.inputs().filter(|input| matches!(input, Input::Data { .. })) {
            large[at] += 1;
            if let Some(&from) = places.get(input.node()) {
                users[from].push(at);
            }
        }
    }
    let mut is_small = vec![false; nodes.len()];
    let sources = extents.iter().enumerate().filter(|(_, extent)| **extent == Extent::Small);
    let mut ready: Vec<_> = sources.map(|(at, _)| at).collect();
    while let Some(node) = ready.pop() {
        is_small[node] = true;
        for &user in &users[node] {
            large[user] -= 1;
            if large[user] == 0 && extents[user] == Extent::OfInputs {
                ready.push(user);
            }
        }
    }
    is_small
}

impl Tree {
    /// Returns, for each step, the names of the nodes outside the tree from which its result is computed.
    pub(crate) fn sources(&self) -> Vec<BTreeSet<String>> {
        let mut all: Vec<BTreeSet<String>> = Vec::new();
        for (_, operands) in &self.steps {
            let of = |operand: &Operand| match *operand {
                Operand::Input(at) => {
                    BTreeSet::from([Input::parse(&self.inputs[at]).node().to_owned()])
                }
                Operand::Step(at) => all[at].clone(),
            };
            all.push(operands.iter().flat_map(of).collect());
        }
        all
    }
}

/// Moves the control dependencies on removed nodes to others.
pub(crate) fn redirect(graph: &mut Graph<'_>, removed: &HashMap<String, BTreeSet<String>>) {
    if removed.is_empty() {
        return;
    }
    for node in graph.nodes_mut() {
        let instead = |input: Input<'_>| match input {
            Input::Control { node } => removed.get(node),
            Input::Data { .. } => None,
        };
        if !node.inputs().any(|input| instead(input).is_some()) {
            continue;
        }
        let kept: Vec<_> = node.inputs().filter(|&input| instead(input).is_none()).collect();
        // A node that uses a result waits for it anyway.
        let there: BTreeSet<_> = kept.iter().map(|input| input.node()).collect();
        let new: BTreeSet<_> =
            node.inputs().filter_map(instead).flatten().map(String::as_str).collect();
        let controls = new.difference(&there).map(|node| Input::Control { node });
        let inputs: Vec<_> =
            kept.iter().copied().chain(controls).map(|input| input.to_string()).collect();
        node.set_inputs(inputs);
    }
}

#[cfg(test)]
mod tests;
