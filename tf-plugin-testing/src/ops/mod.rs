//! A host for tests of ops: it registers the ops of a crate and calls them as TensorFlow does, without TensorFlow.
//!
//! ```
//! use tf_op_plugin::prelude::*;
//! use tf_plugin_testing::ops::Host;
//!
//! /// Repeats texts.
//! #[op(name = "HostRepeat", inputs(text: [n]), outputs(repeated: [n]))]
//! struct Repeat {
//!     /// How often.
//!     #[attr(default = 2, min = 1)]
//!     times: i64,
//! }
//!
//! impl Op for Repeat {
//!     type Inputs = Strings;
//!     type Outputs = Strings;
//!
//!     fn compute(&self, text: Strings, _: &OpContext<'_>) -> Result<Strings> {
//!         let repeated = text.texts().map(|text| Ok(text?.repeat(self.times as usize)));
//!         Strings::new(text.shape(), repeated.collect::<Result<Vec<String>>>()?)
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let host = Host::new();
//! let out = host.call("HostRepeat").input(["ab", ""]).attr("times", 3).run()?;
//! assert_eq!(out.strings(0)?, ["ababab", ""]);
//!
//! let error = host.call("HostRepeat").input(["ab"]).attr("times", 0).run().unwrap_err();
//! assert_eq!(error.message(), "Value for attr 'times' of 0 must be at least minimum 1");
//! let error = host.call("HostRepeat").input([b"\xff"]).run().unwrap_err();
//! assert_eq!(error.message(), "string 0 of input `text` is not UTF-8 at byte 0");
//!
//! let shapes = host.shapes("HostRepeat").input_shape([None]).infer()?;
//! assert_eq!(shapes[0].dims(), Some(&[None][..]));
//! # Ok(())
//! # }
//! ```
//!
//! # What happens in a call
//! [`Call::run`] goes through the C functions of the SDK, with those of this host on the other side: the op's definition,
//! its attributes, the shape function, the creation of the kernel, `compute`, and the deletion of the kernel. Types and
//! lengths of lists are inferred from the inputs, and attributes are checked, as in TensorFlow.
//!
//! The kernel runs twice: with inputs that nothing else uses, as within a `tf.function`, where `context.reuse` gets the memory
//! of its input, and with shared inputs, as in eager calls. A stateful op runs once, with shared inputs. Those of a
//! [`TestNode`] have the same memory in each run, as constants of a graph have.
//!
//! # What is checked
//! [`Call::run`] panics if the op breaks a rule:
//!
//! - Each output is set once, and has the type of the definition.
//! - The outputs have the shapes that the shape function says, for inputs of known shapes, of known ranks, and of unknown ones.
//! - Runs with the same inputs have the same outputs, unless the op is stateful: also those of [`Call::threads`].
//! - No shared input is changed.
//! - Each tensor is freed when the kernel is deleted, and nothing is used after it was freed.
//!
//! # What only TensorFlow shows
//! Python, graphs and their optimisation, `tf.data`, gradients, SavedModels, and attributes that are tensors or functions.

#[expect(unsafe_code, reason = "the C boundary from the host's side")]
mod abi;
mod account;
mod call;
mod definition;
mod handles;
mod host;
mod inferred;
mod node;
mod outputs;
mod registry;
mod run;
mod tensorflow;
mod value;

pub use crate::tensor::{Content, Tensor};
pub use crate::violations::Violation;
#[doc(hidden)]
pub use abi::STRING_FUNCTIONS;
pub use call::{Call, TestNode};
pub use definition::AttrValue;
pub use host::Host;
pub use inferred::{IntoShape, NodeShapes};
pub use outputs::Outputs;
pub use value::Value;

#[doc(inline)]
pub use crate::__ops_conformance as conformance;
pub use crate::deviation::Deviation;
pub use crate::outcome::Outcome;
pub use crate::tensorflow::{CaseResult, TensorFlowCase};
#[doc(hidden)]
pub use tensorflow::Suite;
pub use tensorflow::{InTensorFlow, Sample, python_cases};

/// Each case as a value, for the option `without` of [`conformance!`](crate::ops::conformance!).
pub mod cases {
    pub use super::tensorflow::python_cases::*;
}
