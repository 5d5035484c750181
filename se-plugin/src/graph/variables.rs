//! Ops on variables for which the plugin has no kernel: a read, the same computation with values, and an assignment.
//!
//! The device computes what it has kernels for. The CPU computes the rest, by TensorFlow's own kernel for the op on a
//! temporary variable, so that all results are the CPU's. If the op is about rows, only these are copied to the CPU.
//!
//! The read waits for everything that the node waited for, including its values: a value may depend on an earlier update of
//! the same variable, and then TensorFlow has removed the redundant control input. The last node has the original's name,
//! so nodes that wait for that name wait for the assignments.

use super::lowering::waits;
use super::{Constant, DType, Graph, Input, Node, PartialShape};
use crate::kernel::variable_ops::{Output, Recipe, VariableOp};
use std::collections::HashMap;
use tf_plugin_core::Result;

/// Returns whether the plugin has a kernel of this op for these types in its attributes.
pub(crate) type HasKernel = fn(op: &str, types: &[(&str, DType)]) -> bool;

/// The shared name of variables that exist once an execution of `VarHandleOp`, and are deleted with their last handle.
const ANONYMOUS: &str = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

/// Attributes that the ops on variables and those on values share.
const SHARED: [&str; 8] = [
    "Tindices",
    "Index",
    "begin_mask",
    "end_mask",
    "ellipsis_mask",
    "new_axis_mask",
    "shrink_axis_mask",
    "bad_indices_policy",
];

/// A node to replace.
struct Replacement<'a, 'g> {
    graph: &'a mut Graph<'g>,
    node: Node<'g>,
    op: &'static VariableOp,
    has_kernel: HasKernel,
    /// The type of the variables.
    dtype: DType,
    /// The CPU of the same task.
    cpu: String,
    handles: Vec<String>,
    values: Vec<String>,
    /// What each variable held.
    reads: Vec<String>,
}

/// The new values of the variables, if they change, and the output.
#[derive(Default)]
struct Computed {
    variables: Vec<String>,
    output: Option<String>,
}

