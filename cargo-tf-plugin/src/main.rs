//! The command `cargo tf-plugin`.

mod abi;

use std::env;
use std::process::ExitCode;

use cargo_tf_plugin::commands::Command;
use cargo_tf_plugin::probe;
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
    // The process that `check` starts to load a plugin.
    if let [_, argument, plugin, report] = given.as_slice()
        && argument == probe::ARGUMENT
    {
        return abi::run(plugin, report);
    }
    match Arguments::parse_from(given).command.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            for cause in error.chain().skip(1) {
                eprintln!("  caused by: {cause}");
            }
            ExitCode::FAILURE
        }
    }
}
