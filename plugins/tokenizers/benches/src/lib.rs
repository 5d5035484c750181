//! What the benchmark of the tokenizers is made of: the contestants, the crate called without TensorFlow, and the tables.
#![forbid(unsafe_code)]

pub mod clients;
pub mod direct;
pub mod tables;
