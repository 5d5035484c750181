//! Building plugins.

use std::env;
use std::env::consts::DLL_EXTENSION;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use cargo_metadata::Message;

use crate::workspace::Workspace;

impl Workspace {
    /// Builds a package of the workspace with `cargo build --release` and returns its shared
    /// library.
    ///
    /// # Errors
    /// When the package does not build or makes no shared library.
    pub fn build_plugin(&self, package: &str) -> Result<PathBuf> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let failed = || format!("cannot run {}", cargo.display());
        let mut child = Command::new(&cargo)
            .current_dir(self.root())
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
}
