use super::*;

/// Makes a graph of nodes, each `NAME = OP INPUT…`; ops in capitals have no kind, those with an `f` a second one, and those with
/// a `t` take two steps.
fn graph(nodes: &[&str]) -> Graph<'static> {
    let mut graph = Graph::new();
    for text in nodes {
        let (name, rest) = text.split_once(" = ").unwrap();
        let mut words = rest.split(' ');
        let mut node = Node::new(name, words.next().unwrap());
        node.set_inputs(words);
        graph.add_node(node).unwrap();
    }
    graph
}

const LIMITS: Limits = Limits { steps: 4, inputs: 3 };

fn kind(node: &Node<'_>) -> Option<(char, usize)> {
    let first = node.op().chars().next().filter(char::is_ascii_lowercase);
    let steps = |first| if first == 't' { 2 } else { 1 };
    first.map(|first| (if first == 'f' { first } else { 'n' }, steps(first)))
}

/// Those of `SMALL`.
fn extent(node: &Node<'_>) -> Extent {
    match node.op() {
        "SMALL" => Extent::Small,
        "MANY" => Extent::Large,
        _ => Extent::OfInputs,
    }
}

fn found(graph: &Graph<'_>) -> Vec<Tree> {
    find(graph, kind, extent, LIMITS).unwrap()
}

/// Checks the trees, each `STEPS | INPUTS`.
#[track_caller]
fn expect(nodes: &[&str], expected: &[&str]) {
    let mut trees: Vec<_> = found(&graph(nodes)).iter().map(ToString::to_string).collect();
    trees.sort();
    assert_eq!(trees, expected);
    // The nodes of a graph are in no order.
    let mut reversed = nodes.to_vec();
    reversed.reverse();
    let mut trees: Vec<_> = found(&graph(&reversed)).iter().map(ToString::to_string).collect();
    trees.sort();
    assert_eq!(trees, expected);
}

impl std::fmt::Display for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, operands) in &self.steps {
            write!(f, "{name}")?;
            for operand in operands {
                match operand {
                    Operand::Input(at) => write!(f, " i{at}")?,
                    Operand::Step(at) => write!(f, " s{at}")?,
                }
            }
            write!(f, "; ")?;
        }
        write!(f, "| {}", self.inputs.join(" "))
    }
}

#[test]
fn a_chain_is_a_tree() {
    expect(
        &["x = IN", "y = IN", "a = add x y:1", "b = neg a", "c = add b x", "out = OUT c"],
        &["a i0 i1; b s0; c s1 i0; | x y:1"],
    );
    expect(&["x = IN", "a = neg x", "out = OUT a"], &[]);
    expect(&["x = IN", "a = neg x", "m = MATMUL a", "b = neg m", "out = OUT b"], &[]);
}

#[test]
fn a_result_that_is_used_outside_is_not_a_step() {
    let chain = ["x = IN", "a = neg x", "b = neg a", "c = neg b"];
    for other in ["o = OUT b", "o = OUT b:1", "o = neg b"] {
        expect(&[&chain[..], &[other]].concat(), &["a i0; b s0; | x"]);
    }
    // The tree itself uses another output, which the kind should exclude.
    expect(&["x = IN", "a = neg x", "b = add a a:1", "o = OUT b"], &[]);
}

#[test]
fn a_result_may_have_several_uses_in_its_tree() {
    expect(
        &["x = IN", "a = neg x", "b = neg a", "c = mul a b", "d = add a c", "o = OUT d d"],
        &["a i0; b s0; c s0 s1; d s0 s2; | x"],
    );
    expect(&["x = IN", "a = neg x", "b = mul a a", "o = OUT b"], &["a i0; b s0 s0; | x"]);
    // Through another op, the tree would need its own result.
    expect(&["x = IN", "a = neg x", "s = SUM a", "b = mul a s", "o = OUT b"], &[]);
}

#[test]
fn kinds_are_not_mixed() {
    expect(&["x = IN", "a = neg x", "b = float a", "c = flip b"], &["b i0; c s0; | a"]);
}

#[test]
fn trees_have_limits() {
    // Four steps: the rest is another tree.
    expect(
        &["x = IN", "a = n x", "b = n a", "c = n b", "d = n c", "e = n d", "f = n e"],
        &["a i0; b s0; | x", "c i0; d s0; e s1; f s2; | b"],
    );
    // Two of them by one node.
    expect(
        &["x = IN", "a = n x", "b = n a", "c = two b", "d = n c", "e = n d", "o = OUT e"],
        &["a i0; b s0; | x", "c i0; d s0; e s1; | b"],
    );
    // Three inputs: there is no room for the two inputs of the last one.
    expect(
        &["x = IN", "s = n x:1 x:2", "t = n x:3 x:4", "u = n s t", "o = OUT u"],
        &["s i0 i1; u s0 i2; | x:1 x:2 t"],
    );
}

