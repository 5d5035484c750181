//! `cargo tf-plugin check`: what TensorFlow would find in a plugin.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::artefact::numbers;
use crate::output::{self, say};
use crate::pinned::environments;
use crate::project::Project;
use crate::render;
use crate::report::Report;
use crate::{NEWEST, TensorFlow};

/// The arguments of `check`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cargo tf-plugin check                           the package of the current directory, built first
  cargo tf-plugin check memfs                     a package of the workspace
  cargo tf-plugin check target/release/libx.so    a file
  cargo tf-plugin check libx.so --tf 2.16.2 --tf 2.21.0
  cargo tf-plugin check libx.so --json | jq .findings
  cargo tf-plugin check libx.so --no-run          a file that you do not trust

The exit status is 1 if TensorFlow would not load the plugin, would not find it, or would be terminated by it.

This runs the plugin's code, as `import tensorflow` would: in a separate process, as you, with your files, network and
environment. Variables that may hold secrets are removed (AWS_*, *_TOKEN, *_KEY, *SECRET*, *PASSWORD* and others: see
docs/check.md). TensorFlow itself does not run. With --no-run none of the plugin's code runs.")]
pub struct Check {
    /// A shared library, or a package to build: its name in this workspace, or its directory.
    #[arg(value_name = "FILE|PACKAGE")]
    plugin: Option<PathBuf>,

    /// TensorFlow in which to look up the plugin's imports: a release, or a virtual environment. May be repeated. By
    /// default the releases in the target directory.
    #[arg(long, value_name = "VERSION|VENV")]
    tf: Vec<PathBuf>,

    /// Only read the file and run none of its code; operations, kernels and devices are then unknown.
    #[arg(long)]
    no_run: bool,

    /// Time limit for loading the plugin.
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,

    /// List every function, kernel and missing symbol.
    #[arg(short, long)]
    verbose: bool,

    /// Print the report as JSON, for scripts.
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Examines the plugin and prints what it finds. The exit code says whether TensorFlow would load the plugin.
    pub fn run(self) -> Result<ExitCode> {
        let plugin = plugin(self.plugin.as_deref())?;
        // Named releases must exist, even for a plugin that needs nothing of them.
        let named: Vec<_> = self.tf.iter().map(|name| tensorflow(name)).collect::<Result<_>>()?;
        let directory = named.is_empty().then(environments).transpose()?;
        let releases = || directory.map_or(named, |directory| provided(&directory));
        let limit = (!self.no_run).then(|| Duration::from_secs(self.timeout));
        let report = Report::of(&plugin, releases, limit)?;
        if self.json {
            say!("{}", serde_json::to_string_pretty(&report)?)?;
        } else {
            output::print(render::text(&report, self.verbose))?;
        }
        Ok(if report.findings.have_errors() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// Returns the file to examine, built if it is a package's.
pub(crate) fn plugin(named: Option<&Path>) -> Result<PathBuf> {
    let Some(named) = named else { return Project::find(None)?.build() };
    if named.join("Cargo.toml").is_file() {
        return Project::at(named)?.build();
    }
    if named.exists() || named.components().count() > 1 || named.extension().is_some() {
        return Ok(named.to_owned());
    }
    let name = named.to_string_lossy();
    let project = Project::find(Some(&name));
    project.with_context(|| format!("there is no file `{name}`, and no package to build"))?.build()
}

/// Returns a release by its version, installed if necessary, or the TensorFlow of an environment or interpreter.
pub(crate) fn tensorflow(name: &Path) -> Result<TensorFlow> {
    if name.is_dir() {
        return TensorFlow::from_python(&name.join("bin").join("python")).with_context(|| {
            format!("{} is not a virtual environment with TensorFlow", name.display())
        });
    }
    if name.components().count() > 1 || name.is_file() {
        if name.symlink_metadata().is_err() {
            bail!(
                "there is no {}; name a virtual environment that has TensorFlow, or a release, such as {NEWEST}",
                name.display()
            );
        }
        return TensorFlow::from_python(name);
    }
    TensorFlow::pinned(&name.to_string_lossy())
}

/// Returns the releases in a directory of environments, which need no download, the oldest first.
fn provided(directory: &Path) -> Vec<TensorFlow> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let pythons = entries.flatten().map(|entry| entry.path().join("bin").join("python"));
    let mut releases: Vec<_> = pythons
        .filter(|python| python.exists())
        .filter_map(|python| TensorFlow::locate(&python, &["-I"]).ok()?)
        .collect();
    releases.sort_by_key(|release| numbers(release.version()));
    releases
}
