//! Runs `benches/device` with few rounds, a test for each part, on lavapipe with the validation layer and on CUDA on the
//! CPU: the results must be right, in the plugin and without it.

use crate::rows::{Backend, Bench, PARTS};
use crate::sizes::Sizes;
use crate::{backend, process, program, table};
use cpu_cuda::Cuda;
use libtest_mimic::{Failed, Trial};
use std::process::Command;

/// The start of the task of a process that runs a part: its name follows.
pub(crate) const PART: &str = "bench: ";
/// The plugin's setting for the backend.
const BACKEND: &str = "RUST_GPU_BACKEND";

fn run(mut program: Command, backend: Backend, part: &str) -> Result<(), Failed> {
    program.env(BACKEND, backend.name());
    process(program, &format!("{PART}{part}")).map(drop)
}

/// Runs the part of this name, on the backend that the environment has.
pub(crate) fn run_part(name: &str) {
    let wanted = std::env::var(BACKEND).expect("a backend");
    let mut backends = [Backend::Vulkan, Backend::Cuda].into_iter();
    let backend = backends.find(|of| of.name() == wanted).expect("a backend");
    backend::load_libraries(&[]);
    let part = PARTS.into_iter().find(|part| part.0 == name).expect("a part");
    let rows = Bench::open(backend, Sizes::of(true, true)).and_then(|mut bench| bench.run(part));
    let rows = rows.unwrap_or_else(|error| panic!("{error:#}"));
    assert!(!rows.is_empty(), "{name} has no rows");
    let text = table::table(&rows, true);
    assert!(!text.contains("/s"), "a speed of the CPU: {text}");
    println!("{text}");
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (part, _) in PARTS {
        let test = move || run(program(lavapipe::environment())?, Backend::Vulkan, part);
        trials.push(Trial::test(format!("bench::vulkan::{part}"), test));
        let test = move || {
            let cuda = Cuda::with_libraries();
            run(program(cuda.environment(None))?, Backend::Cuda, part)
        };
        trials.push(Trial::test(format!("bench::cuda::{part}"), test));
    }
    // With cooperative matrices.
    trials.push(Trial::test("bench::newest_vulkan::products", || {
        let newest = lavapipe::newest::command(&std::env::current_exe()?);
        run(newest, Backend::Vulkan, "products")
    }));
    trials
}
