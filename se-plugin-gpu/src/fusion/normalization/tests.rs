mod groups;

use super::*;
use crate::kernels::moments::MOMENTS;
use se_plugin::graph::Constant;

const DEVICE: &str = "/job:localhost/replica:0/task:0/device:MY_GPU:0";

/// Batch normalization of 20 elements of each channel, and its gradient, as TensorFlow's own passes leave them.
const NODES: &str = "
    x Placeholder
    dy Placeholder
    scale Placeholder
    offset Placeholder
    mean Mean x axes
    squares SquaredDifference x mean
    variance Mean squares axes
    mean_row Squeeze mean
    row Squeeze variance
    sum AddV2 row epsilon
    root Rsqrt sum
    inverse Mul root scale
    of_x Mul x inverse
    of_mean Mul mean_row inverse
    shift Sub offset of_mean
    y AddV2 of_x shift
    dx_direct Mul dy inverse
    products Mul dy x
    doffset Sum dy axes
    dproducts Sum products axes
    negative Neg doffset
    dmean Mul negative inverse
    dmeans Mul negative mean_row
    dinverse AddN dproducts dmeans
    dscale Mul dinverse root
    droot Mul dinverse scale
    dvariance RsqrtGrad root droot
    dmean_kept Reshape dmean kept
    mean_of_all Tile dmean_kept times
    by_mean Mul mean_of_all part
    dvariance_kept Reshape dvariance kept
    variance_of_all Tile dvariance_kept times
    by_variance Mul variance_of_all part
    difference Sub x mean ^by_variance
    twice Mul two by_variance
    dx_variance Mul twice difference
    dx AddN dx_direct dx_variance by_mean
    used MatMul dx dscale
    used_too MatMul y doffset
";

/// A graph of these lines: a node's name, op and inputs.
fn graph(lines: &str) -> Graph<'static> {
    let mut graph = Graph::new();
    let constants = [
        ("axes", Constant::of_ints(&[0, 1, 2])),
        ("kept", Constant::of_ints(&[1, 1, 1, 3])),
        ("times", Constant::of_ints(&[5, 2, 2, 1])),
        ("epsilon", Constant::of_float(0.5)),
        ("part", Constant::of_float(0.05)),
        ("two", Constant::of_float(2.0)),
        ("rest", Constant::of_float(0.75)),
        ("factor", Constant::of_float(0.25)),
        ("grouped", Constant::of_ints(&[-1, 2, 2, 3, 5])),
        ("group_axes", Constant::of_ints(&[1, 2, 4])),
        ("group_times", Constant::of_ints(&[1, 2, 2, 1, 5])),
        ("images", Constant::of_ints(&[0])),
        ("places", Constant::of_ints(&[1, 2])),
        ("of_group", Constant::of_ints(&[4])),
    ];
    for (name, value) in constants {
        let mut node = Node::new(name, "Const");
        node.set_device(DEVICE).set_attr("value", value);
        graph.add_node(node).unwrap();
    }
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<_> = line.split_whitespace().collect();
        let mut node = Node::new(words[0], words[1]);
        node.set_device(DEVICE).set_inputs(&words[2..]).set_attr("T", DType::Float32);
        if matches!(words[1], "Mean" | "Sum") {
            node.set_attr("keep_dims", words[1] == "Mean" || words[0].starts_with("kept_"));
        }
        if words[1].starts_with("BiasAdd") {
            node.set_attr("data_format", "NHWC".to_owned());
        }
        graph.add_node(node).unwrap();
    }
    graph
}

/// The ops of a graph after the pass, without constants, and the inputs of each.
fn replaced(lines: &str) -> Vec<String> {
    let mut graph = graph(lines);
    replace(&mut graph, "MY_GPU").unwrap();
    let nodes = graph.nodes().filter(|node| node.op() != "Const");
    let line = |node: &Node<'_>| {
        let inputs = node.inputs().map(|input| format!(" {input}")).collect::<String>();
        format!("{} {}{inputs}", node.name(), node.op())
    };
    nodes.map(line).collect()
}

fn ops(lines: &[String]) -> Vec<&str> {
    lines.iter().map(|line| line.split(' ').nth(1).unwrap()).collect()
}

