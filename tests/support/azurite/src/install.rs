//! Installs Azurite by npm, at the versions of `package-lock.json`.
//!
//! `overrides` in `package.json` replaces three packages by the small `ms`: Azurite uses them for telemetry and SQL alone, and
//! with what they depend on they are more than half of all files. It loads the first even without telemetry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program that runs it: Node.js 20 or newer.
pub(crate) const NODE: &str = "node";
const NPM: &str = "npm";

const FILES: [(&str, &str); 3] = [
    ("package.json", include_str!("../package.json")),
    ("package-lock.json", include_str!("../package-lock.json")),
    ("launch.js", include_str!("../launch.js")),
];

/// Returns the directory with Azurite in it, below `target/`.
pub(crate) fn installed() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| install().unwrap_or_else(|error| panic!("{error}")))
}

fn install() -> Result<PathBuf, String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("a workspace");
    let target = workspace.join("target");
    let place = target.join("azurite");
    let is_current = FILES
        .iter()
        .all(|(name, text)| fs::read_to_string(place.join(name)).is_ok_and(|found| found == *text));
    if is_current {
        return Ok(place);
    }
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("Azurite: {what}: {error}");
    fs::create_dir_all(&target).map_err(|error| failed("target/", &error))?;
    // Another process may do the same now: the final directory is always complete.
    let new = tempfile::Builder::new().prefix("azurite-").tempdir_in(&target);
    let new = new.map_err(|error| failed("a directory in target/", &error))?;
    for (name, text) in FILES {
        fs::write(new.path().join(name), text).map_err(|error| failed(name, &error))?;
    }
    let output = Command::new(NPM)
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"])
        .current_dir(new.path())
        .output()
        .map_err(|error| {
            failed(
                "npm does not run; install Node.js 20 or newer, with npm, and put both on PATH",
                &error,
            )
        })?;
    if !output.status.success() {
        return Err(failed("npm ci failed", &String::from_utf8_lossy(&output.stderr)));
    }
    let old = place.with_extension(format!("old-{}", std::process::id()));
    if place.exists() && fs::rename(&place, &old).is_ok() {
        let _ = fs::remove_dir_all(&old);
    }
    match fs::rename(new.keep(), &place) {
        Ok(()) => Ok(place),
        // Somebody else was faster.
        Err(_) if place.join("launch.js").exists() => Ok(place),
        Err(error) => Err(failed("target/azurite", &error)),
    }
}
