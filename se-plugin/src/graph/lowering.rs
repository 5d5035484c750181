//! Branches and loops that TensorFlow has not lowered.
//!
//! Before TensorFlow places nodes, it replaces `If` and `While` by the ops of their branches and bodies. Each op is
//! then placed on its own, in a graph that passes see. TensorFlow does not do so in functions that were traced for XLA,
//! as Keras requests by default: there a node runs all of its branch on its device, even ops without a kernel, and no
//! pass sees them. So this puts switches and merges around calls of the branches, and a loop around calls of the
//! condition and the body. TensorFlow places the nodes of a function that is called, and passes see them.

use super::{DType, Graph, Input, Node};
use core::slice::from_ref;
use tf_plugin_core::Result;

/// The attribute that decides whether TensorFlow lowers a node. A node that has it is left as it is.
const LOWER: &str = "_lower_using_switch_merge";

/// The attribute that Python sets on each `If` and `While` that it traces for XLA, in place of [`LOWER`]. Other nodes
/// stay: TensorFlow does not lower them because an executor or a user does not support switches.
const FOR_XLA: &str = "_xla_propagate_compile_time_consts";

/// A node that can be lowered.
struct ControlFlowNode {
    name: String,
    device: String,
    inputs: Vec<String>,
    control: Vec<String>,
    kind: Kind,
    has_effects: bool,
}

enum Kind {
    If { inputs: Vec<DType>, outputs: Vec<DType>, then: Vec<u8>, otherwise: Vec<u8> },
    While { types: Vec<DType>, condition: Vec<u8>, body: Vec<u8>, parallel: i64 },
}

/// The replacement of a node: its outputs, and the nodes after which all of it has run.
struct Lowered {
    outputs: Vec<String>,
    done: Vec<String>,
}

impl ControlFlowNode {
    fn of(node: &Node<'_>) -> Option<Self> {
        let is_flow = matches!(node.op(), "If" | "StatelessIf" | "While" | "StatelessWhile");
        if !is_flow || node.has_attr(LOWER) || !node.attr::<bool>(FOR_XLA).is_ok_and(|is| is) {
            return None;
        }
        let function = |name| node.raw_attr(name).map(<[u8]>::to_vec);
        let types = |name| {
            let types = node.attr::<Vec<DType>>(name).ok();
            types.filter(|types| types.iter().copied().all(has_kernels))
        };
        let kind = match node.op() {
            "If" | "StatelessIf" if node.attr::<DType>("Tcond").ok()? == DType::Bool => Kind::If {
                inputs: types("Tin")?,
                outputs: types("Tout")?,
                then: function("then_branch")?,
                otherwise: function("else_branch")?,
            },
            "While" | "StatelessWhile" => Kind::While {
                types: types("T").filter(|types| types.iter().any(changes))?,
                condition: function("cond")?,
                body: function("body")?,
                parallel: node.attr("parallel_iterations").unwrap_or(10),
            },
            _ => return None,
        };
        let is_control = |input: &Input<'_>| matches!(input, Input::Control { .. });
        let (control, inputs): (Vec<_>, Vec<_>) = node.inputs().partition(is_control);
        let expected = match &kind {
            Kind::If { inputs, .. } => 1 + inputs.len(),
            Kind::While { types, .. } => types.len(),
        };
        let is_stateless = node.op().starts_with("Stateless");
        (inputs.len() == expected).then(|| Self {
            name: node.name().to_owned(),
            device: node.device().to_owned(),
            inputs: inputs.iter().map(ToString::to_string).collect(),
            control: waits(if is_stateless { &[] } else { &inputs }, &control),
            kind,
            has_effects: !is_stateless,
        })
    }

