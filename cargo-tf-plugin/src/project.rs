//! The package that a command works on.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cargo_metadata::{Package, Target};
use serde_json::Value;

use crate::build::{Linking, has_library};
use crate::workspace::Workspace;

/// An author's package that builds a plugin, in its workspace.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) workspace: Workspace,
    pub(crate) package: Package,
}

impl Project {
    /// Finds the package `name` in the workspace around the current directory; without a name, the
    /// package that the current directory is in, else the only one that builds a shared library.
    pub(crate) fn find(name: Option<&str>) -> Result<Self> {
        let here = env::current_dir().context("cannot find the current directory")?;
        Self::of(Workspace::current()?, name, &here)
    }

    /// Finds the package in `directory`.
    pub(crate) fn at(directory: &Path) -> Result<Self> {
        Self::of(Workspace::around(directory)?, None, directory)
    }

    fn of(workspace: Workspace, name: Option<&str>, here: &Path) -> Result<Self> {
        let plugins = || {
            let members = workspace.packages().into_iter();
            members.filter(|package| package.targets.iter().any(Target::is_cdylib))
        };
        let names = || {
            let names: Vec<_> = plugins().map(|package| package.name.as_str()).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        let root = workspace.root().display();
        let mut all = plugins();
        let package = if let Some(name) = name {
            workspace.package(name).with_context(|| {
                format!(
                    "the workspace in {root} has no package `{name}`; plugins in it: {}",
                    names()
                )
            })?
        } else if let Some(package) =
            workspace.package_at(&here.canonicalize().unwrap_or_else(|_| here.to_owned()))
        {
            package
        } else if let (Some(package), None) = (all.next(), all.next()) {
            package
        } else {
            bail!(
                "which package? name one of the plugins in the workspace in {root}, for most commands with `--package`: {}",
                names()
            );
        };
        has_library(package)?;
        let package = package.clone();
        Ok(Self { workspace, package })
    }

    /// Builds the package for this machine, and returns the library's path.
    pub(crate) fn build(&self) -> Result<PathBuf> {
        self.workspace.build(&self.package, &Linking::default())
    }
}

/// Returns pip's name of the wheel: cargo's name of the package, or the one in its manifest.
pub(crate) fn distribution(package: &Package) -> Result<&str> {
    let wanted = &package.metadata["tf-plugin"]["wheel"];
    let name = match wanted {
        Value::Null => return Ok(&package.name),
        other => other.as_str().unwrap_or_default(),
    };
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase())
        || !name.chars().all(plain)
        || name.ends_with('-')
    {
        bail!(
            "`package.metadata.tf-plugin.wheel` of the package `{}` is {wanted}; write lower-case letters, digits and \
             `-`, beginning with a letter, such as \"my-plugin\"",
            package.name
        );
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_names_the_wheel_or_says_nothing() {
        let workspace = Workspace::current().expect("tests run in the workspace");
        let mut package = workspace.package("s3").expect("a package").clone();
        assert_eq!(distribution(&package).expect("a name"), "tensorflow-s3");
        package.metadata = Value::Null;
        assert_eq!(distribution(&package).expect("a name"), "s3");
        for name in ["", "My-plugin", "a_b", "-a", "a-", "3a"] {
            package.metadata = serde_json::json!({"tf-plugin": {"wheel": name}});
            let error = distribution(&package).expect_err(name).to_string();
            assert!(error.contains("of the package `s3` is \""), "{error}");
        }
    }
}