#[test]
fn both_ways_become_an_op_each() {
    let left = replaced(NODES);
    let expected = "
        x Placeholder
        dy Placeholder
        scale Placeholder
        offset Placeholder
        mean RustGpuMoments x
        mean_row Squeeze mean
        row Squeeze mean:1
        sum AddV2 row epsilon
        root Rsqrt sum
        inverse Mul root scale
        of_x Mul x inverse
        of_mean Mul mean_row inverse
        shift Sub offset of_mean
        y AddV2 of_x shift
        dx RustGpuBatchNormGrad x dy mean row scale
        used MatMul dx dx:1
        used_too MatMul y dx:2
    ";
    let expected: Vec<_> =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(left, expected);
    let mut graph = graph(NODES);
    replace(&mut graph, "MY_GPU").unwrap();
    let gradient = graph.node("dx").unwrap();
    assert_eq!(gradient.attr::<f32>("epsilon").unwrap(), 0.5);
    assert_eq!(gradient.attr::<i64>("axes").unwrap(), 3);
    assert_eq!(gradient.attr::<i64>("N").unwrap(), 1);
    assert!(!gradient.attr::<Vec<bool>>("keep_dims").unwrap()[0]);
}

/// A gradient that differs in one factor, axis or operand is that of something else.
#[test]
fn what_differs_is_not_replaced() {
    for (from, to) in [
        // Other factors, axes and operands.
        ("twice Mul two by_variance", "twice Mul part by_variance"),
        ("by_mean Mul mean_of_all part", "by_mean Mul mean_of_all two"),
        ("dproducts Sum products axes", "dproducts Sum products kept"),
        ("products Mul dy x", "products Mul dy y"),
        ("difference Sub x mean", "difference Sub mean x"),
        ("dmeans Mul negative mean_row", "dmeans Mul doffset mean_row"),
        ("dvariance RsqrtGrad root droot", "dvariance RsqrtGrad scale droot"),
        ("dx_direct Mul dy inverse", "dx_direct Mul dy root"),
        ("variance_of_all Tile dvariance_kept times", "variance_of_all Tile dvariance_kept kept"),
        ("dx AddN dx_direct dx_variance by_mean", "dx AddN dx_direct dx_variance dx_variance"),
        // The scale's gradient is needed for `dy`.
        ("dy Placeholder", "dy Identity dscale"),
    ] {
        let lines = NODES.replacen(from, to, 1);
        assert_ne!(lines, NODES, "{from}");
        let left = replaced(&lines);
        assert!(!ops(&left).contains(&BATCH_GRADIENT), "{to}");
        assert!(left.len() > 30, "{to}: {left:?}");
        assert!(ops(&left).contains(&MOMENTS), "{to}");
    }
    for (from, to) in [
        ("variance Mean squares axes", "variance Mean squares kept"),
        ("squares SquaredDifference x mean", "squares SquaredDifference y mean"),
        ("variance Mean squares axes", "variance Mean squares axes ^dy"),
        ("squares SquaredDifference x mean", "squares SquaredDifference x mean ^dy"),
        ("scale Placeholder", "scale Placeholder\n    queue QueueDequeueV2"),
        ("scale Placeholder", "scale Placeholder\n    reference VariableV2"),
    ] {
        let left = replaced(&NODES.replacen(from, to, 1));
        assert!(!ops(&left).contains(&MOMENTS), "{to}: {left:?}");
    }
}

#[test]
fn other_uses_of_x_are_added() {
    let lines = NODES.replacen(
        "dx AddN dx_direct dx_variance by_mean",
        "dx AddN dx_direct y dx_variance by_mean",
        1,
    );
    let left = replaced(&lines);
    let added: Vec<_> = left.iter().filter(|line| line.starts_with("dx")).collect();
    assert_eq!(
        added,
        ["dx AddN dx/normalization y", "dx/normalization RustGpuBatchNormGrad x dy mean row scale"]
    );
    assert!(left.contains(&"used MatMul dx dx/normalization:1".to_owned()), "{left:?}");
}

/// What a replaced node waits for, the op waits for.
#[test]
fn what_replaced_nodes_wait_for_is_waited_for() {
    let before = "first Assign scale\n    x Placeholder";
    for (from, to) in [
        ("products Mul dy x", "products Mul dy x ^first"),
        ("negative Neg doffset", "negative Neg doffset ^first"),
        ("by_mean Mul mean_of_all part", "by_mean Mul mean_of_all part ^first"),
        ("dx AddN dx_direct dx_variance by_mean", "dx AddN dx_direct dx_variance by_mean ^first"),
    ] {
        let lines = NODES.replacen("x Placeholder", before, 1).replacen(from, to, 1);
        let left = replaced(&lines);
        let op = "dx RustGpuBatchNormGrad x dy mean row scale ^first".to_owned();
        assert!(left.contains(&op), "{to}: {left:?}");
    }
    for (from, to) in [
        // A node between the sums and the gradient that is not replaced; the gradient itself; what uses it.
        ("negative Neg doffset", "between Tanh doffset\n    negative Neg doffset ^between"),
        ("negative Neg doffset", "negative Neg doffset ^used"),
        // What the sums wait for, the gradient would.
        ("doffset Sum dy axes", "doffset Sum dy axes ^offset"),
        ("dscale Mul dinverse root", "dscale Mul dinverse root ^offset"),
    ] {
        let left = replaced(&NODES.replacen(from, to, 1));
        assert!(!ops(&left).contains(&BATCH_GRADIENT), "{to}: {left:?}");
    }
}

