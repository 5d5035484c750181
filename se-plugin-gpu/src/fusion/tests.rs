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
    assert_eq!(names, ["_output_shapes", "Tinputs", "T", "steps", "alphas"]);
    assert_eq!(fused.attr::<DType>("T").unwrap(), DType::Float16);
    assert_eq!(fused.attr::<Vec<DType>>("Tinputs").unwrap(), [DType::Float16; 2]);
    // `AddV2` of the inputs 0 and 1, then `LeakyRelu` of the first step.
    let steps = [0x01_01_00, 0x66_61_00 | 70];
    assert_eq!(fused.attr::<Vec<i64>>("steps").unwrap(), steps);
    assert_eq!(fused.attr::<Vec<f32>>("alphas").unwrap(), [0.0, 0.25]);
}

fn cast(node: &mut Node<'_>, from: DType, to: DType) {
    node.set_op("Cast").set_inputs(["x"]).set_attr("SrcT", from).set_attr("DstT", to);
}

#[test]
fn each_step_and_each_input_has_its_type() {
    let mut nodes = chain();
    cast(&mut nodes[1], DType::Int32, DType::Float16);
    let mut product = node("product", "Mul", &["y:1", "leaky"]);
    product.set_attr("T", DType::Float32);
    let mut middle = node("middle", "Cast", &["leaky"]);
    cast(&mut middle, DType::Float16, DType::Float32);
    middle.set_inputs(["leaky"]);
    product.set_inputs(["y:1", "middle"]);
    nodes[3].set_inputs(["product"]);
    let mut graph =
        graph(nodes.into_iter().chain([middle, product, node("y", "Placeholder", &[])]));
    fuse(&mut graph, "MY_GPU").unwrap();
    let fused = graph.node("product").unwrap();
    let inputs: Vec<_> = fused.inputs().map(|input| input.to_string()).collect();
    assert_eq!(inputs, ["x", "y:1", "^x"]);
    let types = fused.attr::<Vec<DType>>("Tinputs").unwrap();
    assert_eq!(types, [DType::Int32, DType::Float32]);
    assert_eq!(fused.attr::<DType>("T").unwrap(), DType::Float32);
    // `Cast` to the type 1, `LeakyRelu` in it, and `Mul` in the type 0, to which a conversion changes nothing.
    let steps = [0x00_01_00 | 40, 0x66_61_00 | 70, 0x17_10_00 | 2];
    assert_eq!(fused.attr::<Vec<i64>>("steps").unwrap(), steps);
}

/// Where a conversion is the result, its type is.
#[test]
fn a_result_is_converted() {
    let mut last = node("last", "Cast", &["root"]);
    cast(&mut last, DType::Float16, DType::Float32);
    let mut root = node("root", "Tanh", &["x"]);
    root.set_attr("T", DType::Float16);
    last.set_inputs(["root"]);
    let (steps, types, output) = steps_of("last", [root, last, node("out", "MatMul", &["last"])]);
    assert_eq!((steps.len(), steps[1]), (2, 0x66_60_00 | 40));
    assert_eq!((types, output), (vec![DType::Float16], DType::Float32));
}

/// Fuses nodes, and returns steps, types of inputs and type of output of a node.
fn steps_of(
    name: &str,
    nodes: impl IntoIterator<Item = Node<'static>>,
) -> (Vec<i64>, Vec<DType>, DType) {
    let mut graph = graph(nodes);
    fuse(&mut graph, "MY_GPU").unwrap();
    let fused = graph.node(name).unwrap();
    assert_eq!(fused.op(), fused::OP);
    let [steps, types] = ["steps", "Tinputs"];
    (fused.attr(steps).unwrap(), fused.attr(types).unwrap(), fused.attr("T").unwrap())
}

#[test]
fn a_predicate_chooses() {
    let mut both = node("both", "LogicalAnd", &["less", "finite"]);
    both.remove_attr("T");
    let nodes = [
        node("less", "Less", &["x", "y"]),
        node("finite", "IsFinite", &["x"]),
        both,
        node("choice", "SelectV2", &["both", "z", "x"]),
        node("out", "MatMul", &["choice", "choice"]),
    ];
    let (steps, types, output) = steps_of("choice", nodes);
    // The inputs are x, y and z; the first two steps are in any order.
    assert_eq!(types, [DType::Float16; 3]);
    assert_eq!(output, DType::Float16);
    assert_eq!((steps.len(), steps[3]), (4, 0x02_81_00 | 91));
    assert_eq!(steps[2] & 0xfff, 0xb00 | 33);
}

#[test]
fn equality_is_fused_if_shapes_must_fit() {
    let nodes = |must_fit: bool| {
        let mut equal = node("equal", "Equal", &["x", "y"]);
        equal.set_attr("incompatible_shape_error", must_fit);
        [equal, node("not", "LogicalNot", &["equal"]), node("out", "All", &["not"])]
    };
    let (steps, types, output) = steps_of("not", nodes(true));
    assert_eq!(steps, [0x01_0b_00 | 19, 0x66_6b_00 | 71]);
    assert_eq!((types, output), (vec![DType::Float16; 2], DType::Bool));
    let mut graph = graph(nodes(false));
    fuse(&mut graph, "MY_GPU").unwrap();
    assert_eq!(graph.node("not").unwrap().op(), "LogicalNot");
}

#[test]
fn sums_and_biases_are_steps() {
    let nodes = |count: usize, dtype: DType, format: &str| {
        let inputs = ["x", "y", "z", "w"];
        let mut sum = node("sum", "AddN", &inputs[..count]);
        sum.set_attr("N", count as i64).set_attr("T", dtype);
        let mut bias = node("bias", "BiasAdd", &["sum", "b"]);
        bias.set_attr("data_format", format.to_owned()).set_attr("T", dtype);
        [sum, bias, node("out", "MatMul", &["bias", "bias"])]
    };
    let (steps, ..) = steps_of("bias", nodes(2, DType::Float16, "NHWC"));
    assert_eq!(steps, [0x01_01_00 | 93, 0x62_61_00 | 92]);
    // One more at a time.
    let (steps, ..) = steps_of("bias", nodes(4, DType::Float32, "NHWC"));
    assert_eq!(steps, [0x01_00_00 | 93, 0x62_60_00 | 93, 0x73_70_00 | 93, 0x84_80_00 | 92]);
    for (count, dtype, format) in
        [(3, DType::Float16, "NHWC"), (2, DType::Float32, "NCHW"), (1, DType::Float32, "NHWC")]
    {
        let mut graph = graph(nodes(count, dtype, format));
        fuse(&mut graph, "MY_GPU").unwrap();
        assert_eq!(graph.node("bias").unwrap().op(), "BiasAdd", "{count} {dtype} {format}");
    }
}

#[test]
fn other_nodes_stay() {
    let changes: [fn(&mut Node<'_>); 9] = [
        |sum| _ = sum.set_device("/device:MY_GPU:0"),
        |sum| _ = sum.set_device(DEVICE.replace("MY_GPU", "CPU")),
        |sum| _ = sum.set_device(DEVICE.replace("GPU:0", "GPU:1")),
        |sum| _ = sum.set_attr("T", DType::Int64),
        |sum| cast(sum, DType::Float16, DType::Int32),
        |sum| cast(sum, DType::Uint16, DType::Float16),
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
