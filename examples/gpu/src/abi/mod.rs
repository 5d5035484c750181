//! Vulkan, as safe types: the card, its memory, and batches of commands.

mod batch;
mod block;
mod card;
mod clock;
mod drivers;
mod pipeline;
mod watchdog;

pub(crate) use batch::Batch;
pub(crate) use block::{Block, Place};
pub(crate) use card::Gpu;
pub(crate) use clock::Measured;
pub(crate) use pipeline::{PUSH_BYTES, Pipeline, Shader};
pub(crate) use watchdog::again;
