//! Plugins in the in-process host: what TensorFlow would do with them, without TensorFlow.

#[macro_use]
mod support;

#[expect(unsafe_code, reason = "hand-made plugins and calls that no safe code can make")]
mod abi;
mod bad_input;
mod basic;
mod concurrency;
mod conformance;
mod defaults;
mod fidelity;
mod full;
mod panics;
mod partial;
mod slots;
mod trips;
mod typed;
mod violations;
mod writers;
