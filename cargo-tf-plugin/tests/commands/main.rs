//! The commands, as users start them: one module a command, in one program whose tests run in parallel.

mod bench;
mod check;
mod coverage;
mod crates;
mod demo;
mod doctor;
mod gpu_wheel;
mod misbehaving;
mod new;
mod opendal_wheel;
mod ops;
mod output;
#[path = "../../../tests/tensorflow/src/overlay.rs"]
#[expect(unreachable_pub, reason = "it is of a library of other tests")]
mod overlay;
mod plugins;
mod program;
mod tensorflow;
mod tokenizers;
mod trace;
mod traced;
