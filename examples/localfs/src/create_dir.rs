//! Creating directories.

use crate::name::LocalPath;
use crate::root::{Root, is_directory};
use rustix::fs::Mode;
use rustix::io::Errno;
use std::io;
use std::path::Path;
use tf_fs_plugin::{Error, Result};

/// Permissions of a new directory, before the process's mask.
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);

pub(crate) fn create_dir(place: &LocalPath<'_>) -> Result<()> {
    make(place.root, &place.path).map_err(|error| place.describe(error))
}

pub(crate) fn recursively_create_dir(place: &LocalPath<'_>) -> Result<()> {
    // Up to the nearest ancestor that exists or can be created, then down again.
    let mut missing = Vec::new();
    for path in place.path.ancestors().filter(|path| !path.as_os_str().is_empty()) {
        match make_or_find(place.root, path) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOENT) => missing.push(path),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOTDIR) => {
                return Err(not_a_directory(place, path));
            }
            Err(error) => return Err(place.describe(error)),
            Ok(()) => break,
        }
    }
    for path in missing.into_iter().rev() {
        make_or_find(place.root, path).map_err(|error| place.describe(error))?;
    }
    Ok(())
}

#[cold]
fn not_a_directory(place: &LocalPath<'_>, ancestor: &Path) -> Error {
    if ancestor == place.path {
        return Error::expected_directory(place.uri);
    }
    Error::expected_directory(ancestor.display()).context(place.uri)
}

fn make(root: &Root, path: &Path) -> io::Result<()> {
    let entry = root.entry(path)?.ok_or(Errno::EXIST)?;
    Ok(rustix::fs::mkdirat(&entry.dir, &*entry.name, DIRECTORY_MODE)?)
}

/// Creates a directory unless it exists; `ENOTDIR` if something else has the name.
fn make_or_find(root: &Root, path: &Path) -> io::Result<()> {
    match make(root, path) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::EXIST) => {
            match root.metadata(path) {
                Ok(stat) if is_directory(&stat) => Ok(()),
                // Also a link to nothing: its name is taken.
                Ok(_) => Err(Errno::NOTDIR.into()),
                Err(error) if Errno::from_io_error(&error) == Some(Errno::NOENT) => {
                    Err(Errno::NOTDIR.into())
                }
                Err(error) => Err(error),
            }
        }
        other => other,
    }
}