/// The op's output has the shape of the variance, in which the sum is not.
#[test]
fn a_gradient_of_the_scale_in_another_shape_stays() {
    let lines = "kept_products Reshape dproducts kept\n    dinverse AddN kept_products dmeans";
    let left = replaced(&NODES.replacen("dinverse AddN dproducts dmeans", lines, 1));
    assert!(ops(&left).contains(&BATCH_GRADIENT), "{left:?}");
    assert!(left.contains(&"dscale Mul dinverse root".to_owned()), "{left:?}");
}

#[test]
fn nodes_that_are_waited_for_stay() {
    let left =
        replaced(&NODES.replacen("used MatMul dx dscale", "used MatMul dx dscale ^products", 1));
    assert!(left.contains(&"products Mul dy x".to_owned()), "{left:?}");
    assert!(ops(&left).contains(&BATCH_GRADIENT), "{left:?}");
}

const AVERAGES: &str = "
    mean_handle Placeholder
    variance_handle Placeholder
    old_mean ReadVariableOp mean_handle
    old_variance ReadVariableOp variance_handle
    kept_mean Mul old_mean rest
    added_mean Mul factor mean_row
    new_mean AddV2 added_mean kept_mean
    kept_variance Mul old_variance rest
    added_variance Mul row factor
    new_variance AddV2 kept_variance added_variance
    assigned_mean AssignVariableOp mean_handle new_mean
    assigned_variance AssignVariableOp variance_handle new_variance
";

#[test]
fn moving_averages_are_computed_with_the_moments() {
    let lines = format!("{NODES}{AVERAGES}");
    let left = replaced(&lines);
    let expected = [
        "mean RustGpuMoments x old_mean old_variance",
        "assigned_mean AssignVariableOp mean_handle mean:2",
        "assigned_variance AssignVariableOp variance_handle mean:3",
    ];
    assert!(expected.iter().all(|line| left.iter().any(|found| found == line)), "{left:?}");
    assert!(
        !left.iter().any(|line| line.starts_with("new_") || line.starts_with("kept_")),
        "{left:?}"
    );
    let mut graph = graph(&lines);
    replace(&mut graph, "MY_GPU").unwrap();
    let moments = graph.node("mean").unwrap();
    let factors = ["rest", "factor"].map(|name| moments.attr::<f32>(name).unwrap());
    assert_eq!((moments.attr::<i64>("N").unwrap(), factors), (2, [0.75, 0.25]));
    for (from, to) in [
        ("kept_mean Mul old_mean rest", "kept_mean Mul old_mean factor"),
        ("new_mean AddV2 added_mean kept_mean", "new_mean Sub added_mean kept_mean"),
        ("added_variance Mul row factor", "added_variance Mul mean_row factor"),
        // What needs the mean cannot be needed by it.
        ("old_mean ReadVariableOp mean_handle", "old_mean ReadVariableOp mean_handle ^y"),
        ("kept_mean Mul old_mean rest", "kept_mean Mul old_mean rest ^dy"),
        // It may have another shape, which the variable does not tell.
        ("assigned_mean AssignVariableOp mean_handle new_mean", "assigned_mean Neg new_mean"),
        ("assigned_mean AssignVariableOp mean_handle", "assigned_mean AssignVariableOp x"),
        ("new_mean AddV2 added_mean kept_mean", "new_mean AddV2 added_mean kept_mean ^dy"),
    ] {
        let left = replaced(&lines.replacen(from, to, 1));
        assert!(left.contains(&"mean RustGpuMoments x".to_owned()), "{to}: {left:?}");
    }
}

const BIAS: &str = "
    of_images Conv2D
    bias ReadVariableOp
    x BiasAdd of_images bias
    dbias BiasAddGrad dx
    used_bias MatMul dbias
";

/// The nodes with a bias that is added to `x`, after a change.
fn with_bias(from: &str, to: &str) -> Vec<String> {
    let lines = format!("{NODES}{AVERAGES}").replacen("x Placeholder", BIAS, 1);
    let changed = lines.replacen(from, to, 1);
    assert!(changed != lines || from == to, "{from}");
    replaced(&changed)
}

