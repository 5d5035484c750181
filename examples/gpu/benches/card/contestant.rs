//! What is measured: the plugin, and programs without it.

use anyhow::Result;
use gpu::bench::Program;
use std::time::Duration;

/// A program that was prepared, on whole tensors: their numbers in the order in which they were allocated.
pub(crate) struct Launch {
    pub(crate) program: usize,
    pub(crate) tensors: Vec<usize>,
}

/// Who has a card for itself. Each function waits until the card is done.
pub(crate) trait Contestant {
    /// Allocates a tensor, and returns its number.
    fn allocate(&mut self, bytes: usize) -> Result<usize>;
    fn write(&mut self, tensor: usize, bytes: &[u8]) -> Result<()>;
    fn read(&mut self, bytes: &mut [u8], tensor: usize) -> Result<()>;
    /// Copies so many bytes from a tensor to another one, so many times.
    fn copy(&mut self, to: usize, from: usize, bytes: usize, times: usize) -> Result<()>;
    /// Compiles a program, and returns its number.
    fn prepare(&mut self, program: Program) -> Result<usize>;
    /// Runs the launches one after the other. Returns how long this thread took for them, before it waits.
    fn run(&mut self, launches: &[Launch]) -> Result<Duration>;
    /// Frees all tensors.
    fn clear(&mut self);
}

/// A program without the plugin.
pub(crate) trait Bare: Contestant {
    /// The driver's copy to and from the device, for tables.
    fn copies(&self) -> [&'static str; 3];
    /// Copies so many bytes between a tensor and memory of the host that the card reaches: what `write` and `read` do
    /// without the processor's copy from and to ordinary memory.
    fn transfer(&mut self, tensor: usize, bytes: usize, way: Way) -> Result<()>;
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    ToDevice,
    ToHost,
}

/// Random numbers that are the same each time, for tensors: -1, 0 and 1, whose sums of products are exact.
pub(crate) fn signs(len: usize, seed: u32) -> impl Iterator<Item = i8> {
    let mut state = seed.wrapping_mul(2_654_435_769) | 1;
    (0..len).map(move |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state % 3) as i8 - 1
    })
}