#[test]
fn control_dependencies_on_removed_nodes_are_on_what_those_used() {
    let nodes = ["x = IN", "y = IN", "a = n x:1", "b = n a y", "c = n b a"];
    let waiting = ["d = OUT x ^b", "e = OUT ^a ^b ^c", "f = OUT ^y ^a"];
    let mut graph = graph(&[&nodes[..], &waiting].concat());
    let [tree] = &found(&graph)[..] else { panic!("a tree") };
    let mut removed = HashMap::new();
    for ((name, _), sources) in tree.steps.iter().zip(tree.sources()).take(2) {
        graph.remove_node(name).unwrap();
        removed.insert(name.clone(), sources);
    }
    graph.node_mut("c").unwrap().set_inputs(&tree.inputs);
    redirect(&mut graph, &removed);
    let text = |node: &Node<'_>| {
        node.inputs().fold(node.name().to_owned(), |text, input| format!("{text} {input}"))
    };
    let expected = ["x", "y", "c x:1 y", "d x ^y", "e ^c ^x ^y", "f ^y ^x"];
    assert_eq!(graph.nodes().map(text).collect::<Vec<_>>(), expected);
}

#[test]
fn some_control_dependencies_keep_a_node() {
    let chain = ["x = IN", "a = n x", "b = n a", "w = OUT ^a", "o = OUT b"];
    expect(&chain, &["a i0; b s0; | x"]);
    // The waiting node may change memory that the tree reads.
    for variable in ["v = Variable", "v = VariableV2", "v = TemporaryVariable", "v = InplaceAdd"] {
        expect(&[&chain[..], &[variable]].concat(), &[]);
        expect(&[variable, "a = n v", "b = n a", "o = OUT b ^b"], &["a i0; b s0; | v"]);
    }
    // Otherwise a node that waits for several trees in a row would wait for all nodes before them.
    expect(&["x = IN", "a = n x ^x", "b = n a", "w = OUT ^a", "o = OUT b"], &[]);
    expect(&["x = IN", "a = n x ^x", "b = n a", "o = OUT b ^b"], &["a i0; b s0; | x"]);
    expect(&["x = IN", "a = n x", "b = n a ^x", "w = OUT ^a", "o = OUT b"], &["a i0; b s0; | x"]);
}

#[test]
fn a_node_that_waits_for_a_branch_waits_for_its_result() {
    let nodes = ["s = Switch", "y = IN", "a = n s:1", "b = n a y", "c = n b", "o = OUT c"];
    expect(&nodes, &["a i0; b s0 i1; c s1; | s:1 y"]);
    // `s` runs in either case of the branch.
    for waits in ["w = OUT ^a", "w = OUT ^b"] {
        expect(&[&nodes[..], &[waits]].concat(), &["b i0 i1; c s0; | a y"]);
    }
    expect(&[&nodes[..], &["w = OUT ^c"]].concat(), &["a i0; b s0 i1; c s1; | s:1 y"]);
}

#[test]
fn nodes_that_must_stay_or_name_a_place_stay() {
    let mut two = graph(&["x = IN", "a = neg x", "b = neg a", "o = OUT b"]);
    assert_eq!(found(&two).len(), 1);
    two.node_mut("o").unwrap().set_attr("_class", vec![String::from("loc:@a")]);
    assert_eq!(found(&two), []);
    two.node_mut("o").unwrap().set_attr("_class", vec![String::from("loc:@b")]);
    two.node_mut("a").unwrap().set_attr("_class", vec![String::from("loc:@a")]);
    assert_eq!(found(&two).len(), 1);
}

#[test]
fn circles_are_left_alone() {
    expect(&["a = n c", "b = n a", "c = n b", "o = OUT c"], &[]);
}

#[test]
fn what_is_computed_for_few_elements_is_left_out_first() {
    let many = ["many = MANY", "a = neg many", "b = neg a"];
    let few = ["few = SMALL", "c = neg few", "d = neg c", "e = neg d"];
    // In a tree are four steps.
    for sum in ["sum = add b e", "sum = add e b"] {
        let nodes = [&many[..], &few[..], &[sum, "last = END sum"]].concat();
        let trees: Vec<_> = found(&graph(&nodes)).iter().map(ToString::to_string).collect();
        let with_many = trees.iter().find(|tree| tree.contains("sum")).unwrap();
        assert!(with_many.contains("a ") && with_many.contains("b "), "{trees:?}");
    }
}
