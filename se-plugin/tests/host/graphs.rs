//! Graph passes in the in-process host.

use crate::platform::{longer, platform, refuses_shorter};
use se_plugin::__private::Exported;
use se_plugin::Code;
use se_plugin::graph::{Graph, GraphPass, Node, OptimizerConfigs, Toggle};
use se_plugin::prelude::*;
use tf_plugin_testing::device::{GraphHost, GraphSizes};

const DEVICE: &str = "/job:localhost/replica:0/task:0/device:RUST_TEST:0";
const JIT: &str = "_XlaMustCompile";

platform!(WithoutPass, graph: None, profiler: None);
platform!(WithPass, graph: Some(|| Box::new(Pass)), profiler: None);
platform!(WithoutConstructor, graph: Some(|| panic!("requested it")), profiler: None);

/// A pass that does what the name of the first node says.
struct Pass;

impl GraphPass for Pass {
    fn configs(&self) -> OptimizerConfigs {
        let mut configs = OptimizerConfigs::default();
        configs.disable_model_pruning = Toggle::On;
        configs.scoped_allocator_optimization = Toggle::Off;
        configs
    }

    fn optimize(&self, graph: &mut Graph<'_>) -> Result<()> {
        let what = graph.nodes().next().map(|node| node.name().to_owned());
        match what.as_deref().unwrap_or("nothing") {
            "add" => graph.add_node(Node::new("new", "NoOp")),
            "remove" => graph.remove_node("b").map(drop),
            "error" => Err(Error::unavailable("requested it")),
            "panic" => panic!("requested it"),
            "break" => {
                graph.nodes_mut().for_each(|node| {
                    node.set_inputs(["gone"]);
                });
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn graph(names: &[&str], asks_for_xla: bool) -> Vec<u8> {
    let mut graph = Graph::new();
    for name in names {
        let mut node = Node::new(*name, "NoOp");
        node.set_device(DEVICE);
        if asks_for_xla {
            node.set_attr(JIT, true);
        }
        graph.add_node(node).unwrap();
    }
    graph.encode()
}

fn names(graph: &[u8]) -> Vec<String> {
    let graph = Graph::decode(graph).unwrap();
    graph.nodes().map(|node| node.name().to_owned()).collect()
}

fn asks_for_xla(graph: &[u8]) -> bool {
    Graph::decode(graph).unwrap().nodes().any(|node| node.has_attr(JIT))
}

/// Returns the configuration of a plugin without kernels, for which TensorFlow's arithmetic pass must not insert ops.
fn without_arithmetic() -> [u32; 19] {
    let mut configs = [0; 19];
    configs[4] = 1;
    configs
}

fn host<P: Exported>() -> GraphHost {
    GraphHost::load::<P>().unwrap()
}

#[test]
fn a_plugin_without_a_pass_has_that_of_the_sdk() {
    let host = host::<WithoutPass>();
    assert_eq!((host.device_type(), host.configs()), ("RUST_TEST", without_arithmetic()));
    assert_eq!(host.optimize(&graph(&["a"], false), &[]).unwrap(), None);
    let fixed = host.optimize(&graph(&["a"], true), &[]).unwrap().expect("fixed");
    assert_eq!((names(&fixed), asks_for_xla(&fixed)), (vec!["a".to_owned()], false));
    assert_eq!(host.violations(), []);
}

#[test]
fn the_authors_pass_comes_behind_that_of_the_sdk() {
    let host = host::<WithPass>();
    let configs = host.configs();
    assert_eq!((configs[0], configs[18], configs.iter().sum::<u32>()), (2, 1, 3));
    assert_eq!(host.optimize(&graph(&["nothing"], false), &[]).unwrap(), None);
    for xla in [false, true] {
        let rewritten = host.optimize(&graph(&["add", "b"], xla), &[]).unwrap().expect("rewritten");
        assert_eq!(names(&rewritten), ["add", "b", "new"]);
        assert!(!asks_for_xla(&rewritten));
    }
    assert_eq!(host.violations(), []);
}

#[test]
fn nodes_to_preserve_are_the_hosts() {
    let host = host::<WithPass>();
    let graph = graph(&["remove", "b", "c"], false);
    let rewritten = host.optimize(&graph, &["remove", "c"]).unwrap().expect("rewritten");
    assert_eq!(names(&rewritten), ["remove", "c"]);
    let error = host.optimize(&graph, &["a", "b"]).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(error.message().contains("the node `b` must stay"), "{error}");
    assert_eq!(host.violations(), []);
}

#[test]
fn failures_leave_the_graph_and_what_was_fixed() {
    let host = host::<WithPass>();
    for (what, code, message) in [
        ("error", Code::Unavailable, "requested it"),
        ("panic", Code::Internal, "plugin panicked in `optimize_func`"),
        ("break", Code::Internal, "there is no node `gone`"),
    ] {
        let error = host.optimize(&graph(&[what], false), &[]).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(message), "{error}");
        let fixed = host.optimize(&graph(&[what], true), &[]).unwrap().expect("fixed");
        assert_eq!((names(&fixed), asks_for_xla(&fixed)), (vec![what.to_owned()], false));
    }
    assert_eq!(host.violations(), []);
}

#[test]
fn no_bytes_are_an_empty_graph_and_garbage_is_an_error() {
    let host = host::<WithPass>();
    assert_eq!(host.optimize(&[], &[]).unwrap(), None);
    for garbage in [&b"\xff"[..], b"\x0a\xff\xff\xff\xff\x0f", &[0x0a; 1000]] {
        let error = host.optimize(garbage, &[]).unwrap_err();
        assert_eq!(error.code(), Code::DataLoss, "{error}");
    }
    assert_eq!(host.violations(), []);
}

#[test]
fn a_pass_that_cannot_be_made_is_none() {
    let host = host::<WithoutConstructor>();
    assert_eq!(host.configs(), without_arithmetic());
    assert_eq!(host.optimize(&graph(&["error"], false), &[]).unwrap(), None);
    assert!(host.optimize(&graph(&["error"], true), &[]).unwrap().is_some());
    assert_eq!(host.violations(), []);
}

#[test]
fn a_second_load_has_another_type_and_does_nothing() {
    let types: Vec<String> = (0..3)
        .map(|load| {
            let host = GraphHost::load_with::<WithPass>(GraphSizes::default(), load).unwrap();
            let rewritten = host.optimize(&graph(&["add"], true), &[]).unwrap();
            assert_eq!(rewritten.is_some(), load == 0);
            assert_eq!(host.configs() == [0; 19], load > 0);
            assert_eq!(host.violations(), []);
            host.device_type().to_owned()
        })
        .collect();
    assert_eq!(types, ["RUST_TEST", "RUST_TEST_DUP_B", "RUST_TEST_DUP_C"]);
}

#[test]
fn hosts_of_other_versions() {
    let ours = GraphSizes::default();
    let load = |sizes| GraphHost::load_with::<WithPass>(sizes, 0);
    for more in 0..=64 {
        let host = load(longer!(GraphSizes { params, configs, optimizer }, more)).unwrap();
        assert!(host.optimize(&graph(&["add"], false), &[]).unwrap().is_some());
        assert_eq!(host.violations(), [], "{more}");
    }
    for configs in 8..ours.configs {
        let host = load(GraphSizes { configs, ..ours }).unwrap();
        assert_eq!(host.violations(), [], "{configs}");
        assert_eq!(host.configs()[18], 0, "not covered");
    }
    refuses_shorter!(load, GraphSizes {
        params: ours.params, "TP_OptimizerRegistrationParams";
        optimizer: ours.optimizer, "TP_Optimizer ";
    });
    for major in [-1, 1, i32::MAX] {
        let host = load(GraphSizes { major, ..ours }).unwrap();
        assert_eq!(host.optimize(&graph(&["add"], true), &[]).unwrap(), None, "{major}");
        assert_eq!(host.violations(), []);
    }
}
