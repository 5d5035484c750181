//! A TensorFlow device for tests that computes nothing. A large model's training step takes it seconds, and its settings
//! are those of the GPU plugin: `RUST_GPU_COUNTERS` has the launches and the bytes of a step.
//!
//! Its memory holds zeros, and what was copied there in at most 64 KiB. A single byte that is copied to the host is 1, so that
//! loss scaling finds finite gradients.
//!
//! It has libraries for all products and all convolutions with even padding, as CUDA has. Without them, products of float16
//! and convolutions of uneven padding take other launches, and the gradient of a filter takes one more for its parts.
//!
//! It writes a line to stderr for each copy to the host, and for each gradient of a 1 x 1 filter with stride 1 that is a
//! convolution and not a matrix product.

#[expect(unsafe_code, reason = "the contract of backends")]
mod backend;

pub use backend::Dry;

se_plugin_gpu::plugin! {
    /// The platform, with the name and the type of the GPU plugin's.
    pub DryPlatform, name = "RUST_GPU", type = "GPU", backend = Dry, ops = [all]
}
