//! Models of `se_plugin::abi`.

#[path = "../../../../se-plugin/src/abi/pending_copies.rs"]
mod pending_copies;
#[path = "../../../../se-plugin/src/abi/recorded_stream.rs"]
mod recorded_stream;
#[path = "../../../../se-plugin/src/abi/work.rs"]
mod work;

pub mod copies;
pub mod events;
pub mod kernels;
