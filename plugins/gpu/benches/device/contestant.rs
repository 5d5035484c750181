//! The programs that are measured: the plugin, and programs without it.

use anyhow::Result;
use gpu::bench::Program;
use std::time::Duration;

/// A prepared program on whole tensors, by their numbers in the order of allocation.
pub(crate) struct Launch {
    pub(crate) program: usize,
    pub(crate) tensors: Vec<usize>,
}

/// A program that uses a GPU. Each function waits until the GPU is done.
pub(crate) trait Contestant {
    /// Allocates a tensor, and returns its number.
    fn allocate(&mut self, bytes: usize) -> Result<usize>;
    fn write(&mut self, tensor: usize, bytes: &[u8]) -> Result<()>;
    fn read(&mut self, bytes: &mut [u8], tensor: usize) -> Result<()>;
    /// Copies `bytes` from a tensor to another one, `times` times.
    fn copy(&mut self, to: usize, from: usize, bytes: usize, times: usize) -> Result<()>;
    /// Compiles a program, and returns its number.
    fn prepare(&mut self, program: Program) -> Result<usize>;
    /// Runs the launches one after the other. Returns how long this thread needed to enqueue them, without waiting.
    fn run(&mut self, launches: &[Launch]) -> Result<Duration>;
    /// Frees all tensors.
    fn clear(&mut self);
}

/// A program without the plugin.
pub(crate) trait Bare: Contestant {
    /// Returns the names, for tables, of the driver's copies to the device, to the host and on the device.
    fn copies(&self) -> [&'static str; 3];
    /// Copies bytes between a tensor and memory of the host that the GPU can access: what `write` and `read` do
    /// without the CPU's copy from and to ordinary memory.
    fn transfer(&mut self, tensor: usize, bytes: usize, way: Way) -> Result<()>;
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    ToDevice,
    ToHost,
}

/// Returns pseudorandom numbers for tensors, the same each time: -1, 0 and 1, whose sums of products are exact.
pub(crate) fn signs(len: usize, seed: u32) -> impl Iterator<Item = i8> {
    let mut state = seed.wrapping_mul(2_654_435_769) | 1;
    (0..len).map(move |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state % 3) as i8 - 1
    })
}
