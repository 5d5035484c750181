//! A real TensorFlow: where it is, and how it gets there.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::install::Installation;
use crate::python;
use crate::workspace::{Workspace, user_cache};

/// The newest TensorFlow that the project is tested with; the default wherever no version is named.
pub const NEWEST: &str = "2.21.0";

/// The older TensorFlow releases that the same plugins are tested with.
pub const MATRIX: &[&str] = &["2.12.1", "2.16.2", "2.18.1", "2.19.1", "2.20.0"];

/// Release candidates newer than [`NEWEST`] that the same plugins are tested with.
pub const CANDIDATES: &[&str] = &["2.22.0rc0"];

/// The oldest release whose plugin interface is the one used here.
const OLDEST: (u32, u32) = (2, 12);

/// Finds TensorFlow without importing it, which would take seconds and run its plugin loader.
const LOCATE: &str = include_str!("locate.py");

/// One TensorFlow on this machine, with the Python that imports it.
///
/// The value only names places; it owns nothing on disk and stays valid until somebody deletes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorFlow {
    version: String,
    python: PathBuf,
    package: PathBuf,
}

impl TensorFlow {
    /// The TensorFlow release `version` (such as [`NEWEST`]) in a virtual environment of the current
    /// workspace, `<target>/tf-venv/<version>`; outside of any package in one of the user's,
    /// `~/.cache/tf-plugin/tf-venv/<version>` (`XDG_CACHE_HOME` is honoured).
    ///
    /// The environment is made on first use: a download of about 250 MB that becomes 1.5 GB on disk, with
    /// progress on standard error. Later calls take milliseconds. Processes that ask at the same time wait for
    /// each other. An installation that was interrupted is made again.
    ///
    /// `TF_PLUGIN_PYTHON` names the interpreter to make it with; otherwise the first suitable one of
    /// `python3.11`, the other versions that the release supports, `python3` and `python` on `PATH` is taken.
    ///
    /// `2.21` is the release of that series that the project is tested with; `2.22` is the release candidate in
    /// [`CANDIDATES`].
    ///
    /// # Errors
    /// When no suitable Python is found, its `venv` module is missing, pip fails (no network, no such release)
    /// or the disk is full. The text names the cause and the next step.
    pub fn pinned(version: &str) -> Result<Self> {
        Self::pinned_in(version, &environments()?)
    }

    /// As [`TensorFlow::pinned`], with the environments in `directory` instead: `<directory>/<version>`.
    ///
    /// # Errors
    /// As [`TensorFlow::pinned`].
    pub fn pinned_in(version: &str, directory: &Path) -> Result<Self> {
        let version = release(version)?;
        let installation = Installation::new(version, directory)?;
        if python::major_minor(version).is_some_and(|version| version < OLDEST) {
            bail!(
                "TensorFlow {version} cannot load these plugins; name {}.{} or newer, such as {NEWEST}",
                OLDEST.0,
                OLDEST.1
            );
        }
        installation.provide()
    }

    /// The TensorFlow of the virtual environment that is active (`VIRTUAL_ENV`), else [`NEWEST`] as
    /// [`TensorFlow::pinned`] provides it.
    ///
    /// # Errors
    /// As [`TensorFlow::pinned`], where the active environment has no TensorFlow that can be used.
    pub fn around() -> Result<Self> {
        let active = env::var_os("VIRTUAL_ENV").filter(|venv| !venv.is_empty());
        let python = active.map(|venv| PathBuf::from(venv).join("bin/python"));
        match python.map(|python| Self::from_python(&python)) {
            Some(Ok(tensorflow)) => Ok(tensorflow),
            _ => Self::pinned(NEWEST),
        }
    }

    /// The TensorFlow that the interpreter `python` imports; nothing is installed or changed.
    ///
    /// # Errors
    /// When `python` does not run, has no TensorFlow, or has one that is too old or lacks the files that
    /// plugins need.
    pub fn from_python(python: &Path) -> Result<Self> {
        let found = python::ask(python, LOCATE)?;
        let text = |key: &str| found.get(key).and_then(Value::as_str).map(str::to_owned);
        let Some(package) = text("package").map(PathBuf::from) else {
            bail!(
                "{} has no TensorFlow; install one with `{} -m pip install tensorflow-cpu=={NEWEST}`, \
                 or leave the choice of Python to this command",
                python.display(),
                python.display(),
            );
        };
        let version = text("version").with_context(|| {
            format!(
                "the TensorFlow in {} does not say its version; reinstall it with pip",
                package.display()
            )
        })?;
        if python::major_minor(&version).is_none_or(|version| version < OLDEST) {
            bail!(
                "TensorFlow {version} of {} cannot load these plugins; use {}.{} or newer",
                python.display(),
                OLDEST.0,
                OLDEST.1
            );
        }
        let tensorflow = Self {
            version,
            python: text("executable").map_or_else(|| python.to_owned(), PathBuf::from),
            package,
        };
        for file in tensorflow.needed_files() {
            if !file.is_file() {
                bail!(
                    "TensorFlow {} of {} is incomplete: {} is missing; reinstall it with pip",
                    tensorflow.version,
                    tensorflow.python.display(),
                    file.display()
                );
            }
        }
        Ok(tensorflow)
    }

