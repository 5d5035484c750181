//! The graphs that ops on variables become.

use super::super::tests::{DEVICE, graph_of, node};
use super::super::workarounds::Workarounds;
use super::*;

const CPU: &str = "/job:localhost/replica:0/task:0/device:CPU:0";

/// Ops of float32, by int32 or int64 indices.
const FEW: HasKernel = |op, types| {
    let ops = [
        "AddV2",
        "Sub",
        "Mul",
        "GatherV2",
        "GatherNd",
        "TensorScatterAdd",
        "TensorScatterUpdate",
        "BroadcastTo",
    ];
    ops.contains(&op)
        && types.iter().all(|&(name, dtype)| match name {
            "Tindices" | "Taxis" | "Tidx" => true,
            _ => dtype == DType::Float32,
        })
};
const NONE: HasKernel = |_, _| false;

fn applied(has_kernel: HasKernel, nodes: Vec<Node<'static>>) -> Graph<'static> {
    let mut graph = graph_of(nodes);
    Workarounds { device_type: "MY_DEVICE", has_kernel }.apply(&mut graph).unwrap();
    graph.check().unwrap();
    graph
}

/// Returns a line for each node, with `on CPU` where it is there.
fn lines(graph: &Graph<'_>) -> Vec<String> {
    let line = |node: &Node<'_>| {
        let inputs: Vec<_> = node.inputs().map(|input| input.to_string()).collect();
        let place = if node.device() == CPU { " on CPU" } else { "" };
        format!("{} = {}({}){place}", node.name(), node.op(), inputs.join(" "))
    };
    graph.nodes().map(line).collect()
}

fn update(name: &str, op: &str, dtype: DType, inputs: &[&str]) -> Node<'static> {
    let mut update = node(name, op, inputs);
    for attribute in ["dtype", "T"] {
        update.set_attr(attribute, dtype);
    }
    update.set_attr("Tindices", DType::Int64).set_attr("_class", vec![String::from("loc:@v")]);
    update
}

fn an_update(op: &str, dtype: DType) -> Vec<Node<'static>> {
    vec![
        node("v", "_Arg", &[]),
        node("d", "Split", &[]),
        node("before", "NoOp", &[]),
        update("step/update", op, dtype, &["v", "d:1", "^before"]),
        node("after", "NoOp", &["^step/update"]),
    ]
}

/// Returns the new nodes and those that differ, of an op between arguments and a node that uses it.
fn replaced(has_kernel: HasKernel, node: Node<'static>, arguments: &[&str]) -> Vec<String> {
    let arguments = arguments.iter().map(|name| super::super::tests::node(name, "_Arg", &[]));
    let mut nodes: Vec<_> = arguments.collect();
    nodes.push(node);
    let unchanged = lines(&graph_of(nodes.clone()));
    let mut lines = lines(&applied(has_kernel, nodes));
    lines.retain(|line| !unchanged.contains(line));
    lines
}

#[test]
fn updates_become_assignments() {
    for (op, computes) in [("AssignAddVariableOp", "AddV2"), ("AssignSubVariableOp", "Sub")] {
        let graph = applied(FEW, an_update(op, DType::Float32));
        let expected = [
            "v = _Arg()",
            "d = Split()",
            "before = NoOp()",
            &format!("step/update = AssignVariableOp(v step/update/{computes} ^before)"),
            "after = NoOp(^step/update)",
            "step/update/read = ReadVariableOp(v ^d ^before)",
            &format!("step/update/{computes} = {computes}(step/update/read d:1)"),
        ];
        assert_eq!(lines(&graph), expected);
        let computed = format!("step/update/{computes}");
        let [assigned, read, computed] =
            ["step/update", "step/update/read", &computed].map(|name| graph.node(name).unwrap());
        for (node, attribute) in [(assigned, "dtype"), (read, "dtype"), (computed, "T")] {
            assert_eq!(node.attr::<DType>(attribute).unwrap(), DType::Float32);
        }
        assert!(assigned.attr::<bool>("validate_shape").unwrap());
        assert_eq!(assigned.attr::<Vec<String>>("_class").unwrap(), ["loc:@v"]);
        assert!(!assigned.has_attr("Tindices"));

        let again = applied(FEW, graph.nodes().cloned().collect());
        assert!(!again.is_changed(), "nothing is left to do");
    }
}

