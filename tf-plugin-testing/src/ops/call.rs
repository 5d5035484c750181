//! Calls of ops.

use super::definition::AttrValue;
use super::node::{Node, types_of};
use super::outputs::Outputs;
use super::run::Runner;
use crate::tensor::Tensor;
use crate::violations::Violation;
use std::sync::Arc;
use tf_op_plugin::Result;

/// A call of an op, which [`run`](Self::run) makes. Inputs are in the order of the definition.
#[derive(Clone, Debug)]
#[must_use = "`run` makes the call"]
pub struct Call {
    op: String,
    node_name: Option<String>,
    config: Vec<u8>,
    inputs: Vec<Vec<Tensor>>,
    attributes: Vec<(String, AttrValue)>,
    threads: usize,
    keeps_tensors: bool,
}

impl Call {
    pub(super) fn new(op: &str, config: Vec<u8>) -> Self {
        Self {
            op: op.to_owned(),
            node_name: None,
            config,
            inputs: Vec::new(),
            attributes: Vec::new(),
            threads: 0,
            keeps_tensors: false,
        }
    }

    /// Adds an input of one tensor. A ragged input is two: its values, and its row splits of `i64`.
    pub fn input(self, tensor: impl Into<Tensor>) -> Self {
        self.inputs([tensor])
    }

    /// Adds an input that is a list of tensors, or an optional one: `None::<Tensor>` or `Some("text")`.
    pub fn inputs<T: Into<Tensor>>(mut self, tensors: impl IntoIterator<Item = T>) -> Self {
        self.inputs.push(tensors.into_iter().map(Into::into).collect());
        self
    }

    /// Sets an attribute. Others have their defaults, and those that the inputs decide, their types and lengths.
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> Self {
        self.attributes.push((name.to_owned(), value.into()));
        self
    }

    /// Sets the name of the node; by default it is the op's.
    pub fn node_name(mut self, name: &str) -> Self {
        self.node_name = Some(name.to_owned());
        self
    }

    /// Also runs the kernel on so many threads at once, each with the same inputs.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Allows the op to keep tensors after its kernel is deleted, as in a cache that nodes share.
    pub fn keeps_tensors(mut self) -> Self {
        self.keeps_tensors = true;
        self
    }

    /// Creates a node with the inputs and attributes, and a kernel for it, and runs that. [The module](super) says what is
    /// checked.
    ///
    /// # Errors
    /// TensorFlow's errors for inputs and attributes that do not fit the definition, and those of the op.
    ///
    /// # Panics
    /// If the op breaks a rule.
    #[track_caller]
    pub fn run(self) -> Result<Outputs> {
        let (result, violations) = self.run_with_violations();
        Violation::check(&violations);
        result
    }

    /// Does [`run`](Self::run), and returns the broken rules instead of a panic.
    ///
    /// # Errors
    /// As for `run`.
    pub fn run_with_violations(self) -> (Result<Outputs>, Vec<Violation>) {
        let node = match self.create_node() {
            Ok(node) => node,
            Err(error) => return (Err(error), Vec::new()),
        };
        let result = Runner::new(&node, self.config)
            .and_then(|runner| runner.run(&self.inputs.concat(), self.threads));
        node.account.check_freed(self.keeps_tensors);
        (result, node.account.log.take())
    }

    /// Creates a node, which can be run several times: to test an op's state.
    ///
    /// # Errors
    /// Those for inputs and attributes that do not fit, and those of the op when its kernel is created.
    pub fn node(self) -> Result<TestNode> {
        let node = self.create_node()?;
        let runner = Runner::new(&node, self.config)?;
        let keeps_tensors = self.keeps_tensors;
        Ok(TestNode { runner: Some(runner), node, inputs: self.inputs.concat(), keeps_tensors })
    }

    fn create_node(&self) -> Result<Arc<Node>> {
        let types =
            self.inputs.iter().map(|tensors| types_of(tensors)).collect::<Result<Vec<_>>>()?;
        let name = self.node_name.as_deref().unwrap_or(&self.op);
        Node::new(&self.op, name, &types, &self.attributes).map(Arc::new)
    }
}

/// A node with its kernel.
#[derive(Debug)]
pub struct TestNode {
    /// `None` while the node is dropped.
    runner: Option<Runner>,
    node: Arc<Node>,
    inputs: Vec<Tensor>,
    keeps_tensors: bool,
}

impl TestNode {
    /// Runs the kernel with the inputs of the [`Call`].
    ///
    /// # Errors
    /// Those of the op.
    ///
    /// # Panics
    /// If the op breaks a rule.
    #[track_caller]
    pub fn run(&self) -> Result<Outputs> {
        self.run_on(self.inputs.clone())
    }

    /// Runs the kernel with other inputs, all tensors of them in a row, of the same types.
    ///
    /// # Errors
    /// Those of the op; `INVALID_ARGUMENT` for inputs of other types.
    ///
    /// # Panics
    /// If the op breaks a rule.
    #[track_caller]
    pub fn run_on<T: Into<Tensor>>(&self, inputs: impl IntoIterator<Item = T>) -> Result<Outputs> {
        let inputs: Vec<Tensor> = inputs.into_iter().map(Into::into).collect();
        let Some(runner) = &self.runner else { unreachable!("only `drop` takes it") };
        let result = runner.run(&inputs, 0);
        self.node.account.log.check();
        result
    }
}

/// Deletes the kernel. Panics if the op did not free a tensor.
impl Drop for TestNode {
    fn drop(&mut self) {
        self.runner = None;
        if !std::thread::panicking() {
            self.node.account.check_freed(self.keeps_tensors);
            self.node.account.log.check();
        }
    }
}
