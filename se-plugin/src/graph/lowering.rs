//! Branches and loops that TensorFlow has not lowered.
//!
//! Before TensorFlow places nodes it replaces `If` and `While` by the ops of their branches and bodies, each of which is
//! then on a device of its own, and in a graph that passes see. It does not in functions that were traced for XLA, as
//! Keras requests by default: there a node runs all of its branch on its own device, ops without a kernel included, and no
//! pass sees what is in it. So this puts switches and merges around calls of the branches, and a loop around those of the
//! condition and the body: TensorFlow places the nodes of a function that is called so, and gives it to the passes.

use super::{DType, Graph, Input, Node};
use tf_plugin_core::Result;

/// Says that TensorFlow is to lower a node. Where it is still there, it has decided not to.
const LOWER: &str = "_lower_using_switch_merge";

/// A node that can be lowered.
struct Flow {
    name: String,
    device: String,
    inputs: Vec<String>,
    control: Vec<String>,
    kind: Kind,
    /// The op that calls a function of it.
    call: &'static str,
}

enum Kind {
    If { inputs: Vec<DType>, outputs: Vec<DType>, then: Vec<u8>, otherwise: Vec<u8> },
    While { types: Vec<DType>, condition: Vec<u8>, body: Vec<u8>, parallel: i64 },
}

/// What is there instead of a node: its outputs, and what has run when it would have.
struct Lowered {
    outputs: Vec<String>,
    done: Vec<String>,
}

impl Flow {
    fn of(node: &Node<'_>) -> Option<Self> {
        let function = |name| node.raw_attr(name).map(<[u8]>::to_vec);
        let types = |name| node.attr::<Vec<DType>>(name).ok();
        let kind = match node.op() {
            "If" | "StatelessIf" if node.attr::<DType>("Tcond").ok()? == DType::Bool => Kind::If {
                inputs: types("Tin")?,
                outputs: types("Tout")?,
                then: function("then_branch")?,
                otherwise: function("else_branch")?,
            },
            "While" | "StatelessWhile" => Kind::While {
                types: types("T").filter(|types| !types.is_empty())?,
                condition: function("cond")?,
                body: function("body")?,
                parallel: node.attr("parallel_iterations").unwrap_or(10),
            },
            _ => return None,
        };
        if node.attr::<bool>(LOWER).is_ok_and(|lower| lower) {
            return None;
        }
        let is_control = |input: &Input<'_>| matches!(input, Input::Control { .. });
        let (control, inputs): (Vec<_>, Vec<_>) = node.inputs().partition(is_control);
        let expected = match &kind {
            Kind::If { inputs, .. } => 1 + inputs.len(),
            Kind::While { types, .. } => types.len(),
        };
        let is_stateless = node.op().starts_with("Stateless");
        (inputs.len() == expected).then(|| Self {
            name: node.name().to_owned(),
            device: node.device().to_owned(),
            inputs: inputs.iter().map(ToString::to_string).collect(),
            control: control.iter().map(ToString::to_string).collect(),
            kind,
            call: if is_stateless { "PartitionedCall" } else { "StatefulPartitionedCall" },
        })
    }

