//! The card, its memory and batches of commands, as safe types, over the drivers of CUDA and Vulkan.

mod batch;
mod block;
mod card;
mod clock;
mod cuda;
mod driver;
mod vulkan;
mod watchdog;

pub(crate) use batch::{Batch, Staged};
pub(crate) use block::{Block, Place};
pub(crate) use card::{Backend, Gpu};
pub(crate) use clock::Measured;
pub(crate) use cuda::image;
pub(crate) use driver::{CooperativeMatrix, PUSH_BYTES, Pipeline, Shader};
pub(crate) use watchdog::again;
