//! Measures how fast the plugin is on a GPU: against the driver's own copies, NVIDIA's matrix products and programs on
//! CUDA and Vulkan without the plugin, in turns in one run.
//!
//! `cargo bench -p gpu --bench device -- --help` lists the options. It needs neither TensorFlow nor Python.

#[expect(unsafe_code, reason = "calls of drivers")]
mod backend;
mod contestant;
mod plugin;
mod rows;
mod sizes;
#[path = "../../../../benches/src/stats.rs"]
#[allow(
    unreachable_pub,
    unused_imports,
    reason = "a file of the library of the other benches, with its tests"
)]
mod stats;
mod table;

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Parser;
use rows::{Backend, Bench, PARTS};
use sizes::Sizes;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The plugin on a GPU, compared with programs without it.
#[derive(Parser)]
struct Arguments {
    /// Takes few rounds of small sizes.
    #[arg(long)]
    quick: bool,
    /// How the GPU is reached; by default each way that works.
    #[arg(long)]
    backend: Option<Backend>,
    /// Runs on lavapipe, a driver for the CPU: prints ratios only.
    #[arg(long)]
    lavapipe: bool,
    /// Measures one part.
    #[arg(long, value_parser = PARTS.map(|(name, _)| name))]
    only: Option<String>,
    /// Where `libnvrtc.so.12`, `libcublas.so.12` and `libcublasLt.so.12` are, or those of CUDA 13, if neither the dynamic linker nor
    /// the toolkit's directory has them.
    #[arg(long, value_name = "DIRECTORY")]
    libraries: Vec<PathBuf>,
    /// Given by this program to itself: a backend that crashes leaves the other one.
    #[arg(long, hide = true)]
    alone: bool,
    /// The option that cargo adds.
    #[arg(long = "bench", hide = true)]
    _bench: bool,
}

/// Measures one backend, in a process that uses no other one.
fn run(arguments: &Arguments, backend: Backend) -> Result<()> {
    backend::load_libraries(&arguments.libraries);
    let sizes = Sizes::of(arguments.quick, arguments.lavapipe);
    let mut bench = Bench::open(backend, sizes)?;
    let is_software = arguments.lavapipe;
    println!("\n# {} on `{}`\n", backend.name(), bench.plugin.gpu_name);
    if is_software {
        println!(
            "This is the CPU: the ratios say what the plugin adds, and nothing about a GPU.\n"
        );
    }
    let (mut met, mut missed, mut failed) = (0, 0, 0);
    for part in PARTS {
        if arguments.only.as_ref().is_some_and(|only| only != part.0) {
            continue;
        }
        // A panic, for example for a function that a library lacks, does not stop the other parts.
        let rows = catch_unwind(AssertUnwindSafe(|| bench.run(part)));
        match rows.unwrap_or_else(|_| Err(anyhow!("it has panicked"))) {
            Ok(rows) => {
                println!("{}", table::table(&rows, is_software));
                for row in rows {
                    met += usize::from(row.is_met(is_software) == Some(true));
                    missed += usize::from(row.is_met(is_software) == Some(false));
                }
            }
            Err(error) => {
                failed += 1;
                println!("{}: {error:#}\n", part.0);
            }
        }
    }
    println!("{}: {met} goals met, {missed} missed", backend.name());
    ensure!(failed == 0, "{failed} parts failed");
    Ok(())
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if let (true, Some(backend)) = (arguments.alone, arguments.backend) {
        run(&arguments, backend)?;
        return Ok(ExitCode::SUCCESS);
    }
    let backends = match (arguments.backend, arguments.lavapipe) {
        (Some(Backend::Cuda), true) => anyhow::bail!("lavapipe is a driver of Vulkan"),
        (Some(backend), _) => vec![backend],
        (None, true) => vec![Backend::Vulkan],
        (None, false) => vec![Backend::Cuda, Backend::Vulkan],
    };
    let mut is_measured = false;
    for backend in &backends {
        let mut process = Command::new(std::env::current_exe()?);
        process.args(["--alone", "--backend", backend.name()]);
        process.args(arguments.quick.then_some("--quick"));
        process.args(arguments.lavapipe.then_some("--lavapipe"));
        if let Some(only) = &arguments.only {
            process.args(["--only", only]);
        }
        for directory in &arguments.libraries {
            process.arg("--libraries").arg(directory);
        }
        process.env("RUST_GPU_BACKEND", backend.name());
        if arguments.lavapipe {
            process.envs(lavapipe::driver());
        }
        let status = process.status().context("cannot start this program again")?;
        is_measured |= status.success();
        if !status.success() {
            println!("{}: not measured, or not wholly: {status}", backend.name());
        }
    }
    Ok(if is_measured { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
