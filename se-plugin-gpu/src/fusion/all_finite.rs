//! Whether all gradients are finite, which Keras' `LossScaleOptimizer` writes as two ops for each gradient, and as a list of all of them.

use super::matcher::REFERENCES;
use super::pattern::{View, awaited, change, has_type, operands, placed, remove_unused, shorter};
use crate::kernels::all_finite::OP;
use se_plugin::Result;
use se_plugin::graph::{Graph, Input, Node};
use se_plugin::kernel::DType;
use std::cell::RefCell;

/// Replaces what it finds on devices of this type.
pub(super) fn replace(graph: &mut Graph<'_>, device_type: &str) -> Result<()> {
    let mut unused = Vec::new();
    if graph.nodes().any(|node| REFERENCES.contains(&node.op())) {
        return Ok(());
    }
    for all in placed(graph, device_type, "All") {
        let seen = RefCell::default();
        let view = View::new(graph, &seen);
        let Some((mut tensors, types)) = find(view, &all) else { continue };
        // Nodes between wait, and those that they wait for are needed for this one anyway.
        let own: Vec<_> = graph.node(&all).into_iter().flat_map(awaited).collect();
        let waits = view.awaited().into_iter().filter(|name| !own.contains(name));
        tensors.extend(waits.map(|name| format!("^{name}")));
        let Some(node) = graph.node_mut(&all) else { continue };
        unused.extend(operands(node).map(|input| input.node().to_owned()));
        change(node, OP, tensors).set_attr("T", types);
    }
    if unused.is_empty() { Ok(()) } else { remove_unused(graph, unused) }
}

/// Returns the tensors and their types, if a node is whether all of them are finite.
fn find(view: View<'_, '_>, all: &str) -> Option<(Vec<String>, Vec<DType>)> {
    let (list, axes) = reduced(view, view.graph.node(all)?)?;
    let list = view
        .node(list, &["Pack"])
        .filter(|list| list.attr::<i64>("axis").is_ok_and(|axis| axis == 0))?;
    // Elements of a list have one shape: if one is a scalar, all are, and so is the result.
    let mut has_scalar = false;
    let mut found = (Vec::new(), Vec::new());
    for element in operands(list) {
        let (predicates, axes) = reduced(view, view.node(element, &["All"])?)?;
        let whole = view.reshaped(predicates);
        let is_finite =
            view.node(whole, &["IsFinite"]).filter(|node| node.device() == list.device())?;
        let of = operands(is_finite).next()?;
        let is_reshaped = whole != view.plain(predicates);
        let rank = rank(view, if is_reshaped { predicates } else { of });
        has_scalar = has_scalar || rank == Some(axes);
        let (of, dtype) = shorter(view, of).or_else(|| {
            let types = [DType::Float32, DType::Float16, DType::Bfloat16];
            Some((of, types.into_iter().find(|&dtype| has_type(is_finite, "T", dtype))?))
        })?;
        found.0.push(of.to_string());
        found.1.push(dtype);
    }
    (axes == 1 && has_scalar).then_some(found)
}

/// Returns what is reduced by `All` over the first axes, and their number.
fn reduced<'g>(view: View<'g, '_>, all: &'g Node<'_>) -> Option<(Input<'g>, usize)> {
    all.attr::<bool>("keep_dims").ok().filter(|keeps| !keeps)?;
    let [of, axes] = operands(all).collect::<Vec<_>>().try_into().ok()?;
    Some((of, view.first_axes(axes)?))
}

/// Returns the number of axes of a tensor, if its op tells it.
fn rank<'g>(view: View<'g, '_>, tensor: Input<'g>) -> Option<usize> {
    if let Some([_, shape]) = view.operands(tensor, &["Reshape"]) {
        return Some(view.constant(shape)?.ints()?.len());
    }
    let tensor = view.operands(tensor, &["Cast"]).map_or(tensor, |[of]| of);
    let Input::Data { node, output: 0 } = view.plain(tensor) else { return None };
    match view.graph.node(node).map(Node::op)? {
        "BiasAddGrad" => Some(1),
        "MatMul" => Some(2),
        "Conv2DBackpropFilter" | "DepthwiseConv2dNativeBackpropFilter" => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
