//! The trait of a kernel.

use super::{OpKernelConstruction, OpKernelContext};
use crate::platform::Platform;
use tf_plugin_core::Result;

/// One kernel: an op on a platform's devices. [`#[kernel]`](macro@crate::kernel) registers it.
///
/// TensorFlow creates one for each node of a graph, or for each op that Python calls with new attributes, and
/// runs it from several threads at a time.
pub trait Kernel: Sized + Send + Sync + 'static {
    /// The platform whose devices the kernel is for.
    type Platform: Platform;

    /// Creates the kernel for a node.
    ///
    /// # Errors
    /// Any; it becomes the error of the op in Python.
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self>;

    /// Runs the kernel: creates the outputs and enqueues the work, without waiting for it. Before it returns
    /// `Ok` it must have created all outputs.
    ///
    /// # Errors
    /// Any; it becomes the error of the op in Python.
    fn compute(&self, context: &mut OpKernelContext<'_, Self::Platform>) -> Result<()>;
}
