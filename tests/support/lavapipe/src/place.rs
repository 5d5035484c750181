//! Creates directories below `target/`: once, completely, and by one process at a time.

use fs4::FileExt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Creates `target/NAME`, if this version is not there, and returns it. `fill` gets a new directory and its final path.
///
/// # Errors
/// The text says why it cannot be created.
pub fn place(
    name: &str,
    version: &str,
    fill: impl FnOnce(&Path, &Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3);
    let target = workspace.ok_or("the crate is outside of its workspace")?.join("target");
    let place = target.join(name);
    let mark = place.join("version");
    let is_there = || fs::read_to_string(&mark).is_ok_and(|found| found == version);
    if is_there() {
        return Ok(place);
    }
    let text = |error: std::io::Error| error.to_string();
    fs::create_dir_all(&target).map_err(text)?;
    // Another process may do the same now.
    let lock = fs::File::create(target.join(format!("{name}.lock"))).map_err(text)?;
    FileExt::lock(&lock).map_err(text)?;
    if is_there() {
        return Ok(place);
    }
    // Processes that have not waited only see a complete directory.
    let new = tempfile::Builder::new().prefix(name).tempdir_in(&target).map_err(text)?;
    fill(new.path(), &place)?;
    fs::write(new.path().join("version"), version).map_err(text)?;
    if place.exists() {
        let old = place.with_extension(format!("old-{}", std::process::id()));
        fs::rename(&place, &old).and_then(|()| fs::remove_dir_all(&old)).map_err(text)?;
    }
    fs::rename(new.keep(), &place).map_err(text)?;
    Ok(place)
}

/// Creates `target/NAME` with packages of Debian, which a script for bash downloads into its current directory. `finish` gets the
/// new directory and its final path.
///
/// # Errors
/// The text says why it cannot be created.
pub fn unpack(
    name: &str,
    version: &str,
    download: &str,
    finish: impl FnOnce(&Path, &Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let script = format!(
        "mkdir packages
         cd packages
         {download}
         for package in *.deb; do [ ! -e \"$package\" ] || dpkg-deb --extract \"$package\" ..; done
         cd ..
         rm -r packages"
    );
    place(name, version, |new, place| {
        let mut bash = Command::new("bash");
        bash.args(["-e", "-o", "pipefail", "-c", &script]).current_dir(new);
        let output = bash.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        finish(new, place)
    })
}
