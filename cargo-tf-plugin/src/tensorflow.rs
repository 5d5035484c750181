//! A real TensorFlow: where it is, and how it gets there.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::python;

/// Calls a macro with the TensorFlow releases that the project is tested with: for each the name of a test module and
/// the version. `docs/new-tensorflow.md` says what else a new release takes; `.ci/run` and `.ci/release` read these lines.
#[doc(hidden)]
#[macro_export]
macro_rules! tensorflow_releases {
    ([$($callback:tt)+] $($arguments:tt)*) => {
        $($callback)+! {
            oldest tensorflow_2_12_1 "2.12.1";
            older tensorflow_2_16_2 "2.16.2";
            older tensorflow_2_18_1 "2.18.1";
            older tensorflow_2_19_1 "2.19.1";
            older tensorflow_2_20_0 "2.20.0";
            newest tensorflow_2_21_0 "2.21.0";
            candidate tensorflow_2_22_0rc0 "2.22.0rc0";
            $($arguments)*
        }
    };
}

macro_rules! constants {
    (
        oldest $_oldest:ident $oldest:literal;
        $(older $_older:ident $older:literal;)*
        newest $_newest:ident $newest:literal;
        $(candidate $_candidate:ident $candidate:literal;)*
    ) => {
        /// The newest TensorFlow that the project is tested with; the default if no version is named.
        pub const NEWEST: &str = $newest;

        /// The older TensorFlow releases that the same plugins are tested with, oldest first.
        pub const MATRIX: &[&str] = &[$oldest, $($older),*];

        /// Release candidates newer than [`NEWEST`] that the same plugins are tested with.
        pub const CANDIDATES: &[&str] = &[$($candidate),*];
    };
}
tensorflow_releases!([constants]);

/// The oldest release that has the plugin interface used here.
pub(crate) const OLDEST: (u32, u32) = (2, 12);

/// Finds TensorFlow without importing it, which would take seconds and run its plugin loader.
const LOCATE: &str = include_str!("locate.py");

/// The output of [`LOCATE`].
#[derive(Deserialize)]
struct Located {
    package: Option<PathBuf>,
    version: Option<String>,
    executable: Option<PathBuf>,
}

/// One TensorFlow on this machine, with the Python that imports it.
///
/// The value only names places; it owns nothing on disk and is valid until somebody deletes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorFlow {
    version: String,
    python: PathBuf,
    package: PathBuf,
}

impl TensorFlow {
    /// Finds the TensorFlow that the interpreter `python` imports; nothing is installed or changed.
    pub fn from_python(python: &Path) -> Result<Self> {
        Self::locate(python, &[])?.with_context(|| {
            format!(
                "{0} has no TensorFlow; install one with `{0} -m pip install tensorflow-cpu=={NEWEST}`, \
                 or leave the choice of Python to this command",
                python.display(),
            )
        })
    }

    /// Finds the TensorFlow of an interpreter with these flags, if it has one.
    pub(crate) fn locate(python: &Path, flags: &[&str]) -> Result<Option<Self>> {
        let located: Located = python::ask(python, flags, LOCATE)?;
        let Some(package) = located.package else { return Ok(None) };
        let version = located.version.with_context(|| {
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
            python: located.executable.unwrap_or_else(|| python.to_owned()),
            package,
        };
        for file in [
            "libtensorflow_framework.so.2",
            "libtensorflow_cc.so.2",
            "include/tensorflow/c/experimental/filesystem/filesystem_interface.h",
        ] {
            let file = tensorflow.package.join(file);
            if !file.is_file() {
                bail!(
                    "TensorFlow {} of {} is incomplete: {} is missing; reinstall it with pip",
                    tensorflow.version,
                    tensorflow.python.display(),
                    file.display()
                );
            }
        }
        Ok(Some(tensorflow))
    }

    /// Returns the TensorFlow release, such as `2.21.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns major and minor number of the release.
    pub fn major_minor(&self) -> (u32, u32) {
        python::major_minor(&self.version).unwrap_or_default()
    }

    /// Returns the Python interpreter that imports this TensorFlow, as an absolute path.
    pub fn python(&self) -> &Path {
        &self.python
    }

    /// Returns the directory for a C compiler's `-I`: it contains `tensorflow/c/...`.
    pub fn include_dir(&self) -> PathBuf {
        self.package.join("include")
    }

    /// Returns the directory with `libtensorflow_framework.so.2` and `libtensorflow_cc.so.2`.
    pub fn library_dir(&self) -> &Path {
        &self.package
    }

    /// Returns the directory of Python packages that TensorFlow is in. `import tensorflow` loads
    /// the plugins in its `tensorflow-plugins` directory.
    pub fn site_packages(&self) -> &Path {
        self.package.parent().unwrap_or(&self.package)
    }

    /// Returns a command that runs this Python with TensorFlow's start-up messages turned off.
    ///
    /// Settings in the caller's environment are kept.
    pub fn python_command(&self) -> Command {
        let mut command = Command::new(&self.python);
        for (name, value) in [
            // Only warnings and errors.
            ("TF_CPP_MIN_LOG_LEVEL", "2"),
            // oneDNN announces itself and makes results depend on the CPU.
            ("TF_ENABLE_ONEDNN_OPTS", "0"),
            ("PYTHONUNBUFFERED", "1"),
        ] {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        command
    }
}
