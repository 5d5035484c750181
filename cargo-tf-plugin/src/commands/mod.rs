//! The subcommands: one module each.

pub mod bench;
pub mod build;
pub mod check;
pub mod completions;
pub mod coverage;
pub mod demo;
mod diagnosis;
pub mod doctor;
mod installed;
mod measure;
pub mod new;
mod results;
pub mod run;
pub mod test;
pub mod wheel;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// A subcommand with its arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a crate for a new plugin.
    New(new::New),
    /// Build the plugin, and list the systems that it works on.
    Build(build::Build),
    /// Show what TensorFlow would find in a plugin, and its errors.
    Check(check::Check),
    /// Test the plugin in process and in real TensorFlow releases.
    Test(test::Test),
    /// Run a program with the plugin loaded.
    Run(run::Run),
    /// Run a script, and list which of its ops ran on the device, which did not, and why.
    Coverage(coverage::Coverage),
    /// Measure the plugin's operations, through its C tables and in TensorFlow.
    Bench(bench::Bench),
    /// Package the plugin as a wheel, for `pip install`.
    Wheel(wheel::Wheel),
    /// Run TensorFlow on an example plugin.
    Demo(demo::Demo),
    /// List the plugins that a TensorFlow loads on import and their errors, then import it.
    Doctor(doctor::Doctor),
    /// Print completions for a shell.
    Completions(completions::Completions),
}

impl Command {
    /// Runs the subcommand; the exit code is that of the process.
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Self::New(new) => new.run()?,
            Self::Build(build) => build.run()?,
            Self::Check(check) => return check.run(),
            Self::Test(test) => test.run()?,
            Self::Run(run) => run.run()?,
            Self::Coverage(coverage) => return coverage.run(),
            Self::Bench(bench) => return bench.run(),
            Self::Wheel(wheel) => wheel.run()?,
            Self::Demo(demo) => demo.run()?,
            Self::Doctor(doctor) => return doctor.run(),
            Self::Completions(completions) => completions.run(Self::augment_subcommands)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Arguments {
        #[command(subcommand)]
        _command: Command,
    }

    /// Splits a command into words, up to a pipe, a redirection or a comment.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quote = None;
        for c in line.chars() {
            match c {
                c if quote == Some(c) => quote = None,
                '"' | '\'' if quote.is_none() => quote = Some(c),
                '#' | '`' | '>' | '|' if quote.is_none() => break,
                c if c.is_whitespace() && quote.is_none() => words.push(String::new()),
                c => words.last_mut().expect("there is one").push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    /// Returns the commands in a text; with `told`, two spaces end a command.
    fn commands(text: &str, told: bool) -> Vec<Vec<String>> {
        let lines = text.lines().flat_map(|line| line.split_once("cargo tf-plugin "));
        let lines = lines
            .map(|(_, line)| if told { line.split("  ").next().unwrap_or(line) } else { line });
        lines.map(words).filter(|words| !words.is_empty()).collect()
    }

    #[test]
    fn the_commands_in_documents_and_helps_are_commands() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut all = Vec::new();
        let documents = "../README.md ../docs/check.md ../docs/packaging.md ../docs/performance.md \
            ../docs/trace.md ../docs/coverage.md ../docs/gpu-backend.md templates/fs/README.md \
            templates/object-store/README.md templates/device/README.md templates/both/README.md templates/gpu/README.md templates/ops/README.md \
            templates/common/ci.yml";
        for path in documents.split(' ') {
            let text = fs::read_to_string(root.join(path)).expect(path);
            let commands = commands(&text, false);
            assert!(!commands.is_empty(), "{path} has none");
            all.extend(commands);
        }
        for command in Arguments::command().get_subcommands() {
            let help = command.get_after_help();
            let help = help.unwrap_or_else(|| panic!("`{}` has no examples", command.get_name()));
            all.extend(commands(&help.to_string(), true));
        }
        assert!(all.len() > 25, "only {} are found", all.len());
        for words in all {
            let line = words.join(" ");
            let given = ["cargo tf-plugin".to_owned()].into_iter().chain(words);
            if let Err(error) = Arguments::try_parse_from(given) {
                panic!("cargo tf-plugin {line}: {error}");
            }
        }
    }
}
