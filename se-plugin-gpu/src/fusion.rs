//! The graph pass: fuses chains of elementwise ops into one launch.

mod matcher;

use crate::gpus::GpuPlatform;
use crate::kernels::elementwise::fusible;
use crate::kernels::fused::{self, MOST_INPUTS, MOST_STEPS};
use crate::launch::is_float;
use crate::settings;
use matcher::{Limits, Operand, Tree};
use se_plugin::device_type;
use se_plugin::graph::{Graph, GraphPass, Input, Node, OptimizerConfigs};
use se_plugin::kernel::{has_kernel, host_has_op};
use se_plugin::prelude::*;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;

/// The graph pass of a platform.
pub struct Fusion<P>(PhantomData<fn() -> P>);

impl<P> Fusion<P> {
    /// Creates the pass.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<P> Default for Fusion<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P> fmt::Debug for Fusion<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fusion")
    }
}

impl<P: GpuPlatform> GraphPass for Fusion<P> {
    fn configs(&self) -> OptimizerConfigs {
        OptimizerConfigs::of::<P>()
    }

    fn optimize(&self, graph: &mut Graph<'_>) -> Result<()> {
        if !can_fuse::<P>() {
            return Ok(());
        }
        fuse(graph, device_type::<P>())
    }
}

/// Returns whether ops can be fused in this process, for the only platform of the library.
fn can_fuse<P: GpuPlatform>() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        settings::fuses(P::NAME).unwrap_or(false)
            && host_has_op(fused::OP)
            && has_kernel::<P>(fused::OP, "T", DType::Float32)
    })
}

/// Fuses all trees of a graph that are on devices of this type.
fn fuse(graph: &mut Graph<'_>, device_type: &str) -> Result<()> {
    let limits = Limits { steps: MOST_STEPS, inputs: MOST_INPUTS };
    let trees = matcher::find(graph, |node| kind(node, device_type), limits)?;
    let mut removed = HashMap::new();
    trees.iter().try_for_each(|tree| replace(graph, tree, &mut removed))?;
    matcher::redirect(graph, &removed);
    Ok(())
}

/// Returns device and type of a node that can be fused.
fn kind(node: &Node<'_>, device_type: &str) -> Option<(String, DType)> {
    // A graph for an export is not placed, so its devices have no job. It must not get the plugin's op.
    if !node.is_on(device_type) || !node.device().starts_with("/job:") {
        return None;
    }
    let (_, operands) = step(node)?;
    let inputs = node.inputs().filter(|input| matches!(input, Input::Data { .. })).count();
    let dtype = node.attr::<DType>("T").ok()?;
    let can = inputs == operands && is_float(dtype) && alpha(node).is_some();
    can.then(|| (node.device().to_owned(), dtype))
}

/// Returns the number of a node's op in the shader, and how many operands it has.
fn step(node: &Node<'_>) -> Option<(u32, usize)> {
    let known = fusible().iter().find(|(op, ..)| *op == node.op());
    known.map(|&(_, number, operands)| (number, operands))
}

/// Returns the node's `alpha`, or 0 if its op has none.
fn alpha(node: &Node<'_>) -> Option<f32> {
    match node.op() {
        "LeakyRelu" | "LeakyReluGrad" => node.attr("alpha").ok(),
        _ => Some(0.0),
    }
}

/// Replaces a tree by one node, with the name of its last. Adds the removed nodes to `removed`, with their sources.
fn replace(
    graph: &mut Graph<'_>,
    tree: &Tree,
    removed: &mut HashMap<String, BTreeSet<String>>,
) -> Result<()> {
    let missing = || Error::internal("the graph has lost a node that was in it");
    let (mut steps, mut alphas, mut controls) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (name, operands) in &tree.steps {
        let node = graph.node(name).ok_or_else(missing)?;
        let (op, _) = step(node).ok_or_else(missing)?;
        let place = |operand: &Operand| match *operand {
            Operand::Input(at) => at,
            Operand::Step(at) => MOST_INPUTS + at,
        };
        let first = operands.first().map(place).ok_or_else(missing)?;
        let second = operands.get(1).map_or(first, place);
        steps.push(fused::Step { op, operands: [first, second] }.to_attribute());
        alphas.push(alpha(node).ok_or_else(missing)?);
        let waits = node.inputs().filter(|input| matches!(input, Input::Control { .. }));
        controls.extend(waits.map(|input| input.to_string()));
    }
    let Some(((root, _), others)) = tree.steps.split_last() else { return Ok(()) };
    let node = graph.node_mut(root).ok_or_else(missing)?;
    // Attributes that TensorFlow added begin with `_`; they stay.
    let attributes = node.attr_names().filter(|name| *name != "T" && !name.starts_with('_'));
    for name in attributes.map(str::to_owned).collect::<Vec<_>>() {
        node.remove_attr(&name);
    }
    node.set_op(fused::OP)
        .set_inputs(tree.inputs.iter().chain(&controls))
        .set_attr("N", tree.inputs.len() as i64)
        .set_attr("steps", steps)
        .set_attr("alphas", alphas);
    for ((name, _), sources) in others.iter().zip(tree.sources()) {
        graph.remove_node(name)?;
        removed.insert(name.clone(), sources);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
