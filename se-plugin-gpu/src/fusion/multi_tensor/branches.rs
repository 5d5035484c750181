//! Which nodes run together: those in one branch.

use se_plugin::graph::{Input, Node};
use std::collections::{BTreeSet, HashMap};

/// On what it depends whether a node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Condition {
    /// Switches by the output of this node send their values to this output.
    Switch(usize, usize, usize),
    /// This `Merge` gets a value.
    Merge(usize),
}

/// Returns for each node all conditions under which it runs. Two nodes with the same ones both run, or neither does. `order`
/// has each node after its inputs; there are no loops.
pub(super) fn branches(nodes: &[&Node<'_>], order: &[usize]) -> Vec<BTreeSet<Condition>> {
    let places: HashMap<_, _> =
        nodes.iter().enumerate().map(|(at, node)| (node.name(), at)).collect();
    let mut branches = vec![BTreeSet::new(); nodes.len()];
    for &at in order {
        if nodes[at].op() == "Merge" {
            branches[at].insert(Condition::Merge(at));
            continue;
        }
        let mut all = BTreeSet::new();
        for input in nodes[at].inputs() {
            let Some(&from) = places.get(input.node()) else { continue };
            all.extend(branches[from].iter().copied());
            if let (Input::Data { output: side, .. }, "Switch") = (input, nodes[from].op())
                && let Some(Input::Data { node, output }) = nodes[from].inputs().nth(1)
                && let Some(&predicate) = places.get(node)
            {
                all.insert(Condition::Switch(predicate, output, side));
            }
        }
        branches[at] = all;
    }
    branches
}
