//! Write TensorFlow ops in safe Rust.
//!
//! Put [`#[op]`](macro@op) on a struct, implement [`Op`], and build a `cdylib` with [`op_plugin!`] in it. TensorFlow 2.12 and
//! later load the same file. You need TensorFlow neither to build nor to test the library.
//!
//! ```standalone_crate
//! use tf_op_plugin::prelude::*;
//!
//! tf_op_plugin::op_plugin!();
//!
//! /// Splits texts at white space.
//! #[op(name = "MyWords", inputs(text: [n]), outputs(words: [_]))]
//! struct Words {
//!     /// Whether to convert the words to lower case.
//!     #[attr(default = false)]
//!     lower: bool,
//! }
//!
//! impl Op for Words {
//!     type Inputs = Strings;
//!     type Outputs = Ragged<Strings>;
//!
//!     fn compute(&self, text: Strings, _: &OpContext<'_>) -> Result<Ragged<Strings>> {
//!         let mut words = RaggedBuf::<StringsBuf>::new();
//!         for text in text.texts() {
//!             let text = if self.lower { text?.to_lowercase() } else { text?.to_owned() };
//!             words.values.extend(text.split_whitespace());
//!             words.end_row();
//!         }
//!         Ok(words.finish())
//!     }
//! }
//!
//! fn main() -> Result<()> {
//!     // A unit test.
//!     let text = Strings::new([2], ["To be", ""])?;
//!     let words = Words { lower: true }.compute(text, &OpContext::default())?;
//!     assert_eq!(words.row_splits(), [0, 2, 2]);
//!     Ok(())
//! }
//! ```
//!
//! In Python, `tf.load_op_library("libmy.so").my_words(text, lower=True)` returns values and row splits. The module that
//! `cargo tf-plugin wheel` generates returns a `tf.RaggedTensor`.
//!
//! # Types
//! [`op::InputArg`] and [`op::OutputArg`] list the Rust types of inputs and outputs. Inputs are TensorFlow's memory. An output
//! of numbers grows in a [`TensorBuf`], whose memory TensorFlow takes over. A type parameter of the struct makes the op
//! polymorphic; [`toolkit`] has traits for numbers.
//!
//! # Failures
//! - An `Err` becomes a Python exception of the code's class. A wrong shape or value names its input.
//! - A panic is caught and becomes `InternalError` with the op, the message and the line.
//! - An op that cannot be registered, because another library has its name, is left out; the log says why. The other ops of
//!   the library work.
//!
//! # Threads
//! TensorFlow calls [`Op::compute`] of one node from many threads at once, so an op is `Send` and `Sync`.
//! [`OpContext::parallel`] splits one call over threads; all calls share as many helpers as
//! `intra_op_parallelism_threads` allows. The locks in [`sync`] work after a fork.
//!
//! # Loading
//! TensorFlow loads the library from `site-packages/tensorflow-plugins/`, from the path in
//! `TF_PLUGGABLE_DEVICE_LIBRARY_PATH`, or with `tf.load_op_library`. A SavedModel with the op needs one of the first two, and
//! no other import. The same file may be loaded in several ways.
//!
//! # Limits
//! XLA (`jit_compile=True`) has no kernels for these ops. No release of TensorFlow lets an op on the C interface notice that
//! its step was cancelled, or use resources.
//!
//! # Kernels of devices
//! [`kernel`], [`node`] and [`toolkit`] have what kernels of all devices share; the crate `se-plugin` builds on them.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_debug_implementations)]

// So that the macros' paths also work in this crate's own tests.
extern crate self as tf_op_plugin;

#[expect(unsafe_code, reason = "the C boundary")]
mod abi;
mod content_cache;
mod dtype;
mod inventory;
pub mod kernel;
pub mod node;
pub mod op;
mod parallel;
mod ragged;
mod strings;
mod tensor;
pub mod toolkit;
mod wire;

pub use content_cache::ContentCache;
pub use dtype::DType;
pub use kernel::Element;
pub use op::{Op, OpContext};
pub use ragged::{Ragged, RaggedBuf, Values, ValuesBuf};
pub use strings::{Strings, StringsBuf};
pub use tensor::{Tensor, TensorBuf};
pub use tf_fs_plugin_macros::{op, op_plugin};
pub use tf_plugin_core::{Code, Error, Result, ResultExt, ensure, logging, sync};

/// The names that nearly every op needs: `use tf_op_plugin::prelude::*;`.
pub mod prelude {
    pub use crate::op::{Op, OpContext};
    pub use crate::{
        Code, DType, Element, Error, Ragged, RaggedBuf, Result, ResultExt, Strings, StringsBuf,
        Tensor, TensorBuf, ensure, op,
    };
}

/// Used by the macros' output and by `se-plugin` only; it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::__tf_op_plugin_ask as ask;
    pub use crate::__tf_op_plugin_collect as collect;
    pub use crate::abi::library::description;
    pub use crate::kernel::Element;
    pub use crate::kernel::definition::OpRegistration;
    pub use crate::kernel::registry::{Options, Registration, Selection, choose, kernels_for};
    pub use tf_fs_sys::TF_InitKernelFn;
    pub use tf_plugin_core::__private::elf_note;

    pub use crate::op::attribute::{AttributeSpec, Minimum, read as read_attribute, type_name};
    pub use crate::op::describe;
    pub use crate::op::register::{Instance, OpEntry, register_ops};
    pub use crate::op::spec::{ArgSpec, Dim, OpSpec, Spec};

    /// Registering kernels.
    pub mod register {
        pub use crate::kernel::register::{Registered, register, register_kernels};
    }

    /// The C boundary.
    pub mod abi {
        pub use crate::abi::ops::Ops;
        pub use crate::abi::register::register as register_kernel;
        pub use crate::abi::session_config::session_config;
        pub use crate::abi::status::{HostApi, Status, fail, not_exported, text};
        pub use crate::abi::tensor::{Argument, Tensor, not_plain, rank_of};
        pub use crate::abi::trampoline::{Functions, KernelType, Target};
    }

    /// Fields of serialised messages.
    pub mod wire {
        pub use crate::wire::{
            Field, Value, each_of, fields, packed, put_bytes, put_bytes_if_any, put_message,
            put_sized, put_varint, text, values,
        };
    }
}
