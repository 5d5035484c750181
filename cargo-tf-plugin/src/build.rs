//! Building plugins.

use std::env;
use std::env::consts::DLL_EXTENSION;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use cargo_metadata::{Message, Target};

use crate::workspace::Workspace;

impl Workspace {
    /// Builds a package of the workspace as the shared library that users install, and returns its path.
    ///
    /// The profile is `release`, unless the package's manifest names another one:
    ///
    /// ```toml
    /// [package.metadata.tf-plugin]
    /// profile = "dist"
    /// ```
    ///
    /// Only the shared library is made, also of a package that is a Rust library too: beside one, cargo leaves
    /// out the optimisation of the whole program (`lto`).
    ///
    /// # Errors
    /// When the package does not build or makes no shared library.
    pub fn build_plugin(&self, package: &str) -> Result<PathBuf> {
        let Some(package) = self.package(package) else {
            bail!("the workspace in {} has no package `{package}`", self.root().display());
        };
        let name = &package.name;
        if !package.targets.iter().any(Target::is_cdylib) {
            bail!(
                "the package `{name}` makes no shared library; give it `crate-type = [\"cdylib\"]`"
            );
        }
        let profile = package.metadata["tf-plugin"]["profile"].as_str().unwrap_or("release");
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let failed = || format!("cannot run {}", cargo.display());
        let mut child = Command::new(&cargo)
            .current_dir(self.root())
            .args(["rustc", "--lib", "--crate-type", "cdylib", "--package", name])
            .args(["--profile", profile, "--message-format=json-render-diagnostics"])
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
                if artifact.target.is_cdylib() && artifact.package_id == package.id {
                    plugin = artifact
                        .filenames
                        .into_iter()
                        .find(|file| file.extension() == Some(DLL_EXTENSION));
                }
            }
        }
        let status = child.wait().with_context(failed)?;
        if !status.success() {
            bail!("the package `{name}` does not build ({status}); cargo's messages are above");
        }
        plugin
            .map(Into::into)
            .with_context(|| format!("cargo has built no shared library of the package `{name}`"))
    }
}
