//! The dry run of `benches/card` on lavapipe, a test for each part, with the validation layer: the benchmark runs, and what
//! it computes is right, in the plugin and without it.

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
#[path = "../benches/card/table.rs"]
mod table;

use libtest_mimic::{Arguments, Failed, Trial};
use rows::{Backend, Bench, PARTS};
use sizes::Sizes;
use std::process::Command;

/// The part that a process is to run.
const ONE: &str = "GPU_BENCH_PART";

/// In a process of its own, so that what the validation layer writes is that of this part.
fn run(part: &'static str) -> Result<(), Failed> {
    let mut process = Command::new(std::env::current_exe()?);
    let output = process.env(ONE, part).env("RUST_GPU_BACKEND", Backend::Vulkan.name()).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && lavapipe::mistakes(&said).is_empty() {
        return Ok(());
    }
    Err(format!("{}\n{said}{}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}

fn main() {
    lavapipe::require();
    if let Ok(name) = std::env::var(ONE) {
        abi::load_libraries(&[]);
        let part = PARTS.into_iter().find(|part| part.0 == name).expect("a part");
        let rows = Bench::open(Backend::Vulkan, Sizes::of(true, true))
            .and_then(|mut bench| bench.run(part));
        let rows = rows.unwrap_or_else(|error| panic!("{error:#}"));
        assert!(!rows.is_empty(), "{name} has no rows");
        let text = table::table(&rows, true);
        assert!(!text.contains("/s"), "a speed of the processor: {text}");
        println!("{text}");
        return;
    }
    let trials = PARTS.into_iter().map(|(name, _)| Trial::test(name, move || run(name)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