    /// Adds a node beside this one. Returns its name.
    fn add(
        &self,
        graph: &mut Graph<'_>,
        op: &str,
        inputs: &[&[String]],
        set: impl FnOnce(&mut Node<'_>),
    ) -> Result<String> {
        let name = graph.free_name(&format!("{}/{op}", self.name));
        let mut node = Node::new(&*name, op);
        node.set_device(&self.device).set_inputs(inputs.concat());
        set(&mut node);
        graph.add_node(node)?;
        Ok(name)
    }

    /// Adds an `Identity`, which runs only where its input is taken.
    fn add_pivot(&self, graph: &mut Graph<'_>, dtype: DType, inputs: &[String]) -> Result<String> {
        self.add(graph, "Identity", &[inputs], |node| {
            node.set_attr("T", dtype);
        })
    }

    /// Adds a node for each of some types, their attribute `T`. Returns the names.
    fn add_each(
        &self,
        graph: &mut Graph<'_>,
        op: &str,
        types: &[DType],
        inputs: impl Fn(usize) -> Vec<String>,
        set: impl Fn(&mut Node<'_>),
    ) -> Result<Vec<String>> {
        let each = types.iter().enumerate();
        let added = each.map(|(index, &dtype)| {
            self.add(graph, op, &[&inputs(index)], |node| {
                node.set_attr("T", dtype);
                set(node);
            })
        });
        added.collect()
    }

    /// Adds the call of a function.
    fn add_call(
        &self,
        graph: &mut Graph<'_>,
        function: &[u8],
        [inputs, outputs]: [&[DType]; 2],
        values: &[&[String]],
    ) -> Result<String> {
        self.add(graph, self.call, values, |node| {
            node.set_attr("Tin", inputs.to_vec()).set_attr("Tout", outputs.to_vec());
            node.set_raw_attr("f", function);
            for name in ["config", "config_proto", "executor_type"] {
                node.set_attr(name, String::new());
            }
        })
    }

    fn lower(&self, graph: &mut Graph<'_>) -> Result<Lowered> {
        match &self.kind {
            Kind::If { inputs, outputs, then, otherwise } => {
                self.lower_if(graph, [inputs, outputs], [otherwise, then])
            }
            Kind::While { types, condition, body, parallel } => {
                self.lower_while(graph, types, [condition, body], *parallel)
            }
        }
    }

    /// The branches are in the order of the outputs of a switch.
    fn lower_if(
        &self,
        graph: &mut Graph<'_>,
        [inputs, outputs]: [&[DType]; 2],
        branches: [&[u8]; 2],
    ) -> Result<Lowered> {
        let types = [&[DType::Bool], inputs].concat();
        let switched = |index: usize| {
            [&[self.inputs[index].clone(), self.inputs[0].clone()][..], &self.control].concat()
        };
        let switches = self.add_each(graph, "Switch", &types, switched, |_| {})?;
        let mut calls = Vec::new();
        let mut done = Vec::new();
        for (side, function) in branches.into_iter().enumerate() {
            let taken: Vec<_> = switches.iter().map(|name| output(name, side)).collect();
            let pivot = self.add_pivot(graph, DType::Bool, &taken[..1])?;
            // A branch without inputs must not run if it is not taken.
            let values = [&taken[1..], &[format!("^{pivot}")]];
            let call = self.add_call(graph, function, [inputs, outputs], &values)?;
            done.push(self.add_pivot(graph, DType::Bool, &[pivot, format!("^{call}")])?);
            calls.push(call);
        }
        let types = [&[DType::Bool], outputs].concat();
        let merged = |index: usize| match index.checked_sub(1) {
            None => done.clone(),
            Some(index) => calls.iter().map(|call| output(call, index)).collect(),
        };
        let mut merges = self.add_each(graph, "Merge", &types, merged, |node| {
            node.set_attr("N", 2_i64);
        })?;
        let done = vec![merges.remove(0)];
        Ok(Lowered { outputs: merges, done })
    }

    fn lower_while(
        &self,
        graph: &mut Graph<'_>,
        types: &[DType],
        [condition, body]: [&[u8]; 2],
        parallel: i64,
    ) -> Result<Lowered> {
        let entered = |index: usize| [&[self.inputs[index].clone()][..], &self.control].concat();
        let enters = self.add_each(graph, "Enter", types, entered, |node| {
            node.set_attr("frame_name", self.name.clone()).set_attr("is_constant", false);
            node.set_attr("parallel_iterations", parallel);
        })?;
        let merges =
            self.add_each(graph, "Merge", types, |index| vec![enters[index].clone()], |_| {})?;
        // What has no inputs in the functions runs once in each turn that there is, also if TensorFlow inlines them.
        let turn = [format!("^{}", merges[0])];
        let values: [&[_]; 2] = [&merges, &turn];
        let condition = self.add_call(graph, condition, [types, &[DType::Bool]], &values)?;
        let condition = self.add(graph, "LoopCond", &[&[condition]], |_| {})?;
        let switched = |index: usize| vec![merges[index].clone(), condition.clone()];
        let switches = self.add_each(graph, "Switch", types, switched, |_| {})?;
        let left = |index: usize| vec![output(&switches[index], 0)];
        let exits = self.add_each(graph, "Exit", types, left, |_| {})?;
        let taken: Vec<_> = switches.iter().map(|name| output(name, 1)).collect();
        let pivot = self.add_pivot(graph, types[0], &taken[..1])?;
        let values: [&[_]; 2] = [&taken, &[format!("^{pivot}")]];
        let body = self.add_call(graph, body, [types, types], &values)?;
        let next = |index: usize| vec![output(&body, index)];
        let next = self.add_each(graph, "NextIteration", types, next, |_| {})?;
        for ((merge, enter), next) in merges.iter().zip(enters).zip(next) {
            if let Some(merge) = graph.node_mut(merge) {
                merge.set_attr("N", 2_i64).set_inputs([enter, next]);
            }
        }
        Ok(Lowered { outputs: exits.clone(), done: exits })
    }

    /// Gives the outputs to those that had the node's. What waits for it, waits for what is instead; where a value may be
    /// fetched by its name, it has them all.
    fn replace(self, graph: &mut Graph<'_>, lowered: &Lowered) -> Result<()> {
        let new = |input: Input<'_>| match input {
            Input::Data { node, output } if node == self.name => lowered.outputs.get(output),
            _ => None,
        };
        for node in graph.nodes_mut() {
            if node.inputs().any(|input| new(input).is_some()) {
                let inputs = node.inputs();
                let inputs = inputs.map(|input| new(input).cloned().unwrap_or(input.to_string()));
                let inputs: Vec<_> = inputs.collect();
                node.set_inputs(inputs);
            }
        }
        let is_fetched = !lowered.outputs.is_empty() && graph.is_preserved(&self.name)?;
        let Some(node) = graph.node_mut(&self.name) else { return Ok(()) };
        let attributes: Vec<_> = node.attr_names().map(str::to_owned).collect();
        for name in &attributes {
            node.remove_attr(name);
        }
        let done = lowered.done.iter().map(|name| format!("^{name}"));
        if is_fetched {
            let (Kind::If { outputs: types, .. } | Kind::While { types, .. }) = self.kind;
            node.set_op("IdentityN").set_attr("T", types);
            node.set_inputs(lowered.outputs.iter().cloned().chain(done));
        } else {
            node.set_op("NoOp").set_inputs(done);
        }
        Ok(())
    }
}

/// An output of a node, as an input.
fn output(node: &str, output: usize) -> String {
    Input::Data { node, output }.to_string()
}

/// Lowers what is on devices of a type.
pub(super) fn lower(graph: &mut Graph<'_>, device_type: &str) -> Result<()> {
    let is_flow = |node: &&Node<'_>| node.is_on(device_type) && Flow::of(node).is_some();
    let names: Vec<_> = graph.nodes().filter(is_flow).map(|node| node.name().to_owned()).collect();
    for name in names {
        // With the inputs that it has by now: those of one that was lowered are others.
        if let Some(flow) = graph.node(&name).and_then(Flow::of) {
            let lowered = flow.lower(graph)?;
            flow.replace(graph, &lowered)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const DEVICE: &str = "/job:localhost/replica:0/task:0/device:MY_DEVICE:0";

    fn node(name: &str, op: &str, inputs: &[&str]) -> Node<'static> {
        let mut node = Node::new(name, op);
        node.set_device(DEVICE).set_inputs(inputs);
        node
    }

    fn function(name: &str) -> Vec<u8> {
        [&[0x52, 2 + name.len() as u8, 0x0a, name.len() as u8], name.as_bytes()].concat()
    }

    fn branch(name: &str, inputs: &[&str]) -> Node<'static> {
        let mut branch = node(name, "If", inputs);
        branch.set_attr("Tcond", DType::Bool).set_attr("Tin", vec![DType::Float32]);
        branch.set_attr("Tout", vec![DType::Int64]).set_attr("_other", true);
        branch.set_raw_attr("then_branch", function("yes"));
        branch.set_raw_attr("else_branch", function("no"));
        branch
    }

    fn repeat(name: &str, inputs: &[&str]) -> Node<'static> {
        let mut repeat = node(name, "StatelessWhile", inputs);
        repeat.set_attr("T", vec![DType::Float32, DType::Int32]);
        repeat.set_attr("parallel_iterations", 3_i64);
        repeat.set_raw_attr("cond", function("go_on"));
        repeat.set_raw_attr("body", function("step"));
        repeat
    }