#[test]
fn others_stay() {
    let other_device = DEVICE.replace("MY_DEVICE", "MY_DEVICE_TOO");
    let own: HasKernel =
        |op, types| op == "AssignAddVariableOp" && types.contains(&("dtype", DType::Float32));
    let float = DType::Float32;
    for (op, dtype, device, has_kernel) in [
        ("AssignAddVariableOp", float, CPU, FEW),
        ("AssignAddVariableOp", float, &other_device, FEW),
        ("AssignVariableOp", float, DEVICE, FEW),
        ("ResourceConditionalAccumulator", float, DEVICE, FEW),
        // TensorFlow has a kernel for all devices.
        ("ResourceGather", DType::Variant, DEVICE, FEW),
        // The plugin has a kernel that does it in place.
        ("AssignAddVariableOp", float, DEVICE, own),
        // Damaged: there is an input too few.
        ("ResourceScatterAdd", float, DEVICE, FEW),
    ] {
        let mut nodes = an_update(op, dtype);
        for node in &mut nodes {
            node.set_device(device);
        }
        let mut graph = graph_of(nodes);
        Workarounds { device_type: "MY_DEVICE", has_kernel }.apply(&mut graph).unwrap();
        assert!(!graph.is_changed(), "{op} {device}");
    }
}

#[test]
fn two_updates_get_two_names() {
    let graph = applied(
        FEW,
        vec![
            node("v", "_Arg", &[]),
            node("u/read", "NoOp", &[]),
            update("u", "AssignSubVariableOp", DType::Float32, &["v", "v"]),
            update("w", "AssignSubVariableOp", DType::Float32, &["v", "v"]),
        ],
    );
    let lines = lines(&graph);
    assert_eq!(lines.len(), 8);
    for line in ["u/Sub = Sub(u/read_1 v)", "u/read_1 = ReadVariableOp(v)"] {
        assert!(lines.iter().any(|other| other == line), "{lines:#?}");
    }
}

/// Checks an update that waits for another only through its value, as TensorFlow's dependency optimizer leaves it.
#[test]
fn an_update_reads_the_variable_after_its_value_is_there() {
    let sub = "AssignSubVariableOp";
    let graph = applied(
        FEW,
        vec![
            node("v", "_Arg", &[]),
            node("d", "_Arg", &[]),
            update("first", sub, DType::Float32, &["v", "d"]),
            node("between", "ReadVariableOp", &["v", "^first"]),
            node("square", "Square", &["between"]),
            update("second", sub, DType::Float32, &["v", "square:0", "^square"]),
        ],
    );
    let lines = lines(&graph);
    for line in ["first/read = ReadVariableOp(v ^d)", "second/read = ReadVariableOp(v ^square)"] {
        assert!(lines.iter().any(|other| other == line), "{lines:#?}");
    }
}

#[test]
fn the_cpu_computes_on_a_temporary_what_the_device_cannot() {
    let op = update("u", "ResourceScatterNdMax", DType::Float32, &["v", "i", "d"]);
    let expected = [
        "u = AssignVariableOp(v u/ReadVariableOp)",
        "u/read = ReadVariableOp(v ^i ^d)",
        "u/VarHandleOp = VarHandleOp(^u/read) on CPU",
        "u/AssignVariableOp = AssignVariableOp(u/VarHandleOp u/read) on CPU",
        "u/ResourceScatterNdMax = ResourceScatterNdMax(u/VarHandleOp i d ^u/AssignVariableOp) on CPU",
        "u/ReadVariableOp = ReadVariableOp(u/VarHandleOp ^u/ResourceScatterNdMax) on CPU",
    ];
    assert_eq!(replaced(FEW, op.clone(), &["v", "i", "d"]), expected);
    let graph = applied(
        FEW,
        vec![node("v", "_Arg", &[]), node("i", "_Arg", &[]), node("d", "_Arg", &[]), op],
    );
    let run = graph.node("u/ResourceScatterNdMax").unwrap();
    assert!(run.attr::<DType>("Tindices").unwrap() == DType::Int64 && !run.has_attr("_class"));
    // Such variables exist once an execution.
    let temporary = graph.node("u/VarHandleOp").unwrap();
    assert_eq!(temporary.attr::<String>("shared_name").unwrap(), ANONYMOUS);
}

