//! Directories below `target/` in which Debian's packages are unpacked.

use crate::place::unpack;
use std::fs;
use std::path::{Path, PathBuf};

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
        unpack(self.name, self.version, &self.download, |new, place| {
            // The package's own file names a library in `/usr`.
            let library = libraries(new);
            let library =
                library.strip_prefix(new).map_or(library.clone(), |inside| place.join(inside));
            let library = library.join("libvulkan_lvp.so");
            let library = library.to_str().ok_or("target/ has a name that is not UTF-8")?;
            let driver = format!(
                r#"{{"file_format_version": "1.0.0", "ICD": {{"library_path": "{library}", "api_version": "1.3.0"}}}}"#
            );
            fs::write(new.join("driver.json"), driver).map_err(|error| error.to_string())
        })
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