    /// The graph that is made of the nodes, a line for each.
    fn lowered(nodes: Vec<Node<'static>>, preserved: &[&str]) -> Vec<String> {
        let mut graph = Graph::new();
        nodes.into_iter().for_each(|node| graph.add_node(node).unwrap());
        let bytes = graph.encode();
        let preserved: BTreeSet<_> = preserved.iter().map(|name| String::from(*name)).collect();
        let ask = || Ok(Some(preserved.clone()));
        let mut graph = Graph::decode_preserving(&bytes, &ask).unwrap();
        lower(&mut graph, "MY_DEVICE").unwrap();
        graph.check().unwrap();
        let line = |node: &Node<'_>| {
            let inputs: Vec<_> = node.inputs().map(|input| input.to_string()).collect();
            let callee = node.raw_attr("f").map(|f| String::from_utf8_lossy(&f[4..]).into_owned());
            let op = callee.map_or(node.op().to_owned(), |f| format!("{} {f}", node.op()));
            assert_eq!(node.device(), DEVICE);
            format!("{} = {op}({})", node.name(), inputs.join(" "))
        };
        graph.nodes().map(line).collect()
    }

    #[test]
    fn a_branch_is_called_between_switches_and_merges() {
        let nodes = || {
            vec![
                node("p", "_Arg", &[]),
                node("x", "Split", &[]),
                node("before", "NoOp", &[]),
                branch("if", &["p", "x:1", "^before"]),
                node("y", "_Retval", &["if"]),
                node("after", "NoOp", &["^if"]),
            ]
        };
        let expected = [
            "p = _Arg()",
            "x = Split()",
            "before = NoOp()",
            "if = NoOp(^if/Merge)",
            "y = _Retval(if/Merge_1)",
            "after = NoOp(^if)",
            "if/Switch = Switch(p p ^before)",
            "if/Switch_1 = Switch(x:1 p ^before)",
            "if/Identity = Identity(if/Switch)",
            "if/StatefulPartitionedCall = StatefulPartitionedCall no(if/Switch_1 ^if/Identity)",
            "if/Identity_1 = Identity(if/Identity ^if/StatefulPartitionedCall)",
            "if/Identity_2 = Identity(if/Switch:1)",
            "if/StatefulPartitionedCall_1 = StatefulPartitionedCall yes(if/Switch_1:1 ^if/Identity_2)",
            "if/Identity_3 = Identity(if/Identity_2 ^if/StatefulPartitionedCall_1)",
            "if/Merge = Merge(if/Identity_1 if/Identity_3)",
            "if/Merge_1 = Merge(if/StatefulPartitionedCall if/StatefulPartitionedCall_1)",
        ];
        assert_eq!(lowered(nodes(), &[]), expected);
        // Whoever fetches its value by its name, finds it.
        assert_eq!(lowered(nodes(), &["if"])[3], "if = IdentityN(if/Merge_1 ^if/Merge)");
    }

    #[test]
    fn a_loop_calls_its_condition_and_its_body() {
        let nodes = vec![
            node("x", "_Arg", &[]),
            node("n", "_Arg", &[]),
            repeat("w", &["x", "n"]),
            node("y", "_Retval", &["w:1"]),
        ];
        let expected = [
            "x = _Arg()",
            "n = _Arg()",
            "w = NoOp(^w/Exit ^w/Exit_1)",
            "y = _Retval(w/Exit_1)",
            "w/Enter = Enter(x)",
            "w/Enter_1 = Enter(n)",
            "w/Merge = Merge(w/Enter w/NextIteration)",
            "w/Merge_1 = Merge(w/Enter_1 w/NextIteration_1)",
            "w/PartitionedCall = PartitionedCall go_on(w/Merge w/Merge_1 ^w/Merge)",
            "w/LoopCond = LoopCond(w/PartitionedCall)",
            "w/Switch = Switch(w/Merge w/LoopCond)",
            "w/Switch_1 = Switch(w/Merge_1 w/LoopCond)",
            "w/Exit = Exit(w/Switch)",
            "w/Exit_1 = Exit(w/Switch_1)",
            "w/Identity = Identity(w/Switch:1)",
            "w/PartitionedCall_1 = PartitionedCall step(w/Switch:1 w/Switch_1:1 ^w/Identity)",
            "w/NextIteration = NextIteration(w/PartitionedCall_1)",
            "w/NextIteration_1 = NextIteration(w/PartitionedCall_1:1)",
        ];
        assert_eq!(lowered(nodes, &[]), expected);
    }

    #[test]
    fn one_may_be_the_input_of_the_next() {
        let nodes = vec![
            node("x", "_Arg", &[]),
            node("n", "_Arg", &[]),
            repeat("second", &["first", "first:1", "^first"]),
            repeat("first", &["x", "n"]),
        ];
        let lines = lowered(nodes, &[]);
        for expected in [
            "second/Enter_1 = Enter(first/Exit_1 ^first)",
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
        let mut elsewhere = branch("elsewhere", &inputs);
        elsewhere.set_device(DEVICE.replace("MY_DEVICE", "CPU"));
        let mut kept = repeat("kept", &inputs);
        kept.set_attr(LOWER, true);
        for flow in [number, elsewhere, kept, branch("damaged", &["p"])] {
            let mut graph = Graph::new();
            graph.add_node(flow).unwrap();
            let bytes = graph.encode();
            let mut graph = Graph::decode(&bytes).unwrap();
            lower(&mut graph, "MY_DEVICE").unwrap();
            assert!(!graph.is_changed(), "{graph:?}");
        }
    }
}
