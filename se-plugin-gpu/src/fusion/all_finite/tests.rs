use super::*;
use se_plugin::graph::Constant;

const DEVICE: &str = "/job:localhost/replica:0/task:0/device:MY_GPU:0";

/// As TensorFlow's own passes leave the check of two gradients.
const NODES: &str = "
    a Placeholder
    b Conv2DBackpropFilter a a
    half Cast a
    float Cast half
    of_a IsFinite float
    all_a All of_a zero
    of_b IsFinite b
    shaped Reshape of_b shape
    all_b All shaped four
    list Pack all_a all_b
    all All list zero
    used If all
";

fn replaced(lines: &str) -> Graph<'static> {
    let mut graph = Graph::new();
    let constants = [("zero", &[0][..]), ("four", &[0, 1, 2, 3]), ("shape", &[2, 2, 3, 3])];
    for (name, value) in constants {
        let mut node = Node::new(name, "Const");
        node.set_device(DEVICE).set_attr("value", Constant::of_ints(value));
        graph.add_node(node).unwrap();
    }
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<_> = line.split_whitespace().collect();
        let mut node = Node::new(words[0], words[1]);
        node.set_device(DEVICE).set_inputs(&words[2..]);
        match words[1] {
            "All" => node.set_attr("keep_dims", false),
            "Pack" => node.set_attr("axis", 0_i64),
            "Cast" if words[0] == "half" => node.set_attr("DstT", DType::Float16),
            "Cast" => node.set_attr("SrcT", DType::Float16).set_attr("DstT", DType::Float32),
            _ => node.set_attr("T", DType::Float32),
        };
        graph.add_node(node).unwrap();
    }
    replace(&mut graph, "MY_GPU").unwrap();
    graph
}

#[test]
fn the_checks_of_all_gradients_become_one() {
    let graph = replaced(NODES);
    let all = graph.node("all").unwrap();
    assert_eq!(all.op(), OP);
    let inputs: Vec<_> = all.inputs().map(|input| input.to_string()).collect();
    // What is converted without loss is read before it.
    assert_eq!(inputs, ["half", "b"]);
    assert_eq!(all.attr::<Vec<DType>>("T").unwrap(), [DType::Float16, DType::Float32]);
    let names: Vec<_> = graph.nodes().map(Node::name).collect();
    assert_eq!(names, ["a", "b", "half", "all", "used"]);
}

#[test]
fn what_may_be_no_scalar_stays() {
    for (from, to) in [
        // Axes are left.
        ("all_b All shaped four", "all_b All shaped zero"),
        ("all All list zero", "all All list four"),
        ("all_a All of_a zero", "all_a All of_a all_b"),
        ("of_a IsFinite", "of_a IsNan"),
        ("list Pack all_a all_b", "list Concat all_a all_b"),
    ] {
        let lines = NODES.replacen(from, to, 1);
        assert_ne!(lines, NODES, "{from}");
        assert_eq!(replaced(&lines).node("all").unwrap().op(), "All", "{to}");
    }
}
