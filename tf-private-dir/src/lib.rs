//! A directory that only this user can change, held open: for files that a later process trusts.
//!
//! A path is resolved at each use, and whoever may write to one of its directories decides where it leads. [`PrivateDir`] resolves it
//! once, checks each directory on the way, and then opens files relative to the open directory, without following links. Each file
//! is checked too, once it is open.
//!
//! | | Accepted |
//! |---|---|
//! | a directory on the way | owned by root or this user; writable by others only if sticky, as `/tmp` is |
//! | a link on the way | owned by root or this user |
//! | the directory itself, folders in it | owned by this user; others have no more access than [`OtherUsers`] allows |
//! | a file | a regular file of this user, which nobody else may write to |
//!
//! The owner of `/` counts as root: in a user namespace that is often `nobody`. A group may write to a directory on the way if it is that
//! of root, or has the number of the user: many systems give each user such a group, trusted only member the user is.

mod path_walk;
mod permissions;

use permissions::TrustedUsers;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The access of other users to a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherUsers {
    /// Nothing.
    NoAccess,
    /// Read files and list them.
    Read,
}

/// An open directory that only this user can change. It stays the same if its name changes.
#[derive(Debug)]
pub struct PrivateDir {
    fd: OwnedFd,
    /// Its name, for messages and for [`is_in_place`](Self::is_in_place).
    path: PathBuf,
    trusted: TrustedUsers,
    others: OtherUsers,
}

/// A file or folder in a directory.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: OsString,
    /// Whether it is a folder; a link to one is not.
    pub is_folder: bool,
    /// Whether it is a regular file.
    pub is_file: bool,
    /// The number that it keeps when it is renamed.
    pub inode: u64,
    /// Its bytes.
    pub len: u64,
    /// When it was modified.
    pub modified: SystemTime,
}

const PATH: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FOLDER_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Returns a name for a new file that no other process uses, in other containers and on other machines either.
pub fn unique_name() -> String {
    static FILES: AtomicU64 = AtomicU64::new(0);
    // A forked child has the random keys and the counter of its parent, but not its number.
    let random = RandomState::new().hash_one((std::process::id(), SystemTime::now()));
    format!("{random:016x}-{}", FILES.fetch_add(1, Ordering::Relaxed))
}

impl PrivateDir {
    /// Opens the directory, and creates what is missing of its path with mode 0700.
    ///
    /// # Errors
    /// `PermissionDenied`, which names the directory and the reason, if somebody else can change it; and those of the disk.
    pub fn open(path: &Path, others: OtherUsers) -> io::Result<Self> {
        Self::open_as(path, others, TrustedUsers::this_user()?)
    }

    fn open_as(path: &Path, others: OtherUsers, trusted: TrustedUsers) -> io::Result<Self> {
        let fd = path_walk::open(path, trusted, path_walk::LastComponent::Own)?;
        Self::checked(fd, path.to_owned(), trusted, others)
    }

