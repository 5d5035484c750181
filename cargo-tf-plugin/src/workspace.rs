//! The directories of the current Cargo workspace.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cargo_metadata::{Metadata, MetadataCommand, Package};

/// Returns the user's directory for files that can be recreated: below `XDG_CACHE_HOME`, or `~/.cache`.
pub(crate) fn user_cache() -> Result<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(absolute)
        .or_else(|| env::home_dir().filter(absolute).map(|home| home.join(".cache")))
        .map(|cache| cache.join("tf-plugin"))
        .context("no home directory; set HOME")
}

/// Returns the directory for files that can be recreated: the target directory of the workspace
/// around the current directory; outside of any package, or without cargo, the user's.
pub(crate) fn target_or_cache() -> Result<PathBuf> {
    match Workspace::find() {
        Ok(Some(workspace)) => Ok(workspace.target_dir()),
        Err(error) if !error.root_cause().is::<io::Error>() => Err(error),
        _ => user_cache(),
    }
}

/// The Cargo workspace around the current directory.
#[derive(Debug)]
pub struct Workspace {
    metadata: Metadata,
}

impl Workspace {
    /// Gets the workspace around the current directory from cargo, without network and without changing the lock file.
    pub fn current() -> Result<Self> {
        Self::find()?.context(
            "no Cargo package in this directory or above; change to one, or create one with `cargo tf-plugin new`",
        )
    }

    /// Does the same as [`Workspace::current`]; returns `None` outside of any package.
    pub(crate) fn find() -> Result<Option<Self>> {
        match Self::described(&mut MetadataCommand::new()) {
            Err(error) if error.to_string().contains("could not find `Cargo.toml`") => Ok(None),
            described => described
                .map(Some)
                .context("cargo cannot describe the workspace around the current directory"),
        }
    }

    pub(crate) fn around(directory: &Path) -> Result<Self> {
        Self::described(MetadataCommand::new().current_dir(directory)).with_context(|| {
            format!("cargo cannot describe the package in {}", directory.display())
        })
    }

    fn described(command: &mut MetadataCommand) -> Result<Self> {
        match command.no_deps().exec() {
            Ok(metadata) => Ok(Self { metadata }),
            // Cargo's message alone.
            Err(cargo_metadata::Error::CargoMetadata { stderr }) => {
                let stderr = stderr.trim();
                bail!("{}", stderr.strip_prefix("error: ").unwrap_or(stderr))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the workspace's root directory.
    pub fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// Returns the directory for build results, which `CARGO_TARGET_DIR` and cargo's configuration can change.
    ///
    /// A relative `CARGO_TARGET_DIR` starts at the workspace's root: `cargo test` runs each test in
    /// its package's directory, and they must all find the same place.
    pub fn target_dir(&self) -> PathBuf {
        match env::var_os("CARGO_TARGET_DIR").map(PathBuf::from) {
            Some(dir) if dir.is_relative() && !dir.as_os_str().is_empty() => self.root().join(dir),
            _ => self.metadata.target_directory.clone().into_std_path_buf(),
        }
    }

    /// Returns the directory of the workspace member named `package`, if there is one.
    pub fn package_dir(&self, package: &str) -> Option<&Path> {
        self.package(package)?.manifest_path.parent().map(|dir| dir.as_std_path())
    }

    /// Returns the workspace member whose directory is `directory`, or contains it most closely.
    pub(crate) fn package_at(&self, directory: &Path) -> Option<&Package> {
        let packages = self.packages().into_iter().filter_map(|package| {
            let own = package.manifest_path.parent()?.as_std_path();
            directory.starts_with(own).then(|| (own.components().count(), package))
        });
        packages.max_by_key(|(depth, _)| *depth).map(|(_, package)| package)
    }

    pub(crate) fn packages(&self) -> Vec<&Package> {
        self.metadata.workspace_packages()
    }

    /// Returns cargo's metadata of the workspace member named `package`, if there is one.
    pub(crate) fn package(&self, package: &str) -> Option<&Package> {
        self.metadata.workspace_packages().into_iter().find(|member| member.name == package)
    }
}
