//! Installs the servers below `target/`.

use lavapipe::{place, unpack};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The packages of PyPI, at fixed versions: others may answer in another way.
const WSGIDAV: &str = "wsgidav==4.4.0 cheroot==11.1.2";
const HUGGING_FACE: &str = "huggingface_hub==2.4.0";
const PYFTPDLIB: &str = "pyftpdlib==2.2.0 pyOpenSSL==26.4.0 pyasyncore==1.0.5 pyasynchat==1.0.5";
const HDFS: &str = "hdfs==2.7.3";

/// Returns the directory into which these packages of Debian are unpacked, with those that they need and this machine lacks.
///
/// # Panics
/// If they cannot be downloaded; the text says what to do.
pub(crate) fn debian(packages: &'static str) -> &'static Path {
    static PLACES: Mutex<Option<HashMap<&str, &Path>>> = Mutex::new(None);
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    places.get_or_insert_default().entry(packages).or_insert_with(|| {
        let name = packages.split(' ').next().unwrap_or_default();
        // The first name may be installed here without its files being where we look.
        let script = format!(
            "names=$(apt-get --simulate --no-install-recommends install {packages} | sed -n 's/^Inst \\([^ ]*\\) (.*/\\1/p')
             apt-get download -qq $(printf '%s\\n' $names {packages} | sort -u)"
        );
        let filled = unpack(&format!("dav-{name}"), "1", &script, |_, _| Ok(()));
        let help = format!("cannot fetch {packages} of Debian; run `apt-get update`, and look at the network");
        Box::leak(filled.unwrap_or_else(|error| panic!("{help}: {error}")).into_boxed_path())
    })
}

/// Returns the virtual environment with wsgidav.
///
/// # Panics
/// If it cannot be installed; the text says what to do.
pub(crate) fn wsgidav() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| python("wsgidav", WSGIDAV))
}

/// Returns the virtual environment with pyftpdlib.
///
/// # Panics
/// If it cannot be installed; the text says what to do.
pub(crate) fn pyftpdlib() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| python("pyftpdlib", PYFTPDLIB))
}

/// Returns the virtual environment with Hugging Face's client of its Hub.
///
/// # Panics
/// If it cannot be installed; the text says what to do.
pub(crate) fn hugging_face() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| python("huggingface", HUGGING_FACE))
}

/// Returns the virtual environment with a client of WebHDFS.
///
/// # Panics
/// If it cannot be installed; the text says what to do.
pub(crate) fn hdfs() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| python("hdfs", HDFS))
}

fn python(name: &str, packages: &str) -> PathBuf {
    // An environment names its own place in its scripts only, which are not used.
    let script = format!("python3 -m venv .; bin/python -m pip install --quiet {packages}");
    let filled = place(&format!("dav-{name}"), packages, |new, _| run(&script, new));
    filled.unwrap_or_else(|error| {
        panic!("cannot install {name}; it needs python3 with venv, and PyPI: {error}")
    })
}

/// Returns the directory of libraries in unpacked packages, which is named after the architecture.
pub(crate) fn libraries(root: &Path) -> PathBuf {
    root.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH))
}

pub(crate) fn run(script: &str, directory: &Path) -> Result<(), String> {
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(directory)
        .output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
