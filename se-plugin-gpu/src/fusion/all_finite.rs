//! Whether all gradients are finite, which Keras' `LossScaleOptimizer` writes as two ops for each gradient, and as a list of all of them.

use super::pattern::{View, change, has_type, operands, placed, remove_unused, shorter};
use crate::kernels::all_finite::OP;
use se_plugin::Result;
use se_plugin::graph::{Graph, Input, Node};
use se_plugin::kernel::DType;

/// Replaces what it finds on devices of this type.
pub(super) fn replace(graph: &mut Graph<'_>, device_type: &str) -> Result<()> {
    let mut unused = Vec::new();
    for all in placed(graph, device_type, "All") {
        let Some((tensors, types)) = find(View(graph), &all) else { continue };
        let Some(node) = graph.node_mut(&all) else { continue };
        unused.extend(operands(node).map(|input| input.node().to_owned()));
        change(node, OP, tensors).set_attr("T", types);
    }
    if unused.is_empty() { Ok(()) } else { remove_unused(graph, unused) }
}

/// Returns the tensors and their types, if a node is whether all of them are finite.
fn find(view: View<'_, '_>, all: &str) -> Option<(Vec<String>, Vec<DType>)> {
    let (list, axes) = reduced(view, Input::Data { node: all, output: 0 })?;
    let list = view
        .node(list, &["Pack"])
        .filter(|list| list.attr::<i64>("axis").is_ok_and(|axis| axis == 0))?;
    // Elements of a list have one shape: if one is a scalar, all are, and so is the result.
    let mut has_scalar = false;
    let mut found = (Vec::new(), Vec::new());
    for element in operands(list) {
        let (predicates, axes) = reduced(view, element)?;
        let [of] = view.operands(view.reshaped(predicates), &["IsFinite"])?;
        has_scalar = has_scalar || rank(view, predicates).or_else(|| rank(view, of)) == Some(axes);
        let (of, dtype) = shorter(view, of).or_else(|| {
            let is_float = view.node(view.reshaped(predicates), &["IsFinite"])?;
            let types = [DType::Float32, DType::Float16, DType::Bfloat16];
            Some((of, types.into_iter().find(|&dtype| has_type(is_float, "T", dtype))?))
        })?;
        found.0.push(of.to_string());
        found.1.push(dtype);
    }
    (axes == 1 && has_scalar).then_some(found)
}

/// Returns what is reduced by `All` over the first axes, and their number.
fn reduced<'g>(view: View<'g, '_>, all: Input<'g>) -> Option<(Input<'g>, usize)> {
    view.node(all, &["All"])?.attr::<bool>("keep_dims").ok().filter(|keeps| !keeps)?;
    let [of, axes] = view.operands(all, &["All"])?;
    Some((of, view.first_axes(axes)?))
}

/// Returns the number of axes of a tensor, if its op tells it.
fn rank<'g>(view: View<'g, '_>, tensor: Input<'g>) -> Option<usize> {
    if let Some([_, shape]) = view.operands(tensor, &["Reshape"]) {
        return Some(view.constant(shape)?.ints()?.len());
    }
    let tensor = view.operands(tensor, &["Cast"]).map_or(tensor, |[of]| of);
    let Input::Data { node, output: 0 } = view.plain(tensor) else { return None };
    match view.0.node(node).map(Node::op)? {
        "BiasAddGrad" => Some(1),
        "MatMul" => Some(2),
        "Conv2DBackpropFilter" | "DepthwiseConv2dNativeBackpropFilter" => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
