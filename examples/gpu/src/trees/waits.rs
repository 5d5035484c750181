//! Nodes that wait for others, and do so when these are removed.

use se_plugin::Result;
use se_plugin::graph::{Graph, Input};
use std::collections::{BTreeSet, HashMap};

/// The names of the nodes that wait for a node, by its name.
pub(crate) struct Waits(HashMap<String, BTreeSet<String>>);

impl Waits {
    /// Those of a graph.
    pub(crate) fn of(graph: &Graph<'_>) -> Self {
        let mut waits = Self(HashMap::new());
        for node in graph.nodes() {
            for input in node.inputs() {
                if let Input::Control { node: other } = input {
                    waits.add(node.name(), other);
                }
            }
        }
        waits
    }

    /// Notes that a node waits for another.
    pub(crate) fn add(&mut self, waiter: &str, other: &str) {
        self.0.entry(other.to_owned()).or_default().insert(waiter.to_owned());
    }

    /// Removes a node whose results are no longer used. Its op has no effects, so that it is enough if those that waited for it
    /// wait for what it used and waited for.
    ///
    /// # Errors
    /// As [`Graph::remove_node`].
    pub(crate) fn remove(&mut self, graph: &mut Graph<'_>, name: &str) -> Result<()> {
        let removed = graph.remove_node(name)?;
        let before: BTreeSet<_> = removed.inputs().map(Input::node).collect();
        for waiter in self.0.remove(name).unwrap_or_default() {
            self.replace(graph, &waiter, name, &before);
        }
        Ok(())
    }

    /// Lets a node wait for others instead of one, if it is still there.
    fn replace(&mut self, graph: &mut Graph<'_>, waiter: &str, old: &str, new: &BTreeSet<&str>) {
        let Some(node) = graph.node_mut(waiter) else { return };
        let kept = node.inputs().filter(|&input| input != Input::Control { node: old });
        let kept: Vec<_> = kept.map(|input| input.to_string()).collect();
        // Whoever uses a result waits for it.
        let is_there = |other: &str| kept.iter().any(|input| Input::parse(input).node() == other);
        let new: Vec<_> = new.iter().copied().filter(|other| !is_there(other)).collect();
        let controls = new.iter().map(|other| Input::Control { node: other }.to_string());
        node.set_inputs(kept.iter().cloned().chain(controls));
        new.iter().for_each(|other| self.add(waiter, other));
    }
}