#[test]
fn an_output_keeps_its_name_and_waits_for_the_change() {
    let mut skip = node("u", "RngReadAndSkip", &["v", "a", "n", "^before"]);
    skip.set_attr("_class", vec![String::from("loc:@v")]);
    let lines = replaced(FEW, skip, &["v", "a", "n", "before"]);
    for line in [
        "u = Identity(u/RngReadAndSkip ^before ^u/AssignVariableOp_1)",
        "u/AssignVariableOp = AssignVariableOp(u/VarHandleOp u/read) on CPU",
        "u/AssignVariableOp_1 = AssignVariableOp(v u/ReadVariableOp)",
    ] {
        assert!(lines.iter().any(|other| other == line), "{lines:#?}");
    }
}

#[test]
fn rows_alone_go_to_the_cpu() {
    let op = update("u", "ResourceSparseApplyAdagrad", DType::Float32, &["v", "m", "r", "g", "i"]);
    let arguments = ["v", "m", "r", "g", "i"];
    let lines = replaced(FEW, op.clone(), &arguments);
    for line in [
        "u = NoOp(^u/AssignVariableOp_2 ^u/AssignVariableOp_3)",
        "u/Unique = Unique(u/Reshape) on CPU",
        "u/GatherV2 = GatherV2(u/read u/Unique u/Const_1)",
        "u/GatherV2_1 = GatherV2(u/read_1 u/Unique u/Const_2)",
        "u/Reshape_1 = Reshape(u/Unique:1 u/Shape) on CPU",
        "u/ResourceSparseApplyAdagrad = ResourceSparseApplyAdagrad(u/VarHandleOp u/VarHandleOp_1 r g u/Reshape_1 \
         ^u/AssignVariableOp ^u/AssignVariableOp_1) on CPU",
        "u/TensorScatterUpdate = TensorScatterUpdate(u/read u/ExpandDims u/ReadVariableOp)",
        "u/AssignVariableOp_2 = AssignVariableOp(v u/TensorScatterUpdate)",
    ] {
        assert!(lines.iter().any(|other| other == line), "{line}: {lines:#?}");
    }
    // Without kernels for rows it is all of the variable.
    let lines = replaced(NONE, op, &arguments);
    assert!(!lines.iter().any(|line| line.contains("GatherV2")), "{lines:#?}");
    assert!(lines.contains(&String::from(
        "u/AssignVariableOp = AssignVariableOp(u/VarHandleOp u/read) on CPU"
    )));
}

#[test]
fn gathers_and_scatters_are_on_the_device() {
    let mut gather = update("u", "ResourceGather", DType::Float32, &["v", "i"]);
    gather.set_attr("batch_dims", 1_i64);
    let expected = [
        "u = Identity(u/GatherV2)",
        "u/read = ReadVariableOp(v ^i)",
        "u/Const = Const(^u/read)",
        "u/GatherV2 = GatherV2(u/read i u/Const)",
    ];
    assert_eq!(replaced(FEW, gather.clone(), &["v", "i"]), expected);
    let graph = applied(FEW, vec![node("v", "_Arg", &[]), node("i", "_Arg", &[]), gather]);
    // A scalar of int32 with the bytes of 1.
    let axis = b"\x42\x0a\x08\x03\x12\x00\x22\x04\x01\x00\x00\x00";
    assert_eq!(graph.node("u/Const").unwrap().raw_attr("value"), Some(&axis[..]));
    assert_eq!(graph.node("u/GatherV2").unwrap().attr::<i64>("batch_dims").unwrap(), 1);

    let scatter = update("u", "ResourceScatterAdd", DType::Float32, &["v", "i", "d"]);
    let lines = replaced(FEW, scatter, &["v", "i", "d"]);
    for line in [
        "u = AssignVariableOp(v u/TensorScatterAdd)",
        "u/ConcatV2 = ConcatV2(u/Shape u/StridedSlice u/Const_2) on CPU",
        "u/BroadcastTo = BroadcastTo(d u/ConcatV2)",
        "u/TensorScatterAdd = TensorScatterAdd(u/read u/ExpandDims u/BroadcastTo)",
    ] {
        assert!(lines.iter().any(|other| other == line), "{line}: {lines:#?}");
    }
}

