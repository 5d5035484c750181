//! Measures how fast whole models train on the GPU plugin, beside what a user would pick in its place: the same Keras script on
//! PyTorch and on JAX, and PyTorch alone. All run in turns on one GPU, each in its own process.
//!
//! `cargo bench -p tf-plugin-benches --bench training -- --help` lists the options.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use cargo_tf_plugin::workspace::Workspace;
use clap::Parser;
use tf_plugin_benches::training::{
    Contestant, Contestants, MODELS, Measured, Precision, Sizes, gains_of_mixed_precision, table,
};

/// Training on the GPU plugin, beside Keras on PyTorch and on JAX.
#[derive(Parser)]
struct Arguments {
    /// Trains few steps of small images, to check that the benchmark works.
    #[arg(long)]
    quick: bool,
    /// Runs the plugin on lavapipe, a driver for the CPU, and compares losses with TensorFlow's CPU; the figures say nothing about a GPU.
    #[arg(long)]
    lavapipe: bool,
    /// The contestants besides the plugin.
    #[arg(long, value_delimiter = ',', value_enum)]
    beside: Vec<Contestant>,
    /// Trains one model.
    #[arg(long, value_parser = MODELS.iter().map(|model| model.name).collect::<Vec<_>>())]
    only: Option<String>,
    /// Lets PyTorch and JAX use TF32 for float32, as they do by default.
    #[arg(long)]
    tf32: bool,
    /// How often the contestants take turns.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// A Python that has PyTorch, torchvision and Keras.
    #[arg(long, value_name = "PYTHON")]
    torch: Option<PathBuf>,
    /// A Python that has JAX and Keras.
    #[arg(long, value_name = "PYTHON")]
    jax: Option<PathBuf>,
    /// A library of the plugin that is already built.
    #[arg(long, value_name = "LIBRARY")]
    plugin: Option<PathBuf>,
    /// The option that cargo adds.
    #[arg(long = "bench", hide = true)]
    _bench: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure!(arguments.rounds > 0, "--rounds is at least 1");
    let is_quick = arguments.quick || arguments.lavapipe;
    let sizes = match is_quick {
        true => Sizes { batch: 2, size: 32, steps: 1, rounds: 1 },
        false => Sizes { batch: 32, size: 512, steps: 20, rounds: arguments.rounds },
    };
    let mut beside = arguments.beside;
    if beside.is_empty() {
        beside = match arguments.lavapipe {
            true => vec![Contestant::Cpu],
            false => vec![Contestant::KerasOnTorch, Contestant::KerasOnJax, Contestant::Torch],
        };
    }
    beside.retain(|contestant| *contestant != Contestant::Plugin);
    let workspace = Workspace::current()?;
    let contestants = Contestants {
        plugin: match arguments.plugin {
            // Cargo runs a benchmark in the directory of its package.
            Some(plugin) => workspace.root().join(plugin),
            None => workspace.build_plugin("gpu")?,
        },
        torch: arguments.torch.map(|python| workspace.root().join(python)),
        jax: arguments.jax.map(|python| workspace.root().join(python)),
        tf32: arguments.tf32,
        environment: if arguments.lavapipe { lavapipe::driver() } else { Vec::new() },
    };
    let mut workers = Vec::new();
    for contestant in std::iter::once(Contestant::Plugin).chain(beside) {
        let worker = contestants.start(contestant)?;
        println!("{}: {}", contestant.name(), worker.version);
        workers.push((contestant, worker));
    }
    let mut measured = Vec::new();
    for model in MODELS {
        if arguments.only.as_ref().is_some_and(|only| only != model.name) {
            continue;
        }
        for precision in Precision::ALL {
            // A model that one contestant cannot train does not stop the others.
            match Measured::take(&mut workers, model, precision, sizes) {
                Ok(row) => measured.push(row),
                Err(error) => println!("{}, {}: {error:#}", model.name, precision.name()),
            }
            println!("\n{}", table(&measured, !is_quick)?);
        }
    }
    for (model, gain) in gains_of_mixed_precision(&measured) {
        println!("{model}: mixed_float16 relative to float32, on the plugin: {gain} (goal ≥ 1.7)");
    }
    if is_quick {
        println!("Few steps of small images: the figures say nothing about a GPU.");
    }
    ensure!(!measured.is_empty(), "no model was trained; see above");
    Ok(())
}
