//! Python interpreters: finding one, and running scripts in it.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;

/// The environment variable that names the interpreter for new environments.
pub(crate) const PYTHON_VARIABLE: &str = "TF_PLUGIN_PYTHON";

const DESCRIBE: &str = "
import importlib.util, json, sys
has_venv = all(importlib.util.find_spec(m) is not None for m in ('venv', 'ensurepip'))
print(json.dumps([sys.version_info[:3], has_venv]))";

/// A Python interpreter that runs.
#[derive(Clone, Debug)]
pub(crate) struct Interpreter {
    /// The path or name under which it was requested.
    pub(crate) path: PathBuf,
    version: (u32, u32, u32),
    has_venv: bool,
}

impl Interpreter {
    /// Runs `path` (a file, or a name on `PATH`) to find its version.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let (version, has_venv) = ask(path, &["-I"], DESCRIBE)?;
        Ok(Self { path: path.to_owned(), version, has_venv })
    }

    /// Finds an interpreter that the TensorFlow release `version` supports and that can make environments:
    /// `named` (from [`PYTHON_VARIABLE`]) if given, else the best one among `search`, the value of `PATH`.
    pub(crate) fn for_tensorflow(
        version: &str,
        named: Option<&OsStr>,
        search: Option<&OsStr>,
    ) -> Result<Self> {
        let supported = supported_pythons(version);
        if let Some(named) = named {
            let interpreter = Self::new(Path::new(named))
                .with_context(|| format!("{PYTHON_VARIABLE} names an unusable Python"))?;
            return match interpreter.objection(version, supported) {
                None => Ok(interpreter),
                Some(objection) => bail!("{PYTHON_VARIABLE} names an unusable Python: {objection}"),
            };
        }
        let directories: Vec<_> = env::split_paths(search.unwrap_or_default()).collect();
        let names = candidates(supported).into_iter();
        let paths = names.flat_map(|name| directories.iter().map(move |dir| dir.join(&name)));
        let mut objections = Vec::new();
        // A version manager's wrapper may exist without an interpreter behind it: only running it shows that.
        for interpreter in paths.filter(|path| path.is_file()).flat_map(|path| Self::new(&path)) {
            match interpreter.objection(version, supported) {
                None => return Ok(interpreter),
                Some(objection) if !objections.contains(&objection) => objections.push(objection),
                Some(_) => {}
            }
        }
        let range = describe_range(supported);
        if objections.is_empty() {
            bail!(
                "no Python is on PATH, and TensorFlow {version} needs {range}; install one (on Debian and Ubuntu: \
                 `apt install python3 python3-venv`), or name one with {PYTHON_VARIABLE}=/path/to/python"
            );
        }
        bail!(
            "no Python on PATH suits TensorFlow {version}, which needs {range}:\n  - {}\n\
             install a suitable one, or name one with {PYTHON_VARIABLE}=/path/to/python",
            objections.join("\n  - ")
        )
    }

    /// Returns why this interpreter does not support TensorFlow `version`, if it does not.
    fn objection(&self, version: &str, supported: (u32, u32)) -> Option<String> {
        let (major, minor, micro) = self.version;
        let path = self.path.display();
        let supports = major == 3 && (supported.0..=supported.1).contains(&minor);
        if !supports {
            let judgement = if (major, minor) < (3, supported.0) { "old" } else { "new" };
            return Some(format!(
                "{path} is Python {major}.{minor}.{micro}, too {judgement} for TensorFlow {version}: use {}",
                describe_range(supported)
            ));
        }
        (!self.has_venv).then(|| {
            format!(
                "{path} (Python {major}.{minor}.{micro}) has no working `venv` module: \
                 on Debian and Ubuntu `apt install python{major}.{minor}-venv` adds it"
            )
        })
    }
}

/// Removes the current directory, which `-c` puts first; `-P` does so since Python 3.11.
const ELSEWHERE: &str = "import sys\nif sys.path[:1] == ['']: del sys.path[0]\n";