/// Checks a plugin whose kernels are for one of the types of the added nodes.
#[test]
fn kernels_for_other_indices_leave_the_op_to_the_cpu() {
    const OTHER: HasKernel = |op, types| {
        let lacks = match op {
            "TensorStridedSliceUpdate" => ("Index", DType::Int64),
            "BroadcastTo" => ("Tidx", DType::Int32),
            _ => ("Taxis", DType::Int32),
        };
        !op.starts_with("Resource") && !types.contains(&lacks)
    };
    let adds = |op: &str, inputs: &[&str], index| {
        let mut node = update("u", op, DType::Float32, inputs);
        node.set_attr("Index", index);
        let lines = replaced(OTHER, node, inputs);
        let on_cpu = format!("u/{op} = {op}(");
        (lines.iter().any(|line| line.starts_with(&on_cpu)), lines.join("\n"))
    };
    for (op, inputs) in [
        ("ResourceStridedSliceAssign", &["v", "b", "e", "s", "d"][..]),
        ("ResourceScatterAdd", &["v", "i", "d"]),
        ("ResourceGather", &["v", "i"]),
        ("ResourceSparseApplyAdagrad", &["v", "m", "r", "g", "i"]),
    ] {
        let (on_cpu, lines) = adds(op, inputs, DType::Int64);
        assert!(on_cpu, "{lines}");
        for op in ["TensorStridedSliceUpdate(", "BroadcastTo(", "GatherV2("] {
            assert!(!lines.contains(op), "{lines}");
        }
    }
    let of_slice = ["v", "b", "e", "s", "d"];
    let (on_cpu, lines) = adds("ResourceStridedSliceAssign", &of_slice, DType::Int32);
    assert!(!on_cpu && lines.contains("TensorStridedSliceUpdate("), "{lines}");
}

#[test]
fn optimizers_are_arithmetic() {
    let inputs = ["v", "m", "r", "g", "b"];
    let mut step = update("u", "ResourceApplyMomentum", DType::Float32, &inputs);
    let expected = [
        "u = NoOp(^u/AssignVariableOp ^u/AssignVariableOp_1)",
        "u/read = ReadVariableOp(v ^r ^g ^b)",
        "u/read_1 = ReadVariableOp(m ^r ^g ^b)",
        "u/Mul = Mul(u/read_1 b)",
        "u/AddV2 = AddV2(u/Mul g)",
        "u/Mul_1 = Mul(u/AddV2 r)",
        "u/Sub = Sub(u/read u/Mul_1)",
        "u/AssignVariableOp = AssignVariableOp(v u/Sub)",
        "u/AssignVariableOp_1 = AssignVariableOp(m u/AddV2)",
    ];
    assert_eq!(replaced(FEW, step.clone(), &inputs), expected);
    step.set_attr("use_nesterov", true);
    assert!(replaced(FEW, step.clone(), &inputs).len() > expected.len());
    // Without an op that it takes, the CPU does it.
    step.set_op("ResourceApplyAdagrad").set_inputs(["v", "m", "r", "g"]);
    let lines = replaced(FEW, step.clone(), &["v", "m", "r", "g"]);
    assert!(lines.iter().any(|line| line.ends_with(" on CPU")), "{lines:#?}");
    // An optimizer that leaves its state alone does not assign it.
    step.set_attr("update_slots", false);
    let lines = replaced(|_, _| true, step.clone(), &["v", "m", "r", "g"]);
    assert!(lines.is_empty(), "the plugin has the op itself: {lines:#?}");
    let lines = replaced(|op, _| !op.starts_with("Resource"), step, &["v", "m", "r", "g"]);
    assert_eq!(lines[0], "u = NoOp(^u/AssignVariableOp)");
}

/// Checks that each formula uses only the inputs of its op, and sets a variable.
#[test]
fn formulas_are_complete() {
    use crate::kernel::variable_ops::VARIABLE_OPS;
    for op in VARIABLE_OPS {
        let formulas = match op.recipe {
            Recipe::Formula(one) => vec![one],
            Recipe::FormulaIf(_, one, other) => vec![one, other],
            _ => continue,
        };
        for formula in formulas {
            let mut known: Vec<&str> = op.handles.iter().chain(op.inputs).copied().collect();
            let mut depth = 0;
            for word in formula.split_ascii_whitespace() {
                if let Some((_, count)) = operation(word) {
                    assert!(depth >= count, "{}: `{word}` in {formula}", op.op);
                    depth -= count - 1;
                } else if let Some(name) = word.strip_prefix('=') {
                    known.push(name);
                    depth -= 1;
                } else {
                    assert!(
                        word == "1" || known.contains(&word),
                        "{}: `{word}` in {formula}",
                        op.op
                    );
                    depth += 1;
                }
            }
            assert_eq!(depth, 0, "{}: {formula}", op.op);
            assert!(formula.contains(" =var"), "{}: {formula}", op.op);
        }
    }
}
