//! Installs NVIDIA's own NVRTC, which needs no GPU, from its wheel below `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "nvidia-cuda-nvrtc-cu12==12.9.86";

/// Returns the directory of packages with the real NVRTC, which is downloaded on first use (90 MB).
///
/// # Panics
/// Panics if it cannot be installed; the text says what to do.
#[must_use]
pub fn nvrtc() -> PathBuf {
    install().unwrap_or_else(|error| {
        panic!(
            "NVRTC is missing and cannot be installed: {error}; python3 with `venv` has to install {PACKAGE} by pip"
        )
    })
}

fn install() -> Result<PathBuf, String> {
    let place = lavapipe::place("nvrtc", PACKAGE, |new, _| {
        let steps =
            [vec!["python3", "-m", "venv", "."], vec!["bin/pip", "install", "--quiet", PACKAGE]];
        for step in steps {
            let output = Command::new(step[0]).args(&step[1..]).current_dir(new).output();
            let output = output.map_err(|error| format!("cannot run {}: {error}", step[0]))?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned());
            }
        }
        Ok(())
    })?;
    packages(&place)
}

/// Returns `lib/python3.11/site-packages`, for any version of Python.
fn packages(place: &Path) -> Result<PathBuf, String> {
    let versions = fs::read_dir(place.join("lib")).map_err(|error| error.to_string())?;
    let mut all = versions.flatten().map(|version| version.path().join("site-packages"));
    all.find(|packages| packages.exists()).ok_or_else(|| String::from("the wheel has no packages"))
}
