use super::*;

const DEVICE: &str = "/job:localhost/replica:0/task:0/device:MY_GPU:0";

fn node(name: &str, op: &str, inputs: &[&str]) -> Node<'static> {
    let mut node = Node::new(name, op);
    node.set_device(DEVICE).set_inputs(inputs).set_attr("T", DType::Float32);
    node
}

/// The change of a variable: by a momentum, after a node.
fn change(number: usize, after: &str) -> [Node<'static>; 6] {
    let name = |what: &str| format!("{what}{number}");
    let of = |name: &str, op, inputs: &[String]| {
        node(name, op, &inputs.iter().map(String::as_str).collect::<Vec<_>>())
    };
    [
        of(&name("v"), "_Arg", &[]),
        of(&name("m"), "_Arg", &[]),
        of(&name("read_v"), "ReadVariableOp", &[name("v"), format!("^{after}")]),
        of(&name("read_m"), "ReadVariableOp", &[name("m")]),
        of(&name("sum"), "AddV2", &[name("read_v"), name("read_m")]),
        of(&name("assign"), "AssignVariableOp", &[name("v"), name("sum")]),
    ]
}

fn changes(count: usize) -> Vec<Node<'static>> {
    let mut nodes = vec![node("x", "Placeholder", &[])];
    nodes.extend((0..count).flat_map(|number| change(number, "x")));
    nodes
}

/// Groups nodes of the graph, and returns the groups and the assignments, with their inputs.
fn grouped(nodes: Vec<Node<'static>>) -> Vec<String> {
    let mut graph = Graph::new();
    nodes.into_iter().for_each(|node| graph.add_node(node).unwrap());
    group(&mut graph, "MY_GPU").unwrap();
    let shown = graph.nodes().filter(|node| [OP, "AssignVariableOp"].contains(&node.op()));
    let text = |node: &Node<'_>| {
        let inputs: Vec<_> = node.inputs().map(|input| input.to_string()).collect();
        format!("{}({})", node.name(), inputs.join(" "))
    };
    shown.map(text).collect()
}

