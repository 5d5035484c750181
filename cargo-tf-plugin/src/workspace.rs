//! Where the current Cargo workspace keeps things.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand, Package};

/// The Cargo workspace around the current directory.
#[derive(Debug)]
pub struct Workspace {
    metadata: Metadata,
}

impl Workspace {
    /// Asks cargo for the workspace around the current directory; neither network nor lock file is touched.
    ///
    /// # Errors
    /// When cargo cannot be run, or the current directory is in no package.
    pub fn current() -> Result<Self> {
        let metadata = MetadataCommand::new().no_deps().exec().context(
            "cargo cannot describe the workspace around the current directory; \
             run this inside a Cargo package",
        )?;
        Ok(Self { metadata })
    }

    /// The workspace's root directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// The directory for build results, with `CARGO_TARGET_DIR` and cargo's configuration honoured.
    ///
    /// A relative `CARGO_TARGET_DIR` counts from the workspace's root: `cargo test` runs each test in its own
    /// package's directory, and they must all find the same place.
    #[must_use]
    pub fn target_dir(&self) -> PathBuf {
        match env::var_os("CARGO_TARGET_DIR").map(PathBuf::from) {
            Some(dir) if dir.is_relative() && !dir.as_os_str().is_empty() => self.root().join(dir),
            _ => self.metadata.target_directory.clone().into_std_path_buf(),
        }
    }

    /// The directory of the workspace member named `package`, if there is one.
    #[must_use]
    pub fn package_dir(&self, package: &str) -> Option<&Path> {
        self.package(package)?.manifest_path.parent().map(|dir| dir.as_std_path())
    }

    /// What cargo knows of the workspace member named `package`, if there is one.
    pub(crate) fn package(&self, package: &str) -> Option<&Package> {
        self.metadata.workspace_packages().into_iter().find(|member| member.name == package)
    }
}
