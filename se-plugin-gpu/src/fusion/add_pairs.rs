//! Groups the sums with which an optimizer changes variables, `variable + momentum` for each variable, into launches.
//!
//! A group starts when all its inputs are there, so each sum waits for those of the others. No sum that is grouped depends on another
//! one, however indirectly. So no group can be in a cycle. Nothing else changes: reads and assignments stay what and where
//! they are. All sums of a group are in one branch: one in a branch that is not taken would take the others with it. A graph
//! with loops stays, and one with queues, whose order the edges do not tell.

mod branches;

use super::common::Search;
use super::matcher::{CONTROL_FLOW, placed_with};
use super::pattern::{has_blocking_ops, operands};
use crate::kernels::add_pairs::{MOST, OP};
use crate::launch::is_float;
use branches::branches;
use se_plugin::Result;
use se_plugin::graph::{Graph, Input, Node};
use se_plugin::kernel::DType;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Groups the sums on devices of this type.
///
/// # Errors
/// Fails if TensorFlow does not say which nodes must stay.
pub(super) fn group(graph: &mut Graph<'_>, device_type: &str) -> Result<()> {
    let mut groups = HashMap::new();
    for sums in find(graph, device_type)? {
        let name = graph.free_name(&format!("{}/{OP}", sums[0]));
        let (mut inputs, mut device, mut dtype) = ([Vec::new(), Vec::new()], String::new(), None);
        for (at, sum) in sums.iter().enumerate() {
            let node = graph.remove_node(sum)?;
            for (all, input) in inputs.iter_mut().zip(operands(&node)) {
                all.push(input.to_string());
            }
            (device, dtype) = (node.device().to_owned(), node.attr::<DType>("T").ok());
            groups.insert(sum.clone(), Input::Data { node: &name, output: at }.to_string());
        }
        let mut node = Node::new(&*name, OP);
        node.set_device(device).set_inputs(inputs.concat()).set_attr("N", sums.len() as i64);
        if let Some(dtype) = dtype {
            node.set_attr("T", dtype);
        }
        graph.add_node(node)?;
    }
    for node in graph.nodes_mut() {
        if node.inputs().any(|input| groups.contains_key(input.node())) {
            let new = |input: Input<'_>| {
                groups.get(input.node()).cloned().unwrap_or_else(|| input.to_string())
            };
            let inputs: Vec<_> = node.inputs().map(new).collect();
            node.set_inputs(inputs);
        }
    }
    Ok(())
}

/// Returns the groups: in each at least two sums and at most [`MOST`], of one type on one device.
fn find(graph: &Graph<'_>, device_type: &str) -> Result<Vec<Vec<String>>> {
    let nodes: Vec<_> = graph.nodes().collect();
    let search = Search::new(&nodes);
    let Some(order) = search.inputs_first() else { return Ok(Vec::new()) };
    let is_loop = |node: &&Node<'_>| {
        CONTROL_FLOW.contains(&node.op()) && !["Switch", "Merge"].contains(&node.op())
    };
    if nodes.iter().any(is_loop) || has_blocking_ops(graph) {
        return Ok(Vec::new());
    }
    let branches = branches(&nodes, &order);
    let users = search.users();
    let named: HashSet<_> = nodes.iter().flat_map(|node| placed_with(node)).collect();
    let mut is_sum = vec![false; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        let mut users = users[at].iter().map(|&user| nodes[user]);
        is_sum[at] = super::is_placed_on(node, device_type)
            && is_of_reads(graph, node)
            && users.len() > 0
            && users.all(|user| is_assigned(node, user))
            && !named.contains(node.name())
            && !graph.is_preserved(node.name())?;
    }
    let mut depends = vec![false; nodes.len()];
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for at in order {
        depends[at] = search.inputs(at).iter().any(|&input| is_sum[input] || depends[input]);
        if let (true, false, Ok(dtype)) = (is_sum[at], depends[at], nodes[at].attr::<DType>("T")) {
            let key = (nodes[at].device(), dtype.as_raw(), &branches[at]);
            groups.entry(key).or_default().push(at);
        }
    }
    let mut chunks = Vec::new();
    for mut sums in groups.into_values() {
        // In the order of the graph, neighbours are variables of one layer, whose gradients are there together.
        sums.sort_unstable();
        let names = |sums: &[usize]| sums.iter().map(|&sum| nodes[sum].name().to_owned()).collect();
        chunks.extend(sums.chunks(MOST).filter(|sums| sums.len() > 1).map(names));
    }
    Ok(chunks)
}

/// Returns whether a node is the sum of two reads, and waits for nothing else.
fn is_of_reads(graph: &Graph<'_>, node: &Node<'_>) -> bool {
    let is_read = |input: Input<'_>| {
        let op = graph.node(input.node()).map(Node::op);
        matches!(input, Input::Data { .. }) && op == Some("ReadVariableOp")
    };
    node.op() == "AddV2"
        && node.attr::<DType>("T").is_ok_and(is_float)
        && node.inputs().len() == 2
        && node.inputs().all(is_read)
}

/// Returns whether a user of a node only assigns its value.
fn is_assigned(node: &Node<'_>, user: &Node<'_>) -> bool {
    let mut uses = user.inputs().filter(|input| input.node() == node.name());
    user.op() == "AssignVariableOp" && uses.all(|input| matches!(input, Input::Data { .. }))
}

#[cfg(test)]
mod tests;
