//! The subcommands: one module each.

pub mod check;
pub mod demo;
pub mod doctor;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// A subcommand with its arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what TensorFlow would find in a plugin, and what is wrong with it.
    Check(check::Check),
    /// Run a real TensorFlow on an example filesystem.
    Demo(demo::Demo),
    /// List the plugins that a TensorFlow loads on import, say what is wrong with them, and try.
    Doctor(doctor::Doctor),
}

impl Command {
    /// Does what the subcommand says; the exit code is the one for the process.
    ///
    /// # Errors
    /// Those of the subcommand; the text is meant for the user.
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Self::Check(check) => check.run(),
            Self::Demo(demo) => demo.run().map(|()| ExitCode::SUCCESS),
            Self::Doctor(doctor) => doctor.run(),
        }
    }
}
