//! Graph passes: rewriting a graph before TensorFlow runs it.
//!
//! Once a device of the plugin exists, TensorFlow passes each graph of at least four nodes to the plugin,
//! twice. That includes graphs that do not use the device; each function's graph is passed separately. The
//! nodes are already placed on their devices, and TensorFlow's own optimizers have run. In eager mode there
//! is no graph.
//!
//! Name the pass in the attribute that exports the platform. It is an expression, which is evaluated when the
//! plugin is loaded:
//!
//! ```
//! use se_plugin::graph::{Graph, GraphPass};
//! use se_plugin::prelude::*;
//!
//! /// Writes `Reciprocal` for its old name `Inv`, so that one kernel suffices.
//! struct NewNames;
//!
//! impl GraphPass for NewNames {
//!     fn optimize(&self, graph: &mut Graph<'_>) -> Result<()> {
//!         for node in graph.nodes_mut() {
//!             if node.is_on("MY_DEVICE") && node.op() == "Inv" {
//!                 node.set_op("Reciprocal");
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//!
//! // #[device_plugin(graph_pass = NewNames)]
//! // impl Platform for MyPlatform { … }
//!
//! // Without TensorFlow:
//! let mut graph = Graph::new();
//! let mut node = se_plugin::graph::Node::new("a", "Inv");
//! node.set_device("/job:localhost/replica:0/task:0/device:MY_DEVICE:0");
//! graph.add_node(node)?;
//! NewNames.optimize(&mut graph)?;
//! assert_eq!(graph.node("a").map(|node| node.op()), Some("Reciprocal"));
//! # Ok::<(), Error>(())
//! ```
//!
//! # The SDK's pass
//! The SDK adds a pass to every device plugin. It runs before the author's, because without it much of Keras
//! fails on plugin devices:
//!
//! - It removes `_XlaMustCompile` from nodes on the device: plugin devices do not support XLA, and Keras
//!   requests it by default.
//! - Ops on the device that read or change a variable in place, and for which the plugin has no kernel, become a read, the same
//!   computation with values, and an assignment: `assign_add`, gathers, scatters, assignments of slices, optimizers
//!   (`ResourceApply…`) and generators of random numbers. A plugin cannot have such kernels in TensorFlow 2.19 to 2.21, which
//!   give plugins no access to variables. The device computes where it has the kernels, such as `TensorScatterAdd` for
//!   `scatter_add`. The CPU computes the rest on a copy of the variable, or of the rows that change. Two steps that change
//!   a variable at the same time may then lose one of the changes, as with `v.assign(v + d)`.
//! - `If` and `While` on the device become switches and merges around calls of their functions, if TensorFlow has not
//!   lowered them because they were traced for XLA. TensorFlow then places each op of a branch or a body, and passes see
//!   it. The user's settings of TensorFlow's own passes do not apply there.
//! - If the author has no pass, it turns TensorFlow's arithmetic pass off, unless the plugin has float32 kernels for
//!   all ops that the arithmetic pass inserts, such as an `AddN` for `a + b + c`: an op without a kernel is an error on
//!   the device. An author's pass decides with [`GraphPass::configs`]; [`OptimizerConfigs::of`] gives the same choice.
//!
//! # Failures
//! If a pass fails or panics, TensorFlow logs the error and continues with the unchanged graph. An invalid
//! graph is an error, too, such as one with a node whose input is missing.

mod lowering;
mod variables;
pub(crate) mod workarounds;

pub use crate::kernel::{DType, PartialShape};
pub use tf_op_plugin::node::{Attribute, Constant, Input, Node};

use crate::abi::device_type::device_type;
use crate::kernel::host_features::has_kernel_of;
use crate::platform::Platform;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use tf_op_plugin::__private::wire::{Value, fields, put_bytes, put_message};
use tf_plugin_core::{Error, Result};

/// The field of `GraphDef` that holds the nodes.
const NODE: u32 = 1;

/// Rewrites graphs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `GraphPass`",
    label = "`GraphPass` is not implemented for this",
    note = "write `impl se_plugin::graph::GraphPass for {Self}` with a method `optimize`"
)]
pub trait GraphPass: Send + Sync + 'static {
    /// Returns which of TensorFlow's own passes run in a process with devices of the plugin. Called once.
    fn configs(&self) -> OptimizerConfigs {
        OptimizerConfigs::default()
    }

    /// Rewrites a graph. Several threads call it at once, each with a graph.
    ///
    /// Look at [`Node::is_on`] first: most graphs have no node on the device.
    ///
    /// # Errors
    /// TensorFlow logs the error and runs the unchanged graph.
    fn optimize(&self, graph: &mut Graph<'_>) -> Result<()>;
}

/// Whether one of TensorFlow's own passes runs: the `Toggle` of Grappler's `RewriterConfig`, as far as the C API has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Toggle {
    /// As the user has set it.
    #[default]
    Default,
    /// It does not run, even if the user has turned it on. TensorFlow warns of such a change.
    Off,
    /// It runs.
    On,
}

