//! The SDK's own pass: it rewrites what fails on every plugin device.

use super::lowering::lower;
use super::{DType, Graph, Input, Node, OptimizerConfigs, Toggle};
use crate::kernel::workarounds::IN_PLACE;
use tf_plugin_core::Result;

/// The attribute that requests XLA, which plugin devices do not support.
const MUST_COMPILE: &str = "_XlaMustCompile";

/// The ops that TensorFlow's arithmetic pass inserts in place of the user's, such as a `Mul` for `a + a` and an `AddN`
/// for `a + b + c`. It does so after the placement, when an op without a kernel is an error.
const REWRITTEN: [&str; 10] =
    ["AddN", "Expm1", "Log1p", "Mul", "Neg", "Reciprocal", "Rsqrt", "Sqrt", "Square", "Sub"];

/// Returns the configuration for a plugin without its own pass. The arithmetic pass runs if the plugin has all
/// kernels that it needs. For devices of the type `GPU`, the passes that change images to NCHW and fuse ops are off:
/// they are made for TensorFlow's own GPU kernels.
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

/// The facts that the workarounds depend on.
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
        for node in graph.nodes_mut().filter(|node| node.is_on(self.device_type)) {
            node.remove_attr(MUST_COMPILE);
            updates.extend(self.replacement(node).map(|(op, dtype)| (node.clone(), op, dtype)));
        }
        updates.iter().try_for_each(|(node, op, dtype)| replace(graph, node, op, *dtype))?;
        lower(graph, self.device_type)
    }

    /// Returns the operation that computes the new value for a node that changes a variable in place, and its type, if
    /// the plugin has a kernel of it but none of the node's operation.
    fn replacement(&self, node: &Node<'_>) -> Option<(&'static str, DType)> {
        let update = IN_PLACE.into_iter().find(|update| update.op == node.op())?;
        let dtype = node.attr::<DType>("dtype").ok()?;
        let is_needed = !(self.has_kernel)(update.op, "dtype", dtype)
            && (self.has_kernel)(update.computes, "T", dtype);
        is_needed.then_some((update.computes, dtype))
    }
}

