//! The graphs that lowering makes of branches and loops.

use super::super::tests::{DEVICE, graph_of, lines, node};
use super::*;
use std::cell::OnceCell;

fn function(name: &str) -> Vec<u8> {
    [&[0x52, 2 + name.len() as u8, 0x0a, name.len() as u8], name.as_bytes()].concat()
}

fn branch(name: &str, inputs: &[&str]) -> Node<'static> {
    let mut branch = node(name, "If", inputs);
    branch.set_attr("Tcond", DType::Bool).set_attr("Tin", vec![DType::Float32]);
    branch.set_attr("Tout", vec![DType::Int64]).set_attr(FOR_XLA, true);
    branch.set_raw_attr("then_branch", function("yes"));
    branch.set_raw_attr("else_branch", function("no"));
    branch
}

fn repeat(name: &str, inputs: &[&str]) -> Node<'static> {
    let mut repeat = node(name, "StatelessWhile", inputs);
    repeat.set_attr("T", vec![DType::Resource, DType::Float32, DType::Int32]);
    repeat.set_attr(FOR_XLA, true);
    repeat.set_attr("parallel_iterations", 3_i64);
    repeat.set_raw_attr("cond", function("go_on"));
    repeat.set_raw_attr("body", function("step"));
    repeat
}

/// Lowers a graph of these nodes, and returns a line for each node of the result.
fn lowered(nodes: Vec<Node<'static>>, preserved: &[&str]) -> Vec<String> {
    let mut graph = graph_of(nodes);
    let preserved = preserved.iter().map(|name| String::from(*name)).collect();
    graph.preserved = OnceCell::from(Some(preserved));
    lower(&mut graph, "MY_DEVICE").unwrap();
    graph.check().unwrap();
    lines(&graph)
}

#[test]
fn a_branch_is_called_between_switches_and_merges() {
    let mut nodes = vec![
        node("p", "Equal", &[]),
        node("x", "Split", &[]),
        node("before", "NoOp", &[]),
        branch("if", &["p", "x:1", "^before"]),
        node("y", "Abs", &["if"]),
        node("after", "NoOp", &["^if"]),
    ];
    let expected = [
        "p = Equal()",
        "x = Split()",
        "before = NoOp()",
        "if = NoOp(^if/Merge)",
        "y = Abs(if/Merge_1 ^if)",
        "after = NoOp(^if)",
        "if/Switch = Switch(p p ^p ^x ^before)",
        "if/Switch_1 = Switch(x:1 p ^p ^x ^before)",
        "if/Identity = Identity(if/Switch)",
        "if/StatefulPartitionedCall = StatefulPartitionedCall no(if/Switch_1 ^if/Identity)",
        "if/Identity_1 = Identity(if/Identity ^if/StatefulPartitionedCall)",
        "if/Identity_2 = Identity(if/Switch:1)",
        "if/StatefulPartitionedCall_1 = StatefulPartitionedCall yes(if/Switch_1:1 ^if/Identity_2)",
        "if/Identity_3 = Identity(if/Identity_2 ^if/StatefulPartitionedCall_1)",
        "if/Merge = Merge(if/Identity_1 if/Identity_3)",
        "if/Merge_1 = Merge(if/StatefulPartitionedCall if/StatefulPartitionedCall_1)",
    ];
    assert_eq!(lowered(nodes.clone(), &[]), expected);
    // A value can be fetched by the node's name; in a function nothing does that.
    assert_eq!(lowered(nodes.clone(), &["if"])[3], "if = IdentityN(if/Merge_1 ^if/Merge)");
    nodes.push(node("result", "_Retval", &["y"]));
    assert_eq!(lowered(nodes, &["if"])[3], expected[3]);
}

