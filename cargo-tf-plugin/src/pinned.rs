//! TensorFlow releases that are installed on first use.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::install::{Goal, Installation};
use crate::python::major_minor;
use crate::tensorflow::{CANDIDATES, MATRIX, NEWEST, OLDEST, TensorFlow};
use crate::workspace::target_or_cache;

/// Describes the installation of a TensorFlow release.
pub(crate) fn goal(version: &str) -> Goal<TensorFlow> {
    let mut requirements = vec![format!("{}=={version}", distribution())];
    if major_minor(version) == Some((2, 12)) {
        // By its metadata, this release accepts any newer jax, but jax since 0.4.31 does not accept
        // its NumPy: pip would find that out by downloading one after the other, 2 GB.
        requirements.push("jax<0.4.31".to_owned());
    }
    Goal {
        title: format!("TensorFlow {version}"),
        cost: "about 250 MB to download, 1.5 GB on disk",
        stamp: version.to_owned(),
        stamp_name: "tensorflow-complete",
        requirements,
        release: version.to_owned(),
        locate: |goal, python| {
            // Isolated: packages that the user has installed elsewhere do not count.
            let Some(tensorflow) = TensorFlow::locate(python, &["-I"])? else {
                bail!("{} has no TensorFlow", python.display());
            };
            if tensorflow.version() != goal.release {
                bail!("{} has TensorFlow {}", python.display(), tensorflow.version());
            }
            Ok(tensorflow)
        },
        first_import: Some("import tensorflow as tf; tf.keras.layers"),
        not_found: format!(
            "the package index has no TensorFlow {version} for this Python and system; name another version, such as \
             {NEWEST}"
        ),
    }
}

impl Installation<TensorFlow> {
    /// Creates the installation of release `version` in `directory`; nothing is installed yet.
    pub(crate) fn new(version: &str, directory: &Path) -> Result<Self> {
        let plain =
            version.chars().all(|c| c.is_ascii_digit() || c.is_ascii_lowercase() || c == '.');
        if !plain || version.split('.').any(str::is_empty) || major_minor(version).is_none() {
            bail!("`{version}` is not a TensorFlow version; write one such as {}", crate::NEWEST);
        }
        Self::of(goal(version), directory, version)
    }
}

impl TensorFlow {
    /// Installs the TensorFlow release `version` (such as [`NEWEST`]) into a virtual environment of the current
    /// workspace, `<target>/tf-venv/<version>`, unless it is there. Outside of any package, the environment is in the
    /// user's `~/.cache/tf-plugin/tf-venv/<version>` (or below `XDG_CACHE_HOME`).
    ///
    /// The first use downloads about 250 MB, which become 1.5 GB on disk, and shows progress on
    /// standard error. Later calls take milliseconds. Processes that call this at the same time
    /// wait for each other. An interrupted installation is repeated.
    ///
    /// `TF_PLUGIN_PYTHON` names the interpreter for the environment. Otherwise it is the first suitable one of
    /// `python3.11`, the other versions that the release supports, `python3` and `python` on `PATH`.
    ///
    /// A series such as `2.16` is the release of it that the project is tested with; that of a candidate is the one in
    /// [`CANDIDATES`].
    pub fn pinned(version: &str) -> Result<Self> {
        Self::pinned_in(version, &environments()?)
    }

    /// Installs a release as [`TensorFlow::pinned`] does, into `<directory>/<version>`.
    pub fn pinned_in(version: &str, directory: &Path) -> Result<Self> {
        let version = release(version)?;
        let installation = Installation::new(version, directory)?;
        if major_minor(version).is_some_and(|version| version < OLDEST) {
            bail!(
                "TensorFlow {version} cannot load these plugins; name {}.{} or newer, such as {NEWEST}",
                OLDEST.0,
                OLDEST.1
            );
        }
        installation.provide()
    }

