//! The host.

use super::abi;
use super::call::Call;
use super::inferred::NodeShapes;
use super::registry;
use std::sync::Once;
use tf_op_plugin::__private::abi::Status as PluginStatus;
use tf_op_plugin::__private::wire::put_varint;
use tf_op_plugin::__private::{OpRegistration, register_ops};

/// A host for the ops of a process. All hosts of a process share its ops.
#[derive(Clone, Debug, Default)]
pub struct Host {
    threads: usize,
}

impl Host {
    /// Registers the ops of the crate, and of those that it links, as TensorFlow does when it loads the library.
    ///
    /// A test in another crate, such as one in `tests/`, links the ops by `use my_crate as _;`.
    #[must_use]
    pub fn new() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            abi::install();
            register_ops();
            // Those of `register_op!`, which have no kernels for the CPU. An error is that of the calls: there is no op.
            if let Ok(status) = PluginStatus::new() {
                for op in OpRegistration::all() {
                    let _ = op.register(&status);
                }
            }
        });
        Self::default()
    }

    /// Sets `intra_op_parallelism_threads` for the ops that this host runs: `context.parallel` uses so many threads.
    #[must_use]
    pub fn intra_op_threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Returns the names of all ops, sorted.
    #[must_use]
    pub fn ops(&self) -> Vec<String> {
        registry::op_names()
    }

    /// Begins a call of an op. Its inputs and attributes follow.
    pub fn call(&self, op: &str) -> Call {
        Call::new(op, self.config())
    }

    /// Begins a run of an op's shape function. The shapes of its inputs and its attributes follow.
    pub fn shapes(&self, op: &str) -> NodeShapes {
        NodeShapes::new(op)
    }

    /// Returns the serialised `ConfigProto`.
    fn config(&self) -> Vec<u8> {
        let mut config = Vec::new();
        if self.threads > 0 {
            put_varint(&mut config, 2, self.threads as u64);
        }
        config
    }
}
