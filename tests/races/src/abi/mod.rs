//! Models of `se_plugin::abi`.

#[path = "../../../../se-plugin/src/abi/pending.rs"]
mod pending;
#[path = "../../../../se-plugin/src/abi/recorded.rs"]
mod recorded;
#[path = "../../../../se-plugin/src/abi/work.rs"]
mod work;

pub mod copies;
pub mod events;
pub mod kernels;
