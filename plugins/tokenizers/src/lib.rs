//! Hugging Face's tokenizers as TensorFlow ops.
//!
//! All modules except `ops` know no TensorFlow: [`json`] reads a `tokenizer.json`, [`encode`], [`pad`] and [`decode`] do
//! the work on batches. Texts are encoded one at a time on the calling thread, because the thread pool of the crate
//! `tokenizers` does not survive a fork.

tf_op_plugin::op_plugin!();

mod affixes;
mod bert;
pub mod decode;
pub mod encode;
pub mod json;
mod ops;
pub mod pad;
pub mod rows;
mod split;
pub mod text;
pub mod truncation;
pub mod vocabulary;
mod words;

pub use json::Tokenizer;
