use super::*;
use se_plugin::graph::Constant;

const DEVICE: &str = "/job:localhost/replica:0/task:0/device:MY_GPU:0";

/// Attention with a mask, and its gradient, as TensorFlow's own passes leave them. Products have their equation in front.
const NODES: &str = "
    query Placeholder
    key Placeholder
    value Placeholder
    mask Placeholder
    dout Placeholder
    logits BTNH,BSNH->BNTS query key
    scaled Mul logits scale
    ones OnesLike logits
    both LogicalAnd ones mask
    masked SelectV2 both scaled least
    softmax Softmax masked
    out BNTS,BSNH->BTNH softmax value
    dsoftmax BTNH,BSNH->BNTS dout value
    dvalue BTNH,BNTS->BSNH dout softmax
    products Mul dsoftmax softmax
    sums Sum products last
    differences Sub dsoftmax sums
    dmasked Mul differences softmax
    dscaled SelectV2 both dmasked zero
    dlogits Mul dscaled scale
    dquery BNTS,BSNH->BTNH dlogits key
    dkey BNTS,BTNH->BSNH dlogits query
    used MatMul out dquery dkey dvalue
";

/// A graph of these lines: a node's name, op and inputs.
fn graph(lines: &str) -> Graph<'static> {
    let mut graph = Graph::new();
    let constants = [
        ("scale", Constant::of_float(0.25)),
        ("least", Constant::of_float(-1e9)),
        ("zero", Constant::of_float(0.0)),
        ("last", Constant::of_ints(&[-1])),
        ("first", Constant::of_ints(&[0])),
        ("second", Constant::of_ints(&[2])),
        ("third", Constant::of_ints(&[3])),
        ("fourth", Constant::of_ints(&[4])),
        ("four", Constant::of_ints(&[0, 0, 0, 0])),
        ("true", Constant::new(DType::Bool, &[], &[1])),
        ("false", Constant::new(DType::Bool, &[], &[0])),
    ];
    for (name, value) in constants {
        let mut node = Node::new(name, "Const");
        node.set_device(DEVICE).set_attr("value", value);
        graph.add_node(node).unwrap();
    }
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<_> = line.split_whitespace().collect();
        let is_product = words[1].contains("->");
        let mut node = Node::new(words[0], if is_product { "Einsum" } else { words[1] });
        node.set_device(DEVICE).set_inputs(&words[2..]).set_attr("T", DType::Float32);
        match words[1] {
            "Sum" => node.set_attr("keep_dims", true),
            "StridedSlice" if words[0] == "axes" => node
                .set_attr("begin_mask", 12_i64)
                .set_attr("end_mask", 12_i64)
                .set_attr("new_axis_mask", 3_i64)
                .set_attr("shrink_axis_mask", 0_i64)
                .set_attr("ellipsis_mask", 0_i64),
            "Cast" => node.set_attr("SrcT", DType::Float16).set_attr("DstT", DType::Float32),
            equation if is_product => node.set_attr("equation", equation.to_owned()),
            _ => &mut node,
        };
        graph.add_node(node).unwrap();
    }
    graph
}

fn replaced_in(mut graph: Graph<'_>) -> Vec<String> {
    replace(&mut graph, "MY_GPU", |_| true).unwrap();
    let nodes = graph.nodes().filter(|node| node.op() != "Const");
    let line = |node: &Node<'_>| {
        let inputs = node.inputs().map(|input| format!(" {input}")).collect::<String>();
        format!("{} {}{inputs}", node.name(), node.op())
    };
    nodes.map(line).collect()
}

