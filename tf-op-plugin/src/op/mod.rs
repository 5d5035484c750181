//! Ops for the CPU.

mod args;
pub(crate) mod attribute;
mod context;
mod describe;
mod kernel;
mod places;
pub(crate) mod register;
mod shapes;
pub(crate) mod spec;

pub use args::{InputArg, Inputs, OutputArg, Outputs};
pub use attribute::OpAttribute;
pub use context::OpContext;
pub use describe::describe;
pub use spec::OpSpec;

use crate::kernel::ShapeInferenceContext;
use tf_plugin_core::Result;

/// An op: a computation that TensorFlow runs on the CPU, with its definition. [`#[op]`](macro@crate::op) goes on the struct,
/// whose fields are the op's attributes, and registers it when TensorFlow loads the library.
///
/// TensorFlow creates one value for each node of a graph, or for each op that Python calls with new attributes, and
/// runs it from several threads at a time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `Op`",
    note = "write `impl Op for {Self}` with a method `compute`"
)]
pub trait Op: OpSpec {
    /// The inputs: an [`InputArg`], or a tuple of them.
    type Inputs: Inputs;
    /// The outputs: an [`OutputArg`], or a tuple of them.
    type Outputs: Outputs;

    /// Sets the shapes of the outputs when a graph is built, as far as they are known then, so that Python sees them.
    /// By default they are those declared in the attribute.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for inputs that do not fit: the node is then not created.
    fn infer_shapes(shapes: &mut ShapeInferenceContext<'_>) -> Result<()> {
        let spec = Self::SPEC;
        let inputs = (spec.inputs, Self::Inputs::TYPES);
        shapes::infer(shapes, inputs, (spec.outputs, Self::Outputs::TYPES))
    }

    /// Computes the outputs. The inputs have the declared shapes.
    ///
    /// # Errors
    /// Any; it becomes an exception in Python. So does a panic.
    fn compute(&self, inputs: Self::Inputs, context: &OpContext<'_>) -> Result<Self::Outputs>;
}
