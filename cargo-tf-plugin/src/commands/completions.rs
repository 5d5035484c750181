//! `cargo tf-plugin completions`: what a shell needs to complete the command line.

use anyhow::Result;
use clap::{Args, CommandFactory, Parser};
use clap_complete::Shell;

use crate::commands::Command;
use crate::output;

/// The name under which shells know the command.
const PROGRAM: &str = "cargo-tf-plugin";

/// The arguments of `completions`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cargo tf-plugin completions bash > ~/.local/share/bash-completion/completions/cargo-tf-plugin
  cargo tf-plugin completions fish > ~/.config/fish/completions/cargo-tf-plugin.fish

They complete the installed program under its own name, cargo-tf-plugin.")]
pub struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// The whole command line, as the program parses it.
#[derive(Parser)]
#[command(name = PROGRAM)]
struct Arguments {
    #[command(subcommand)]
    _command: Command,
}

impl Completions {
    /// Writes the shell's script to standard output.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn run(self) -> Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), PROGRAM, &mut script);
        output::print(String::from_utf8_lossy(&script))
    }
}
