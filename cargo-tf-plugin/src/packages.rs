//! Python packages other than TensorFlow, in separate environments.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::NEWEST;
use crate::install::{Goal, Installation};
use crate::python;
use crate::workspace::Workspace;

/// Prints where an interpreter and its packages are.
const LOCATE: &str = "
import json, sys, sysconfig
print(json.dumps([sys.executable, sysconfig.get_path('purelib')]))";

/// Python packages, such as a server for a demo, with a Python that imports them.
///
/// They are in a separate environment, so that they and TensorFlow do not limit each other's
/// versions. The value only names places; it owns nothing on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packages {
    python: PathBuf,
    site_packages: PathBuf,
}

impl Packages {
    /// Installs the packages in `requirements` into a virtual environment of the current workspace,
    /// `<target>/packages/<name>`, unless it has them. The text is that of a requirements file: a
    /// package a line, with comments.
    ///
    /// The environment is created on first use, and created again when the requirements have changed or an installation
    /// was interrupted. It starts from the interpreter that `TF_PLUGIN_PYTHON` names, else from `base` if that is
    /// given, else from the one that [`TensorFlow::pinned`](crate::TensorFlow::pinned) finds.
    pub fn provide(name: &str, requirements: &str, base: Option<&Path>) -> Result<Self> {
        let directory = Workspace::current()?.target_dir().join("packages");
        Self::provide_in(&directory, name, requirements, base)
    }

    /// Installs packages as [`Packages::provide`] does, with the environments in `directory`.
    pub fn provide_in(
        directory: &Path,
        name: &str,
        requirements: &str,
        base: Option<&Path>,
    ) -> Result<Self> {
        let goal = goal(name, requirements)?;
        let mut installation = Installation::of(goal, directory, name)?;
        installation.python = installation.python.or_else(|| base.map(Into::into));
        installation.provide()
    }

    /// Returns the Python interpreter that imports the packages, as an absolute path.
    pub fn python(&self) -> &Path {
        &self.python
    }

    /// Returns the directory that the packages are in.
    pub fn site_packages(&self) -> &Path {
        &self.site_packages
    }
}

/// Reads the packages in a requirements file.
fn goal(name: &str, text: &str) -> Result<Goal<Packages>> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let requirements: Vec<String> = lines.map(str::to_owned).collect();
    if requirements.is_empty() {
        bail!("the requirements of `{name}` name no package; write one a line");
    }
    let packages = requirements.join("\n");
    Ok(Goal {
        title: format!("the Python packages `{name}`"),
        cost: "up to 150 MB to download",
        not_found: format!(
            "the package index lacks one of the packages for this Python and system:\n{packages}"
        ),
        stamp: packages,
        stamp_name: "packages-complete",
        requirements,
        release: NEWEST.to_owned(),
        first_import: None,
        locate: |_, python| {
            let (python, site_packages) = python::ask(python, &["-I"], LOCATE)?;
            Ok(Packages { python, site_packages })
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn requirements_are_the_lines_that_name_packages() {
        let two = goal("x", "# why\na==1\n\n  b>2  \n").expect("two");
        assert_eq!(two.requirements, ["a==1", "b>2"]);
        let error = goal("x", "# nothing\n").expect_err("none").to_string();
        assert!(error.contains("`x` name no package"), "{error}");
    }

    #[test]
    fn packages_are_installed_once_and_again_when_the_requirements_change() {
        let directory = tempfile::tempdir().expect("a scratch directory");
        let provide = |text: &str| Packages::provide_in(directory.path(), "small", text, None);
        let first = provide("# small and pure\nsix==1.16.0\n").expect("installed");
        assert!(first.python().starts_with(directory.path()), "{first:?}");
        let six = first.site_packages().join("six.py");
        let version = |text: &str| text.contains("__version__ = \"1.16.0\"");
        assert!(version(&fs::read_to_string(&six).expect("it is there")));

        // A file that only the first environment has.
        let trace = directory.path().join("small/trace");
        fs::write(&trace, "").expect("a file");
        assert_eq!(provide("six==1.16.0").expect("there already"), first);
        assert!(trace.exists(), "it was made again for a comment");
        assert_eq!(provide("six==1.17.0").expect("installed again"), first);
        assert!(!trace.exists(), "it was not made again");
        assert!(!version(&fs::read_to_string(&six).expect("it is there")));
    }

    #[test]
    fn a_package_that_does_not_exist_is_named() {
        let directory = tempfile::tempdir().expect("a scratch directory");
        let text = format!("{}/no-such-file.whl", directory.path().display());
        let error = Packages::provide_in(directory.path(), "missing", &text, None)
            .expect_err("it does not exist")
            .to_string();
        assert!(error.contains("could not install the Python packages `missing`"), "{error}");
        assert!(error.contains("no-such-file.whl"), "{error}");
    }
}
