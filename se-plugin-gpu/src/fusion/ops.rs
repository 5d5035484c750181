//! The ops that can be fused, with the types of their inputs and results.

use crate::kernels::elementwise::{CAST, fusible};
use crate::launch::is_float;
use se_plugin::graph::Node;
use se_plugin::prelude::*;

/// What a node computes of each element.
#[derive(Debug)]
pub(super) struct Computation {
    /// The number of its op in the shader.
    pub(super) op: u32,
    /// The types of its inputs.
    pub(super) inputs: Vec<DType>,
    /// The type of its output.
    pub(super) output: DType,
    /// The attribute `alpha`, or 0 if the op has none.
    pub(super) alpha: f32,
}

impl Computation {
    /// Returns that of a node, or `None` if it cannot be fused.
    pub(super) fn of(node: &Node<'_>) -> Option<Self> {
        let (op, inputs, output) = match node.op() {
            "Cast" => (CAST, vec![node.attr("SrcT").ok()?], node.attr("DstT").ok()?),
            name => {
                let &(_, op, inputs) = fusible().iter().find(|(known, ..)| *known == name)?;
                let dtype = node.attr("T").ok()?;
                (op, vec![dtype; inputs], dtype)
            }
        };
        let is_cast = |dtype: DType| op == CAST && CAST_FROM.contains(&dtype);
        let can = is_float(output) && inputs.iter().all(|&of| is_float(of) || is_cast(of));
        let alpha = match node.op() {
            "LeakyRelu" | "LeakyReluGrad" => node.attr("alpha").ok()?,
            _ => 0.0,
        };
        can.then_some(Self { op, inputs, output, alpha })
    }
}

/// The types, other than floats, that are converted to floats in trees.
const CAST_FROM: [DType; 5] = [DType::Bool, DType::Int8, DType::Uint8, DType::Int32, DType::Int64];
