//! The subcommands: one module each.

pub mod demo;

use anyhow::Result;
use clap::Subcommand;

/// A subcommand with its arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a real TensorFlow on an example filesystem.
    Demo(demo::Demo),
}

impl Command {
    /// Does what the subcommand says.
    ///
    /// # Errors
    /// Those of the subcommand; the text is meant for the user.
    pub fn run(self) -> Result<()> {
        match self {
            Self::Demo(demo) => demo.run(),
        }
    }
}
