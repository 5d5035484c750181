//! NVIDIA's own NVRTC, which needs no GPU: its wheel, installed below `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "nvidia-cuda-nvrtc-cu12==12.9.86";

/// The directory of packages with the real NVRTC, which is downloaded on first use (90 MB).
///
/// # Panics
/// If it cannot be installed; the text says what to do.
#[must_use]
pub fn nvrtc() -> PathBuf {
    install().unwrap_or_else(|error| {
        panic!(
            "NVRTC is missing and cannot be installed: {error}; python3 with `venv` has to install {PACKAGE} by pip"
        )
    })
}

fn install() -> Result<PathBuf, String> {
    let text = |error: std::io::Error| error.to_string();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("a workspace");
    let (target, place) = (workspace.join("target"), workspace.join("target/nvrtc"));
    let mark = place.join("version");
    if fs::read_to_string(&mark).is_ok_and(|version| version == PACKAGE) {
        return packages(&place);
    }
    fs::create_dir_all(&target).map_err(text)?;
    // Another process may do the same now: what is in place is always whole.
    let new = tempfile::Builder::new().prefix("nvrtc-").tempdir_in(&target).map_err(text)?;
    let steps =
        [vec!["python3", "-m", "venv", "."], vec!["bin/pip", "install", "--quiet", PACKAGE]];
    for step in steps {
        let output = Command::new(step[0]).args(&step[1..]).current_dir(new.path()).output();
        let output = output.map_err(|error| format!("cannot run {}: {error}", step[0]))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
    }
    fs::write(new.path().join("version"), PACKAGE).map_err(text)?;
    if place.exists() {
        fs::remove_dir_all(&place).map_err(text)?;
    }
    match fs::rename(new.keep(), &place) {
        Ok(()) => packages(&place),
        // Somebody else was faster.
        Err(_) if mark.exists() => packages(&place),
        Err(error) => Err(error.to_string()),
    }
}

/// `lib/python3.11/site-packages`, of whichever version.
fn packages(place: &Path) -> Result<PathBuf, String> {
    let versions = fs::read_dir(place.join("lib")).map_err(|error| error.to_string())?;
    let mut all = versions.flatten().map(|version| version.path().join("site-packages"));
    all.find(|packages| packages.exists()).ok_or_else(|| String::from("the wheel has no packages"))
}
