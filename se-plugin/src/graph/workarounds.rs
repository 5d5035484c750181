//! The SDK's own pass: it rewrites what fails on every plugin device.

use super::lowering::lower;
use super::{DType, Graph, Input, Node, OptimizerConfigs, Toggle};
use crate::kernel::workarounds::IN_PLACE;
use tf_plugin_core::Result;

/// Requests XLA, which plugin devices do not support.
const MUST_COMPILE: &str = "_XlaMustCompile";

/// What TensorFlow's arithmetic pass writes in place of what the user wrote, such as a `Mul` for `a + a` and an `AddN`
/// for `a + b + c`. It does so behind the placement, where an op without a kernel is an error.
const REWRITTEN: [&str; 10] =
    ["AddN", "Expm1", "Log1p", "Mul", "Neg", "Reciprocal", "Rsqrt", "Sqrt", "Square", "Sub"];

/// The configuration for a plugin without its own pass: the arithmetic pass runs where the plugin has all kernels
/// that it needs; and for devices of the type `GPU` TensorFlow neither changes images to NCHW nor fuses
/// ops, for which it has kernels of its own on GPUs.
pub(crate) fn configs(
    device_type: &str,
    has_kernel: fn(&str, &str, DType) -> bool,
) -> OptimizerConfigs {
    let mut configs = OptimizerConfigs::default();
    if device_type == "GPU" {
        configs.layout_optimizer = Toggle::Off;
        configs.remapping = Toggle::Off;
    }
    if !REWRITTEN.iter().all(|op| has_kernel(op, "T", DType::Float32)) {
        configs.arithmetic_optimization = Toggle::Off;
    }
    configs
}

/// What the workarounds depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workarounds {
    /// The type of the plugin's devices.
    pub(crate) device_type: &'static str,
    /// Whether the plugin has a kernel of this operation for this type in this attribute.
    pub(crate) has_kernel: fn(op: &str, attribute: &str, dtype: DType) -> bool,
}

impl Workarounds {
    /// Applies the workarounds to the graph.
    pub(crate) fn apply(&self, graph: &mut Graph<'_>) -> Result<()> {
        let mut updates = Vec::new();
        for node in graph.nodes_mut() {
            if !node.is_on(self.device_type) {
                continue;
            }
            node.remove_attr(MUST_COMPILE);
            updates.extend(self.update(node));
        }
        updates.into_iter().try_for_each(|update| update.rewrite(graph))?;
        lower(graph, self.device_type)
    }

    fn update(&self, node: &Node<'_>) -> Option<Update> {
        let update = IN_PLACE.into_iter().find(|update| update.op == node.op())?;
        let op = update.computes;
        let dtype = node.attr::<DType>("dtype").ok()?;
        if (self.has_kernel)(update.op, "dtype", dtype) || !(self.has_kernel)(op, "T", dtype) {
            return None;
        }
        let (mut data, mut control) = (Vec::new(), Vec::new());
        for input in node.inputs() {
            match input {
                Input::Data { .. } => data.push(input.to_string()),
                Input::Control { .. } => control.push(input.to_string()),
            }
        }
        let [variable, value] = data.try_into().ok()?;
        Some(Update {
            name: node.name().to_owned(),
            op,
            dtype,
            device: node.device().to_owned(),
            variable,
            value,
            control,
        })
    }
}

/// A node that changes a variable in place.
struct Update {
    name: String,
    op: &'static str,
    dtype: DType,
    device: String,
    variable: String,
    value: String,
    control: Vec<String>,
}