    /// Opens the directory `name` in `parent`, as [`open`](Self::open) does, unless it is a link.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(parent: &Path, name: &str, others: OtherUsers) -> io::Result<Self> {
        let trusted = TrustedUsers::this_user()?;
        let fd = path_walk::open(parent, trusted, path_walk::LastComponent::Parent)?;
        let path = parent.join(name);
        let fd = path_walk::folder(fd.as_fd(), name.as_ref())
            .map_err(|error| path_walk::not_a_folder(error, &path))?;
        Self::checked(fd, path, trusted, others)
    }

    fn checked(
        fd: OwnedFd,
        path: PathBuf,
        trusted: TrustedUsers,
        others: OtherUsers,
    ) -> io::Result<Self> {
        trusted.check_private(&path, &rustix::fs::fstat(&fd)?, others)?;
        Ok(Self { fd, path, trusted, others })
    }

    /// Returns the path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether its path still leads to it: somebody may have renamed or deleted it.
    pub fn is_in_place(&self) -> bool {
        let identity = |stat: Stat| (stat.st_dev, stat.st_ino);
        let opened = rustix::fs::fstat(&self.fd).map(identity);
        opened.is_ok() && opened == rustix::fs::stat(&self.path).map(identity)
    }

    /// Opens a folder in it.
    ///
    /// # Errors
    /// `PermissionDenied` for one that somebody else can change, and those of the disk.
    pub fn folder(&self, name: &str) -> io::Result<Self> {
        debug_assert!(is_one_component(name));
        let path = self.path.join(name);
        let fd = rustix::fs::openat(&self.fd, name, PATH, Mode::empty())
            .map_err(|error| path_walk::not_a_folder(error.into(), &path))?;
        Self::checked(fd, path, self.trusted, self.others)
    }

    /// Opens a folder in it, and creates it if it is missing.
    ///
    /// # Errors
    /// As [`folder`](Self::folder).
    pub fn create_folder(&self, name: &str) -> io::Result<Self> {
        match self.folder(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                path_walk::create(self.fd.as_fd(), name.as_ref())?;
                self.folder(name)
            }
            folder => folder,
        }
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// `InvalidData` for what is not a regular file of this user, or one that others may write to; and those of the disk.
    pub fn read(&self, name: &str) -> io::Result<File> {
        // Without `NONBLOCK` a pipe waits for a writer.
        self.file(name, OFlags::RDONLY | OFlags::NONBLOCK)
    }

    /// Creates a file, for writing.
    ///
    /// # Errors
    /// `AlreadyExists` if there is one, and those of the disk.
    pub fn create(&self, name: &str) -> io::Result<File> {
        self.file(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    /// Opens a file for reading and writing, and creates it if it is missing.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn update(&self, name: &str) -> io::Result<File> {
        self.file(name, OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK)
    }

    fn file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        debug_assert!(is_one_component(name));
        let flags = flags | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(&self.fd, name, flags, FILE_MODE);
        let fd = match rustix::io::retry_on_intr(open) {
            Err(Errno::LOOP) => Err(io::Error::new(ErrorKind::InvalidData, "it is a link")),
            fd => Ok(fd?),
        }?;
        self.trusted.check_file(&rustix::fs::fstat(&fd)?)?;
        Ok(fd.into())
    }

    /// Writes a file at once: others see a whole file or the one before.
    ///
    /// # Errors
    /// Those of `write` and of the disk. Then the one before is still there.
    pub fn replace(
        &self,
        name: &str,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        // With its suffix, by which the caller finds what a killed process left.
        let new = format!("{}-{name}", unique_name());
        let mut file = self.create(&new)?;
        let outcome = write(&mut file).and_then(|()| self.rename(&new, self, name));
        if outcome.is_err() {
            let _ = self.remove(&new);
        }
        outcome
    }

    /// Renames a file to `new` in the folder `to`, where it replaces a file of that name.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn rename(&self, name: &str, to: &Self, new: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, name, &to.fd, new)?)
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name.as_ref(), AtFlags::empty())?)
    }

    /// Returns what is in it. Leaves out what disappears meanwhile.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut all = Vec::new();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for entry in Dir::new(rustix::fs::openat(&self.fd, ".", flags, Mode::empty())?)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(stat) = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let kind = FileType::from_raw_mode(stat.st_mode);
            all.push(Entry {
                name: OsString::from_vec(name.to_bytes().to_vec()),
                is_folder: kind.is_dir(),
                is_file: kind.is_file(),
                inode: stat.st_ino,
                len: u64::try_from(stat.st_size).unwrap_or(0),
                modified: modified(&stat),
            });
        }
        Ok(all)
    }
}

fn is_one_component(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains('/')
}

#[allow(clippy::unnecessary_cast, reason = "the types differ by platform")]
fn modified(stat: &Stat) -> SystemTime {
    let seconds = u64::try_from(stat.st_mtime as i64).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::new(seconds, stat.st_mtime_nsec as u32)
}

#[cfg(test)]
mod tests;
