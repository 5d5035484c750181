//! Merges nodes that compute the same: reads of a variable, and what is computed from nothing but reads.
//!
//! TensorFlow merges equal nodes itself, but not reads of a variable, and so nothing that depends on them. Keras' optimizers
//! read the learning rate and the number of steps again for each variable that they train, and compute the same scalars
//! from them, each in its own launch.
//!
//! # Which reads are merged
//! Two reads return the same value if no write can happen between them. Reads are merged if all of this holds:
//!
//! - They have the same inputs, including control inputs. So they wait for the same writes, and are in the same branch.
//! - Each node that may write to the variable waits for the read, or the read waits for it. A node waits for its inputs, and
//!   for what they wait for, except through a `Merge`: that starts with the first of its inputs.
//! - The variable is an argument of the function, to which TensorFlow passes a variable once. All nodes that use this handle
//!   are known to read, to write or to be a call. A call counts as a write. Other nodes could pass the handle on.
//! - The graph has no loop, in which a node runs several times.
//!
//! A write that is ordered with neither read is a race in the program. Such reads are left alone all the same.

use super::matcher::{self, REFERENCES};
use se_plugin::Result;
use se_plugin::graph::{Graph, Input, Node};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Ops that only read a variable.
const READERS: [&str; 5] =
    ["ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarIsInitializedOp", "VariableShape"];

/// Ops that call functions, which may write to their arguments.
const CALLS: [&str; 8] = [
    "PartitionedCall",
    "StatefulPartitionedCall",
    "If",
    "StatelessIf",
    "While",
    "StatelessWhile",
    "Case",
    "StatelessCase",
];

/// Ops that begin a loop.
const LOOPS: [&str; 2] = ["Enter", "RefEnter"];

