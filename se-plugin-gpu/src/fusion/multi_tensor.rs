//! Groups the elementwise ops with which an optimizer changes variables, the same for each variable, into launches; in mixed precision
//! also the conversions of variables and of their gradients.
//!
//! A group starts when all its inputs are there, so each node waits for what the others wait for. Nodes of a group have as many nodes
//! before them that may be in groups on the longest way to them: none depends on another one, however indirectly, and no group on a later one. So no group can
//! be in a cycle. Nothing else changes: reads and assignments stay what and where they are. All nodes of a group are in one branch:
//! one in a branch that is not taken would take the others with it. A graph with loops stays, and one with queues or
//! collective ops, whose order the edges do not tell.

mod branches;

use super::common::Search;
use super::matcher::{CONTROL_FLOW, placed_with};
use super::ops::Computation;
use super::pattern::{has_blocking_ops, operands};
use crate::kernels::fused::{self, MOST_INPUTS};
use crate::kernels::multi_tensor::{OP, most_outputs};
use crate::launch::is_float;
use branches::{Condition, branches};
use se_plugin::Result;
use se_plugin::graph::{Graph, Input, Node};
use se_plugin::kernel::DType;
use std::collections::{BTreeSet, HashMap, HashSet};

/// What a node computes: the attributes of [`fused::OP`].
#[derive(Clone, PartialEq, Eq, Hash)]
struct Program {
    types: Vec<DType>,
    dtype: DType,
    steps: Vec<i64>,
    /// Their bits.
    alphas: Vec<u32>,
}

impl Program {
    /// Returns that of a node, if its result is a float.
    fn of(node: &Node<'_>) -> Option<Self> {
        let program = if node.op() == fused::OP {
            let alphas = node.attr::<Vec<f32>>("alphas").ok()?;
            Self {
                types: node.attr("Tinputs").ok()?,
                dtype: node.attr("T").ok()?,
                steps: node.attr("steps").ok()?,
                alphas: alphas.into_iter().map(f32::to_bits).collect(),
            }
        } else {
            let computation = Computation::of(node)?;
            let places: Vec<_> = (0..computation.inputs.len()).collect();
            let encode = |operands| {
                let step = fused::Step { op: computation.op, dtype: computation.output, operands };
                step.to_attribute().ok().map(i64::from)
            };
            let steps = computation.operands(&places, MOST_INPUTS).into_iter().map(encode);
            let steps = steps.collect::<Option<Vec<_>>>()?;
            let alphas = vec![computation.alpha.to_bits(); steps.len()];
            Self { types: computation.inputs, dtype: computation.output, steps, alphas }
        };
        let inputs = operands(node).count();
        (is_float(program.dtype) && inputs == program.types.len() && inputs <= MOST_INPUTS)
            .then_some(program)
    }
}

/// Nodes that become one, and which of their inputs are the same for all of them.
struct Group {
    program: Program,
    nodes: Vec<Member>,
    shared: Vec<bool>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    name: String,
    /// Whether others name it or wait for it. Then a node with its name passes its value on.
    keeps_name: bool,
}

impl Group {
    /// Makes the node. Adds its outputs to `outputs`, by the names of the nodes.
    fn apply(self, graph: &mut Graph<'_>, outputs: &mut HashMap<String, String>) -> Result<()> {
        let Self { program, nodes, shared } = self;
        let name = graph.free_name(&format!("{}/{OP}", nodes[0].name));
        let (mut inputs, mut types, mut device) = (Vec::new(), Vec::new(), String::new());
        let mut controls = BTreeSet::new();
        for (at, Member { name: member, keeps_name }) in nodes.iter().enumerate() {
            let node = graph.remove_node(member)?;
            let all: Vec<_> = operands(&node).zip(&program.types).zip(&shared).collect();
            for is_shared in [true, false] {
                // The first one brings what all share.
                for ((input, dtype), _) in all.iter().filter(|(_, shared)| **shared == is_shared) {
                    if at == 0 || !is_shared {
                        inputs.push(input.to_string());
                        types.push(**dtype);
                    }
                }
            }
            let waits = node.inputs().filter(|input| matches!(input, Input::Control { .. }));
            controls.extend(waits.map(|input| input.to_string()));
            node.device().clone_into(&mut device);
            let output = Input::Data { node: &name, output: at }.to_string();
            if *keeps_name {
                let mut same = Node::new(member.clone(), "Identity");
                same.set_device(device.clone()).set_inputs([output]).set_attr("T", program.dtype);
                graph.add_node(same)?;
            } else {
                outputs.insert(member.clone(), output);
            }
        }
        let mut node = Node::new(&*name, OP);
        node.set_device(device)
            .set_inputs(inputs.iter().chain(&controls))
            .set_attr("N", nodes.len() as i64)
            .set_attr("Targuments", types)
            .set_attr("Tinputs", program.types)
            .set_attr("shared", shared)
            .set_attr("T", program.dtype)
            .set_attr("steps", program.steps)
            .set_attr("alphas", program.alphas.into_iter().map(f32::from_bits).collect::<Vec<_>>());
        graph.add_node(node)
    }
}

/// Groups the nodes on devices of this type.
///
/// # Errors
/// Fails if TensorFlow does not say which nodes must stay.
pub(super) fn group(graph: &mut Graph<'_>, device_type: &str) -> Result<()> {
    let mut outputs = HashMap::new();
    for group in find(graph, device_type)? {
        group.apply(graph, &mut outputs)?;
    }
    for node in graph.nodes_mut() {
        if node.inputs().any(|input| outputs.contains_key(input.node())) {
            let new = |input: Input<'_>| {
                outputs.get(input.node()).cloned().unwrap_or_else(|| input.to_string())
            };
            let inputs: Vec<_> = node.inputs().map(new).collect();
            node.set_inputs(inputs);
        }
    }
    Ok(())
}

