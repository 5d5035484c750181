//! The graph pass: finds attention and normalizations, merges equal nodes, and fuses chains of elementwise ops into one launch.

mod all_finite;
mod attention;
mod common;
mod matcher;
mod multi_tensor;
mod normalization;
mod ops;
mod pattern;

use crate::gpus::{GpuPlatform, multiplies_quickly};
use crate::kernels::fused::{self, MOST_INPUTS, MOST_STEPS};
use crate::kernels::{all_finite as finite, attention as heads, moments, multi_tensor as multi};
use crate::settings;
use matcher::{Limits, Operand, Tree};
use ops::Computation;
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
        attention::replace(graph, device_type::<P>(), fuses_attention::<P>)?;
        normalization::replace(graph, device_type::<P>())?;
        all_finite::replace(graph, device_type::<P>())?;
        fuse(graph, device_type::<P>())?;
        multi_tensor::group(graph, device_type::<P>())
    }
}

/// Returns whether there are the plugin's own ops in this process, for the only platform of the library.
fn can_fuse<P: GpuPlatform>() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        settings::fuses(P::NAME).unwrap_or(false)
            && [
                fused::OP,
                moments::MOMENTS,
                moments::BATCH_GRADIENT,
                moments::LAYER_GRADIENT,
                finite::OP,
                heads::ATTENTION,
                heads::GRADIENT,
                multi::OP,
            ]
            .into_iter()
            .all(|op| host_has_op(op) && has_kernel::<P>(op, "T", DType::Float32))
    })
}

/// Returns whether attention of these elements is one op. Its products use no matrix units, so by default those of 16 bits stay where
/// a GPU multiplies them by matrix units or by a library.
fn fuses_attention<P: GpuPlatform>(dtype: DType) -> bool {
    let setting = settings::fuses_attention(P::NAME).unwrap_or(Some(false));
    setting.unwrap_or_else(|| dtype == DType::Float32 || !multiplies_quickly(dtype))
}

/// Fuses all trees of a graph that are on devices of this type.
fn fuse(graph: &mut Graph<'_>, device_type: &str) -> Result<()> {
    common::merge(graph, |node| is_placed_on(node, device_type), ops::is_pure)?;
    let limits = Limits { steps: MOST_STEPS, inputs: MOST_INPUTS };
    let trees = matcher::find(graph, |node| kind(node, device_type), ops::extent, limits)?;
    let mut removed = HashMap::new();
    trees.iter().try_for_each(|tree| replace(graph, tree, &mut removed))?;
    matcher::redirect(graph, &removed);
    Ok(())
}

/// Returns whether a node is on a device of this type.
///
/// A graph for an export is not placed, so its devices have no job. It must not get the plugin's ops.
fn is_placed_on(node: &Node<'_>, device_type: &str) -> bool {
    node.is_on(device_type) && node.device().starts_with("/job:")
}

/// Returns the device of a node that can be fused, and how many steps it takes.
fn kind(node: &Node<'_>, device_type: &str) -> Option<(String, usize)> {
    if !is_placed_on(node, device_type) {
        return None;
    }
    let inputs = node.inputs().filter(|input| matches!(input, Input::Data { .. })).count();
    let computation = Computation::of(node).filter(|of| of.inputs.len() == inputs)?;
    Some((node.device().to_owned(), computation.steps()))
}

/// Replaces a tree by one node, with the name of its last. Adds the removed nodes to `removed`, with their sources.
fn replace(
    graph: &mut Graph<'_>,
    tree: &Tree,
    removed: &mut HashMap<String, BTreeSet<String>>,
) -> Result<()> {
    let (mut steps, mut alphas, mut controls) = (Vec::new(), Vec::new(), BTreeSet::new());
    let (mut types, mut dtype) = (vec![DType::Float32; tree.inputs.len()], DType::Float32);
    // The places of the nodes' results.
    let mut results = Vec::new();
    for (at, (name, operands)) in tree.steps.iter().enumerate() {
        let node = graph.node(name).ok_or_else(pattern::missing)?;
        let computation = Computation::of(node).ok_or_else(pattern::missing)?;
        let waits = node.inputs().filter(|input| matches!(input, Input::Control { .. }));
        controls.extend(waits.map(|input| input.to_string()));
        let place = |operand: &Operand| match *operand {
            Operand::Input(at) => at,
            Operand::Step(at) => results[at],
        };
        let places: Vec<_> = operands.iter().map(place).collect();
        for (operand, &of) in operands.iter().zip(&computation.inputs) {
            if let Operand::Input(at) = *operand {
                types[at] = of;
            }
        }
        dtype = computation.output;
        if computation.is_widening() && at + 1 < tree.steps.len() {
            results.extend(places);
            continue;
        }
        for operands in computation.operands(&places, MOST_INPUTS + steps.len()) {
            let step = fused::Step { op: computation.op, dtype, operands };
            steps.push(i64::from(step.to_attribute()?));
            alphas.push(computation.alpha);
        }
        results.push(MOST_INPUTS + steps.len() - 1);
    }
    let Some(((root, _), others)) = tree.steps.split_last() else { return Ok(()) };
    let node = graph.node_mut(root).ok_or_else(pattern::missing)?;
    // The controls are also those of the root.
    pattern::change(node, fused::OP, [])
        .set_inputs(tree.inputs.iter().chain(&controls))
        .set_attr("Tinputs", types)
        .set_attr("T", dtype)
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