impl Update {
    /// Makes it a read, an operation and an assignment. The last has the node's name, so whatever waited
    /// for the node waits for all of it. The first waits for all that the node waited for, the value
    /// included: what the value is computed from may be an earlier update of the same variable, and then
    /// TensorFlow has removed the control input that said so again.
    fn rewrite(self, graph: &mut Graph<'_>) -> Result<()> {
        let Self { name, op, dtype, device, variable, value, control } = self;
        let mut read = Node::new(graph.free_name(&format!("{name}/read")), "ReadVariableOp");
        read.set_device(&device).set_attr("dtype", dtype);
        let behind_value = format!("^{}", Input::parse(&value).node());
        let is_new = !control.contains(&behind_value)
            && Input::parse(&variable).node() != Input::parse(&value).node();
        let behind_value = is_new.then_some(&behind_value);
        read.set_inputs([&variable].into_iter().chain(behind_value).chain(&control));
        let mut result = Node::new(graph.free_name(&format!("{name}/{op}")), op);
        result.set_device(&device).set_attr("T", dtype);
        result.set_inputs([read.name(), &value]);
        if let Some(node) = graph.node_mut(&name) {
            node.set_op("AssignVariableOp").set_attr("validate_shape", false);
            node.set_inputs(
                [variable.as_str(), result.name()]
                    .into_iter()
                    .chain(control.iter().map(String::as_str)),
            );
        }
        graph.add_node(read)?;
        graph.add_node(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::workarounds::InPlace;

    #[test]
    fn ops_without_a_kernel_are_not_written() {
        let few = configs("MY_DEVICE", |op, _, _| op != "AddN");
        assert_eq!(few.arithmetic_optimization, Toggle::Off);
        let all = |_: &str, _: &str, dtype| dtype == DType::Float32;
        assert_eq!(configs("MY_DEVICE", all), OptimizerConfigs::default());
        let off = OptimizerConfigs {
            layout_optimizer: Toggle::Off,
            remapping: Toggle::Off,
            ..OptimizerConfigs::default()
        };
        assert_eq!(configs("GPU", all), off);
    }

    const DEVICE: &str = "/job:localhost/replica:0/task:0/device:MY_DEVICE:0";
    const CPU: &str = "/job:localhost/replica:0/task:0/device:CPU:0";

    fn workarounds() -> Workarounds {
        Workarounds {
            device_type: "MY_DEVICE",
            has_kernel: |op, attribute, dtype| {
                ["AddV2", "Sub"].contains(&op) && attribute == "T" && dtype == DType::Float32
            },
        }
    }

    fn node(name: &str, op: &str, device: &str, inputs: &[&str]) -> Node<'static> {
        let mut node = Node::new(name, op);
        node.set_device(device).set_inputs(inputs);
        node
    }

    fn encoded(nodes: impl IntoIterator<Item = Node<'static>>) -> Vec<u8> {
        let mut graph = Graph::new();
        nodes.into_iter().for_each(|node| graph.add_node(node).unwrap());
        graph.encode()
    }

    fn an_update(op: &str, dtype: DType, device: &str) -> Vec<u8> {
        let mut update = node("step/update", op, device, &["v", "d:1", "^before"]);
        update.set_attr("dtype", dtype).set_attr("_class", vec![String::from("loc:@v")]);
        encoded([
            node("v", "_Arg", device, &[]),
            node("d", "Split", device, &[]),
            node("before", "NoOp", device, &[]),
            update,
            node("after", "NoOp", device, &["^step/update"]),
        ])
    }

    fn inputs(graph: &Graph<'_>, name: &str) -> Vec<String> {
        graph.node(name).unwrap().inputs().map(|input| input.to_string()).collect()
    }

    #[test]
    fn updates_of_variables_become_assignments() {
        for InPlace { op, computes: result, .. } in IN_PLACE {
            let bytes = an_update(op, DType::Float32, DEVICE);
            let mut graph = Graph::decode(&bytes).unwrap();
            workarounds().apply(&mut graph).unwrap();
            assert!(graph.is_changed());
            graph.check().unwrap();
            assert_eq!(graph.nodes().count(), 7);
            let ops: Vec<&str> = graph.nodes().map(Node::op).collect();
            let rest =
                ["_Arg", "Split", "NoOp", "AssignVariableOp", "NoOp", "ReadVariableOp", result];
            assert_eq!(ops, rest);

            let read = graph.node("step/update/read").unwrap();
            assert_eq!(inputs(&graph, read.name()), ["v", "^d", "^before"]);
            assert_eq!(read.attr::<DType>("dtype").unwrap(), DType::Float32);
            let computed = graph.node(&format!("step/update/{result}")).unwrap();
            assert_eq!(inputs(&graph, computed.name()), ["step/update/read", "d:1"]);
            assert_eq!(computed.attr::<DType>("T").unwrap(), DType::Float32);
            let assigned = graph.node("step/update").unwrap();
            let expected = ["v", computed.name(), "^before"];
            assert_eq!(inputs(&graph, "step/update"), expected);
            assert_eq!(assigned.attr::<DType>("dtype").unwrap(), DType::Float32);
            assert!(!assigned.attr::<bool>("validate_shape").unwrap());
            assert_eq!(assigned.attr::<Vec<String>>("_class").unwrap(), ["loc:@v"]);
            assert!([read, computed, assigned].iter().all(|node| node.device() == DEVICE));

            // Nothing is left to do.
            let bytes = graph.encode();
            let mut again = Graph::decode(&bytes).unwrap();
            workarounds().apply(&mut again).unwrap();
            assert!(!again.is_changed());
        }
    }

    #[test]
    fn other_updates_stay() {
        let other_device = DEVICE.replace("MY_DEVICE", "MY_DEVICE_TOO");
        for (op, dtype, device) in [
            ("AssignAddVariableOp", DType::Float32, CPU),
            ("AssignAddVariableOp", DType::Float32, &other_device),
            ("AssignAddVariableOp", DType::Int32, DEVICE),
            ("AssignVariableOp", DType::Float32, DEVICE),
        ] {
            let bytes = an_update(op, dtype, device);
            let mut graph = Graph::decode(&bytes).unwrap();
            workarounds().apply(&mut graph).unwrap();
            assert!(!graph.is_changed(), "{op} {dtype:?} {device}");
        }
        let bytes = an_update("AssignAddVariableOp", DType::Float32, DEVICE);
        let mut graph = Graph::decode(&bytes).unwrap();
        let has_kernel = |op: &str, attribute: &str, dtype| {
            dtype == DType::Float32
                && [("AddV2", "T"), ("AssignAddVariableOp", "dtype")].contains(&(op, attribute))
        };
        Workarounds { has_kernel, ..workarounds() }.apply(&mut graph).unwrap();
        assert!(!graph.is_changed(), "the plugin has a kernel that does it in place");
    }

    #[test]
    fn two_updates_get_two_names() {
        let mut nodes = vec![node("v", "_Arg", DEVICE, &[]), node("u/read", "NoOp", DEVICE, &[])];
        for name in ["u", "w"] {
            let mut update = node(name, "AssignSubVariableOp", DEVICE, &["v", "v"]);
            update.set_attr("dtype", DType::Float32);
            nodes.push(update);
        }
        let bytes = encoded(nodes);
        let mut graph = Graph::decode(&bytes).unwrap();
        workarounds().apply(&mut graph).unwrap();
        graph.check().unwrap();
        assert_eq!(graph.nodes().count(), 8);
        assert_eq!(inputs(&graph, "u/Sub"), ["u/read_1", "v"]);
        assert_eq!(inputs(&graph, "u/read_1"), ["v"]);
    }

    /// The second update waits for the first by its value alone, as TensorFlow's dependency optimizer leaves it.
    #[test]
    fn an_update_reads_the_variable_after_its_value_is_there() {
        let mut nodes = vec![node("v", "_Arg", DEVICE, &[]), node("d", "_Arg", DEVICE, &[])];
        let mut first = node("first", "AssignSubVariableOp", DEVICE, &["v", "d"]);
        first.set_attr("dtype", DType::Float32);
        let mut second =
            node("second", "AssignSubVariableOp", DEVICE, &["v", "square:0", "^square"]);
        second.set_attr("dtype", DType::Float32);
        nodes.extend([
            first,
            node("between", "ReadVariableOp", DEVICE, &["v", "^first"]),
            node("square", "Square", DEVICE, &["between"]),
            second,
        ]);
        let bytes = encoded(nodes);
        let mut graph = Graph::decode(&bytes).unwrap();
        workarounds().apply(&mut graph).unwrap();
        graph.check().unwrap();
        assert_eq!(inputs(&graph, "first/read"), ["v", "^d"]);
        assert_eq!(inputs(&graph, "second/read"), ["v", "^square"]);
    }

    #[test]
    fn xla_is_not_asked_for_on_the_device() {
        let call = |name: &str, device: &str| {
            let mut call = node(name, "StatefulPartitionedCall", device, &[]);
            call.set_attr(MUST_COMPILE, true).set_attr("_other", true);
            call
        };
        let bytes = encoded([call("here", DEVICE), call("there", CPU)]);
        let mut graph = Graph::decode(&bytes).unwrap();
        workarounds().apply(&mut graph).unwrap();
        let names: Vec<_> = graph.node("here").unwrap().attr_names().collect();
        assert_eq!(names, ["_other"]);
        let there = graph.node("there").unwrap();
        assert!(there.has_attr(MUST_COMPILE) && !there.is_changed());
    }
}
