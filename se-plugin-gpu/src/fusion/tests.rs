use super::*;

const DEVICE: &str = "/job:localhost/replica:0/task:0/device:MY_GPU:0";

fn node(name: &str, op: &str, inputs: &[&str]) -> Node<'static> {
    let mut node = Node::new(name, op);
    node.set_device(DEVICE).set_inputs(inputs).set_attr("T", DType::Float16);
    node
}

fn graph(nodes: impl IntoIterator<Item = Node<'static>>) -> Graph<'static> {
    let mut graph = Graph::new();
    nodes.into_iter().for_each(|node| graph.add_node(node).unwrap());
    graph
}

fn chain() -> [Node<'static>; 4] {
    let mut leaky = node("leaky", "LeakyRelu", &["sum", "^x"]);
    leaky.set_attr("alpha", 0.25_f32).set_attr("_output_shapes", true);
    [
        node("x", "Placeholder", &[]),
        node("sum", "AddV2", &["x", "x:1"]),
        leaky,
        node("out", "MatMul", &["leaky", "leaky"]),
    ]
}

#[test]
fn the_last_node_becomes_the_whole_tree() {
    let mut graph = graph(chain());
    fuse(&mut graph, "MY_GPU").unwrap();
    let names: Vec<_> = graph.nodes().map(Node::name).collect();
    assert_eq!(names, ["x", "leaky", "out"]);
    let fused = graph.node("leaky").unwrap();
    assert_eq!((fused.op(), fused.device()), (fused::OP, DEVICE));
    let inputs: Vec<_> = fused.inputs().map(|input| input.to_string()).collect();
    assert_eq!(inputs, ["x", "x:1", "^x"]);
    let names: Vec<_> = fused.attr_names().collect();
    assert_eq!(names, ["T", "_output_shapes", "N", "steps", "alphas"]);
    assert_eq!(fused.attr::<DType>("T").unwrap(), DType::Float16);
    assert_eq!(fused.attr::<i64>("N").unwrap(), 2);
    // `AddV2` of the inputs 0 and 1, then `LeakyRelu` of the first step.
    let steps = [0x01_00_00, 0x06_06_00 | 70];
    assert_eq!(fused.attr::<Vec<i64>>("steps").unwrap(), steps);
    assert_eq!(fused.attr::<Vec<f32>>("alphas").unwrap(), [0.0, 0.25]);
}

#[test]
fn other_nodes_stay() {
    let changes: [fn(&mut Node<'_>); 8] = [
        |sum| _ = sum.set_device("/device:MY_GPU:0"),
        |sum| _ = sum.set_device(DEVICE.replace("MY_GPU", "CPU")),
        |sum| _ = sum.set_device(DEVICE.replace("GPU:0", "GPU:1")),
        |sum| _ = sum.set_attr("T", DType::Float32),
        |sum| _ = sum.set_attr("T", DType::Int64),
        |sum| _ = sum.remove_attr("T"),
        |sum| _ = sum.set_inputs(["x"]),
        |sum| _ = sum.set_op("LeakyRelu").set_inputs(["x"]),
    ];
    for (turn, change) in changes.into_iter().enumerate() {
        let mut nodes = chain();
        change(&mut nodes[1]);
        let mut graph = graph(nodes);
        fuse(&mut graph, "MY_GPU").unwrap();
        assert_eq!(graph.node("leaky").unwrap().op(), "LeakyRelu", "{turn}");
    }
}