macro_rules! optimizer_configs {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Which of TensorFlow's own graph passes run, **for all graphs** of a process that has a device of
        /// the plugin. By default, all are as the user has set them. To change one:
        ///
        /// ```
        /// use se_plugin::graph::{OptimizerConfigs, Toggle};
        ///
        /// let mut configs = OptimizerConfigs::default();
        /// configs.remapping = Toggle::Off;
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct OptimizerConfigs {
            $($(#[$doc])* pub $name: Toggle,)*
        }

        impl OptimizerConfigs {
            /// Returns the configuration that the SDK uses for a platform without a graph pass.
            #[must_use]
            pub fn of<P: Platform>() -> Self {
                workarounds::configs(device_type::<P>(), has_kernel_of::<P>)
            }

            /// Returns the struct of the C API.
            pub(crate) fn as_raw(&self) -> tf_fs_sys::TP_OptimizerConfigs {
                tf_fs_sys::TP_OptimizerConfigs {
                    struct_size: tf_fs_sys::TP_OPTIMIZER_CONFIGS_STRUCT_SIZE,
                    ext: std::ptr::null_mut(),
                    $($name: match self.$name {
                        Toggle::Default => tf_fs_sys::TF_TriState_Default,
                        Toggle::Off => tf_fs_sys::TF_TriState_Off,
                        Toggle::On => tf_fs_sys::TF_TriState_On,
                    },)*
                }
            }
        }
    };
}

optimizer_configs! {
    /// On: nodes that nothing needs stay in the graph. Off by default.
    disable_model_pruning,
    /// Choosing between implementations of a function.
    implementation_selector,
    /// Inlining and specialising functions.
    function_optimization,
    /// Merging nodes that compute the same.
    common_subgraph_elimination,
    /// Simplifying arithmetic.
    arithmetic_optimization,
    /// Removing assertions and prints.
    debug_stripper,
    /// Computing constants in advance.
    constant_folding,
    /// Simplifying computations of shapes.
    shape_optimization,
    /// Using 16-bit floats where that is safe.
    auto_mixed_precision,
    /// Using bfloat16 in oneDNN.
    auto_mixed_precision_onednn_bfloat16,
    /// Using bfloat16 in oneDNN, by its old name.
    auto_mixed_precision_mkl,
    /// Moving small operations to the host.
    pin_to_host_optimization,
    /// Changing the order of dimensions to what the device prefers.
    layout_optimizer,
    /// Fusing common groups of operations.
    remapping,
    /// Simplifying loops.
    loop_optimization,
    /// Removing inputs that a node only waits for.
    dependency_optimization,
    /// Distributing a graph over devices.
    auto_parallel,
    /// Lowering the peak use of memory.
    memory_optimization,
    /// Allocating together what is used together.
    scoped_allocator_optimization,
}

/// The nodes that must stay, or `None` if TensorFlow cannot report them.
type Preserved = Option<BTreeSet<String>>;

/// A graph: a complete `GraphDef`. Unchanged parts are passed on byte by byte, including fields that this
/// SDK does not know.
pub struct Graph<'a> {
    /// `None` where a node was removed.
    nodes: Vec<Option<Node<'a>>>,
    /// All fields except the nodes.
    others: Vec<&'a [u8]>,
    /// The position of each node by its name. Built when it is first needed.
    places: OnceCell<HashMap<Cow<'a, str>, usize>>,
    /// Whether a caller may have changed nodes, and so also swapped them.
    may_be_exchanged: bool,
    /// Whether nodes were added or removed.
    is_changed: bool,
    ask_preserved: &'a dyn Fn() -> Result<Preserved>,
    preserved: OnceCell<Preserved>,
}