/// Replaces a node, if it is an op on variables for which the plugin has no kernel.
pub(super) fn replace(graph: &mut Graph<'_>, name: &str, has_kernel: HasKernel) -> Result<()> {
    let Some(node) = graph.node(name).cloned() else { return Ok(()) };
    let Some(op) = VariableOp::of(node.op()) else { return Ok(()) };
    let types = node.attr_names().filter_map(|name| Some((name, node.attr::<DType>(name).ok()?)));
    let dtype = op.dtype.map_or(Some(DType::Int64), |name| node.attr(name).ok());
    let (control, data): (Vec<_>, Vec<_>) =
        node.inputs().partition(|input| matches!(input, Input::Control { .. }));
    // TensorFlow has kernels for variants on all devices.
    let Some(dtype) = dtype.filter(|&dtype| dtype != DType::Variant) else { return Ok(()) };
    if has_kernel(op.op, &types.collect::<Vec<_>>())
        || data.len() != op.handles.len() + op.inputs.len()
    {
        return Ok(());
    }
    let (handles, values) = data.split_at(op.handles.len());
    let of_others =
        |input: &&Input<'_>| !handles.iter().any(|handle| handle.node() == input.node());
    let others: Vec<_> = values.iter().filter(of_others).copied().collect();
    let waits = waits(&others, &control);
    let text = |inputs: &[Input<'_>]| inputs.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (handles, values) = (text(handles), text(values));
    let cpu = match node.device().split_once("/device:") {
        Some((task, _)) => format!("{task}/device:CPU:0"),
        None => String::from("/device:CPU:0"),
    };
    let mut replacement =
        Replacement { graph, op, has_kernel, dtype, cpu, handles, values, reads: Vec::new(), node };
    replacement.read(&waits)?;
    let computed = match replacement.on_device()? {
        Some(computed) => computed,
        None => replacement.on_cpu()?,
    };
    replacement.finish(&computed)
}

impl<'g> Replacement<'_, 'g> {
    /// Adds a node, and returns its name.
    fn add(
        &mut self,
        name: &str,
        op: &str,
        device: &str,
        inputs: &[&str],
        set: impl FnOnce(&mut Node<'g>),
    ) -> Result<String> {
        let name = self.graph.free_name(&format!("{}/{name}", self.node.name()));
        let mut node = Node::new(&*name, op);
        node.set_device(device).set_inputs(inputs);
        set(&mut node);
        self.graph.add_node(node)?;
        Ok(name)
    }

    /// Adds a node on the device.
    fn add_here(
        &mut self,
        op: &str,
        inputs: &[&str],
        set: impl FnOnce(&mut Node<'g>),
    ) -> Result<String> {
        let device = self.node.device().to_owned();
        self.add(op, op, &device, inputs, set)
    }

    /// Adds a node on the CPU.
    fn add_on_cpu(
        &mut self,
        op: &str,
        inputs: &[&str],
        set: impl FnOnce(&mut Node<'g>),
    ) -> Result<String> {
        let device = self.cpu.clone();
        self.add(op, op, &device, inputs, set)
    }

    /// Adds a constant. It waits for the read, so that it is in the same loop.
    fn add_constant(
        &mut self,
        device: &str,
        dtype: DType,
        shape: &[i64],
        content: &[u8],
    ) -> Result<String> {
        let wait = format!("^{}", self.reads[0]);
        self.add("Const", "Const", device, &[&wait], |node| {
            node.set_attr("dtype", dtype).set_attr("value", Constant::new(dtype, shape, content));
        })
    }

    /// Adds a constant of int32 on the CPU.
    fn add_int32(&mut self, shape: &[i64], value: i32) -> Result<String> {
        let cpu = self.cpu.clone();
        self.add_constant(&cpu, DType::Int32, shape, &value.to_le_bytes())
    }

    /// Reads the variables once all of this has happened.
    fn read(&mut self, waits: &[String]) -> Result<()> {
        let device = self.node.device().to_owned();
        for handle in self.handles.clone() {
            let inputs: Vec<_> = [&handle].into_iter().chain(waits).map(String::as_str).collect();
            let dtype = self.dtype;
            let read = self.add("read", "ReadVariableOp", &device, &inputs, |node| {
                node.set_attr("dtype", dtype);
            })?;
            self.reads.push(read);
        }
        Ok(())
    }

    /// Returns the type of the indices.
    fn index_type(&self) -> DType {
        self.node.attr("Tindices").unwrap_or(DType::Int32)
    }

    /// Returns whether the device has a kernel for [`gather`](Self::gather).
    fn gathers(&self) -> bool {
        let (dtype, index) = (self.dtype, self.index_type());
        let types = [("Tparams", dtype), ("Tindices", index), ("Taxis", DType::Int32)];
        (self.has_kernel)("GatherV2", &types)
    }

    /// Computes on the device, if that has the kernels.
    fn on_device(&mut self) -> Result<Option<Computed>> {
        match self.op.recipe {
            Recipe::Op(op, attribute) => {
                let shared = SHARED.iter();
                let shared = shared.filter_map(|&name| Some((name, self.node.attr(name).ok()?)));
                let types: Vec<_> = shared.chain([(attribute, self.dtype)]).collect();
                let has = (self.has_kernel)(op, &types);
                has.then(|| self.by_op(op, attribute)).transpose()
            }
            Recipe::Gather if self.gathers() => {
                let batches = self.node.attr::<i32>("batch_dims").unwrap_or(0);
                let (read, indices) = (self.reads[0].clone(), self.values[0].clone());
                let output = Some(self.gather(&read, &indices, batches)?);
                Ok(Some(Computed { output, ..Computed::default() }))
            }
            Recipe::None | Recipe::Gather => Ok(None),
            Recipe::Scatter(op) => self.scatter(op),
            Recipe::Formula(formula) => self.formula(formula),
            Recipe::FormulaIf(attribute, formula, otherwise) => {
                // Without the attribute it has its default, as in `update_slots`.
                let default = attribute == "update_slots";
                let is = self.node.attr::<bool>(attribute).unwrap_or(default);
                self.formula(if is { formula } else { otherwise })
            }
        }
    }

    /// Computes by one op on the value of the variable.
    fn by_op(&mut self, op: &str, attribute: &str) -> Result<Computed> {
        let inputs: Vec<_> = [&self.reads[0]].into_iter().chain(&self.values).cloned().collect();
        let inputs: Vec<_> = inputs.iter().map(String::as_str).collect();
        let (original, dtype) = (self.node.clone(), self.dtype);
        let result = self.add_here(op, &inputs, |node| {
            node.set_attr(attribute, dtype);
            for name in SHARED {
                if let Some(value) = original.raw_attr(name) {
                    node.set_raw_attr(name, value);
                }
            }
        })?;
        Ok(match self.op.writes {
            true => Computed { variables: vec![result], output: None },
            false => Computed { variables: Vec::new(), output: Some(result) },
        })
    }

    fn gather(&mut self, from: &str, indices: &str, batches: i32) -> Result<String> {
        let (dtype, index, device) = (self.dtype, self.index_type(), self.node.device().to_owned());
        let axis = self.add_constant(&device, DType::Int32, &[], &batches.to_le_bytes())?;
        self.add_here("GatherV2", &[from, indices, &axis], |node| {
            node.set_attr("Tparams", dtype)
                .set_attr("Tindices", index)
                .set_attr("Taxis", DType::Int32);
            node.set_attr("batch_dims", i64::from(batches));
        })
    }

    /// Changes rows on the device. `TensorScatter…` takes indices with one more dimension, and updates for each: a scalar
    /// is repeated.
    fn scatter(&mut self, op: &str) -> Result<Option<Computed>> {
        let dtype = self.dtype;
        let mut index = self.index_type();
        let has = |index| (self.has_kernel)(op, &[("T", dtype), ("Tindices", index)]);
        // Indices of int32 would go to the host and back for `ExpandDims`.
        let widens = index == DType::Int32
            && (self.has_kernel)("Cast", &[("SrcT", DType::Int32), ("DstT", DType::Int64)])
            && has(DType::Int64);
        let broadcast = [("T", dtype), ("Tidx", DType::Int32)];
        if !has(index) || !(self.has_kernel)("BroadcastTo", &broadcast) {
            return Ok(None);
        }
        let (read, mut indices, updates) =
            (self.reads[0].clone(), self.values[0].clone(), self.values[1].clone());
        let of_index = self.shape(&indices, index)?;
        let of_variable = self.shape(&read, dtype)?;
        let [one, end] = [self.add_int32(&[1], 1)?, self.add_int32(&[1], 0)?];
        let row = self.add_on_cpu("StridedSlice", &[&of_variable, &one, &end, &one], |node| {
            node.set_attr("T", DType::Int32)
                .set_attr("Index", DType::Int32)
                .set_attr("end_mask", 1_i64);
            for mask in ["begin_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"] {
                node.set_attr(mask, 0_i64);
            }
        })?;
        let axis = self.add_int32(&[], 0)?;
        let shape = self.add_on_cpu("ConcatV2", &[&of_index, &row, &axis], |node| {
            node.set_attr("T", DType::Int32).set_attr("Tidx", DType::Int32).set_attr("N", 2_i64);
        })?;
        let updates = self.add_here("BroadcastTo", &[&updates, &shape], |node| {
            node.set_attr("T", dtype).set_attr("Tidx", DType::Int32);
        })?;
        if widens {
            indices = self.add_here("Cast", &[&indices], |node| {
                node.set_attr("SrcT", DType::Int32).set_attr("DstT", DType::Int64);
                node.set_attr("Truncate", false);
            })?;
            index = DType::Int64;
        }
        let device = self.node.device().to_owned();
        let places = self.expand(&device, &indices, index)?;
        self.tensor_scatter(op, &[&read, &places, &updates], index)
            .map(|result| Some(Computed { variables: vec![result], output: None }))
    }

    fn shape(&mut self, of: &str, dtype: DType) -> Result<String> {
        self.add_here("Shape", &[of], |node| {
            node.set_attr("T", dtype).set_attr("out_type", DType::Int32);
        })
    }

    /// Adds a dimension behind the others.
    fn expand(&mut self, device: &str, indices: &str, index: DType) -> Result<String> {
        let axis = self.add_constant(device, DType::Int32, &[], &(-1_i32).to_le_bytes())?;
        self.add("ExpandDims", "ExpandDims", device, &[indices, &axis], |node| {
            node.set_attr("T", index).set_attr("Tdim", DType::Int32);
        })
    }

    fn tensor_scatter(&mut self, op: &str, inputs: &[&str], index: DType) -> Result<String> {
        let dtype = self.dtype;
        self.add_here(op, inputs, |node| {
            node.set_attr("T", dtype).set_attr("Tindices", index);
        })
    }

    /// Computes a formula on the device.
    fn formula(&mut self, formula: &str) -> Result<Option<Computed>> {
        let ops = formula.split_ascii_whitespace().filter_map(operation);
        let has = |(op, _)| (self.has_kernel)(op, &[("T", self.dtype)]);
        let Some(one) = one(self.dtype).filter(|_| { ops }.all(has)) else { return Ok(None) };
        let names = self.op.handles.iter().chain(self.op.inputs);
        let values = self.reads.iter().chain(&self.values).cloned();
        let mut named: HashMap<&str, String> = names.copied().zip(values).collect();
        let mut stack: Vec<String> = Vec::new();
        let (dtype, device) = (self.dtype, self.node.device().to_owned());
        for word in formula.split_ascii_whitespace() {
            if let Some((op, count)) = operation(word) {
                let inputs = stack.split_off(stack.len().saturating_sub(count));
                let inputs: Vec<_> = inputs.iter().map(String::as_str).collect();
                stack.push(self.add_here(op, &inputs, |node| {
                    node.set_attr("T", dtype);
                })?);
            } else if let Some(name) = word.strip_prefix('=') {
                named.extend(stack.pop().map(|value| (name, value)));
            } else if let Some(value) = named.get(word) {
                stack.push(value.clone());
            } else {
                // The only number is 1.
                stack.push(self.add_constant(&device, dtype, &[], &one)?);
            }
        }
        let variables = self.op.handles.iter().filter_map(|name| named.remove(name)).collect();
        Ok(Some(Computed { variables, output: None }))
    }

    /// Computes on the CPU, by the same op on temporary variables.
    fn on_cpu(&mut self) -> Result<Computed> {
        let (dtype, index) = (self.dtype, self.index_type());
        let by_rows = self.gathers()
            && (self.has_kernel)("TensorScatterUpdate", &[("T", dtype), ("Tindices", index)]);
        let Some(at) = self.op.rows().filter(|_| by_rows) else {
            let reads = self.reads.clone();
            return self.in_temporaries(&reads);
        };
        // Rows that are changed twice are in the temporary once: all changes see those before.
        let indices = self.values[at].clone();
        let shape = self.shape(&indices, index)?;
        let flat = self.add_int32(&[1], -1)?;
        let flat = self.reshape(&indices, &flat, index)?;
        let unique = self.add_on_cpu("Unique", &[&flat], |node| {
            node.set_attr("T", index).set_attr("out_idx", index);
        })?;
        self.values[at] = self.reshape(&format!("{unique}:1"), &shape, index)?;
        let reads = self.reads.clone();
        let rows: Result<Vec<_>> = reads.iter().map(|read| self.gather(read, &unique, 0)).collect();
        let computed = self.in_temporaries(&rows?)?;
        let cpu = self.cpu.clone();
        let places = self.expand(&cpu, &unique, index)?;
        let all = reads.iter().zip(&computed.variables);
        let all = all.map(|(read, rows)| {
            self.tensor_scatter("TensorScatterUpdate", &[read, &places, rows], index)
        });
        Ok(Computed { variables: all.collect::<Result<_>>()?, output: computed.output })
    }

    fn reshape(&mut self, value: &str, shape: &str, dtype: DType) -> Result<String> {
        self.add_on_cpu("Reshape", &[value, shape], |node| {
            node.set_attr("T", dtype).set_attr("Tshape", DType::Int32);
        })
    }

    /// Runs the op on the CPU, on temporary variables with these values.
    fn in_temporaries(&mut self, values: &[String]) -> Result<Computed> {
        let dtype = self.dtype;
        let mut inputs = Vec::new();
        let mut waits = Vec::new();
        for value in values {
            // The control input keeps it in the same branch or loop.
            let temporary = self.add_on_cpu("VarHandleOp", &[&format!("^{value}")], |node| {
                node.set_attr("dtype", dtype).set_attr("shape", PartialShape::unknown());
                node.set_attr("container", String::new());
                node.set_attr("shared_name", String::from(ANONYMOUS));
            })?;
            let assigned = self.add_on_cpu("AssignVariableOp", &[&temporary, value], |node| {
                node.set_attr("dtype", dtype).set_attr("validate_shape", false);
            })?;
            inputs.push(temporary);
            waits.push(format!("^{assigned}"));
        }
        let temporaries = inputs.clone();
        inputs.extend(self.values.iter().cloned());
        inputs.extend(waits);
        let original = self.node.clone();
        let inputs: Vec<_> = inputs.iter().map(String::as_str).collect();
        let run = self.add_on_cpu(original.op(), &inputs, |node| {
            for name in original.attr_names().filter(|&name| name != "_class") {
                node.set_raw_attr(name, original.raw_attr(name).unwrap_or_default());
            }
        })?;
        let mut computed = Computed::default();
        if self.op.writes {
            for temporary in temporaries {
                let read =
                    self.add_on_cpu("ReadVariableOp", &[&temporary, &format!("^{run}")], |node| {
                        node.set_attr("dtype", dtype);
                    })?;
                computed.variables.push(read);
            }
        }
        computed.output = (!matches!(self.op.output, Output::Nothing)).then_some(run);
        Ok(computed)
    }

    /// Assigns the new values, and makes the node return the output.
    fn finish(mut self, computed: &Computed) -> Result<()> {
        let dtype = self.dtype;
        let output = match self.op.output {
            Output::Nothing => None,
            Output::Typed(dtype) => Some(dtype),
            Output::Attribute(name) => Some(self.node.attr(name)?),
        };
        let control = self.node.inputs().filter(|input| matches!(input, Input::Control { .. }));
        let mut inputs: Vec<String> = control.map(|input| input.to_string()).collect();
        let assign = |node: &mut Node<'_>| {
            // As the op, this does not change the shape.
            node.set_attr("dtype", dtype).set_attr("validate_shape", true);
        };
        if let ([handle], [value], None) = (&self.handles[..], &computed.variables[..], output) {
            inputs.splice(..0, [handle.clone(), value.clone()]);
            return self.become_one("AssignVariableOp", inputs, assign);
        }
        let handles = self.handles.clone().into_iter().zip(self.reads.clone());
        // A formula may leave a variable as it is.
        let changes = handles.zip(&computed.variables).filter(|((_, read), value)| read != *value);
        for ((handle, _), value) in changes {
            let assigned = self.add_here("AssignVariableOp", &[&handle, value], assign)?;
            inputs.push(format!("^{assigned}"));
        }
        if let (Some(dtype), Some(value)) = (output, &computed.output) {
            inputs.insert(0, value.clone());
            return self.become_one("Identity", inputs, |node| {
                node.set_attr("T", dtype);
            });
        }
        self.become_one("NoOp", inputs, |_| {})
    }

    /// Makes the node another op. TensorFlow's own attributes, such as `_class`, stay.
    fn become_one(
        self,
        op: &str,
        inputs: Vec<String>,
        set: impl FnOnce(&mut Node<'g>),
    ) -> Result<()> {
        let Some(node) = self.graph.node_mut(self.node.name()) else { return Ok(()) };
        for attribute in self.node.attr_names().filter(|name| !name.starts_with('_')) {
            node.remove_attr(attribute);
        }
        node.set_op(op).set_inputs(inputs);
        set(node);
        Ok(())
    }
}

/// Returns the op of a formula's word, and how many values it takes.
fn operation(word: &str) -> Option<(&'static str, usize)> {
    Some(match word {
        "+" => ("AddV2", 2),
        "-" => ("Sub", 2),
        "*" => ("Mul", 2),
        "/" => ("RealDiv", 2),
        "max" => ("Maximum", 2),
        "abs" => ("Abs", 1),
        "square" => ("Square", 1),
        "sqrt" => ("Sqrt", 1),
        "rsqrt" => ("Rsqrt", 1),
        _ => return None,
    })
}

/// Returns the bytes of 1, for the types that optimizers have on devices.
fn one(dtype: DType) -> Option<Vec<u8>> {
    Some(match dtype {
        DType::Float16 => vec![0, 0x3c],
        DType::Bfloat16 => vec![0x80, 0x3f],
        DType::Float32 => 1_f32.to_le_bytes().to_vec(),
        DType::Float64 => 1_f64.to_le_bytes().to_vec(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
