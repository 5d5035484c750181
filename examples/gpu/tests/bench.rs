//! Runs `benches/card` with few rounds, a test for each part, on lavapipe with the validation layer and on CUDA on the
//! processor: the results must be right, in the plugin and without it.

#![deny(unsafe_code)]

#[path = "../benches/card/abi/mod.rs"]
#[allow(unsafe_code, reason = "calls of drivers; every block is argued")]
mod abi;
#[path = "../benches/card/contestant.rs"]
mod contestant;
#[path = "../benches/card/plugin.rs"]
mod plugin;
#[path = "../benches/card/rows/mod.rs"]
mod rows;
#[path = "../benches/card/sizes.rs"]
mod sizes;
#[path = "../../../benches/src/stats.rs"]
#[allow(
    unreachable_pub,
    unused_imports,
    reason = "a file of the library of the other benches, with its tests"
)]
mod stats;
#[path = "../benches/card/table.rs"]
mod table;

use cpu_cuda::Cuda;
use libtest_mimic::{Arguments, Failed, Trial};
use rows::{Backend, Bench, PARTS};
use sizes::Sizes;
use std::process::Command;

/// The variable with the part that a process runs.
const ONE: &str = "GPU_BENCH_PART";
/// The plugin's setting for the backend.
const BACKEND: &str = "RUST_GPU_BACKEND";

/// Runs a part in its own process, so that the output of the validation layer is that of this part.
fn run(mut process: Command, backend: Backend, part: &'static str) -> Result<(), Failed> {
    process.env(ONE, part).env(BACKEND, backend.name());
    let output = process.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && lavapipe::mistakes(&said).is_empty() {
        return Ok(());
    }
    Err(format!("{}\n{said}{}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}

fn main() {
    let backends = [Backend::Vulkan, Backend::Cuda];
    if let Ok(name) = std::env::var(ONE) {
        let wanted = std::env::var(BACKEND).expect("a backend");
        let backend = backends.into_iter().find(|of| of.name() == wanted).expect("a backend");
        abi::load_libraries(&[]);
        let part = PARTS.into_iter().find(|part| part.0 == name).expect("a part");
        let rows =
            Bench::open(backend, Sizes::of(true, true)).and_then(|mut bench| bench.run(part));
        let rows = rows.unwrap_or_else(|error| panic!("{error:#}"));
        assert!(!rows.is_empty(), "{name} has no rows");
        let text = table::table(&rows, true);
        assert!(!text.contains("/s"), "a speed of the processor: {text}");
        println!("{text}");
        return;
    }
    let program = std::env::current_exe().expect("a process has a program");
    let with = |environment| {
        let mut process = Command::new(&program);
        process.envs::<Vec<_>, _, _>(environment);
        process
    };
    let mut trials = Vec::new();
    for (part, _) in PARTS {
        let vulkan = with(lavapipe::environment());
        let test = move || run(vulkan, Backend::Vulkan, part);
        trials.push(Trial::test(format!("vulkan::{part}"), test));
        let cuda = Cuda::with_libraries();
        let process = with(cuda.environment(None));
        let test = move || run(process, Backend::Cuda, part).inspect(|()| drop(cuda));
        trials.push(Trial::test(format!("cuda::{part}"), test));
    }
    // With cooperative matrices.
    let newest = lavapipe::newest::command(&program);
    let test = move || run(newest, Backend::Vulkan, "products");
    trials.push(Trial::test("newest_vulkan::products", test));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
