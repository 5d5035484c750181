//! `cargo tf-plugin demo`: TensorFlow trains a model on files that live in the example filesystem.

use std::env;
use std::env::consts::DLL_EXTENSION;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use cargo_metadata::Message;
use clap::Args;

use crate::workspace::Workspace;
use crate::{NEWEST, TensorFlow};

/// The package whose plugin the demo uses.
const PACKAGE: &str = "memfs";

/// The arguments of `demo`.
#[derive(Args, Debug)]
pub struct Demo {
    /// TensorFlow release to use; installed into the target directory on first use.
    #[arg(long, value_name = "VERSION", default_value = NEWEST, conflicts_with = "python")]
    tf: String,

    /// Use the TensorFlow that this Python interpreter has.
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

impl Demo {
    /// Provides TensorFlow, builds the example and runs its demo script.
    ///
    /// # Errors
    /// When TensorFlow cannot be provided, the example does not build, or the script finds a wrong result.
    pub fn run(self) -> Result<()> {
        let workspace = Workspace::current()?;
        let Some(package) = workspace.package_dir(PACKAGE) else {
            bail!(
                "the workspace in {} has no package `{PACKAGE}`; run the demo in a clone of the project",
                workspace.root().display()
            );
        };
        let tensorflow = match &self.python {
            Some(python) => TensorFlow::from_python(python)?,
            None => TensorFlow::pinned(&self.tf)?,
        };
        let plugin = build_plugin(workspace.root(), PACKAGE)?;
        let status = tensorflow
            .python_command()
            .arg(package.join("demo.py"))
            .arg(&plugin)
            .status()
            .with_context(|| format!("cannot run {}", tensorflow.python().display()))?;
        if !status.success() {
            bail!("the demo failed ({status}); its messages are above");
        }
        Ok(())
    }
}

/// Builds `package` in release mode and returns its shared library.
fn build_plugin(root: &Path, package: &str) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let failed = || format!("cannot run {}", cargo.display());
    let mut child = Command::new(&cargo)
        .current_dir(root)
        .args([
            "build",
            "--release",
            "--package",
            package,
            "--message-format=json-render-diagnostics",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .with_context(failed)?;
    let mut plugin = None;
    if let Some(messages) = child.stdout.take() {
        for message in Message::parse_stream(BufReader::new(messages)) {
            let Message::CompilerArtifact(artifact) =
                message.context("cannot read cargo's messages")?
            else {
                continue;
            };
            if artifact.target.is_cdylib() && artifact.target.name == package {
                plugin = artifact
                    .filenames
                    .into_iter()
                    .find(|file| file.extension() == Some(DLL_EXTENSION));
            }
        }
    }
    let status = child.wait().with_context(failed)?;
    if !status.success() {
        bail!("the package `{package}` does not build ({status}); cargo's messages are above");
    }
    plugin.map(Into::into).with_context(|| {
        format!(
            "the package `{package}` makes no shared library; give it `crate-type = [\"cdylib\"]`"
        )
    })
}
