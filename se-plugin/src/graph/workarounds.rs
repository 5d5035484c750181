//! The SDK's own pass: it rewrites what fails on every plugin device.

use super::lowering::lower;
use super::variables::{HasKernel, replace};
use super::{DType, Graph, OptimizerConfigs, Toggle};
use crate::kernel::variable_ops::VariableOp;
use tf_plugin_core::Result;

/// The attribute that requests XLA, which plugin devices do not support.
const MUST_COMPILE: &str = "_XlaMustCompile";

/// The ops that TensorFlow's arithmetic pass inserts in place of the user's, such as a `Mul` for `a + a` and an `AddN`
/// for `a + b + c`. It does so after the placement, when an op without a kernel is an error.
const REWRITTEN: [&str; 10] =
    ["AddN", "Expm1", "Log1p", "Mul", "Neg", "Reciprocal", "Rsqrt", "Sqrt", "Square", "Sub"];

/// Returns the configuration for a plugin without its own pass. The arithmetic pass runs if the plugin has all
/// kernels that it needs. For devices of the type `GPU`, the passes that change images to NCHW and fuse ops are off:
/// they are made for TensorFlow's own GPU kernels.
pub(crate) fn configs(device_type: &str, has_kernel: HasKernel) -> OptimizerConfigs {
    let mut configs = OptimizerConfigs::default();
    if device_type == "GPU" {
        configs.layout_optimizer = Toggle::Off;
        configs.remapping = Toggle::Off;
    }
    if !REWRITTEN.iter().all(|op| has_kernel(op, &[("T", DType::Float32)])) {
        configs.arithmetic_optimization = Toggle::Off;
    }
    configs
}

/// The facts that the workarounds depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workarounds {
    /// The type of the plugin's devices.
    pub(crate) device_type: &'static str,
    /// Whether the plugin has a kernel of this operation for these types in its attributes.
    pub(crate) has_kernel: HasKernel,
}

impl Workarounds {
    /// Applies the workarounds to the graph.
    pub(crate) fn apply(&self, graph: &mut Graph<'_>) -> Result<()> {
        let mut updates = Vec::new();
        for node in graph.nodes_mut().filter(|node| node.is_on(self.device_type)) {
            node.remove_attr(MUST_COMPILE);
            updates.extend(VariableOp::of(node.op()).map(|_| node.name().to_owned()));
        }
        updates.iter().try_for_each(|name| replace(graph, name, self.has_kernel))?;
        lower(graph, self.device_type)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{DEVICE, graph_of, node};
    use super::*;

    #[test]
    fn ops_without_a_kernel_are_not_written() {
        let few = configs("MY_DEVICE", |op, _| op != "AddN");
        assert_eq!(few.arithmetic_optimization, Toggle::Off);
        let all: HasKernel = |_, types| types == [("T", DType::Float32)];
        assert_eq!(configs("MY_DEVICE", all), OptimizerConfigs::default());
        let off = OptimizerConfigs {
            layout_optimizer: Toggle::Off,
            remapping: Toggle::Off,
            ..OptimizerConfigs::default()
        };
        assert_eq!(configs("GPU", all), off);
    }

    const CPU: &str = "/job:localhost/replica:0/task:0/device:CPU:0";

    #[test]
    fn xla_is_not_asked_for_on_the_device() {
        let call = |name: &str, device: &str| {
            let mut call = node(name, "StatefulPartitionedCall", &[]);
            call.set_device(device).set_attr(MUST_COMPILE, true).set_attr("_other", true);
            call
        };
        let mut graph = graph_of([call("here", DEVICE), call("there", CPU)]);
        Workarounds { device_type: "MY_DEVICE", has_kernel: |_, _| false }
            .apply(&mut graph)
            .unwrap();
        let names: Vec<_> = graph.node("here").unwrap().attr_names().collect();
        assert_eq!(names, ["_other"]);
        let there = graph.node("there").unwrap();
        assert!(there.has_attr(MUST_COMPILE) && !there.is_changed());
    }
}