/// Nodes that may be in one group: those with one key.
#[derive(PartialEq, Eq, Hash)]
struct Key<'g> {
    program: Program,
    device: &'g str,
    branch: &'g BTreeSet<Condition>,
    /// How many nodes that may be in groups are before each, on the longest way.
    level: usize,
}

/// Returns the groups, each of at least two nodes, and of what fits into a launch.
fn find(graph: &Graph<'_>, device_type: &str) -> Result<Vec<Group>> {
    let nodes: Vec<_> = graph.nodes().collect();
    let search = Search::new(&nodes);
    let Some(order) = search.inputs_first() else { return Ok(Vec::new()) };
    let is_loop = |node: &&Node<'_>| {
        CONTROL_FLOW.contains(&node.op()) && !["Switch", "Merge"].contains(&node.op())
    };
    // Collective ops wait for other devices and processes, which the edges do not tell either.
    let is_collective = |node: &&Node<'_>| node.op().starts_with("Collective");
    if nodes.iter().any(is_loop) || nodes.iter().any(is_collective) || has_blocking_ops(graph) {
        return Ok(Vec::new());
    }
    let branches = branches(&nodes, &order);
    let users = search.users();
    let named: HashSet<_> = nodes.iter().flat_map(|node| placed_with(node)).collect();
    let keeps_name = |at: usize| {
        let mut users = users[at].iter();
        named.contains(nodes[at].name())
            || !users.all(|&user| has_values_of(nodes[user], nodes[at]))
    };
    let mut programs: Vec<_> = nodes.iter().map(|_| None).collect();
    for (at, node) in nodes.iter().enumerate() {
        let users = users[at].iter().map(|&user| nodes[user]);
        if super::is_placed_on(node, device_type)
            && users.len() > 0
            && (!keeps_name(at) && users.clone().all(|user| is_assigned(node, user))
                || is_converted(node, search.inputs(at).iter().map(|&from| nodes[from]), users))
            && !graph.is_preserved(node.name())?
        {
            programs[at] = Program::of(node);
        }
    }
    let mut levels = vec![0; nodes.len()];
    let mut alike: HashMap<_, Vec<usize>> = HashMap::new();
    for at in order {
        let level = |&input: &usize| levels[input] + usize::from(programs[input].is_some());
        levels[at] = search.inputs(at).iter().map(level).max().unwrap_or_default();
        if let Some(program) = programs[at].clone() {
            let (device, branch) = (nodes[at].device(), &branches[at]);
            let key = Key { program, device, branch, level: levels[at] };
            alike.entry(key).or_default().push(at);
        }
    }
    let mut groups = Vec::new();
    for (Key { program, .. }, mut members) in alike {
        // In the order of the graph, neighbours are variables of one layer, whose gradients are there together.
        members.sort_unstable();
        for (shared, members) in with_shared(&nodes, &members) {
            let count = shared.iter().filter(|input| input.is_some()).count();
            let own = shared.len() - count;
            let most = most_outputs(count, own);
            let member = |&at: &usize| Member {
                name: nodes[at].name().to_owned(),
                keeps_name: keeps_name(at),
            };
            let shared: Vec<_> = shared.iter().map(Option::is_some).collect();
            let chunks = members.chunks(most).filter(|members| members.len() > 1 && own > 0);
            groups.extend(chunks.map(|members| Group {
                program: program.clone(),
                nodes: members.iter().map(member).collect(),
                shared: shared.clone(),
            }));
        }
    }
    // In a fixed order: names of nodes depend on it.
    groups.sort_by(|a, b| a.nodes.cmp(&b.nodes));
    Ok(groups)
}

/// Inputs that several nodes share, each at its place.
type Shared<'g> = Vec<Option<Input<'g>>>;

/// Divides nodes by the inputs that they share with others at the same place.
fn with_shared<'g>(nodes: &[&'g Node<'_>], members: &[usize]) -> HashMap<Shared<'g>, Vec<usize>> {
    let mut uses: HashMap<_, usize> = HashMap::new();
    for &member in members {
        operands(nodes[member]).enumerate().for_each(|input| *uses.entry(input).or_default() += 1);
    }
    let mut divided: HashMap<_, Vec<usize>> = HashMap::new();
    for &member in members {
        let inputs = operands(nodes[member]).enumerate();
        let shared = inputs.map(|input| (uses[&input] > 1).then_some(input.1)).collect();
        divided.entry(shared).or_default().push(member);
    }
    divided
}

/// Returns whether a user of a node only assigns its value, or adds it to a variable.
fn is_assigned(node: &Node<'_>, user: &Node<'_>) -> bool {
    ["AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"].contains(&user.op())
        && has_values_of(user, node)
}

/// Returns whether a node converts a parameter, or its gradient, in mixed precision. All gradients go to the branch that changes the
/// variables, if they are finite.
fn is_converted<'g, 'a: 'g>(
    node: &Node<'_>,
    mut inputs: impl Iterator<Item = &'g Node<'a>>,
    mut users: impl Iterator<Item = &'g Node<'a>>,
) -> bool {
    node.op() == "Cast"
        && (inputs.all(|input| input.op() == "ReadVariableOp")
            || users.all(|user| user.op() == "Switch"))
}

/// Returns whether a user of a node does not only wait for it.
fn has_values_of(user: &Node<'_>, node: &Node<'_>) -> bool {
    let mut uses = user.inputs().filter(|input| input.node() == node.name());
    uses.all(|input| matches!(input, Input::Data { .. }))
}

#[cfg(test)]
mod tests;
