//! Graphs that are decoded, changed and encoded.

use super::*;
use crate::Code;
use tf_op_plugin::__private::wire::put_varint;

pub(super) const DEVICE: &str = "/job:localhost/replica:0/task:0/device:MY_DEVICE:0";

/// Creates a node on the device.
pub(super) fn node(name: &str, op: &str, inputs: &[&str]) -> Node<'static> {
    let mut node = Node::new(name, op);
    node.set_device(DEVICE).set_inputs(inputs);
    node
}

/// Returns the graph of these nodes, decoded as if it came from TensorFlow.
pub(super) fn graph_of(nodes: impl IntoIterator<Item = Node<'static>>) -> Graph<'static> {
    let mut graph = Graph::new();
    nodes.into_iter().for_each(|node| graph.add_node(node).unwrap());
    Graph::decode(graph.encode().leak()).unwrap()
}

/// Returns a line for each node. All nodes must be on the device.
pub(super) fn lines(graph: &Graph<'_>) -> Vec<String> {
    let line = |node: &Node<'_>| {
        let inputs: Vec<_> = node.inputs().map(|input| input.to_string()).collect();
        let callee = node.raw_attr("f").map(|f| String::from_utf8_lossy(&f[4..]).into_owned());
        let op = callee.map_or(node.op().to_owned(), |f| format!("{} {f}", node.op()));
        assert_eq!(node.device(), DEVICE);
        format!("{} = {op}({})", node.name(), inputs.join(" "))
    };
    graph.nodes().map(line).collect()
}

/// Returns a `NodeDef` with fields that the SDK does not know, in an order that it would not write.
fn a_node(name: &str) -> Vec<u8> {
    let mut node = Vec::new();
    put_bytes(&mut node, 7, b"a type of the future");
    put_bytes(&mut node, 4, DEVICE.as_bytes());
    put_message(&mut node, 5, |entry| {
        put_bytes(entry, 2, b"\x28\x01");
        put_bytes(entry, 1, b"flag");
    });
    put_message(&mut node, 5, |entry| {
        put_bytes(entry, 1, b"value");
        put_bytes(entry, 2, b"\x42\x04\x08\x01\x12\x00");
    });
    put_bytes(&mut node, 1, name.as_bytes());
    put_bytes(&mut node, 2, b"Const");
    put_varint(&mut node, 99, 7);
    node
}

fn a_graph() -> &'static [u8] {
    let mut graph = Vec::new();
    put_message(&mut graph, 4, |versions| put_varint(versions, 1, 1882));
    put_bytes(&mut graph, NODE, &a_node("a"));
    put_bytes(&mut graph, 2, b"\x0a\x00");
    put_bytes(&mut graph, NODE, &a_node("b"));
    put_varint(&mut graph, 99, 5);
    graph.leak()
}

/// Returns the fields of a message, sorted, since their order does not matter.
fn parts(message: &[u8]) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> =
        fields(message).map(|field| field.unwrap().raw.to_vec()).collect();
    parts.sort();
    parts
}

#[test]
fn what_is_not_changed_comes_back_byte_by_byte() {
    let graph = Graph::decode(a_graph()).unwrap();
    assert!(!graph.is_changed());
    assert_eq!(parts(&graph.encode()), parts(a_graph()));
}