#[test]
fn a_loop_calls_its_condition_and_its_body() {
    let nodes = vec![
        node("v", "VarHandleOp", &[]),
        node("x", "_Arg", &[]),
        node("n", "_Arg", &[]),
        repeat("w", &["v", "x", "n"]),
        node("u", "ReadVariableOp", &["w"]),
        node("y", "_Retval", &["w:2"]),
    ];
    let expected = [
        "v = VarHandleOp()",
        "x = _Arg()",
        "n = _Arg()",
        "w = NoOp(^w/Exit ^w/Exit_1)",
        "u = ReadVariableOp(v ^w)",
        "y = _Retval(w/Exit_1)",
        "w/Enter = Enter(v)",
        "w/Enter_1 = Enter(x)",
        "w/Enter_2 = Enter(n)",
        "w/Merge = Merge(w/Enter_1 w/NextIteration)",
        "w/Merge_1 = Merge(w/Enter_2 w/NextIteration_1)",
        "w/PartitionedCall = PartitionedCall go_on(w/Enter w/Merge w/Merge_1 ^w/Merge)",
        "w/LoopCond = LoopCond(w/PartitionedCall)",
        "w/Switch = Switch(w/Merge w/LoopCond)",
        "w/Switch_1 = Switch(w/Merge_1 w/LoopCond)",
        "w/Exit = Exit(w/Switch)",
        "w/Exit_1 = Exit(w/Switch_1)",
        "w/Identity = Identity(w/Switch:1)",
        "w/PartitionedCall_1 = PartitionedCall step(w/Enter w/Switch:1 w/Switch_1:1 ^w/Identity)",
        "w/NextIteration = NextIteration(w/PartitionedCall_1:1 ^w/PartitionedCall_1)",
        "w/NextIteration_1 = NextIteration(w/PartitionedCall_1:2 ^w/PartitionedCall_1)",
    ];
    assert_eq!(lowered(nodes, &[]), expected);
}

/// Checks a loop that waits for others, and others that wait for it, only through values, as TensorFlow's dependency optimizer
/// leaves them. TensorFlow may inline the functions: then their nodes wait for what they use alone.
#[test]
fn what_changes_variables_runs_as_a_whole() {
    let mut repeat = repeat("w", &["v", "x", "n"]);
    repeat.set_op("While");
    let lines = lowered(
        vec![
            node("v", "_Arg", &[]),
            node("x", "Square", &[]),
            node("n", "Abs", &[]),
            repeat,
            node("y", "Exp", &["w:1"]),
        ],
        &[],
    );
    for expected in ["w/Enter_2 = Enter(n ^v ^x ^n)", "y = Exp(w/Exit ^w)"] {
        assert!(lines.iter().any(|line| line == expected), "{expected}: {lines:#?}");
    }
}

#[test]
fn one_may_be_the_input_of_the_next() {
    let nodes = vec![
        node("v", "_Arg", &[]),
        node("x", "_Arg", &[]),
        repeat("second", &["first", "first:1", "first:2", "^first"]),
        repeat("first", &["v", "x", "x"]),
    ];
    let lines = lowered(nodes, &[]);
    for expected in [
        "second/Enter = Enter(v ^first)",
        "second/Enter_2 = Enter(first/Exit_1 ^first)",
        "first = NoOp(^first/Exit ^first/Exit_1)",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected}: {lines:#?}");
    }
}

#[test]
fn others_stay() {
    let inputs = ["p", "p"];
    let mut number = branch("number", &inputs);
    number.set_attr("Tcond", DType::Float32);
    let mut quantized = branch("quantized", &inputs);
    quantized.set_attr("Tout", vec![DType::Qint8]);
    let mut elsewhere = branch("elsewhere", &inputs);
    elsewhere.set_device(DEVICE.replace("MY_DEVICE", "CPU"));
    let mut kept = repeat("kept", &["p"; 3]);
    kept.set_attr(LOWER, false);
    let mut other = repeat("other", &["p"; 3]);
    other.remove_attr(FOR_XLA);
    let mut endless = repeat("endless", &["p"]);
    endless.set_attr("T", vec![DType::Resource]);
    let damaged = branch("damaged", &["p"]);
    for flow in [number, quantized, elsewhere, kept, other, endless, damaged] {
        let mut graph = graph_of([flow]);
        lower(&mut graph, "MY_DEVICE").unwrap();
        assert!(!graph.is_changed(), "{graph:?}");
    }
}
