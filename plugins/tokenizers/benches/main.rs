//! The tokenizers' ops in `tf.data`, beside `tf.py_function` around Python's tokenizers, tensorflow-text, and the crate itself
//! without TensorFlow.
//!
//! `cargo bench -p tf-plugin-tokenizers-benches --bench tokenizers -- --help` lists the options.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tf_plugin_benches::{build, report};
use tf_plugin_tokenizers_benches::clients::Clients;
use tf_plugin_tokenizers_benches::tables::{CORES, Size, TOKENIZERS, memory, speed};

/// The document with the tables, from the book's directory on.
const DOCUMENT: &str = "../plugins/tokenizers/README.md";
/// What the tables are of, except for the rounds.
const SIZE: Size = Size {
    batches: &[(1, 5_000), (32, 30_000), (1024, 30_000), (8192, 49_152)],
    rounds: 5,
    many: (1_000_000, 1024),
    tolerance: 0.002,
};

/// The tokenizers' ops beside other ways to tokenize.
#[derive(Parser)]
struct Arguments {
    /// Puts the tables into the plugin's README.
    #[arg(long)]
    write: bool,
    /// Makes the tables whose name contains this text: wordpiece, unigram, bpe, memory.
    #[arg(long, default_value = "")]
    only: String,
    /// How often each contestant runs.
    #[arg(long, default_value_t = SIZE.rounds)]
    rounds: usize,
    /// A wheel that is built already.
    #[arg(long)]
    wheel: Option<PathBuf>,
    /// The option that cargo adds.
    #[arg(long = "bench", hide = true)]
    _bench: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let size = Size { rounds: arguments.rounds, ..SIZE };
    let clients = Clients::provide("tokenizers-bench", arguments.wheel.as_deref(), size)?;
    use_cores(CORES)?;
    let versions = format!("{} · {} · {CORES} cores", clients.versions(), build::cpu_model());
    for (tokenizer, others) in TOKENIZERS {
        if tokenizer.contains(&arguments.only) {
            let table = speed(&clients, tokenizer, others, size)?;
            let text = format!("{table}\n{versions}\n");
            report::show(DOCUMENT, tokenizer, &text, arguments.write)?;
        }
    }
    if "memory".contains(&arguments.only) {
        let text = format!("{}\n{versions}\n", memory(&clients, size)?);
        report::show(DOCUMENT, "memory", &text, arguments.write)?;
    }
    Ok(())
}

/// Keeps this process and those that it starts to the first CPU cores that it may use.
fn use_cores(count: usize) -> Result<()> {
    let usable = sched_getaffinity(None)?;
    let mut chosen = CpuSet::new();
    let cores = (0..CpuSet::MAX_CPU).filter(|&core| usable.is_set(core)).take(count);
    cores.for_each(|core| chosen.set(core));
    ensure!(chosen.count() as usize == count, "this machine has less than {count} CPU cores");
    Ok(sched_setaffinity(None, &chosen)?)
}
