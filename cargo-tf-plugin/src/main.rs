//! The command `cargo tf-plugin`.

#[expect(
    unsafe_code,
    reason = "loads plugins, and exports the functions that they expect of TensorFlow"
)]
mod abi;

use std::env;
use std::io::{self, Write as _};
use std::process::ExitCode;

use cargo_tf_plugin::commands::Command;
use cargo_tf_plugin::{bench, probe};
use clap::Parser;

/// Tools for TensorFlow plugins written in Rust.
#[derive(Parser)]
#[command(name = "cargo tf-plugin", bin_name = "cargo tf-plugin", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    // Cargo gives its subcommands their own name as first argument; the alias of this workspace does not.
    let mut given: Vec<_> = env::args_os().collect();
    if given.get(1).is_some_and(|first| first == "tf-plugin") {
        given.remove(1);
    }
    // The processes that `check` and `bench` start to load a plugin.
    match given.as_slice() {
        [_, argument, plugin, report] if argument == probe::ARGUMENT => {
            return abi::run(plugin, report);
        }
        [_, argument, job, report] if argument == bench::ARGUMENT => {
            return abi::bench(job, report);
        }
        _ => {}
    }
    match Arguments::parse_from(given).command.run() {
        Ok(code) => code,
        Err(error) => {
            let mut text = format!("error: {error}\n");
            for cause in error.chain().skip(1) {
                text += &format!("  caused by: {cause}\n");
            }
            // Standard error may be closed.
            let _ = io::stderr().write_all(text.as_bytes());
            ExitCode::FAILURE
        }
    }
}
