//! What takes many runs: every fault and every kill at every request, and random operations on a model.

mod crash;
mod faults;
mod model;