/// The ops of a graph after the pass, without constants, and the inputs of each.
fn replaced(lines: &str) -> Vec<String> {
    replaced_in(graph(lines))
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

const REPLACED: &str = "
    query Placeholder
    key Placeholder
    value Placeholder
    mask Placeholder
    dout Placeholder
    out RustGpuAttention query key value mask
    dquery RustGpuAttentionGrad query key value mask out out:1 dout
    used MatMul out dquery dquery:1 dquery:2
";

#[test]
fn attention_and_its_gradient_become_an_op_each() {
    assert_eq!(replaced(NODES), lines(REPLACED));
    let mut graph = graph(NODES);
    replace(&mut graph, "MY_GPU", |_| true).unwrap();
    for name in ["out", "dquery"] {
        let node = graph.node(name).unwrap();
        assert_eq!(node.attr::<f32>("scale").unwrap(), 0.25);
        assert_eq!(node.attr::<f32>("masked").unwrap(), -1e9);
        assert_eq!(node.attr::<i64>("M").unwrap(), 1);
        assert_eq!(node.attr::<i64>("N").unwrap(), 0);
        assert!(!node.attr::<bool>("heads_first").unwrap());
    }
    let mut other = self::graph(NODES);
    replace(&mut other, "MY_GPU", |_| false).unwrap();
    assert!(other.node("softmax").is_some());
}

/// Each of these is the same in another order, or has less of it.
#[test]
fn other_forms_become_the_same() {
    for (from, to) in [
        ("logits BTNH,BSNH->BNTS query key", "logits aecd,abcd->acbe key query"),
        ("out BNTS,BSNH->BTNH softmax value", "out aecd,acbe->abcd value softmax"),
        ("scaled Mul logits scale", "scaled Mul scale logits"),
        ("both LogicalAnd ones mask", "both BroadcastTo mask four"),
        ("products Mul dsoftmax softmax", "products Mul softmax dsoftmax"),
        ("dmasked Mul differences softmax", "dmasked Mul softmax differences"),
        ("dvalue BTNH,BNTS->BSNH dout softmax", "dvalue acef,aecd->afcd softmax dout"),
        ("both LogicalAnd ones mask", "both LogicalAnd mask ones"),
        // As where the batch is not known.
        (
            "dlogits Mul dscaled scale",
            "shape Shape scaled\nother Shape masked\naxes BroadcastGradientArgs shape other\n\
             sum Sum dscaled axes\nwhole Reshape sum shape\ndlogits Mul whole scale",
        ),
        ("value Placeholder", "value Placeholder\nplain Identity value"),
    ] {
        let nodes = NODES.replacen(from, to, 1);
        assert_ne!(nodes, NODES, "{from}");
        let left = replaced(&nodes);
        let is_there = |line: &&&str| !line.starts_with("value");
        let expected = lines(REPLACED);
        assert!(
            expected.iter().filter(is_there).all(|line| left.iter().any(|found| found == line)),
            "{to}: {left:?}"
        );
    }
    let without = NODES
        .replace("masked SelectV2 both scaled least", "")
        .replace("softmax Softmax masked", "softmax Softmax scaled")
        .replace("dscaled SelectV2 both dmasked zero", "")
        .replace("dlogits Mul dscaled scale", "dlogits Mul dmasked scale")
        .replace("both LogicalAnd ones mask", "")
        .replace("ones OnesLike logits", "");
    let expected = REPLACED.replace("value mask", "value");
    assert_eq!(replaced(&without), lines(&expected));
    // TensorFlow's own passes multiply by the constant first.
    let folded = without
        .replace("dmasked Mul differences softmax", "dmasked Mul scale softmax")
        .replace("dlogits Mul dmasked scale", "dlogits Mul dmasked differences");
    assert_eq!(replaced(&folded), lines(&expected));
    let unscaled = without
        .replace("scaled Mul logits scale", "")
        .replace("softmax Softmax scaled", "softmax Softmax logits")
        .replace("dlogits Mul dmasked scale", "")
        .replace("dlogits", "dmasked");
    assert_eq!(replaced(&unscaled), lines(&expected));
    let biased =
        without.replace("softmax Softmax scaled", "sum AddV2 mask scaled\n softmax Softmax sum");
    assert_eq!(replaced(&biased), lines(REPLACED));
    let (forward, _) = without.split_once("dsoftmax").unwrap();
    let left = replaced(&format!("{forward}used MatMul out"));
    assert!(left.contains(&"out RustGpuAttention query key value".to_owned()), "{left:?}");
    let heads_first = NODES.replace("BTNH", "BNTH").replace("BSNH", "BNSH");
    assert_eq!(replaced(&heads_first), lines(REPLACED));
}

/// What differs, and scores that something else uses, stay.
#[test]
fn what_differs_is_not_replaced() {
    for (from, to) in [
        // Other axes, factors and operands.
        ("logits BTNH,BSNH->BNTS query key", "logits BTNH,BSNH->NBTS query key"),
        ("logits BTNH,BSNH->BNTS query key", "logits BTNH,BSNG->BNTS query key"),
        ("out BNTS,BSNH->BTNH softmax value", "out BNTS,BTNH->BSNH softmax value"),
        ("out BNTS,BSNH->BTNH softmax value", "out BNTS,BSNH->BNTH softmax value"),
        ("scaled Mul logits scale", "scaled Mul logits mask"),
        ("softmax Softmax masked", "softmax LogSoftmax masked"),
        ("masked SelectV2 both scaled least", "masked SelectV2 both scaled mask"),
        ("dlogits Mul dscaled scale", "dlogits Mul dscaled least"),
        ("dscaled SelectV2 both dmasked zero", "dscaled SelectV2 mask dmasked zero"),
        ("dscaled SelectV2 both dmasked zero", "dscaled SelectV2 both dmasked scale"),
        ("sums Sum products last", "sums Sum products first"),
        ("products Mul dsoftmax softmax", "products Mul dsoftmax dsoftmax"),
        ("dmasked Mul differences softmax", "dmasked Mul differences masked"),
        ("dsoftmax BTNH,BSNH->BNTS dout value", "dsoftmax BTNH,BSNH->BNTS dout key"),
        ("dkey BNTS,BTNH->BSNH dlogits query", "dkey BNTS,BTNH->BSNH dscaled query"),
        ("dquery BNTS,BSNH->BTNH dlogits key", "dquery BNTS,BSNH->BTNH dlogits value"),
        ("dvalue BTNH,BNTS->BSNH dout softmax", "dvalue BTNH,BNTS->BSNH query softmax"),
        // Other uses, and a node that waits.
        ("used MatMul", "other Tanh softmax\n    used MatMul"),
        ("used MatMul", "other Tanh masked\n    used MatMul"),
        ("used MatMul", "other Sum scaled last\n    another Tanh other\n    used MatMul"),
        ("used MatMul", "other Tanh dlogits\n    used MatMul"),
        ("used MatMul out dquery dkey dvalue", "used MatMul out dquery dkey dvalue ^products"),
        ("products Mul dsoftmax softmax", "products Mul dsoftmax softmax ^mask"),
        ("dkey BNTS,BTNH->BSNH dlogits query", "dkey BNTS,BTNH->BSNH dlogits query ^mask"),
        ("mask Placeholder", "mask Placeholder\n    queue QueueDequeueV2"),
        ("mask Placeholder", "mask Placeholder\n    reference VariableV2"),
    ] {
        let nodes = NODES.replacen(from, to, 1);
        assert_ne!(nodes, NODES, "{from}");
        let left = replaced(&nodes);
        assert!(!left.iter().any(|line| line.contains("RustGpu")), "{to}: {left:?}");
        assert!(left.len() > 20, "{to}: {left:?}");
    }
}

/// In mixed precision scores are converted to float32 and back.
#[test]
fn conversions_in_between_are_part_of_it() {
    let nodes = "
        query Placeholder
        key Placeholder
        value Placeholder
        short Placeholder
        bias Cast short
        dout Placeholder
        product BTNH,BSNH->BNTS query key
        logits Cast product
        scaled Mul logits scale
        sum AddV2 scaled bias
        softmax Softmax sum
        used_softmax Back softmax
        out BNTS,BSNH->BTNH used_softmax value
        dused BTNH,BSNH->BNTS dout value
        dsoftmax Cast dused
        dvalue BTNH,BNTS->BSNH dout used_softmax
        products Mul dsoftmax softmax
        sums Sum products last
        differences Sub dsoftmax sums
        dsum Mul differences softmax
        dlogits Mul dsum scale
        dproduct Back dlogits
        dquery BNTS,BSNH->BTNH dproduct key
        dkey BNTS,BTNH->BSNH dproduct query
        used MatMul out dquery dkey dvalue bias
    ";
    let mixed = || {
        let mut graph = graph(nodes);
        for node in graph.nodes_mut() {
            match node.op() {
                "Einsum" => node.set_attr("T", DType::Float16),
                "Back" => {
                    let node = node.set_op("Cast").set_attr("SrcT", DType::Float32);
                    node.set_attr("DstT", DType::Float16)
                }
                _ => node,
            };
        }
        graph
    };
    let expected = "
        query Placeholder
        key Placeholder
        value Placeholder
        short Placeholder
        bias Cast short
        dout Placeholder
        out RustGpuAttention query key value short
        dquery RustGpuAttentionGrad query key value short out out:1 dout
        used MatMul out dquery dquery:1 dquery:2 bias
    ";
    let mut other = mixed();
    replace(&mut other, "MY_GPU", |dtype| dtype == DType::Float16).unwrap();
    let out = other.node("out").unwrap();
    assert_eq!(out.attr::<DType>("T").unwrap(), DType::Float16);
    assert_eq!(out.attr::<DType>("B").unwrap(), DType::Float16);
    assert_eq!(replaced_in(mixed()), lines(expected));
}

/// As Keras writes it where the batch is not known.
const TRIANGLE: &str = "
    shape Shape scaled
    ones Fill shape true
    rows StridedSlice shape second third first
    columns StridedSlice shape third fourth first
    sizes Pack rows columns
    square Fill sizes true
    triangle MatrixBandPart square last first
    axes StridedSlice triangle four four four
    both LogicalAnd ones axes
";

#[test]
fn a_triangle_in_the_shape_of_the_scores_is_causal() {
    let causal = NODES.replacen("ones OnesLike logits", "", 1).replacen(
        "both LogicalAnd ones mask",
        TRIANGLE,
        1,
    );
    let expected = REPLACED.replace("value mask", "value");
    assert_eq!(replaced(&causal), lines(&expected));
    let mut graph = graph(&causal);
    replace(&mut graph, "MY_GPU", |_| true).unwrap();
    assert!(["out", "dquery"].iter().all(|name| graph.node(name).unwrap().attr("causal").unwrap()));
    let masked = causal.replacen(
        "both LogicalAnd ones axes",
        "two LogicalAnd ones mask\n both LogicalAnd two axes",
        1,
    );
    assert_eq!(replaced(&masked), lines(REPLACED));
    // Another triangle has the shape of the scores, which are needed for it.
    for (from, to) in [
        ("ones Fill shape true", "ones Fill shape false"),
        ("square Fill sizes true", "square Fill sizes false"),
        ("rows StridedSlice shape second third", "rows StridedSlice shape first third"),
        ("sizes Pack rows columns", "sizes Pack columns rows"),
        ("triangle MatrixBandPart square last first", "triangle MatrixBandPart square first last"),
        ("triangle MatrixBandPart square last first", "triangle MatrixBandPart square last second"),
        (
            "axes StridedSlice triangle",
            "other StridedSlice triangle four four four\n axes Identity other",
        ),
    ] {
        let lines = causal.replacen(from, to, 1);
        assert_ne!(lines, causal, "{from}");
        let left = replaced(&lines);
        assert!(!left.iter().any(|line| line.contains("RustGpu")), "{to}: {left:?}");
    }
}

#[test]
fn a_scale_from_the_shape_of_a_line_is_part_of_it() {
    let scale = "
        key_shape Shape key
        elements StridedSlice key_shape last first first
        number Cast elements
        root Sqrt number
        scaling Reciprocal root
        scaled Mul logits scaling
    ";
    let nodes = NODES.replacen("scaled Mul logits scale", scale, 1).replacen(
        "dlogits Mul dscaled scale",
        "dlogits Mul dscaled scaling",
        1,
    );
    assert_eq!(replaced(&nodes), lines(REPLACED));
    let mut graph = graph(&nodes);
    replace(&mut graph, "MY_GPU", |_| true).unwrap();
    assert_eq!(graph.node("out").unwrap().attr::<f32>("scale").unwrap(), 0.0);
    for (from, to) in [
        ("key_shape Shape key", "key_shape Shape value"),
        ("elements StridedSlice key_shape last", "elements StridedSlice key_shape first"),
        ("root Sqrt number", "root Exp number"),
        ("dlogits Mul dscaled scaling", "dlogits Mul dscaled root"),
    ] {
        let lines = nodes.replacen(from, to, 1);
        assert_ne!(lines, nodes, "{from}");
        let left = replaced(&lines);
        assert!(!left.iter().any(|line| line.contains("RustGpu")), "{to}: {left:?}");
    }
}

/// What replaced nodes wait for is replaced too.
#[test]
fn nodes_that_wait_for_replaced_ones_are_replaced() {
    let nodes = NODES.replacen(
        "masked SelectV2 both scaled least",
        "shape Shape scaled\n masked SelectV2 both scaled least ^shape",
        1,
    );
    assert_eq!(replaced(&nodes), lines(REPLACED));
}