/// Replaces an in-place change of a variable by a read, an operation and an assignment. The assignment has the node's
/// name, so nodes that wait for that name wait for all three. The read waits for everything that the node waited for,
/// including the value: the value may depend on an earlier update of the same variable, and then TensorFlow has removed
/// the redundant control input.
fn replace(graph: &mut Graph<'_>, node: &Node<'_>, op: &str, dtype: DType) -> Result<()> {
    let (mut control, data): (Vec<_>, Vec<_>) =
        node.inputs().partition(|input| matches!(input, Input::Control { .. }));
    let [variable, value] = data[..] else { return Ok(()) };
    let name = node.name();
    let mut result = Node::new(graph.free_name(&format!("{name}/{op}")), op);
    let mut read = Node::new(graph.free_name(&format!("{name}/read")), "ReadVariableOp");
    if let Some(node) = graph.node_mut(name) {
        node.set_op("AssignVariableOp").set_attr("validate_shape", false);
        let computed = Input::Data { node: result.name(), output: 0 };
        node.set_inputs([variable, computed].iter().chain(&control));
    }
    result.set_device(node.device()).set_attr("T", dtype);
    result.set_inputs([Input::Data { node: read.name(), output: 0 }, value]);
    let behind_value = Input::Control { node: value.node() };
    if variable.node() != value.node() && !control.contains(&behind_value) {
        control.insert(0, behind_value);
    }
    read.set_device(node.device()).set_attr("dtype", dtype);
    read.set_inputs([&variable].into_iter().chain(&control));
    graph.add_node(read)?;
    graph.add_node(result)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{DEVICE, graph_of, lines, node};
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

    const CPU: &str = "/job:localhost/replica:0/task:0/device:CPU:0";
    const FEW: Workarounds = Workarounds {
        device_type: "MY_DEVICE",
        has_kernel: |op, attribute, dtype| {
            ["AddV2", "Sub"].contains(&op) && attribute == "T" && dtype == DType::Float32
        },
    };

    fn applied(workarounds: Workarounds, nodes: Vec<Node<'static>>) -> Graph<'static> {
        let mut graph = graph_of(nodes);
        workarounds.apply(&mut graph).unwrap();
        graph.check().unwrap();
        graph
    }

    fn update(name: &str, op: &str, dtype: DType, inputs: &[&str]) -> Node<'static> {
        let mut update = node(name, op, inputs);
        update.set_attr("dtype", dtype).set_attr("_class", vec![String::from("loc:@v")]);
        update
    }

    fn an_update(op: &str, dtype: DType) -> Vec<Node<'static>> {
        vec![
            node("v", "_Arg", &[]),
            node("d", "Split", &[]),
            node("before", "NoOp", &[]),
            update("step/update", op, dtype, &["v", "d:1", "^before"]),
            node("after", "NoOp", &["^step/update"]),
        ]
    }

    #[test]
    fn updates_of_variables_become_assignments() {
        for InPlace { op, computes, .. } in IN_PLACE {
            let graph = applied(FEW, an_update(op, DType::Float32));
            assert!(graph.is_changed());
            let expected = [
                "v = _Arg()",
                "d = Split()",
                "before = NoOp()",
                &format!("step/update = AssignVariableOp(v step/update/{computes} ^before)"),
                "after = NoOp(^step/update)",
                "step/update/read = ReadVariableOp(v ^d ^before)",
                &format!("step/update/{computes} = {computes}(step/update/read d:1)"),
            ];
            assert_eq!(lines(&graph), expected);
            let computed = format!("step/update/{computes}");
            let [assigned, read, computed] = ["step/update", "step/update/read", &computed]
                .map(|name| graph.node(name).unwrap());
            for (node, attribute) in [(assigned, "dtype"), (read, "dtype"), (computed, "T")] {
                assert_eq!(node.attr::<DType>(attribute).unwrap(), DType::Float32);
            }
            assert!(!assigned.attr::<bool>("validate_shape").unwrap());
            assert_eq!(assigned.attr::<Vec<String>>("_class").unwrap(), ["loc:@v"]);

            let again = applied(FEW, graph.nodes().cloned().collect());
            assert!(!again.is_changed(), "nothing is left to do");
        }
    }

    #[test]
    fn other_updates_stay() {
        let other_device = DEVICE.replace("MY_DEVICE", "MY_DEVICE_TOO");
        let own: fn(&str, &str, DType) -> bool = |op, attribute, dtype| {
            dtype == DType::Float32
                && [("AddV2", "T"), ("AssignAddVariableOp", "dtype")].contains(&(op, attribute))
        };
        for (op, dtype, device, has_kernel) in [
            ("AssignAddVariableOp", DType::Float32, CPU, FEW.has_kernel),
            ("AssignAddVariableOp", DType::Float32, &other_device, FEW.has_kernel),
            ("AssignAddVariableOp", DType::Int32, DEVICE, FEW.has_kernel),
            ("AssignVariableOp", DType::Float32, DEVICE, FEW.has_kernel),
            // The plugin has a kernel that does it in place.
            ("AssignAddVariableOp", DType::Float32, DEVICE, own),
        ] {
            let mut nodes = an_update(op, dtype);
            for node in &mut nodes {
                node.set_device(device);
            }
            let graph = applied(Workarounds { has_kernel, ..FEW }, nodes);
            assert!(!graph.is_changed(), "{op} {dtype:?} {device}");
        }
    }

    #[test]
    fn two_updates_get_two_names() {
        let graph = applied(
            FEW,
            vec![
                node("v", "_Arg", &[]),
                node("u/read", "NoOp", &[]),
                update("u", "AssignSubVariableOp", DType::Float32, &["v", "v"]),
                update("w", "AssignSubVariableOp", DType::Float32, &["v", "v"]),
            ],
        );
        let lines = lines(&graph);
        assert_eq!(lines.len(), 8);
        for line in ["u/Sub = Sub(u/read_1 v)", "u/read_1 = ReadVariableOp(v)"] {
            assert!(lines.iter().any(|other| other == line), "{lines:#?}");
        }
    }

    /// Checks an update that waits for another only through its value, as TensorFlow's dependency optimizer leaves it.
    #[test]
    fn an_update_reads_the_variable_after_its_value_is_there() {
        let sub = "AssignSubVariableOp";
        let graph = applied(
            FEW,
            vec![
                node("v", "_Arg", &[]),
                node("d", "_Arg", &[]),
                update("first", sub, DType::Float32, &["v", "d"]),
                node("between", "ReadVariableOp", &["v", "^first"]),
                node("square", "Square", &["between"]),
                update("second", sub, DType::Float32, &["v", "square:0", "^square"]),
            ],
        );
        let lines = lines(&graph);
        for line in ["first/read = ReadVariableOp(v ^d)", "second/read = ReadVariableOp(v ^square)"]
        {
            assert!(lines.iter().any(|other| other == line), "{lines:#?}");
        }
    }

    #[test]
    fn xla_is_not_asked_for_on_the_device() {
        let call = |name: &str, device: &str| {
            let mut call = node(name, "StatefulPartitionedCall", &[]);
            call.set_device(device).set_attr(MUST_COMPILE, true).set_attr("_other", true);
            call
        };
        let graph = applied(FEW, vec![call("here", DEVICE), call("there", CPU)]);
        let names: Vec<_> = graph.node("here").unwrap().attr_names().collect();
        assert_eq!(names, ["_other"]);
        let there = graph.node("there").unwrap();
        assert!(there.has_attr(MUST_COMPILE) && !there.is_changed());
    }
}
