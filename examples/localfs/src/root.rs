//! The directory where paths begin, and the only ways to access files below it.

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};
use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The directory that `local:///` represents.
#[derive(Debug)]
pub(crate) enum Root {
    /// The machine's own root. Paths are absolute.
    Machine,
    /// A directory that nothing leaves. Paths are relative, `.` being the directory itself.
    Confined {
        /// The directory that was opened; it stays the same if its name changes.
        dir: Dir,
        /// Its name, for messages.
        path: PathBuf,
    },
}

/// The use of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading.
    Read,
    /// Writing to an empty file, which is created if need be.
    Write,
    /// Writing to the end of a file, which is created if need be.
    Append,
    /// Listing a directory, or making its entries durable.
    Directory,
    /// A handle alone: for properties, or as the start of other paths.
    Handle,
}

impl Access {
    fn flags(self) -> OFlags {
        let flags = match self {
            Self::Read => OFlags::RDONLY,
            Self::Write => OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC,
            Self::Append => OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND,
            Self::Directory => OFlags::RDONLY | OFlags::DIRECTORY,
            Self::Handle => OFlags::PATH,
        };
        flags | OFlags::CLOEXEC
    }

    fn options(self) -> OpenOptions {
        let mut options = OpenOptions::new();
        match self {
            Self::Read => options.read(true),
            Self::Write => options.write(true).create(true).truncate(true),
            Self::Append => options.append(true).create(true),
            Self::Directory | Self::Handle => {
                options.read(true).custom_flags(OFlags::PATH.bits().cast_signed())
            }
        };
        options
    }
}

/// Permissions of a new file, before the process's mask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);

impl Root {
    /// Confines everything to the directory `path`, which must be absolute and exist.
    pub(crate) fn confined(path: &Path) -> io::Result<Self> {
        let dir = Dir::open_ambient_dir(path, ambient_authority())?;
        Ok(Self::Confined { dir, path: path.to_owned() })
    }

    /// Opens what `path` names. Symbolic links are followed while they stay inside the root.
    pub(crate) fn open(&self, path: &Path, access: Access) -> io::Result<OwnedFd> {
        match self {
            Self::Machine => {
                let open = || rustix::fs::openat(CWD, path, access.flags(), FILE_MODE);
                Ok(retry_on_intr(open)?)
            }
            // `cap-std` without `openat2` follows no link to a directory that is to be read.
            Self::Confined { .. } if access == Access::Directory => {
                let handle = self.open(path, Access::Handle)?;
                Ok(rustix::fs::openat(handle, ".", access.flags(), Mode::empty())?)
            }
            Self::Confined { dir, .. } => loop {
                match dir.open_with(path, &access.options()) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => return Ok(other?.into_std().into()),
                }
            },
        }
    }

    /// Returns the properties of what `path` names, links followed.
    pub(crate) fn metadata(&self, path: &Path) -> io::Result<Stat> {
        match self {
            Self::Machine => Ok(rustix::fs::stat(path)?),
            Self::Confined { .. } => Ok(rustix::fs::fstat(self.open(path, Access::Handle)?)?),
        }
    }

    /// Returns the entry that `path` names in its directory: links on the way are followed, one at
    /// the end is not. `None` for the root, which is in no directory.
    pub(crate) fn entry<'p>(&self, path: &'p Path) -> io::Result<Option<Entry<'_, 'p>>> {
        let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else {
            return Ok(None);
        };
        Ok(Some(match self {
            // The system call walks the whole path.
            Self::Machine => Entry { dir: Handle::Borrowed(CWD), name: path.into() },
            Self::Confined { dir, .. } => {
                let dir = if parent.as_os_str().is_empty() {
                    Handle::Borrowed(dir.as_fd())
                } else {
                    let parent = self.open(parent, Access::Handle)?;
                    if !is_directory(&rustix::fs::fstat(&parent)?) {
                        return Err(Errno::NOTDIR.into());
                    }
                    Handle::Owned(parent)
                };
                Entry { dir, name: Cow::Borrowed(name.as_ref()) }
            }
        }))
    }
}

/// A name in a directory, for the system calls that act on names.
#[derive(Debug)]
pub(crate) struct Entry<'r, 'p> {
    pub(crate) dir: Handle<'r>,
    /// Relative to `dir`; one component if there is a root to stay in.
    pub(crate) name: Cow<'p, Path>,
}

impl Entry<'_, '_> {
    /// Returns the properties of the entry itself, also if it is a symbolic link.
    pub(crate) fn metadata(&self) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.dir, &*self.name, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

/// A directory that names are relative to.
#[derive(Debug)]
pub(crate) enum Handle<'r> {
    Borrowed(BorrowedFd<'r>),
    Owned(OwnedFd),
}

impl AsFd for Handle<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Borrowed(fd) => fd.as_fd(),
            Self::Owned(fd) => fd.as_fd(),
        }
    }
}

pub(crate) fn is_directory(stat: &Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir()
}

/// Returns whether both are one file.
pub(crate) fn is_same_file(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}
