//! Finds nodes of a graph that can be one: no other node uses their results, except that of the last.
//!
//! Others may wait for them: [`Waits`] makes them wait for what the nodes use instead.
//!
//! Nothing here knows of the card, or which ops there are.

mod waits;

pub(crate) use waits::Waits;

use se_plugin::Result;
use se_plugin::graph::{Graph, Input, Node};
use std::collections::HashMap;

/// Where a node of a [`Tree`] gets an operand from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// One of the tree's inputs.
    Input(usize),
    /// An earlier node of the tree.
    Step(usize),
}

/// Nodes that can be one, with the name and the place of the last. A node may have several users, if all are in the tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    /// The names of the nodes, each after those whose results it uses, with their operands.
    pub(crate) steps: Vec<(String, Vec<Operand>)>,
    /// What the nodes use, each once.
    pub(crate) inputs: Vec<String>,
}

/// How large a tree may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) steps: usize,
    pub(crate) inputs: usize,
}

/// Ops whose outputs may differ in whether they have a value at all, or are of another turn of a loop: who waits for the op
/// does not wait for an output.
const CONTROL_FLOW: [&str; 12] = [
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

/// Returns the trees of at least two nodes in a graph. Nodes with the same `kind` can be in one, and those without are in none.
/// Their ops have one output and no effect besides it.
///
/// # Errors
/// If TensorFlow does not say which nodes must stay.
pub(crate) fn find<K: PartialEq>(
    graph: &Graph<'_>,
    kind: impl Fn(&Node<'_>) -> Option<K>,
    limits: Limits,
) -> Result<Vec<Tree>> {
    let nodes: Vec<_> = graph.nodes().collect();
    let kinds: Vec<_> = nodes.iter().map(|node| kind(node)).collect();
    if kinds.iter().flatten().nth(1).is_none() {
        return Ok(Vec::new());
    }
    let search = Search::new(graph, nodes, kinds, limits);
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

struct Search<'g, 'a, K> {
    graph: &'g Graph<'a>,
    nodes: Vec<&'g Node<'a>>,
    kinds: Vec<Option<K>>,
    limits: Limits,
    places: HashMap<&'g str, usize>,
    /// For each node those that use its first output, once for each use.
    users: Vec<Vec<usize>>,
    /// Whether something uses another output of the node, or is to be placed where it is.
    is_named: Vec<bool>,
    /// Whether something waits for the node.
    is_awaited: Vec<bool>,
}

impl<'g, 'a, K: PartialEq> Search<'g, 'a, K> {
    fn new(
        graph: &'g Graph<'a>,
        nodes: Vec<&'g Node<'a>>,
        kinds: Vec<Option<K>>,
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
            for class in node.attr::<Vec<String>>("_class").unwrap_or_default() {
                let other = class.strip_prefix("loc:@").and_then(|name| places.get(name));
                if let Some(&other) = other.filter(|&&other| other != at) {
                    is_named[other] = true;
                }
            }
        }
        Self { graph, nodes, kinds, limits, places, users, is_named, is_awaited }
    }

    /// The nodes whose first outputs a node uses, once for each use.
    fn producers(&self, node: usize) -> impl Iterator<Item = usize> {
        self.nodes[node].inputs().filter_map(|input| match input {
            Input::Data { node, output: 0 } => self.places.get(node).copied(),
            _ => None,
        })
    }

    /// The nodes that have a kind, each after those that use it.
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

    /// The tree that ends with a node; each node is before those whose results it uses.
    ///
    /// What joins has no users outside, so whatever the tree uses was computed without its result: the tree as one node is
    /// in no circle.
    fn grow(&self, root: usize, is_taken: &[bool]) -> Result<Vec<usize>> {
        let mut members = vec![root];
        'grow: loop {
            for candidate in members.iter().flat_map(|&member| self.producers(member)) {
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
        let can = together.len() <= self.limits.steps
            && !members.contains(&candidate)
            && self.kinds[candidate] == self.kinds[members[0]]
            && !self.is_named[candidate]
            && self.users[candidate].iter().all(|user| members.contains(user))
            && self.inputs(&together).len() <= self.limits.inputs
            && self.can_be_awaited(&together);
        Ok(can && !self.graph.is_preserved(self.nodes[candidate].name())?)
    }

    /// Whether those that wait for members, except the last node of the tree, can wait for what the members use.
    fn can_be_awaited(&self, members: &[usize]) -> bool {
        let is_plain = |input: Input<'_>| {
            let place = self.places.get(input.node());
            place.is_none_or(|&place| !CONTROL_FLOW.contains(&self.nodes[place].op()))
        };
        !members[1..].iter().any(|&member| self.is_awaited[member])
            || members.iter().all(|&member| self.nodes[member].inputs().all(is_plain))
    }

    /// What members use of other nodes, each once.
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

    /// The step of a tree whose result an input is.
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

#[cfg(test)]
mod tests;
