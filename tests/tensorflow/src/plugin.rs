//! Plugins as an author builds them.

#[cfg(feature = "optimised")]
use cargo_tf_plugin::workspace::Workspace;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
#[cfg(not(feature = "optimised"))]
use std::env::{
    self,
    consts::{DLL_PREFIX, DLL_SUFFIX},
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A plugin's shared library.
#[derive(Debug)]
pub struct Plugin {
    path: PathBuf,
    digest: String,
}

impl Plugin {
    /// The plugin of a package of this workspace: the library that cargo has built for this test, in the profile `dev`.
    /// With the feature `optimised`, the one that users get, built on the first call in a process.
    pub fn of(package: &'static str) -> &'static Self {
        static BUILT: Mutex<BTreeMap<&str, &'static Plugin>> = Mutex::new(BTreeMap::new());
        let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
        built.entry(package).or_insert_with(|| {
            let path = build(package);
            let digest = digest(&path);
            Box::leak(Box::new(Self { path, digest }))
        })
    }

    /// The file.
    ///
    /// # Panics
    /// When it is another one than was built: every TensorFlow release gets the same.
    pub fn path(&self) -> &Path {
        assert_eq!(
            digest(&self.path),
            self.digest,
            "{} has changed during the tests",
            self.path.display()
        );
        &self.path
    }

    /// The SHA-256 of the file, in hexadecimal.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The file's content.
    pub fn read(&self) -> Vec<u8> {
        fs::read(self.path()).expect("a built library can be read")
    }

    /// Puts a copy into a directory and returns the copy's path.
    pub fn copy_to(&self, directory: &Path) -> PathBuf {
        let copy = directory.join(self.path.file_name().expect("a library has a name"));
        fs::copy(self.path(), &copy).expect("a library can be copied");
        copy
    }
}

fn digest(path: &Path) -> String {
    let content =
        fs::read(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The library for users. It takes minutes of optimisation.
#[cfg(feature = "optimised")]
fn build(package: &str) -> PathBuf {
    let workspace = Workspace::current().expect("tests run in the workspace");
    workspace.build_plugin(package).unwrap_or_else(|error| panic!("{error:#}"))
}

/// The library next to this test: cargo puts those of a test's dependencies there.
#[cfg(not(feature = "optimised"))]
fn build(package: &str) -> PathBuf {
    let test = env::current_exe().expect("a test is a file");
    let name = package.replace('-', "_");
    let library = test.with_file_name(format!("{DLL_PREFIX}{name}{DLL_SUFFIX}"));
    assert!(
        library.exists(),
        "{} does not exist; name `{package}` in [dependencies] of tests/tensorflow/Cargo.toml",
        library.display()
    );
    library
}
