//! What `benches/ops` measures: the ops of `benches/ops/plugin` next to those of `benches/ops/ops.cc`.

pub mod rows;
pub mod tables;

/// What a call with a small tensor may cost, relative to C++.
const SMALL_GOAL: f64 = 1.3;
/// What large tensors of numbers may cost.
const NUMBERS_GOAL: f64 = 1.05;
/// What large tensors of strings may cost.
const STRINGS_GOAL: f64 = 1.1;