#[test]
fn sums_are_grouped_as_a_launch_has_room() {
    let found = grouped(changes(6));
    let expected = [
        "assign0(v0 sum0/RustGpuMultiTensor)",
        "assign1(v1 sum0/RustGpuMultiTensor:1)",
        "assign2(v2 sum0/RustGpuMultiTensor:2)",
        "assign3(v3 sum0/RustGpuMultiTensor:3)",
        "assign4(v4 sum4/RustGpuMultiTensor)",
        "assign5(v5 sum4/RustGpuMultiTensor:1)",
        "sum0/RustGpuMultiTensor(read_v0 read_m0 read_v1 read_m1 read_v2 read_m2 read_v3 read_m3)",
        "sum4/RustGpuMultiTensor(read_v4 read_m4 read_v5 read_m5)",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_group_waits_for_what_its_nodes_wait_for() {
    let mut nodes = changes(2);
    let sum = nodes.iter_mut().find(|node| node.name() == "sum1").unwrap();
    sum.set_inputs(["read_v1", "read_m1", "^x"]);
    let found = grouped(nodes);
    assert_eq!(found[2], "sum0/RustGpuMultiTensor(read_v0 read_m0 read_v1 read_m1 ^x)");
}

/// `m * rate - g * decay` for each momentum, by two scalars, before the momenta are added.
#[test]
fn programs_share_their_scalars() {
    let mut nodes = changes(5);
    for number in 0..5 {
        let name = |what: &str| format!("{what}{number}");
        let inputs = [name("m"), "rate".into(), name("g"), "decay".into()];
        let mut tree = node(&name("tree"), fused::OP, &[]);
        tree.set_inputs(inputs)
            .set_attr("Tinputs", vec![DType::Float32; 4])
            .set_attr("steps", vec![1_i64, 2, 3])
            .set_attr("alphas", vec![0.0_f32; 3]);
        nodes.extend([tree, node(&name("set"), "AssignVariableOp", &["x", &name("tree")])]);
        nodes.push(node(&name("g"), "Placeholder", &[]));
        // The sum comes after the momentum has changed.
        let read = nodes.iter_mut().find(|node| node.name() == name("read_m")).unwrap();
        read.set_inputs([name("m"), format!("^{}", name("set"))]);
    }
    nodes.extend(["rate", "decay"].map(|name| node(name, "Placeholder", &[])));
    let found = grouped(nodes);
    let expected = [
        "tree0/RustGpuMultiTensor(rate decay m0 g0 m1 g1 m2 g2 m3 g3)",
        "sum0/RustGpuMultiTensor(read_v0 read_m0 read_v1 read_m1 read_v2 read_m2 read_v3 read_m3)",
    ];
    for group in expected {
        assert!(found.iter().any(|text| text == group), "{group}: {found:#?}");
    }
    // The fifth is alone.
    assert!(found.iter().any(|text| text == "assign4(v4 sum4)"), "{found:#?}");
}

#[test]
fn a_sum_that_depends_on_another_is_not_in_its_group() {
    let mut nodes = changes(2);
    nodes.push(node("y", "Square", &["x", "^assign1"]));
    nodes.extend([change(2, "y"), change(3, "y")].into_iter().flatten());
    let found = grouped(nodes);
    let expected = [
        "sum0/RustGpuMultiTensor(read_v0 read_m0 read_v1 read_m1)",
        "sum2/RustGpuMultiTensor(read_v2 read_m2 read_v3 read_m3)",
    ];
    assert_eq!(found[4..], expected, "{found:#?}");
}

#[test]
fn other_sums_stay() {
    let stay = |nodes: Vec<Node<'static>>| {
        let found = grouped(nodes);
        assert_eq!(found[..2], ["assign0(v0 sum0)", "assign1(v1 sum1)"]);
    };
    let changes_of_a_sum: [fn(&mut Node<'_>); 4] = [
        |sum| _ = sum.set_attr("T", DType::Float16),
        |sum| _ = sum.set_attr("T", DType::Int64),
        |sum| _ = sum.set_op("Sub"),
        |sum| _ = sum.set_device(DEVICE.replace("GPU:0", "GPU:1")),
    ];
    for change in changes_of_a_sum {
        let mut nodes = changes(2);
        let sum = nodes.iter_mut().find(|node| node.name() == "sum1").unwrap();
        change(sum);
        stay(nodes);
    }
    // Its value has another use, or a node waits for it; and a loop.
    for more in
        [node("y", "Square", &["sum1"]), node("y", "NoOp", &["^sum0"]), node("y", "Enter", &["x"])]
    {
        let mut nodes = changes(2);
        nodes.push(more);
        stay(nodes);
    }
}

#[test]
fn sums_of_one_branch_are_grouped() {
    let flow = [
        node("other", "Placeholder", &[]),
        node("switch", "Switch", &["v0", "x"]),
        node("same", "Switch", &["v1", "x"]),
        node("another", "Switch", &["v1", "other"]),
        node("merge", "Merge", &["switch", "same:1"]),
        node("after", "Identity", &["switch:1"]),
    ];
    let with = |[first, second]: [&str; 2]| {
        let mut nodes = changes(2);
        nodes.extend(flow.clone());
        for (name, handle) in [("read_v0", first), ("read_v1", second)] {
            let read = nodes.iter_mut().find(|node| node.name() == name).unwrap();
            read.set_inputs([handle]);
        }
        grouped(nodes).len() == 3
    };
    for same in
        [["switch", "same"], ["switch:1", "same:1"], ["after", "same:1"], ["merge", "merge"]]
    {
        assert!(with(same), "{same:?}");
    }
    for other in [
        ["switch", "same:1"],
        ["switch", "v1"],
        ["switch", "another"],
        ["switch", "merge"],
        ["merge", "v1"],
    ] {
        assert!(!with(other), "{other:?}");
    }
}

/// The conversion of a variable, with what uses it or waits for it.
fn conversion(number: usize, users: &[&str]) -> Vec<Node<'static>> {
    let name = |what: &str| format!("{what}{number}");
    let mut cast = node(&name("cast"), "Cast", &[]);
    cast.set_inputs([name("read")])
        .set_attr("SrcT", DType::Float32)
        .set_attr("DstT", DType::Float16);
    let mut read = node(&name("read"), "ReadVariableOp", &[]);
    read.set_inputs([name("v")]);
    let mut nodes = vec![node(&name("v"), "_Arg", &[]), read, cast];
    nodes.extend(users.iter().enumerate().map(|(at, user)| {
        let mut of = node(&format!("user{number}_{at}"), "MatMul", &[]);
        of.set_inputs([user.replace('#', &number.to_string())]);
        of
    }));
    nodes
}

#[test]
fn parameters_are_converted_together() {
    let mut nodes = conversion(0, &["cast#"]);
    nodes.extend(conversion(1, &["cast#", "^cast#"]));
    nodes.extend(conversion(2, &["cast#"]));
    let mut placed = node("placed", "MatMul", &["cast2"]);
    placed.set_attr("_class", vec!["loc:@cast2".to_owned()]);
    nodes.push(placed);
    let mut graph = Graph::new();
    nodes.into_iter().for_each(|node| graph.add_node(node).unwrap());
    group(&mut graph, "MY_GPU").unwrap();
    let of = |name: &str| {
        let node = graph.node(name).unwrap();
        let inputs = node.inputs().map(|input| format!(" {input}"));
        format!("{}{}", node.op(), inputs.collect::<String>())
    };
    let group = "cast0/RustGpuMultiTensor";
    assert_eq!(of(group), format!("{OP} read0 read1 read2"));
    assert_eq!(of("user0_0"), format!("MatMul {group}"));
    assert!(graph.node("cast0").is_none());
    // What others wait for, or are placed with, has its name.
    assert_eq!(of("cast1"), format!("Identity {group}:1"));
    assert_eq!((of("user1_0"), of("user1_1")), ("MatMul cast1".into(), "MatMul ^cast1".into()));
    assert_eq!((of("cast2"), of("placed")), (format!("Identity {group}:2"), "MatMul cast2".into()));
}

#[test]
fn gradients_are_converted_together_before_the_branch_that_has_them() {
    let nodes = |user: &'static str| {
        let mut nodes = vec![node("x", "Placeholder", &[]), node("flag", "Placeholder", &[])];
        for number in 0..2 {
            let mut cast = node(&format!("cast{number}"), "Cast", &["x"]);
            cast.set_attr("SrcT", DType::Float16).set_attr("DstT", DType::Float32);
            let mut of = node(&format!("user{number}"), user, &[]);
            of.set_inputs([format!("cast{number}"), "flag".to_owned()]);
            nodes.extend([node(&format!("of{number}"), "Tanh", &["x"]), cast, of]);
        }
        nodes[3].set_inputs(["of0"]);
        nodes[6].set_inputs(["of1"]);
        nodes
    };
    assert_eq!(grouped(nodes("Switch")), ["cast0/RustGpuMultiTensor(of0 of1)"]);
    assert!(grouped(nodes("MatMul")).is_empty());
}