    /// The TensorFlow release, such as `2.21.0`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Major and minor number of the release, for what depends on it.
    #[must_use]
    pub fn major_minor(&self) -> (u32, u32) {
        python::major_minor(&self.version).unwrap_or_default()
    }

    /// The Python interpreter that imports this TensorFlow, as an absolute path.
    #[must_use]
    pub fn python(&self) -> &Path {
        &self.python
    }

    /// The directory to give a C compiler with `-I`: it contains `tensorflow/c/...`.
    #[must_use]
    pub fn include_dir(&self) -> PathBuf {
        self.package.join("include")
    }

    /// The directory that holds `libtensorflow_framework.so.2` and `libtensorflow_cc.so.2`.
    #[must_use]
    pub fn library_dir(&self) -> &Path {
        &self.package
    }

    /// The directory of Python packages that TensorFlow is in; a `tensorflow-plugins` directory inside it is
    /// scanned at `import tensorflow`.
    #[must_use]
    pub fn site_packages(&self) -> &Path {
        self.package.parent().unwrap_or(&self.package)
    }

    /// A command that runs this Python with TensorFlow's start-up chatter turned off.
    ///
    /// Settings that the caller's environment has already are left alone.
    #[must_use]
    pub fn python_command(&self) -> Command {
        let mut command = Command::new(&self.python);
        for (name, value) in [
            // Warnings and errors only.
            ("TF_CPP_MIN_LOG_LEVEL", "2"),
            // oneDNN announces itself and makes results depend on the processor.
            ("TF_ENABLE_ONEDNN_OPTS", "0"),
            ("PYTHONUNBUFFERED", "1"),
        ] {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        command
    }

    fn needed_files(&self) -> [PathBuf; 3] {
        [
            self.package.join(library_name("tensorflow_framework")),
            self.package.join(library_name("tensorflow_cc")),
            self.include_dir().join("tensorflow/c/experimental/filesystem/filesystem_interface.h"),
        ]
    }
}

/// The release that is meant by `2.21`: the one of the series that the project is tested with. pip would take it for
/// 2.21.0, which not every series has.
fn release(version: &str) -> Result<&str> {
    let Some((_, minor)) = version.split_once('.') else {
        return Ok(version);
    };
    let is_series = !minor.is_empty() && minor.chars().all(|c| c.is_ascii_digit());
    if !is_series || python::major_minor(version).is_none_or(|series| series < OLDEST) {
        return Ok(version);
    }
    let mut known = MATRIX.iter().chain([&NEWEST]).chain(CANDIDATES).copied();
    let release = known.find(|known| python::major_minor(known) == python::major_minor(version));
    release.with_context(|| {
        format!(
            "`{version}` is a series of TensorFlow releases; name one in full, such as {NEWEST}"
        )
    })
}

/// The file name of one of TensorFlow's versioned shared libraries on this system.
fn library_name(stem: &str) -> OsString {
    if cfg!(target_os = "macos") {
        format!("lib{stem}.2.dylib").into()
    } else {
        format!("lib{stem}.so.2").into()
    }
}

/// Where the releases are that are installed on demand.
pub(crate) fn environments() -> Result<PathBuf> {
    Workspace::current()
        .map(|workspace| workspace.target_dir())
        .or_else(|_| user_cache())
        .map(|directory| directory.join("tf-venv"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_its_release_or_is_refused_before_anything_is_fetched() {
        for (written, meant) in [
            ("2.12", "2.12.1"),
            ("2.16", "2.16.2"),
            ("2.21", "2.21.0"),
            ("2.22", "2.22.0rc0"),
            // What is not a series is left to those who know more.
            ("2.21.0", "2.21.0"),
            ("2.9", "2.9"),
            ("nonsense", "nonsense"),
            ("2.", "2."),
        ] {
            assert_eq!(release(written).expect(written), meant);
        }
        let nowhere = Path::new("/proc/nowhere");
        let error = TensorFlow::pinned_in("2.13", nowhere).expect_err("no release").to_string();
        assert!(error.contains("`2.13` is a series"), "{error}");
        assert!(error.contains("name one in full, such as 2.21.0"), "{error}");
        let error = TensorFlow::pinned_in("2.9", nowhere).expect_err("too old").to_string();
        assert!(error.contains("cannot load these plugins; name 2.12 or newer"), "{error}");
    }
}