#[test]
fn a_change_leaves_all_else_alone() {
    let mut graph = Graph::decode(a_graph()).unwrap();
    graph.node_mut("b").unwrap().set_attr("flag", false).set_inputs(["^a"]);
    assert!(graph.is_changed());
    let encoded = graph.encode();
    let (before, after) = (parts(a_graph()), parts(&encoded));
    let changed: Vec<_> = after.iter().filter(|part| !before.contains(part)).collect();
    assert_eq!((changed.len(), after.len()), (1, before.len()));

    let again = Graph::decode(&encoded).unwrap();
    let b = again.node("b").unwrap();
    assert_eq!((b.op(), b.attr::<bool>("flag").unwrap()), ("Const", false));
    assert_eq!(b.raw_attr("value"), Some(&b"\x42\x04\x08\x01\x12\x00"[..]));
    assert_eq!(b.inputs().collect::<Vec<_>>(), [Input::Control { node: "a" }]);
    let mut node = Vec::new();
    b.encode(&mut node);
    let unknown = |node: &[u8]| {
        let fields = fields(node).map(Result::unwrap);
        fields.filter(|field| field.number > 5).map(|field| field.raw.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(unknown(&node), unknown(&a_node("b")));
    assert_eq!(unknown(&node).len(), 2);
}

#[test]
fn setting_what_is_there_changes_nothing() {
    let mut graph = Graph::decode(a_graph()).unwrap();
    for node in graph.nodes_mut() {
        let device = node.device().to_owned();
        node.set_op("Const").set_device(device).set_inputs([""; 0]).set_attr("flag", true);
        assert!(!node.remove_attr("no such"));
    }
    assert!(!graph.is_changed());
    let a = graph.node("a").unwrap().clone();
    *graph.node_mut("a").unwrap() = a;
    assert!(graph.is_changed(), "whatever was put there may be of another graph");
}

#[test]
fn nothing_and_garbage() {
    let empty = Graph::decode(&[]).unwrap();
    assert_eq!((empty.nodes().count(), empty.is_changed(), empty.encode()), (0, false, vec![]));
    let bytes = a_graph();
    for end in 1..bytes.len() {
        let Ok(graph) = Graph::decode(&bytes[..end]) else { continue };
        assert_eq!(parts(&graph.encode()), parts(&bytes[..end]), "{end}");
    }
    for garbage in [&b"\xff\xff\xff"[..], b"\x0a\x7f", b"\x0a\x02\x0a\x05", b"\x0a\x03\x0a\x01\xff"]
    {
        let error = Graph::decode(garbage).unwrap_err();
        assert_eq!(error.code(), Code::DataLoss, "{garbage:?} {error}");
        assert!(error.message().contains("malformed protocol buffer"), "{error}");
    }
}

#[test]
fn nodes_are_found_by_name() {
    let mut graph = Graph::decode(a_graph()).unwrap();
    assert!(graph.node("c").is_none() && graph.node("a").is_some());
    assert_eq!((graph.free_name("c"), graph.free_name("a")), ("c".into(), "a_1".into()));
    assert_eq!(graph.add_node(Node::new("a", "NoOp")).unwrap_err().code(), Code::AlreadyExists);
    assert!(!graph.is_changed());
    graph.add_node(Node::new("c", "NoOp")).unwrap();
    assert_eq!(graph.node("c").map(Node::op), Some("NoOp"));
    assert_eq!(graph.remove_node("a").unwrap().name(), "a");
    assert!(graph.node("a").is_none());
    assert_eq!(graph.remove_node("a").unwrap_err().code(), Code::NotFound);
    assert_eq!(graph.nodes().map(Node::name).collect::<Vec<_>>(), ["b", "c"]);
    // Nodes that are swapped without the graph's knowledge.
    let mut nodes = graph.nodes_mut();
    std::mem::swap(nodes.next().unwrap(), nodes.next().unwrap());
    drop(nodes);
    assert_eq!(graph.node("c").map(Node::op), Some("NoOp"));
    assert_eq!(graph.node("b").map(Node::op), Some("Const"));
    assert!(graph.is_changed());
}

#[test]
fn what_tensorflow_needs_stays() {
    let ask = || Ok(Some(BTreeSet::from([String::from("a")])));
    let mut graph = Graph::decode_preserving(a_graph(), &ask).unwrap();
    assert_eq!(graph.remove_node("a").unwrap_err().code(), Code::FailedPrecondition);
    assert!(graph.node("a").is_some() && !graph.is_changed());
    graph.remove_node("b").unwrap();

    let silent = || Ok(None);
    let mut graph = Graph::decode_preserving(a_graph(), &silent).unwrap();
    assert_eq!(graph.remove_node("b").unwrap_err().code(), Code::FailedPrecondition);

    let failing = || Err(Error::unavailable("requested it"));
    let mut graph = Graph::decode_preserving(a_graph(), &failing).unwrap();
    assert_eq!(graph.remove_node("b").unwrap_err().code(), Code::Unavailable);
    assert!(!graph.is_changed());
}

#[test]
fn broken_graphs_are_refused() {
    let mut graph = Graph::decode(a_graph()).unwrap();
    graph.node_mut("b").unwrap().set_inputs(["a:3", "^a"]);
    graph.check().unwrap();
    graph.remove_node("a").unwrap();
    let error = graph.check().unwrap_err();
    assert!(error.message().contains("the node `b` has the input `a:3`"), "{error}");
    graph.node_mut("b").unwrap().set_inputs([""; 0]);
    graph.check().unwrap();
    graph.add_node(Node::new("", "NoOp")).unwrap();
    assert!(graph.check().unwrap_err().message().contains("no name"));

    let mut graph = Graph::decode(a_graph()).unwrap();
    *graph.node_mut("a").unwrap() = Node::new("b", "NoOp");
    assert!(graph.check().unwrap_err().message().contains("two nodes have the name `b`"));
}

#[test]
fn inputs_have_three_forms() {
    for (text, expected) in [
        ("a", Input::Data { node: "a", output: 0 }),
        ("a/b:12", Input::Data { node: "a/b", output: 12 }),
        ("^a/b", Input::Control { node: "a/b" }),
        ("a:x:0", Input::Data { node: "a:x", output: 0 }),
    ] {
        assert_eq!(Input::parse(text), expected);
        assert_eq!(expected.to_string(), text);
    }
    for node in ["a:x", "a:"] {
        assert_eq!(Input::parse(node), Input::Data { node, output: 0 });
    }
    assert_eq!(Input::parse("a:0").to_string(), "a");
    let mut node = Node::new("n", "NoOp");
    node.set_inputs(["^c", "b", "^a", "a:1"]);
    let inputs: Vec<String> = node.inputs().map(|input| input.to_string()).collect();
    assert_eq!(inputs, ["b", "a:1", "^c", "^a"]);
}

#[test]
fn devices_are_compared_whole() {
    let mut node = Node::new("n", "NoOp");
    for (device, expected) in [
        ("", false),
        (DEVICE, true),
        ("/device:MY_DEVICE", true),
        ("/device:MY_DEVICE_TOO:0", false),
        ("/device:NOT_MY_DEVICE:0", false),
        ("/job:MY_DEVICE/device:CPU:0", false),
    ] {
        node.set_device(device);
        assert_eq!(node.is_on("MY_DEVICE"), expected, "{device}");
    }
}

#[test]
fn errors_name_node_and_attribute() {
    let graph = Graph::decode(a_graph()).unwrap();
    let a = graph.node("a").unwrap();
    let error = a.attr::<bool>("flags").unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    for part in ["`flags`", "`a`"] {
        assert!(error.message().contains(part), "{error}");
    }
    let error = a.attr::<i64>("flag").unwrap_err();
    assert!(
        error.message().contains("`flag` of the node `a`: the value is not a valid integer"),
        "{error}"
    );
}