/// Merges equal nodes, of those that are `placed`. Nodes are `pure` if their results depend on nothing but inputs and attributes.
///
/// # Errors
/// Fails if TensorFlow does not say which nodes must stay.
pub(super) fn merge(
    graph: &mut Graph<'_>,
    placed: impl Fn(&Node<'_>) -> bool,
    pure: impl Fn(&Node<'_>) -> bool,
) -> Result<()> {
    let merged = find(graph, placed, pure);
    if merged.is_empty() {
        return Ok(());
    }
    let named: HashSet<_> = graph.nodes().flat_map(matcher::placed_with).collect();
    for name in merged.keys() {
        // Reads must stay in a function that a program calls. Nothing uses their values any more.
        if !named.contains(name) && !graph.is_preserved(name)? {
            graph.remove_node(name)?;
        }
    }
    for node in graph.nodes_mut() {
        if node.inputs().any(|input| merged.contains_key(input.node())) {
            let inputs = node.inputs().map(|input| replaced(input, &merged));
            let mut seen = BTreeSet::new();
            // A node has each control input once.
            let inputs =
                inputs.filter(|input| !input.starts_with('^') || seen.insert(input.clone()));
            let inputs: Vec<_> = inputs.collect();
            node.set_inputs(inputs);
        }
    }
    Ok(())
}

/// Returns an input, of the node that is kept if its own is merged into another.
fn replaced(input: Input<'_>, merged: &HashMap<String, String>) -> String {
    let node = merged.get(input.node()).map_or(input.node(), String::as_str);
    match input {
        Input::Data { output, .. } => Input::Data { node, output }.to_string(),
        Input::Control { .. } => Input::Control { node }.to_string(),
    }
}

/// What equal nodes have in common. Attributes of TensorFlow's passes, which begin with `_`, are not compared.
#[derive(PartialEq, Eq, Hash)]
struct Key<'g> {
    op: &'g str,
    device: &'g str,
    attributes: BTreeMap<&'g str, &'g [u8]>,
    data: Vec<String>,
    control: BTreeSet<String>,
}

/// Returns the nodes that are not needed, each with the name of its equal.
fn find(
    graph: &Graph<'_>,
    placed: impl Fn(&Node<'_>) -> bool,
    pure: impl Fn(&Node<'_>) -> bool,
) -> HashMap<String, String> {
    let nodes: Vec<_> = graph.nodes().collect();
    let search = Search::new(&nodes);
    let reads = search.reads();
    let Some(order) = search.inputs_first().filter(|_| !reads.is_empty()) else {
        return HashMap::new();
    };
    let mut equal = HashMap::new();
    let mut first = HashMap::new();
    // Nodes that are computed from reads and constants alone. TensorFlow has merged those that depend on no read. Those that
    // also depend on other nodes are left for trees: an op in each of two trees takes one launch less than before them.
    let mut known = reads;
    for at in order {
        let node = nodes[at];
        let mut inputs = search.inputs[at].iter();
        let is_known = match node.op() {
            "Const" => true,
            "ReadVariableOp" => known.contains(&at),
            _ => pure(node) && inputs.len() > 0 && inputs.all(|input| known.contains(input)),
        };
        if !is_known || !placed(node) {
            continue;
        }
        known.insert(at);
        let attributes = node.attr_names().filter(|name| !name.starts_with('_'));
        let inputs = |of: fn(&Input<'_>) -> bool| {
            node.inputs().filter(of).map(|input| replaced(input, &equal))
        };
        let key = Key {
            op: node.op(),
            device: node.device(),
            attributes: attributes.filter_map(|name| Some((name, node.raw_attr(name)?))).collect(),
            data: inputs(|input| matches!(input, Input::Data { .. })).collect(),
            control: inputs(|input| matches!(input, Input::Control { .. })).collect(),
        };
        let kept = *first.entry(key).or_insert(node.name());
        if kept != node.name() {
            equal.insert(node.name().to_owned(), kept.to_owned());
        }
    }
    // Constants take no launch.
    let is_constant = |name: &str| graph.node(name).is_some_and(|node| node.op() == "Const");
    equal.retain(|name, _| !is_constant(name));
    equal
}

/// The inputs of the nodes of a graph.
pub(super) struct Search<'g, 'a> {
    nodes: &'g [&'g Node<'a>],
    /// The nodes that each node has as inputs.
    inputs: Vec<Vec<usize>>,
}

impl<'g, 'a> Search<'g, 'a> {
    pub(super) fn new(nodes: &'g [&'g Node<'a>]) -> Self {
        let places: HashMap<_, _> =
            nodes.iter().enumerate().map(|(at, node)| (node.name(), at)).collect();
        let inputs = nodes.iter().map(|node| {
            node.inputs().filter_map(|input| places.get(input.node()).copied()).collect()
        });
        Self { nodes, inputs: inputs.collect() }
    }

    fn op(&self, node: usize) -> &str {
        self.nodes[node].op()
    }

    /// Returns the nodes that a node has as inputs.
    pub(super) fn inputs(&self, node: usize) -> &[usize] {
        &self.inputs[node]
    }

    /// Returns the nodes that use each node's results, or wait for it.
    pub(super) fn users(&self) -> Vec<Vec<usize>> {
        let mut users = vec![Vec::new(); self.nodes.len()];
        for (node, inputs) in self.inputs.iter().enumerate() {
            inputs.iter().for_each(|&input| users[input].push(node));
        }
        users
    }

    /// Returns all nodes, each after its inputs, or `None` if there is a cycle.
    pub(super) fn inputs_first(&self) -> Option<Vec<usize>> {
        let users = self.users();
        let mut waiting: Vec<_> = self.inputs.iter().map(Vec::len).collect();
        let mut order: Vec<_> = (0..self.nodes.len()).filter(|&node| waiting[node] == 0).collect();
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            next += 1;
            for &user in &users[node] {
                waiting[user] -= 1;
                if waiting[user] == 0 {
                    order.push(user);
                }
            }
        }
        (order.len() == self.nodes.len()).then_some(order)
    }

    /// Returns the reads that can be merged with others that have the same inputs.
    fn reads(&self) -> HashSet<usize> {
        let has = |ops: &[&str]| self.nodes.iter().any(|node| ops.contains(&node.op()));
        if has(&LOOPS) || has(&REFERENCES) {
            return HashSet::new();
        }
        let users = self.users().into_iter().enumerate();
        let of_arguments = users.filter(|&(node, _)| self.op(node) == "_Arg");
        of_arguments.flat_map(|(_, users)| self.reads_of(&users)).collect()
    }

    /// Returns the reads among the users of a handle that are ordered with each write.
    fn reads_of(&self, users: &[usize]) -> Vec<usize> {
        let (readers, writers): (Vec<_>, Vec<_>) =
            users.iter().copied().partition(|&user| READERS.contains(&self.op(user)));
        let is_known = |writer: &usize| {
            let op = self.op(*writer);
            op.starts_with("Assign") || op.starts_with("Resource") || CALLS.contains(&op)
        };
        let mut groups: BTreeMap<BTreeSet<usize>, Vec<usize>> = BTreeMap::new();
        for read in readers.into_iter().filter(|&user| self.op(user) == "ReadVariableOp") {
            let inputs = self.inputs[read].iter().copied().collect();
            groups.entry(inputs).or_default().push(read);
        }
        groups.retain(|_, reads| reads.len() > 1);
        if groups.is_empty() || !writers.iter().all(is_known) {
            return Vec::new();
        }
        let before_writers: Vec<_> = writers.iter().map(|&node| self.waits_for(node)).collect();
        let ordered = groups.into_values().flat_map(|reads| {
            let before_reads = self.waits_for(reads[0]);
            let is_ordered = |&read: &usize| {
                let mut all = writers.iter().zip(&before_writers);
                all.all(|(&writer, before)| before[read] || before_reads[writer])
            };
            reads.into_iter().filter(is_ordered).collect::<Vec<_>>()
        });
        ordered.collect()
    }

    /// Returns which nodes have run when a node starts.
    fn waits_for(&self, node: usize) -> Vec<bool> {
        let mut before = vec![false; self.nodes.len()];
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            if !matches!(self.op(node), "Merge" | "RefMerge") {
                for &input in &self.inputs[node] {
                    if !before[input] {
                        before[input] = true;
                        open.push(input);
                    }
                }
            }
        }
        before
    }
}

#[cfg(test)]
mod tests;
