//! The C boundary: everything unsafe in this crate, and nothing else.
//!
//! `files`, `filesystem`, `transactions` and `configuration` hold one generic `extern "C"` function per slot of
//! TensorFlow's tables. Each is a few lines around `guard` of `tf-plugin-core`: arguments are checked and converted,
//! the author's method runs, a panic is caught, and the status is written.

mod alloc;
pub(crate) mod autoload;
pub(crate) mod configuration;
mod exclusive;
mod files;
mod filesystem;
mod init_handoff;
pub(crate) mod mapped_region;
pub(crate) mod read_buf;
pub(crate) mod region_content;
pub(crate) mod register;
mod registration;
mod state;
mod tokens;
mod transactions;
pub(crate) mod writer_default_note;
