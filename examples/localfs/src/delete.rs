//! Deletes files and directories. A symbolic link is deleted itself, never what it leads to.

use crate::error::describe;
use crate::list::for_each_entry;
use crate::name::LocalPath;
use crate::root::{is_directory, is_same_file};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use tf_fs_plugin::{DeleteRecursivelyError, Error, Result, Uri};

pub(crate) fn delete_file(place: &LocalPath<'_>) -> Result<()> {
    let entry = place.entry()?;
    rustix::fs::unlinkat(&entry.dir, &*entry.name, AtFlags::empty())
        .map_err(|error| place.describe(error))
}

pub(crate) fn delete_dir(place: &LocalPath<'_>) -> Result<()> {
    let entry = place.entry()?;
    rustix::fs::unlinkat(&entry.dir, &*entry.name, AtFlags::REMOVEDIR)
        .map_err(|error| place.describe(error))
}

/// Deletes as much as it can, and counts what is left.
///
/// Directories are entered by handle, never through a link. So nothing outside the tree is touched,
/// even if others change the tree meanwhile. Only two handles are open at a time, so the tree may
/// be deeper than the limit of open files, and its paths may be longer than the system allows.
pub(crate) fn delete_recursively(place: &LocalPath<'_>) -> Result<(), DeleteRecursivelyError> {
    let entry = place.entry()?;
    let remove =
        |flags| rustix::fs::unlinkat(&entry.dir, &*entry.name, flags).map_err(io::Error::from);
    let kind = entry.metadata().map_err(|error| place.describe(error))?;
    if !is_directory(&kind) {
        return remove(AtFlags::empty()).map_err(|error| DeleteRecursivelyError {
            error: place.describe(error),
            files: 1,
            dirs: 0,
        });
    }
    let directory = enter(&entry.dir, &entry.name).map_err(|error| place.describe(error))?;
    let mut sweep = TreeDeletion { uri: place.uri, files: 0, dirs: 0, error: None };
    sweep.sweep(directory);
    if sweep.error.is_none() {
        match remove(AtFlags::REMOVEDIR) {
            Ok(()) => return Ok(()),
            // Someone else was faster.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOENT) => return Ok(()),
            Err(error) => sweep.fail(error, place.uri),
        }
    }
    let error = sweep.error.unwrap_or_else(|| Error::expected_empty_directory(place.uri));
    Err(DeleteRecursivelyError { error, files: sweep.files, dirs: sweep.dirs + 1 })
}

/// Opens a directory in `parent`; `ELOOP` or `ENOTDIR` for a link.
fn enter(parent: impl AsFd, name: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

/// The rest of a tree.
struct TreeDeletion<'a> {
    uri: Uri<'a>,
    files: u64,
    dirs: u64,
    /// The first failure.
    error: Option<Error>,
}

/// A directory on the way down from the root of the tree.
struct Level {
    /// The directory itself, to recognise it on the way up.
    identity: Stat,
    /// Its name in the directory above.
    name: OsString,
    /// Directories in it that are still to be deleted.
    pending: Vec<OsString>,
    /// Whether something in it is left.
    stays: bool,
}