    /// Adds a node on the device of this one, and returns its name.
    fn add(
        &self,
        graph: &mut Graph<'_>,
        op: &str,
        inputs: &[&[String]],
        set: impl FnOnce(&mut Node<'_>),
    ) -> Result<String> {
        let name = graph.free_name(&format!("{}/{op}", self.name));
        let mut node = Node::new(&*name, op);
        node.set_device(&self.device).set_inputs(inputs.concat());
        set(&mut node);
        graph.add_node(node)?;
        Ok(name)
    }

    /// Adds an `Identity`, which runs only if the branch of its input is taken.
    fn add_pivot(&self, graph: &mut Graph<'_>, dtype: DType, inputs: &[String]) -> Result<String> {
        self.add(graph, "Identity", &[inputs], |node| {
            node.set_attr("T", dtype);
        })
    }

    /// Adds a node for each of some types, its attribute `T`. A `Merge` has two inputs. Returns the names.
    fn add_each(
        &self,
        graph: &mut Graph<'_>,
        op: &str,
        types: &[DType],
        inputs: impl Fn(usize) -> Vec<String>,
    ) -> Result<Vec<String>> {
        let each = types.iter().enumerate();
        let added = each.map(|(index, &dtype)| {
            self.add(graph, op, &[&inputs(index)], |node| {
                node.set_attr("T", dtype);
                if op == "Merge" {
                    // The number of its inputs.
                    node.set_attr("N", 2_i64);
                }
            })
        });
        added.collect()
    }

    /// Adds the call of a function.
    fn add_call(
        &self,
        graph: &mut Graph<'_>,
        function: &[u8],
        [inputs, outputs]: [&[DType]; 2],
        values: &[&[String]],
    ) -> Result<String> {
        let call = if self.has_effects { "StatefulPartitionedCall" } else { "PartitionedCall" };
        self.add(graph, call, values, |node| {
            node.set_attr("Tin", inputs.to_vec()).set_attr("Tout", outputs.to_vec());
            node.set_raw_attr("f", function);
            for name in ["config", "config_proto", "executor_type"] {
                node.set_attr(name, String::new());
            }
        })
    }

    fn lower(&self, graph: &mut Graph<'_>) -> Result<Lowered> {
        match &self.kind {
            Kind::If { inputs, outputs, then, otherwise } => {
                self.lower_if(graph, [inputs, outputs], [otherwise, then])
            }
            Kind::While { types, condition, body, parallel } => {
                self.lower_while(graph, types, [condition, body], *parallel)
            }
        }
    }

    /// Lowers an `If`. The branches are in the order of the outputs of a switch: false, true.
    fn lower_if(
        &self,
        graph: &mut Graph<'_>,
        [inputs, outputs]: [&[DType]; 2],
        branches: [&[u8]; 2],
    ) -> Result<Lowered> {
        let types = [&[DType::Bool], inputs].concat();
        let switched = |index: usize| {
            [&[self.inputs[index].clone(), self.inputs[0].clone()][..], &self.control].concat()
        };
        let switches = self.add_each(graph, "Switch", &types, switched)?;
        let mut calls = Vec::new();
        let mut done = Vec::new();
        for (side, function) in branches.into_iter().enumerate() {
            let taken: Vec<_> = switches.iter().map(|name| output(name, side)).collect();
            let pivot = self.add_pivot(graph, DType::Bool, &taken[..1])?;
            // A branch without inputs must not run if it is not taken.
            let values = [&taken[1..], &[format!("^{pivot}")]];
            let call = self.add_call(graph, function, [inputs, outputs], &values)?;
            done.push(self.add_pivot(graph, DType::Bool, &[pivot, format!("^{call}")])?);
            calls.push(call);
        }
        let types = [&[DType::Bool], outputs].concat();
        let merged = |index: usize| match index.checked_sub(1) {
            None => done.clone(),
            Some(index) => calls.iter().map(|call| output(call, index)).collect(),
        };
        let mut merges = self.add_each(graph, "Merge", &types, merged)?;
        let done = vec![merges.remove(0)];
        Ok(Lowered { outputs: merges, done })
    }

    fn lower_while(
        &self,
        graph: &mut Graph<'_>,
        types: &[DType],
        [condition, body]: [&[u8]; 2],
        parallel: i64,
    ) -> Result<Lowered> {
        let mut enters = self.inputs.clone();
        for (enter, dtype) in enters.iter_mut().zip(types) {
            // A variable's handle is the same in each iteration, and stays where the variable is.
            let source = graph.node(Input::parse(enter).node()).filter(|_| !changes(dtype));
            let device = source.map_or(&*self.device, Node::device).to_owned();
            *enter = self.add(graph, "Enter", &[from_ref(enter), &self.control], |node| {
                node.set_device(device).set_attr("T", *dtype);
                node.set_attr("frame_name", self.name.clone());
                node.set_attr("is_constant", !changes(dtype));
                node.set_attr("parallel_iterations", parallel);
            })?;
        }
        let places: Vec<_> = (0..types.len()).filter(|&place| changes(&types[place])).collect();
        let changing: Vec<_> = places.iter().map(|&place| types[place]).collect();
        let merged = |index: usize| vec![enters[places[index]].clone()];
        let merges = self.add_each(graph, "Merge", &changing, merged)?;
        // Replaces the values that change.
        let with = |values: Vec<String>| {
            let mut all = enters.clone();
            places.iter().zip(values).for_each(|(&place, value)| all[place] = value);
            all
        };
        // The control input makes nodes without inputs run once an iteration, even if TensorFlow inlines the functions.
        let values: [&[_]; 2] = [&with(merges.clone()), &[format!("^{}", merges[0])]];
        let condition = self.add_call(graph, condition, [types, &[DType::Bool]], &values)?;
        let condition = self.add(graph, "LoopCond", &[&[condition]], |_| {})?;
        let switched = |index: usize| vec![merges[index].clone(), condition.clone()];
        let switches = self.add_each(graph, "Switch", &changing, switched)?;
        let left = |index: usize| vec![output(&switches[index], 0)];
        let exits = self.add_each(graph, "Exit", &changing, left)?;
        let taken: Vec<_> = switches.iter().map(|name| output(name, 1)).collect();
        let pivot = self.add_pivot(graph, changing[0], &taken[..1])?;
        let values: [&[_]; 2] = [&with(taken), &[format!("^{pivot}")]];
        let body = self.add_call(graph, body, [types, types], &values)?;
        // An iteration begins when all of the last one is done, including nodes whose values are not used.
        let next = |index: usize| vec![output(&body, places[index]), format!("^{body}")];
        let next = self.add_each(graph, "NextIteration", &changing, next)?;
        for ((merge, &place), next) in merges.iter().zip(&places).zip(next) {
            if let Some(merge) = graph.node_mut(merge) {
                merge.set_inputs([enters[place].clone(), next]);
            }
        }
        let mut outputs = self.inputs.clone();
        places.iter().zip(&exits).for_each(|(&place, exit)| outputs[place].clone_from(exit));
        Ok(Lowered { outputs, done: exits })
    }

    /// Gives the new outputs to the nodes that used the old ones. The node itself waits for its replacement, so that
    /// others can wait for it. If its value may be fetched by name, it also returns all outputs.
    fn replace(self, graph: &mut Graph<'_>, lowered: &Lowered) {
        let new = |input: Input<'_>| match input {
            Input::Data { node, output } if node == self.name => lowered.outputs.get(output),
            _ => None,
        };
        let wait = format!("^{}", self.name);
        for node in graph.nodes_mut() {
            if node.inputs().any(|input| new(input).is_some()) {
                let inputs = node.inputs();
                let inputs = inputs.map(|input| new(input).cloned().unwrap_or(input.to_string()));
                let mut inputs: Vec<_> = inputs.collect();
                // An output, or a variable's handle, may be available before all variables are changed.
                let may_be_early = |input| self.inputs.contains(input);
                if (self.has_effects || inputs.iter().any(may_be_early)) && !inputs.contains(&wait)
                {
                    inputs.push(wait.clone());
                }
                node.set_inputs(inputs);
            }
        }
        // In a function, values are not fetched by name: results are separate nodes.
        let is_function = graph.nodes().any(|node| matches!(node.op(), "_Arg" | "_Retval"));
        let is_fetched = !lowered.outputs.is_empty()
            && !is_function
            && graph.is_preserved(&self.name).unwrap_or(true);
        let Some(node) = graph.node_mut(&self.name) else { return };
        let attributes: Vec<_> = node.attr_names().map(str::to_owned).collect();
        for name in &attributes {
            node.remove_attr(name);
        }
        let done = lowered.done.iter().map(|name| format!("^{name}"));
        if is_fetched {
            let (Kind::If { outputs: types, .. } | Kind::While { types, .. }) = self.kind;
            node.set_op("IdentityN").set_attr("T", types);
            node.set_inputs(lowered.outputs.iter().cloned().chain(done));
        } else {
            node.set_op("NoOp").set_inputs(done);
        }
    }
}

