//! `cargo tf-plugin completions`: the script with which a shell completes the command line.

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::Shell;

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

impl Completions {
    /// Writes the shell's script to standard output; `subcommands` adds the program's subcommands.
    pub fn run(self, subcommands: impl FnOnce(Command) -> Command) -> Result<()> {
        let mut script = Vec::new();
        let mut program = subcommands(Command::new(PROGRAM));
        clap_complete::generate(self.shell, &mut program, PROGRAM, &mut script);
        output::print(String::from_utf8_lossy(&script))
    }
}