impl TreeDeletion<'_> {
    #[cold]
    fn fail(&mut self, error: impl Into<io::Error>, what: impl fmt::Display) {
        let error = describe(error.into(), what);
        self.error.get_or_insert(error);
    }

    #[cold]
    fn fail_in(&mut self, error: impl Into<io::Error>, name: &OsStr) {
        let what = format!("{} in {}", name.display(), self.uri);
        self.fail(error, what);
    }

    /// Deletes everything in a directory, which itself stays and is not counted.
    fn sweep(&mut self, root: OwnedFd) {
        let mut current = root;
        let mut levels = match self.empty(&current, OsString::new()) {
            Ok(level) => vec![level],
            Err(error) => return self.fail(error, self.uri),
        };
        while let Some(level) = levels.last_mut() {
            if let Some(name) = level.pending.pop() {
                match self.descend(&current, name) {
                    Ok(None) => {}
                    Ok(Some((directory, below))) => {
                        current = directory;
                        levels.push(below);
                    }
                    Err(Left) => level.stays = true,
                }
                continue;
            }
            // Everything below is done: go up, and delete this directory from the one above.
            let Some(done) = levels.pop() else { break };
            let Some(parent) = levels.last_mut() else { break };
            match ascend(&current, &parent.identity) {
                Ok(above) => current = above,
                Err(error) => {
                    // Someone moved the directory: nothing above can be reached safely.
                    let pending: usize = levels.iter().map(|level| level.pending.len()).sum();
                    self.dirs += (levels.len() + pending) as u64;
                    return self.fail_in(error, &done.name);
                }
            }
            if done.stays {
                self.dirs += 1;
                parent.stays = true;
            } else if let Err(Left) = self.remove(&current, &done.name) {
                parent.stays = true;
            }
        }
    }

    /// Enters a directory and deletes its entries except directories. `None` if it is gone already.
    fn descend(
        &mut self,
        parent: &OwnedFd,
        name: OsString,
    ) -> Result<Option<(OwnedFd, Level)>, Left> {
        let entered = enter(parent, name.as_ref()).and_then(|directory| {
            let level = self.empty(&directory, name.clone())?;
            Ok((directory, level))
        });
        match entered {
            Ok(entered) => Ok(Some(entered)),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NOENT) => Ok(None),
                // Someone put a file or a link in its place.
                Some(Errno::NOTDIR | Errno::LOOP) => {
                    match rustix::fs::unlinkat(parent, &*name, AtFlags::empty()) {
                        Ok(()) | Err(Errno::NOENT) => Ok(None),
                        Err(error) => {
                            self.files += 1;
                            self.fail_in(error, &name);
                            Err(Left)
                        }
                    }
                }
                _ => {
                    self.dirs += 1;
                    self.fail_in(error, &name);
                    Err(Left)
                }
            },
        }
    }

    /// Deletes an empty directory.
    fn remove(&mut self, parent: &OwnedFd, name: &OsStr) -> Result<(), Left> {
        match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => {
                self.dirs += 1;
                self.fail_in(error, name);
                Err(Left)
            }
        }
    }

    /// Deletes the entries of a directory that are not directories, and lists the others.
    fn empty(&mut self, directory: &OwnedFd, name: OsString) -> io::Result<Level> {
        let identity = rustix::fs::fstat(directory)?;
        let mut level = Level { identity, name, pending: Vec::new(), stays: false };
        let mut failures: Vec<(OsString, Errno)> = Vec::new();
        let listed = for_each_entry(directory, |entry, kind| {
            let owned = || OsString::from_vec(entry.to_vec());
            if kind == FileType::Directory {
                level.pending.push(owned());
                return;
            }
            match rustix::fs::unlinkat(directory, entry, AtFlags::empty()) {
                // Someone else was faster.
                Ok(()) | Err(Errno::NOENT) => {}
                // A filesystem that does not report kinds.
                Err(Errno::ISDIR) => level.pending.push(owned()),
                Err(error) => failures.push((owned(), error)),
            }
        });
        self.files += failures.len() as u64;
        level.stays = !failures.is_empty() || listed.is_err();
        if let Some((name, error)) = failures.into_iter().next() {
            self.fail_in(error, &name);
        }
        if let Err(error) = listed {
            self.fail_in(error, &level.name);
        }
        Ok(level)
    }
}

/// Something is left, and was counted.
struct Left;

/// Opens the directory above, if it is still the one that it was.
fn ascend(directory: impl AsFd, expected: &Stat) -> io::Result<OwnedFd> {
    let above = enter(directory, Path::new(".."))?;
    if is_same_file(&rustix::fs::fstat(&above)?, expected) {
        Ok(above)
    } else {
        Err(io::Error::other("someone moved the directory while it was being deleted; try again"))
    }
}