/// Runs `script` and parses the JSON that it prints. The flag `-I` keeps the caller's `PYTHON*`
/// settings and user packages out; `-B` writes no byte code.
pub(crate) fn ask<T: DeserializeOwned>(python: &Path, flags: &[&str], script: &str) -> Result<T> {
    let script = format!("{ELSEWHERE}{script}");
    let mut command = Command::new(python);
    // It would make any Python use the modules of another one.
    command.args(flags).args(["-B", "-c", &script]).env_remove("PYTHONHOME");
    let output = command.output().with_context(|| {
        format!("cannot run {}; name the path of a Python interpreter", python.display())
    })?;
    if !output.status.success() {
        bail!(
            "{} failed ({}); is it a Python 3 interpreter?\n{}",
            python.display(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    serde_json::from_slice(&output.stdout).with_context(|| {
        format!("{} printed something unexpected; is it a Python interpreter?", python.display())
    })
}

/// Returns the minor versions of Python 3, first and last, that have wheels of a TensorFlow release.
fn supported_pythons(version: &str) -> (u32, u32) {
    match major_minor(version).unwrap_or_default() {
        (2, ..=13) => (8, 11),
        (2, 14..=15) => (9, 11),
        (2, 16..=19) => (9, 12),
        (2, 20) => (9, 13),
        (2, 21) => (10, 13),
        // A release newer than this table: pip decides.
        _ => (10, u32::MAX),
    }
}

/// Returns the names to look for, best first: 3.11 has wheels of every release since 2.12.
fn candidates((first, last): (u32, u32)) -> Vec<String> {
    let mut minors: Vec<u32> = (first..=last.min(20)).collect();
    minors.sort_by_key(|minor| (*minor != 11, *minor));
    let mut names: Vec<String> = minors.iter().map(|minor| format!("python3.{minor}")).collect();
    names.extend(["python3".to_owned(), "python".to_owned()]);
    names
}

fn describe_range((first, last): (u32, u32)) -> String {
    if last == u32::MAX {
        format!("Python 3.{first} or newer")
    } else {
        format!("Python 3.{first} to 3.{last}")
    }
}

/// Returns the first two numbers of a version.
pub(crate) fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python(version: (u32, u32, u32)) -> Interpreter {
        Interpreter { path: "python3".into(), version, has_venv: true }
    }

    #[test]
    fn each_release_has_its_range_of_pythons() {
        for (version, oldest, newest) in [
            ("2.12.1", 8, 11),
            ("2.15.1", 9, 11),
            ("2.16.2", 9, 12),
            ("2.18.1", 9, 12),
            ("2.19.1", 9, 12),
            ("2.20.0", 9, 13),
            ("2.21.0", 10, 13),
        ] {
            let range = supported_pythons(version);
            assert_eq!(range, (oldest, newest), "{version}");
            assert_eq!(python((3, oldest, 0)).objection(version, range), None);
            assert_eq!(python((3, newest, 9)).objection(version, range), None);
            let old = python((3, oldest - 1, 2)).objection(version, range).expect("too old");
            assert!(
                old.contains("too old")
                    && old.contains(&format!("Python 3.{oldest} to 3.{newest}")),
                "{old}"
            );
            let new = python((3, newest + 1, 0)).objection(version, range).expect("too new");
            assert!(new.contains(&format!("too new for TensorFlow {version}")), "{new}");
        }
        assert!(
            python((2, 7, 18)).objection("2.21.0", (10, 13)).expect("too old").contains("too old")
        );
    }

    #[test]
    fn a_python_without_venv_is_refused_with_the_package_to_install() {
        let mut bare = python((3, 11, 2));
        bare.has_venv = false;
        let objection = bare.objection("2.21.0", (10, 13)).expect("no venv");
        assert!(objection.contains("apt install python3.11-venv"), "{objection}");
    }

    #[test]
    fn python_3_11_is_tried_first_and_only_supported_ones_by_number() {
        let names = candidates((8, 11));
        assert_eq!(
            names,
            ["python3.11", "python3.8", "python3.9", "python3.10", "python3", "python"]
        );
    }

    #[test]
    fn without_any_python_the_error_says_how_to_get_one() {
        let empty = tempfile::tempdir().expect("an empty directory");
        let error = Interpreter::for_tensorflow("2.21.0", None, Some(empty.path().as_os_str()))
            .expect_err("there is none")
            .to_string();
        assert!(error.contains("no Python is on PATH"), "{error}");
        assert!(
            error.contains("Python 3.10 to 3.13") && error.contains(PYTHON_VARIABLE),
            "{error}"
        );
    }
}
