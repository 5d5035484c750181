//! Vulkan, as safe types: the card, its memory, and batches of commands.

mod batch;
mod block;
mod card;

pub(crate) use batch::Batch;
pub(crate) use block::{Block, Place};
pub(crate) use card::Gpu;
