use super::*;
use se_plugin::kernel::DType;

const DEVICE: &str = "/job:localhost/replica:0/task:0/device:MY_GPU:0";

fn node(name: &str, op: &str, inputs: &[&str]) -> Node<'static> {
    let mut node = Node::new(name, op);
    node.set_device(DEVICE).set_inputs(inputs).set_attr("T", DType::Float32);
    node
}

fn read(name: &str, inputs: &[&str]) -> Node<'static> {
    node(name, "ReadVariableOp", inputs)
}

/// Two reads of a variable, a square of each, and the nodes that write to it.
fn reads(writers: impl IntoIterator<Item = Node<'static>>) -> Vec<Node<'static>> {
    let mut nodes = vec![
        node("v", "_Arg", &[]),
        read("a", &["v"]),
        read("b", &["v"]),
        node("square_a", "Square", &["a"]),
        node("square_b", "Square", &["b"]),
        node("out", "MatMul", &["square_a", "square_b", "^square_b"]),
    ];
    nodes.extend(writers);
    nodes
}

/// Merges nodes of the graph, and returns which are left, with their inputs.
fn left(nodes: Vec<Node<'static>>) -> Vec<String> {
    let mut graph = Graph::new();
    nodes.into_iter().for_each(|node| graph.add_node(node).unwrap());
    merge(&mut graph, |node| node.is_on("MY_GPU"), |node| node.op() == "Square").unwrap();
    let text = |node: &Node<'_>| {
        let inputs: Vec<_> = node.inputs().map(|input| input.to_string()).collect();
        format!("{}({})", node.name(), inputs.join(" "))
    };
    graph.nodes().map(text).collect()
}

#[track_caller]
fn are_merged(nodes: Vec<Node<'static>>) {
    let left = left(nodes);
    assert!(left.contains(&String::from("out(square_a square_a ^square_a)")), "{left:?}");
    assert!(!left.iter().any(|node| node.starts_with("square_b(")), "{left:?}");
}

#[track_caller]
fn stay(nodes: Vec<Node<'static>>) {
    let all = nodes.len();
    let left = left(nodes);
    assert_eq!(left.len(), all, "{left:?}");
}

#[test]
fn reads_and_what_is_computed_from_them_are_merged() {
    assert_eq!(left(reads([])), ["v()", "a(v)", "square_a(a)", "out(square_a square_a ^square_a)"]);
    // A write that waits for both, directly or through others, and one that both wait for.
    are_merged(reads([node("write", "AssignVariableOp", &["v", "out"])]));
    are_merged(reads([node("write", "AssignVariableOp", &["v", "v", "^a", "^b"])]));
    are_merged(reads([node("call", "StatefulPartitionedCall", &["v", "^a", "^square_b"])]));
    let mut nodes = reads([node("write", "AssignVariableOp", &["v", "v"])]);
    nodes[1] = read("a", &["v", "^write"]);
    nodes[2] = read("b", &["v", "^write"]);
    are_merged(nodes);
    let left = left(reads([node("write", "AssignVariableOp", &["v", "out", "^a", "^b"])]));
    assert_eq!(left[4], "write(v out ^a)");
}

#[test]
fn reads_with_a_write_between_them_stay() {
    // It waits for one, for none, or for either.
    stay(reads([node("write", "AssignVariableOp", &["v", "v", "^a"])]));
    stay(reads([node("write", "AssignVariableOp", &["v", "square_b"])]));
    stay(reads([node("write", "AssignAddVariableOp", &["v", "v"])]));
    stay(reads([node("call", "PartitionedCall", &["v"])]));
    stay(reads([
        node("merge", "Merge", &["square_a", "square_b"]),
        node("write", "AssignVariableOp", &["v", "v", "^merge"]),
    ]));
    let mut nodes = reads([node("write", "AssignVariableOp", &["v", "v", "^a"])]);
    nodes[2] = read("b", &["v", "^write"]);
    stay(nodes);
    // One waits for another node than the other.
    let mut nodes = reads([node("write", "AssignVariableOp", &["v", "out"])]);
    nodes[2] = read("b", &["v", "^square_a"]);
    stay(nodes);
}

#[test]
fn reads_of_a_handle_that_others_may_have_stay() {
    stay(reads([node("other", "Identity", &["v"])]));
    let mut nodes = reads([]);
    nodes[0] = node("v", "VarHandleOp", &[]);
    stay(nodes);
    stay(reads([node("loop", "Enter", &["out"])]));
    stay(reads([node("reference", "VariableV2", &[])]));
}

#[test]
fn what_depends_on_others_stays() {
    let mut nodes = reads([]);
    nodes.extend([
        node("x", "MatMul", &["square_a"]),
        node("c", "Const", &[]),
        node("also_c", "Const", &[]),
        node("power", "Square", &["a", "c"]),
        node("also_power", "Square", &["b", "also_c"]),
        node("product", "Square", &["a", "x"]),
        node("also_product", "Square", &["b", "x"]),
    ]);
    let left = left(nodes);
    let expected = ["c()", "also_c()", "power(a c)", "product(a x)", "also_product(a x)"];
    assert_eq!(left[5..], expected);
}

#[test]
fn nodes_that_differ_stay() {
    let changes: [fn(&mut Node<'_>); 4] = [
        |b| _ = b.set_attr("T", DType::Float16),
        |b| _ = b.set_attr("more", true),
        |b| _ = b.set_device("/job:localhost/replica:0/task:0/device:MY_GPU:1"),
        |b| _ = b.set_device("/job:localhost/replica:0/task:0/device:CPU:0"),
    ];
    for change in changes {
        let mut nodes = reads([]);
        change(&mut nodes[2]);
        stay(nodes);
    }
    let mut nodes = reads([]);
    nodes[2].set_attr("_output_shapes", true);
    are_merged(nodes);
}

#[test]
fn a_node_that_must_stay_is_not_used() {
    let mut nodes = reads([]);
    nodes[5].set_attr("_class", vec![String::from("loc:@square_b")]);
    let left = left(nodes);
    assert_eq!(left[3..], ["square_b(a)", "out(square_a square_a ^square_a)"]);
}
