//! Puts a library of a test in front of a library of the system.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A directory in which a library that cargo has built for the running test has the name of another one, which it calls. Tests share
/// it.
#[derive(Debug)]
pub struct Front {
    directory: PathBuf,
    name: &'static str,
}

impl Front {
    /// Finds the library, and creates the directory if it is missing.
    ///
    /// # Panics
    /// Panics if the library is missing, or the directory cannot be created.
    #[must_use]
    pub fn new(built: &str, name: &'static str) -> Self {
        let test = std::env::current_exe().expect("a test is a file");
        let library = test.with_file_name(built);
        let directory = library.with_extension("front");
        assert!(library.exists(), "{} is missing", library.display());
        fs::create_dir_all(&directory)
            .unwrap_or_else(|error| panic!("cannot create {}: {error}", directory.display()));
        let link = symlink(Path::new("..").join(built), directory.join(name));
        assert!(link.is_ok() || directory.join(name).exists(), "{name}: {link:?}");
        Self { directory, name }
    }

    /// Changes an environment so that a process finds the library, and returns the path of the one behind it.
    ///
    /// # Panics
    /// Panics if the environment has no LD_LIBRARY_PATH, or there is no other library of this name.
    pub fn insert(&self, environment: &mut [(&'static str, OsString)]) -> OsString {
        let path = environment.iter_mut().find(|(name, _)| *name == "LD_LIBRARY_PATH");
        let (_, path) = path.expect("the driver has libraries");
        let system = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        let all = std::env::split_paths(path).chain([system.into(), "/usr/lib64".into()]);
        let real = all.map(|directory| directory.join(self.name)).find(|path| path.exists());
        let mut first = self.directory.as_os_str().to_owned();
        first.push(":");
        first.push(&*path);
        *path = first;
        real.expect("there is another library of this name").into_os_string()
    }
}