impl<'a> Graph<'a> {
    /// Creates a graph without nodes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            nodes: Vec::new(),
            others: Vec::new(),
            places: OnceCell::new(),
            may_be_exchanged: false,
            is_changed: false,
            ask_preserved: &|| Ok(Some(BTreeSet::new())),
            preserved: OnceCell::new(),
        }
    }

    /// Reads a serialised `GraphDef`, of which every node may be removed.
    ///
    /// # Errors
    /// [`Code::DataLoss`](crate::Code::DataLoss) if it is not a `GraphDef`.
    pub fn decode(graph: &'a [u8]) -> Result<Self> {
        let mut read = Self::new();
        for field in fields(graph) {
            let field = field?;
            match (field.number, field.value) {
                (NODE, Value::Bytes(node)) => read.nodes.push(Some(Node::decode(node)?)),
                _ => read.others.push(field.raw),
            }
        }
        Ok(read)
    }

    /// Reads a graph as [`decode`](Self::decode) does; `ask_preserved` returns the nodes that must stay.
    pub(crate) fn decode_preserving(
        graph: &'a [u8],
        ask_preserved: &'a dyn Fn() -> Result<Preserved>,
    ) -> Result<Self> {
        let mut read = Self::decode(graph)?;
        read.ask_preserved = ask_preserved;
        Ok(read)
    }

    /// Returns the serialised `GraphDef`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for node in self.nodes() {
            match node.untouched() {
                Some(node) => put_bytes(&mut out, NODE, node),
                None => put_message(&mut out, NODE, |out| node.encode(out)),
            }
        }
        for other in &self.others {
            out.extend_from_slice(other);
        }
        out
    }

    /// Returns whether the graph differs from the decoded one.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.is_changed || self.nodes().any(Node::is_changed)
    }

    /// Returns the nodes, in no particular order.
    pub fn nodes(&self) -> impl Iterator<Item = &Node<'a>> {
        self.nodes.iter().flatten()
    }

    /// Returns the nodes for changing them.
    pub fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node<'a>> {
        self.may_be_exchanged = true;
        self.nodes.iter_mut().flatten()
    }

    /// Returns the node with this name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&Node<'a>> {
        self.nodes[self.place(name)?].as_ref()
    }

    /// Returns the node with this name for changing it.
    pub fn node_mut(&mut self, name: &str) -> Option<&mut Node<'a>> {
        let place = self.place(name)?;
        self.may_be_exchanged = true;
        self.nodes[place].as_mut()
    }

    fn place(&self, name: &str) -> Option<usize> {
        let places = self.places.get_or_init(|| {
            let named = self.nodes.iter().enumerate();
            named.filter_map(|(at, node)| Some((node.as_ref()?.shared_name(), at))).collect()
        });
        let is_there =
            |&place: &usize| self.nodes[place].as_ref().is_some_and(|node| node.name() == name);
        match places.get(name).copied().filter(is_there) {
            None if self.may_be_exchanged => (0..self.nodes.len()).find(is_there),
            place => place,
        }
    }

    /// Adds a node.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`](crate::Code::AlreadyExists) if there is a node of this name; see
    /// [`free_name`](Self::free_name).
    pub fn add_node(&mut self, node: Node<'a>) -> Result<()> {
        if self.node(node.name()).is_some() {
            return Err(Error::already_exists(format!("the node `{}`", node.name())));
        }
        if let Some(places) = self.places.get_mut() {
            places.insert(node.shared_name(), self.nodes.len());
        }
        self.nodes.push(Some(node));
        self.is_changed = true;
        Ok(())
    }

    /// Removes a node. When the pass returns, no other node may have it as an input.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::Code::NotFound) if there is no node of this name,
    /// [`Code::FailedPrecondition`](crate::Code::FailedPrecondition) if it
    /// [must stay](Self::is_preserved).
    pub fn remove_node(&mut self, name: &str) -> Result<Node<'a>> {
        let place = self.place(name).ok_or_else(|| no_node(name))?;
        if self.is_preserved(name)? {
            return Err(Error::failed_precondition(format!(
                "the node `{name}` must stay, because its value is fetched or fed; change it instead"
            )));
        }
        self.is_changed = true;
        if let Some(places) = self.places.get_mut() {
            places.remove(name);
        }
        self.nodes[place].take().ok_or_else(|| no_node(name))
    }

    /// Returns whether a node must stay in the graph under its name: its value is fetched or fed, or the user
    /// named it. If TensorFlow cannot report it, all nodes must stay.
    ///
    /// # Errors
    /// Those of TensorFlow.
    pub fn is_preserved(&self, name: &str) -> Result<bool> {
        let preserved = match self.preserved.get() {
            Some(preserved) => preserved,
            None => {
                let preserved = (self.ask_preserved)()?;
                self.preserved.get_or_init(|| preserved)
            }
        };
        Ok(preserved.as_ref().is_none_or(|preserved| preserved.contains(name)))
    }

    /// Returns an unused name: `wanted`, or `wanted` with a number.
    #[must_use]
    pub fn free_name(&self, wanted: &str) -> String {
        let mut name = String::from(wanted);
        let mut number = 0;
        while self.node(&name).is_some() {
            number += 1;
            name = format!("{wanted}_{number}");
        }
        name
    }

    /// Rejects a graph that a pass has made invalid.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.is_changed() {
            return Ok(());
        }
        let mut names = HashSet::new();
        for node in self.nodes() {
            if node.name().is_empty() {
                return Err(Error::internal(format!("a node has no name: {node:?}")));
            }
            if !names.insert(node.name()) {
                return Err(Error::internal(format!("two nodes have the name `{}`", node.name())));
            }
        }
        for node in self.nodes() {
            if let Some(input) = node.inputs().find(|input| !names.contains(input.node())) {
                return Err(Error::internal(format!(
                    "the node `{}` has the input `{input}` and there is no node `{}`; give it another input \
                     or keep that node",
                    node.name(),
                    input.node()
                )));
            }
        }
        Ok(())
    }
}

#[cold]
fn no_node(name: &str) -> Error {
    Error::not_found(format!("the node `{name}`"))
}

impl Default for Graph<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Graph<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("nodes", &self.nodes().collect::<Vec<_>>())
            .field("is_changed", &self.is_changed())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
