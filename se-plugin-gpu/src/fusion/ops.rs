//! The ops that can be fused, with the types of their inputs and results.

use super::matcher::Extent;
use crate::kernels::elementwise::{CAST, FUSIBLE, LOGICAL, PREDICATES};
use crate::kernels::fused::{ADD_N, BIAS_ADD, SELECT};
use crate::kernels::moments::MOMENTS;
use crate::launch::{is_float, is_short};
use se_plugin::graph::Node;
use se_plugin::prelude::*;
use std::iter;

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
        let dtype = |name: &str| node.attr::<DType>(name).ok();
        let (op, inputs, output) = match node.op() {
            "Cast" => (CAST, vec![dtype("SrcT")?], dtype("DstT")?),
            "SelectV2" => (SELECT, vec![DType::Bool, dtype("T")?, dtype("T")?], dtype("T")?),
            "BiasAdd" => (BIAS_ADD, vec![dtype("T")?; 2], dtype("T")?),
            "AddN" => {
                let count = usize::try_from(node.attr::<i64>("N").ok()?).ok()?;
                (ADD_N, vec![dtype("T")?; count], dtype("T")?)
            }
            name => Self::elementwise(name, || dtype("T"))?,
        };
        let alpha = match node.op() {
            "LeakyRelu" | "LeakyReluGrad" => node.attr("alpha").ok()?,
            _ => 0.0,
        };
        let can = inputs.iter().chain([&output]).all(|&dtype| is_float(dtype));
        let is_plain = |dtype: DType| is_float(dtype) || dtype == DType::Bool;
        let can = match op {
            CAST => {
                is_plain(output) && inputs.iter().all(|&of| is_plain(of) || WHOLE.contains(&of))
            }
            SELECT => is_plain(output),
            // Where the channels come first, they are not the last axis.
            BIAS_ADD => can && node.attr::<String>("data_format").ok()? == "NHWC",
            // The kernel rounds a sum of several once.
            ADD_N => can && (inputs.len() == 2 || inputs.len() > 2 && output == DType::Float32),
            _ if output == DType::Bool => {
                let must_fit = node.attr::<bool>("incompatible_shape_error").unwrap_or(true);
                must_fit && inputs.iter().all(|&dtype| is_plain(dtype))
            }
            _ => can,
        };
        can.then_some(Self { op, inputs, output, alpha })
    }

    /// Returns number and types of an op in the tables of elementwise ops. `dtype` returns the type of its attribute.
    fn elementwise(
        name: &str,
        dtype: impl FnOnce() -> Option<DType>,
    ) -> Option<(u32, Vec<DType>, DType)> {
        let find = |table: &[(&str, u32, usize)]| {
            table.iter().find(|(known, ..)| *known == name).map(|&(_, op, inputs)| (op, inputs))
        };
        if let Some((op, inputs)) = find(LOGICAL) {
            return Some((op, vec![DType::Bool; inputs], DType::Bool));
        }
        if let Some((op, inputs)) = find(PREDICATES) {
            return Some((op, vec![dtype()?; inputs], DType::Bool));
        }
        let (op, inputs) = find(FUSIBLE)?;
        let dtype = dtype()?;
        Some((op, vec![dtype; inputs], dtype))
    }

    /// Returns how many steps it takes.
    pub(super) fn steps(&self) -> usize {
        match self.op {
            ADD_N => self.inputs.len() - 1,
            _ if self.is_widening() => 0,
            _ => 1,
        }
    }

    /// Returns whether it is a conversion that changes no value: the shader has 16-bit floats as float32.
    pub(super) fn is_widening(&self) -> bool {
        let is_short = self.inputs.iter().all(|&dtype| is_short(dtype));
        self.op == CAST && self.output == DType::Float32 && is_short
    }

    /// Returns the operands of its steps, by the places of its own operands and of the first step's result.
    pub(super) fn operands(&self, places: &[usize], result: usize) -> Vec<[usize; 3]> {
        let Some((&first, others)) = places.split_first() else { return Vec::new() };
        match self.op {
            // Each adds one more.
            ADD_N => {
                let sums = iter::once(first).chain(result..);
                sums.zip(others).map(|(sum, &next)| [sum, next, sum]).collect()
            }
            _ => vec![[0, 1, 2].map(|at| places.get(at).copied().unwrap_or(first))],
        }
    }
}

/// Returns how many elements the result of a node has: few are those of parameters and statistics.
pub(super) fn extent(node: &Node<'_>) -> Extent {
    match node.op() {
        "Const" | "ReadVariableOp" | MOMENTS => Extent::Small,
        "Identity" | "Reshape" | "Squeeze" => Extent::OfInputs,
        _ if Computation::of(node).is_some() => Extent::OfInputs,
        _ => Extent::Large,
    }
}

/// Returns whether equal nodes with this one's op compute the same, in any type. Other ops do, too, but the scalars of
/// optimizers need these alone.
pub(super) fn is_pure(node: &Node<'_>) -> bool {
    let mut elementwise = [FUSIBLE, PREDICATES, LOGICAL].into_iter().flatten();
    elementwise.any(|(op, ..)| *op == node.op())
        || ["Cast", "Identity", "Select", "SelectV2"].contains(&node.op())
}

/// The types, other than floats and bool, that are converted in trees.
const WHOLE: [DType; 4] = [DType::Int8, DType::Uint8, DType::Int32, DType::Int64];