    /// Returns the TensorFlow of the active virtual environment (`VIRTUAL_ENV`), or [`NEWEST`] from
    /// [`TensorFlow::pinned`] if that has none. A TensorFlow that cannot be used is an error.
    pub fn around() -> Result<Self> {
        let active = env::var_os("VIRTUAL_ENV").filter(|venv| !venv.is_empty());
        let active = active.map(|venv| Self::active(Path::new(&venv))).transpose()?;
        active.flatten().map_or_else(|| Self::pinned(NEWEST), Ok)
    }

    /// Returns the TensorFlow of a virtual environment, if it has one; an error if that cannot be used.
    fn active(venv: &Path) -> Result<Option<Self>> {
        let python = venv.join("bin/python");
        if !python.exists() {
            return Ok(None);
        }
        Self::locate(&python, &[]).with_context(|| {
            format!(
                "cannot use the TensorFlow of the active environment {} (VIRTUAL_ENV); name another with `--tf`, or \
                 deactivate the environment",
                venv.display()
            )
        })
    }
}

/// Returns the name under which the release without GPU support is published for this machine.
pub(crate) fn distribution() -> &'static str {
    if cfg!(target_arch = "x86_64") { "tensorflow-cpu" } else { "tensorflow" }
}

/// Returns the release for a series such as `2.21`: the one that the project is tested with. pip
/// would take it for 2.21.0, which not every series has.
fn release(version: &str) -> Result<&str> {
    let Some((_, minor)) = version.split_once('.') else {
        return Ok(version);
    };
    let is_series = !minor.is_empty() && minor.chars().all(|c| c.is_ascii_digit());
    if !is_series || major_minor(version).is_none_or(|series| series < OLDEST) {
        return Ok(version);
    }
    let mut known = MATRIX.iter().chain([&NEWEST]).chain(CANDIDATES).copied();
    let release = known.find(|known| major_minor(known) == major_minor(version));
    release.with_context(|| {
        format!(
            "`{version}` is a series of TensorFlow releases; name one in full, such as {NEWEST}"
        )
    })
}

/// Returns the directory of the releases that are installed on demand.
pub(crate) fn environments() -> Result<PathBuf> {
    Ok(target_or_cache()?.join("tf-venv"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::write_program;

    #[test]
    fn an_active_environment_with_an_unsuitable_tensorflow_is_an_error() {
        let venv = tempfile::tempdir().expect("a directory");
        assert_eq!(TensorFlow::active(venv.path()).expect("no Python"), None);
        let bin = venv.path().join("bin");
        std::fs::create_dir(&bin).expect("made");
        let python = |package: &str| {
            let located =
                format!(r#"{{"package": {package}, "version": "2.9.0", "executable": null}}"#);
            let script = format!("#!/bin/sh\necho '{located}'\n");
            write_program(&bin.join("python"), script.as_bytes()).expect("written");
            TensorFlow::active(venv.path())
        };
        assert_eq!(python("null").expect("no TensorFlow"), None);
        let error = format!("{:#}", python("\"/x\"").expect_err("too old"));
        assert!(error.contains("name another with `--tf`, or deactivate"), "{error}");
        assert!(error.contains("TensorFlow 2.9.0 of"), "{error}");
    }

    #[test]
    fn a_series_is_its_release_or_is_refused_before_anything_is_fetched() {
        for known in MATRIX.iter().chain([&NEWEST]).chain(CANDIDATES) {
            let (series, _) = known.rsplit_once('.').expect("a release has three numbers");
            assert_eq!(release(series).expect(series), *known);
        }
        for unchanged in [NEWEST, "2.9", "nonsense", "2."] {
            assert_eq!(release(unchanged).expect(unchanged), unchanged);
        }
        let nowhere = Path::new("/proc/nowhere");
        let error = TensorFlow::pinned_in("2.13", nowhere).expect_err("no release").to_string();
        assert!(error.contains("`2.13` is a series"), "{error}");
        assert!(error.contains(&format!("name one in full, such as {NEWEST}")), "{error}");
        let error = TensorFlow::pinned_in("2.9", nowhere).expect_err("too old").to_string();
        assert!(error.contains("cannot load these plugins; name 2.12 or newer"), "{error}");
    }
}
