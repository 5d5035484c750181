//! The package that a command is about.

use std::env;

use anyhow::{Result, bail};
use cargo_metadata::{Package, Target};

use crate::workspace::Workspace;

/// An author's package that makes a plugin, in its workspace.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) workspace: Workspace,
    pub(crate) package: Package,
}

impl Project {
    /// The package `name` of the workspace around the current directory; without a name the package that the
    /// current directory is in, else the only one that makes a shared library.
    pub(crate) fn find(name: Option<&str>) -> Result<Self> {
        let workspace = Workspace::current()?;
        let package = Self::choose(&workspace, name)?.clone();
        if !package.targets.iter().any(Target::is_cdylib) {
            bail!(
                "the package `{}` makes no shared library; write `crate-type = [\"cdylib\", \"rlib\"]` below \
                 `[lib]` in its Cargo.toml",
                package.name
            );
        }
        Ok(Self { workspace, package })
    }

    fn choose<'w>(workspace: &'w Workspace, name: Option<&str>) -> Result<&'w Package> {
        let plugins = || {
            let members = workspace.packages().into_iter();
            members.filter(|package| package.targets.iter().any(Target::is_cdylib))
        };
        let names = || {
            let names: Vec<_> = plugins().map(|package| package.name.as_str()).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        if let Some(name) = name {
            let Some(package) = workspace.package(name) else {
                bail!(
                    "the workspace in {} has no package `{name}`; plugins in it: {}",
                    workspace.root().display(),
                    names()
                );
            };
            return Ok(package);
        }
        let here = env::current_dir()?;
        if let Some(package) = workspace.package_at(&here) {
            return Ok(package);
        }
        let mut all = plugins();
        match (all.next(), all.next()) {
            (Some(package), None) => Ok(package),
            _ => bail!(
                "which package? name one with `--package`; plugins in the workspace in {}: {}",
                workspace.root().display(),
                names()
            ),
        }
    }

    /// Its name as a Rust or Python module.
    pub(crate) fn module(&self) -> String {
        self.package.name.replace('-', "_")
    }
}
