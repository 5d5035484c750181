//! Directories below `target/` in which Debian's packages are unpacked.

use crate::place::place;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory with packages.
pub(crate) struct Tree {
    /// Its name below `target/`.
    pub(crate) name: &'static str,
    /// A directory with another version is replaced.
    pub(crate) version: &'static str,
    /// A script for bash that downloads the packages into the current directory.
    pub(crate) download: String,
}

impl Tree {
    /// Creates the directory, unless it is there. Returns its path.
    ///
    /// # Errors
    /// The text says why it cannot be created.
    pub(crate) fn install(&self) -> Result<PathBuf, String> {
        place(self.name, self.version, |new, place| self.fill(new, place))
    }

    /// Unpacks the packages into a new directory, which then becomes `place`.
    fn fill(&self, new: &Path, place: &Path) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        let script = format!(
            "mkdir packages
             cd packages
             {}
             for package in *.deb; do [ ! -e \"$package\" ] || dpkg-deb --extract \"$package\" ..; done
             cd ..
             rm -r packages",
            self.download
        );
        let output = Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", &script])
            .current_dir(new)
            .output()
            .map_err(text)?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        // The package's own file names a library in `/usr`.
        let library = libraries(new);
        let library =
            library.strip_prefix(new).map_or(library.clone(), |inside| place.join(inside));
        let library = library.join("libvulkan_lvp.so");
        let library = library.to_str().ok_or("target/ has a name that is not UTF-8")?;
        let driver = format!(
            r#"{{"file_format_version": "1.0.0", "ICD": {{"library_path": "{library}", "api_version": "1.3.0"}}}}"#
        );
        fs::write(new.join("driver.json"), driver).map_err(text)
    }
}

/// Returns the first of the paths that exists, below the directory or else in the system.
pub(crate) fn first_of(root: &Path, paths: &[&str]) -> PathBuf {
    let all = || [root, Path::new("/")].into_iter().flat_map(|at| paths.iter().map(|p| at.join(p)));
    all().find(|path| path.exists()).unwrap_or_else(|| root.join(paths[0]))
}

/// Returns the directory of libraries, which is named after the architecture.
pub(crate) fn libraries(root: &Path) -> PathBuf {
    let name = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    first_of(root, &[&format!("{name}/libvulkan_lvp.so")]).with_file_name("")
}
