//! From `/` to a directory, one component after another.

use crate::permissions::TrustedUsers;
use crate::{FOLDER_MODE, PATH};
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// The most links on the way, as in Linux.
const LINKS: usize = 40;

/// The kind of the last component.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastComponent {
    /// A directory on the way to another.
    Parent,
    /// The directory itself, which the caller checks.
    Own,
}

/// Opens a directory, and creates what is missing. Checks each directory and link on the way.
pub(crate) fn open(path: &Path, trusted: TrustedUsers, last: LastComponent) -> io::Result<OwnedFd> {
    let mut steps = components(path);
    let (mut here, mut name) = root()?;
    let mut links = 0;
    loop {
        if last == LastComponent::Parent || !steps.is_empty() {
            trusted.check_parent(&name, &rustix::fs::fstat(&here)?)?;
        }
        let Some(step) = steps.pop_front() else { return Ok(here) };
        let next = name.join(&step);
        match folder(here.as_fd(), &step) {
            Ok(folder) => (here, name) = (folder, next),
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                let target = link(here.as_fd(), &step, &next, trusted)?;
                links += 1;
                if links > LINKS {
                    return Err(Errno::LOOP.into());
                }
                if target.is_absolute() {
                    (here, name) = root()?;
                }
                for step in components(&target).into_iter().rev() {
                    steps.push_front(step);
                }
            }
            Err(error) => return Err(named(error, &next)),
        }
    }
}

fn root() -> io::Result<(OwnedFd, PathBuf)> {
    Ok((rustix::fs::open("/", PATH, Mode::empty())?, PathBuf::from("/")))
}

fn components(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        // The kernel resolves it: a link has been followed by then.
        Component::ParentDir => Some(OsString::from("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    names.collect()
}

/// Opens a folder, which is created if it is missing. `NotADirectory` for a link.
pub(crate) fn folder(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    let open = || rustix::fs::openat(parent, name, PATH, Mode::empty());
    let folder = match open() {
        Err(Errno::NOENT) => {
            create(parent, name)?;
            open()
        }
        folder => folder,
    };
    match folder {
        Err(Errno::LOOP) => Err(Errno::NOTDIR.into()),
        folder => Ok(folder?),
    }
}

/// Creates a folder, unless it exists.
pub(crate) fn create(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    match rustix::fs::mkdirat(parent, name, FOLDER_MODE) {
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
        // The user's mask may take away more.
        Ok(()) => Ok(rustix::fs::chmodat(parent, name, FOLDER_MODE, AtFlags::empty())?),
    }
}

/// Returns where a link leads.
fn link(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    path: &Path,
    trusted: TrustedUsers,
) -> io::Result<PathBuf> {
    let target = match rustix::fs::readlinkat(parent, name, Vec::new()) {
        Err(Errno::INVAL) => return Err(named(Errno::NOTDIR.into(), path)),
        target => target?,
    };
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    trusted.check_owner(path, &stat)?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

fn named(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

/// Explains an error of opening a folder below which no link is followed.
pub(crate) fn not_a_folder(error: io::Error, path: &Path) -> io::Error {
    match error.kind() {
        ErrorKind::NotADirectory => io::Error::new(
            ErrorKind::PermissionDenied,
            format!(
                "`{}` is a link or a file; remove it: a directory with mode 0700 belongs there",
                path.display()
            ),
        ),
        _ => error,
    }
}