/// Returns whether all devices have kernels for loops over values of a type.
fn has_kernels(dtype: DType) -> bool {
    use DType::*;
    let floats = [Float16, Bfloat16, Float32, Float64, Complex64, Complex128];
    let integers = [Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64];
    let others = [Bool, String, Resource, Variant];
    floats.contains(&dtype) || integers.contains(&dtype) || others.contains(&dtype)
}

/// Returns whether a loop can change a value of a type.
fn changes(dtype: &DType) -> bool {
    *dtype != DType::Resource
}

/// Returns an output of a node in the form of an input.
fn output(node: &str, output: usize) -> String {
    Input::Data { node, output }.to_string()
}

/// Lowers the branches and loops on devices of a type.
pub(super) fn lower(graph: &mut Graph<'_>, device_type: &str) -> Result<()> {
    let is_flow = |node: &&Node<'_>| node.is_on(device_type) && ControlFlowNode::of(node).is_some();
    let names: Vec<_> = graph.nodes().filter(is_flow).map(|node| node.name().to_owned()).collect();
    for name in names {
        // Read again, because lowering another node may have changed the inputs.
        if let Some(flow) = graph.node(&name).and_then(ControlFlowNode::of) {
            let lowered = flow.lower(graph)?;
            flow.replace(graph, &lowered);
        }
    }
    Ok(())
}

/// Returns the control inputs of a node's replacement, so that all of it runs when the node would have run: those of the
/// node, and its values. TensorFlow has removed the control inputs that the values imply.
pub(super) fn waits(values: &[Input<'_>], control: &[Input<'_>]) -> Vec<String> {
    let mut waits = Vec::new();
    for input in values.iter().chain(control) {
        let wait = Input::Control { node: input.node() }.to_string();
        if !waits.contains(&wait) {
            waits.push(wait);
        }
    }
    waits
}

#[cfg(test)]
mod tests;
