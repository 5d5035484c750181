//! Graphs and equations. `tests/fuzz` lists all targets.

use crate::graph::{Graph, Input};
use crate::kernel::DType;
use crate::toolkit::einsum::Einsum;
use tf_op_plugin::__private::wire::fields;
use tf_plugin_fuzz::{fuzz, halves, text};

#[test]
fn graphs() {
    let words = [
        "\n\u{13}\n\u{1}n\u{12}\u{3}Add\u{1a}\u{3}a:1\u{1a}\u{2}^b",
        "\n\u{6}\n\u{1}a\u{12}\u{1}X",
        "\n",
        "\u{12}",
        "\u{1a}",
        "*\u{7}\n\u{1}T\u{12}\u{2}0\u{1}",
        "\u{2}",
        "\0",
        "\u{8}",
        "\r",
        "a:1",
    ];
    fuzz!(words, |bytes| {
        let fields_read: crate::Result<Vec<_>> = fields(bytes).collect();
        if let Ok(fields_read) = fields_read {
            let raw: Vec<&[u8]> = fields_read.iter().map(|field| field.raw).collect();
            assert_eq!(raw.concat(), bytes, "fields have all bytes");
        }
        let Ok(graph) = Graph::decode(bytes) else { return };
        let encoded = graph.encode();
        let again = Graph::decode(&encoded).unwrap();
        assert_eq!(again.encode(), encoded);
        assert!(!again.is_changed());
        for (node, again) in graph.nodes().zip(again.nodes()) {
            assert_eq!(
                (node.name(), node.op(), node.device()),
                (again.name(), again.op(), again.device())
            );
            assert!(node.inputs().eq(again.inputs()));
            for name in node.attr_names() {
                assert_eq!(node.raw_attr(name), again.raw_attr(name));
                let _ = node.attr::<Vec<i64>>(name);
                let _ = node.attr::<Vec<f32>>(name);
                let _ = node.attr::<Vec<bool>>(name);
                let _ = node.attr::<Vec<String>>(name);
                let _ = node.attr::<DType>(name);
                if let Ok(value) = node.attr::<i64>(name) {
                    let mut copy = crate::graph::Node::new("n", "X");
                    copy.set_attr("a", value);
                    assert_eq!(copy.attr::<i64>("a").unwrap(), value);
                }
            }
        }
        // A pass that changes all nodes loses nothing.
        let mut changed = Graph::decode(bytes).unwrap();
        for node in changed.nodes_mut() {
            node.set_device("d");
        }
        let encoded = changed.encode();
        let read = Graph::decode(&encoded).unwrap();
        for (node, read) in graph.nodes().zip(read.nodes()) {
            assert_eq!((node.name(), node.op(), "d"), (read.name(), read.op(), read.device()));
            assert!(node.inputs().eq(read.inputs()));
            assert!(node.attr_names().eq(read.attr_names()));
        }
    });
}

#[test]
fn inputs() {
    let words = ["^", ":", "0", "1", "node", "a:1", "00", "+1", "18446744073709551616"];
    fuzz!(words, |bytes| {
        let written = text(bytes);
        let input = Input::parse(&written);
        let printed = input.to_string();
        assert_eq!(Input::parse(&printed).node(), input.node(), "{written}");
        assert_eq!(Input::parse(&printed), input, "{written}");
    });
}

#[test]
fn equations() {
    let words = ["a", "b", "...", ",", "->", " ", "ab", ".", "é"];
    fuzz!(words, |bytes| {
        let (equation, sizes) = halves(bytes);
        let sizes: Vec<usize> = sizes.iter().map(|&size| usize::from(size % 4)).collect();
        let (one, other) = sizes.split_at(sizes.len() / 2);
        for shapes in [&[&sizes[..]][..], &[one, other]] {
            if let Ok(einsum) = Einsum::new(&text(equation), shapes) {
                assert!(einsum.shape().iter().all(|&size| size < 4));
            }
        }
    });
}
