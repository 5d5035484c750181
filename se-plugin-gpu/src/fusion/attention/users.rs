//! Whether anything else uses the nodes that are replaced.

use crate::fusion::pattern::{PURE, View, awaited};
use se_plugin::graph::Node;
use std::collections::HashMap;

/// How many nodes behind those that were looked at are followed.
pub(super) const MOST_STEPS: usize = 16;

/// The nodes that use each node's results, or wait for it.
pub(super) struct Users<'g, 'a> {
    view: View<'g, 'a>,
    users: HashMap<&'g str, Vec<&'g Node<'a>>>,
    /// Whether nodes that a search has met are needed for nothing else.
    known: HashMap<&'g str, bool>,
}

impl<'g, 'a> Users<'g, 'a> {
    /// Returns the users of the nodes of a graph. Those that were looked at are replaced, and so are `results`.
    pub(super) fn new(view: View<'g, 'a>, results: &[&'g str]) -> Self {
        let mut users: HashMap<_, Vec<_>> = HashMap::new();
        for node in view.graph.nodes() {
            for input in node.inputs() {
                users.entry(input.node()).or_default().push(node);
            }
        }
        let replaced = view.nodes().map(Node::name).chain(results.iter().copied());
        let known = replaced.map(|name| (name, true)).collect();
        Self { view, users, known }
    }

    /// Returns whether only replaced nodes use those that were looked at, and nodes without effects that only those use.
    pub(super) fn are_replaced(&mut self) -> bool {
        let nodes: Vec<_> = self.view.nodes().filter(|node| node.op() != "Const").collect();
        nodes.into_iter().all(|node| {
            self.only_replaced_use(node.name(), MOST_STEPS) && self.waits_for_none(node, MOST_STEPS)
        })
    }

    /// Returns whether a node waits for nothing that is left. A constant is there at any time.
    pub(super) fn waits_for_none(&mut self, node: &'g Node<'a>, steps: usize) -> bool {
        awaited(node).all(|name| {
            let node = self.view.graph.node(name);
            node.is_some_and(|node| node.op() == "Const" || self.is_replaced(node, steps))
        })
    }

    fn only_replaced_use(&mut self, name: &str, steps: usize) -> bool {
        let users = self.users.get(name).cloned().unwrap_or_default();
        users.into_iter().all(|user| self.is_replaced(user, steps))
    }

    fn is_replaced(&mut self, node: &'g Node<'a>, steps: usize) -> bool {
        if let Some(&known) = self.known.get(node.name()) {
            return known;
        }
        let Some(steps) = steps.checked_sub(1) else { return false };
        // In a cycle it is used elsewhere.
        self.known.insert(node.name(), false);
        let is_needless = PURE.contains(&node.op())
            && self.view.graph.is_preserved(node.name()).is_ok_and(|is_preserved| !is_preserved)
            && self.only_replaced_use(node.name(), steps)
            && self.waits_for_none(node, steps);
        self.known.insert(node.name(), is_needless);
        is_needless
    }
}
