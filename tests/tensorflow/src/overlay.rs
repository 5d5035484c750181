//! A separate Python environment that shares the packages of another.

use cargo_tf_plugin::TensorFlow;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The directory that TensorFlow scans at import.
const PLUGINS: &str = "tensorflow-plugins";

/// A virtual environment whose `site-packages` holds links to the packages of a TensorFlow release, and
/// its own `tensorflow-plugins` directory. Dropping the value removes it.
#[derive(Debug)]
pub struct Overlay {
    root: TempDir,
    /// `site-packages`, from the root on.
    site_packages: PathBuf,
    python: PathBuf,
}

impl Overlay {
    /// Makes one; it takes milliseconds.
    pub fn new(tensorflow: &TensorFlow) -> Self {
        let root = tempfile::tempdir().expect("a scratch directory");
        let bin = tensorflow.python().parent().expect("an interpreter is in a directory");
        let original = bin.parent().expect("which is in an environment");
        let site_packages = tensorflow
            .site_packages()
            .strip_prefix(original)
            .expect("site-packages are in the environment")
            .to_owned();

        // Python is in an environment if `pyvenv.cfg` is next to the directory that it was started
        // from; where links lead does not matter.
        fs::copy(original.join("pyvenv.cfg"), root.path().join("pyvenv.cfg")).expect("pyvenv.cfg");
        let python = root.path().join("bin/python");
        fs::create_dir(root.path().join("bin")).expect("bin");
        let interpreter = fs::canonicalize(tensorflow.python()).expect("the interpreter exists");
        symlink(interpreter, &python).expect("python");

        let packages = root.path().join(&site_packages);
        fs::create_dir_all(packages.join(PLUGINS)).expect("site-packages");
        let overlay = Self { root, site_packages, python };
        overlay.link_missing(tensorflow.site_packages());
        overlay
    }

    /// The interpreter.
    pub fn python(&self) -> &Path {
        &self.python
    }

    /// `site-packages/tensorflow-plugins`.
    pub fn plugins(&self) -> PathBuf {
        self.root.path().join(&self.site_packages).join(PLUGINS)
    }

    /// Links the packages of another directory that are not here yet.
    pub fn link_missing(&self, packages: &Path) {
        for entry in fs::read_dir(packages).expect("the packages") {
            let entry = entry.expect("a package");
            let link = self.root.path().join(&self.site_packages).join(entry.file_name());
            if link.symlink_metadata().is_err() {
                symlink(entry.path(), link).expect("a package");
            }
        }
    }

    /// A second name of `site-packages`, by way of the link `lib64 -> lib` that some systems have.
    pub fn second_name(&self) -> PathBuf {
        symlink("lib", self.root.path().join("lib64")).expect("a link");
        let below = self.site_packages.strip_prefix("lib").expect("site-packages are in lib");
        self.root.path().join("lib64").join(below)
    }
}
