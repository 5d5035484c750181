//! Directories below `target/` in which Debian's packages are unpacked.

use fs4::FileExt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory with packages.
pub(crate) struct Tree {
    /// Its name below `target/`.
    pub(crate) name: &'static str,
    /// Another one than that of what is there replaces it.
    pub(crate) version: &'static str,
    /// For bash: brings the packages into the directory `packages`, which is there.
    pub(crate) download: String,
}

impl Tree {
    /// Makes it, unless it is there. Returns where it is.
    ///
    /// # Errors
    /// What has kept it from being made.
    pub(crate) fn install(&self) -> Result<PathBuf, String> {
        let workspace =
            Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("a workspace");
        let target = workspace.join("target");
        let place = target.join(self.name);
        let mark = place.join("version");
        let is_there = || fs::read_to_string(&mark).is_ok_and(|version| version == self.version);
        if is_there() {
            return Ok(place);
        }
        let text = |error: std::io::Error| error.to_string();
        fs::create_dir_all(&target).map_err(text)?;
        // Another process may do the same now.
        let lock = fs::File::create(target.join(format!("{}.lock", self.name))).map_err(text)?;
        FileExt::lock(&lock).map_err(text)?;
        if is_there() {
            return Ok(place);
        }
        // What is in place is always whole, for those that have not waited.
        let new = tempfile::Builder::new().prefix(self.name).tempdir_in(&target).map_err(text)?;
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
            .current_dir(new.path())
            .output()
            .map_err(text)?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        // The file of the package names a library in `/usr`.
        let library = match libraries(new.path()) {
            inside if inside.starts_with(new.path()) => {
                place.join(inside.strip_prefix(new.path()).expect("it is inside"))
            }
            outside => outside,
        };
        let library = library.join("libvulkan_lvp.so");
        let library = library.to_str().ok_or("target/ has a name that is not UTF-8")?;
        let driver = format!(
            r#"{{"file_format_version": "1.0.0", "ICD": {{"library_path": "{library}", "api_version": "1.3.0"}}}}"#
        );
        fs::write(new.path().join("driver.json"), driver).map_err(text)?;
        fs::write(new.path().join("version"), self.version).map_err(text)?;
        if place.exists() {
            let old = place.with_extension(format!("old-{}", std::process::id()));
            fs::rename(&place, &old).and_then(|()| fs::remove_dir_all(&old)).map_err(text)?;
        }
        fs::rename(new.keep(), &place).map_err(text)?;
        Ok(place)
    }
}

/// The first of the paths that exists, below the directory or else in the system.
pub(crate) fn first_of(root: &Path, paths: &[&str]) -> PathBuf {
    let all = || [root, Path::new("/")].into_iter().flat_map(|at| paths.iter().map(|p| at.join(p)));
    all().find(|path| path.exists()).unwrap_or_else(|| root.join(paths[0]))
}

/// The directory of libraries, named after the architecture.
pub(crate) fn libraries(root: &Path) -> PathBuf {
    let name = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    first_of(root, &[&format!("{name}/libvulkan_lvp.so")]).with_file_name("")
}