#[track_caller]
fn must_have(left: &[String], expected: &[&str]) {
    assert!(expected.iter().all(|line| left.iter().any(|found| found == line)), "{left:#?}");
}

#[test]
fn a_bias_is_left_out() {
    let in_sums = "more AddV2 of_x dy\n    y AddN shift more";
    for to in ["y AddV2 of_x shift", "y AddV2 shift of_x", in_sums] {
        let left = with_bias("y AddV2 of_x shift", to);
        let expected = [
            "mean RustGpuMoments of_images old_mean old_variance bias",
            "of_x Mul of_images inverse",
            "mean_row Squeeze mean",
            "dx RustGpuBatchNormGrad of_images dy mean row scale",
            "used_bias MatMul dx:3",
        ];
        must_have(&left, &expected);
        assert!(!left.iter().any(|line| line.contains("BiasAdd")), "{left:#?}");
    }
}

/// The sum is then part of what is computed of it.
#[test]
fn a_bias_stays_in_the_normalization_if_its_mean_is_needed() {
    for (from, to) in [
        ("used MatMul dx", "used MatMul mean_row dx"),
        ("used MatMul dx", "used MatMul of_mean dx"),
        ("used MatMul dx", "used MatMul of_x dx"),
        ("used MatMul dx", "used MatMul shift dx"),
        ("y AddV2 of_x shift", "y Mul of_x shift"),
        ("shift Sub offset of_mean", "shift AddV2 offset of_mean"),
        ("of_x Mul x inverse", "of_x Mul x root"),
        ("of_x Mul x inverse", "of_x AddV2 x inverse"),
    ] {
        let left = with_bias(from, to);
        let expected = [
            "mean RustGpuMoments of_images old_mean old_variance bias",
            "x BiasAdd of_images bias",
            "mean_row Squeeze mean:4",
            "dx RustGpuBatchNormGrad of_images dy mean row scale",
            "used_bias MatMul dx:3",
        ];
        must_have(&left, &expected);
        assert!(left.iter().any(|line| line.starts_with("of_x ") && line.contains(" x ")), "{to}");
    }
}

#[test]
fn a_bias_whose_sum_is_needed_stays() {
    for (from, to) in [
        ("used MatMul dx", "used MatMul x dx"),
        ("used MatMul dx", "more Tanh x\n    used MatMul dx more"),
        ("x BiasAdd of_images bias", "x BiasAdd of_images bias ^dy"),
        ("x BiasAdd of_images bias", "x AddV2 of_images bias"),
        // Its axes are others, or not known.
        ("of_images Conv2D", "of_images Conv3D"),
        ("of_images Conv2D", "of_images Placeholder"),
        // No gradient is found.
        ("twice Mul two by_variance", "twice Mul part by_variance"),
    ] {
        let left = with_bias(from, to);
        must_have(&left, &["mean RustGpuMoments x old_mean old_variance"]);
    }
}

/// What waits for a node that is replaced waits for what it was computed from, and does not keep it.
#[test]
fn nodes_that_the_gradient_waits_for_are_replaced() {
    // The sum of `dy`, which another gradient has.
    let lines = NODES.replacen("doffset Sum dy axes", "other RustGpuBatchNormGrad x dy", 1);
    let lines = lines.replacen("negative Neg doffset", "negative Neg other:2", 1);
    let mut graph = graph(&lines.replacen("y doffset", "y other:2", 1));
    graph.node_mut("other").unwrap().set_attr("axes", 3_i64).set_attr("keep_dims", vec![false]);
    replace(&mut graph, "MY_GPU").unwrap();
    let gradient = graph.node("dx").unwrap();
    let inputs: Vec<_> = gradient.inputs().map(|input| input.to_string()).collect();
    assert_eq!(inputs, ["x", "dy", "mean", "row", "scale", "^other"]);
    assert!(graph.node("products").is_none() && graph.node("by_variance").is_none());
}

/// It may be of another axis, and is then not 0.
#[test]
fn the_gradient_of_a_bias_along_another_axis_stays() {
    let lines = format!("{NODES}{AVERAGES}").replacen("x Placeholder", BIAS, 1);
    let mut graph = graph(&lines);
    graph.node_mut("dbias").unwrap().set_attr("data_format", "NCHW".to_owned());
    replace(&mut graph, "MY_GPU").unwrap();
    assert_eq!(graph.node("used_bias").unwrap().inputs().next(), Some(first("dbias")));
    assert_eq!(graph.node("dx").unwrap().attr::<i64>("B").unwrap(), 0);
}
