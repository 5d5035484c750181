//! From TensorFlow's names to paths.

use crate::error::describe;
use crate::root::{Access, Entry, Root};
use rustix::fs::Stat;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tf_fs_plugin::{Error, Result, Uri};

/// The longest path in bytes that the system's calls take: `PATH_MAX` without its NUL.
const MAX_PATH: usize = 4095;

/// A name from TensorFlow with its path.
#[derive(Debug)]
pub(crate) struct LocalPath<'a> {
    pub(crate) root: &'a Root,
    /// In the form that [`Root`] expects.
    pub(crate) path: Cow<'a, Path>,
    /// For messages.
    pub(crate) uri: Uri<'a>,
}

impl<'a> LocalPath<'a> {
    /// Returns the place of `local://host/path`. Below a root the host is the first component of the path.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` for a name that is not valid here: with a host but without a root,
    /// with `.` or `..` as host, with a NUL, or too long.
    pub(crate) fn new(root: &'a Root, uri: Uri<'a>) -> Result<Self> {
        // The SDK passes canonical names; other callers may not, and `..` must never reach a system
        // call as the last component.
        let path = match Uri::canonical(uri.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(uri.path()),
            Cow::Owned(clean) => Cow::Owned(Uri::new(&clean).path().to_vec()),
        };
        if path.contains(&0) || uri.host().contains(&0) {
            return Err(malformed(uri, "a name cannot contain NUL"));
        }
        let path = match root {
            Root::Machine if uri.host().is_empty() => path,
            Root::Machine => {
                return Err(malformed(
                    uri,
                    "there is no host without a root directory; write `local:///` and the absolute path",
                ));
            }
            Root::Confined { .. } => below_root(uri, path)?,
        };
        if path.len() > MAX_PATH {
            return Err(too_long(path.len()));
        }
        Ok(Self { root, path: to_path(path), uri })
    }

    pub(crate) fn open(&self, access: Access) -> Result<OwnedFd> {
        self.root.open(&self.path, access).map_err(|error| self.describe(error))
    }

    /// Returns the properties, links followed.
    pub(crate) fn metadata(&self) -> Result<Stat> {
        self.root.metadata(&self.path).map_err(|error| self.describe(error))
    }

    /// Returns the entry in its directory. The root has none: the error is that of a directory.
    pub(crate) fn entry(&self) -> Result<Entry<'_, '_>> {
        let entry = self.root.entry(&self.path).map_err(|error| self.describe(error))?;
        entry.ok_or_else(|| Error::expected_file(self.uri).context("the root"))
    }

    /// Converts an error of the system about this place.
    #[cold]
    pub(crate) fn describe(&self, error: impl Into<io::Error>) -> Error {
        describe(error.into(), self.uri)
    }
}

fn below_root<'a>(uri: Uri<'a>, path: Cow<'a, [u8]>) -> Result<Cow<'a, [u8]>> {
    match uri.host() {
        b"." | b".." => Err(malformed(uri, "`.` and `..` are not hosts; name a directory")),
        b"" if path.len() == 1 => Ok(Cow::Borrowed(b".")),
        b"" => Ok(match path {
            Cow::Borrowed(path) => Cow::Borrowed(&path[1..]),
            Cow::Owned(mut path) => Cow::Owned(path.split_off(1)),
        }),
        host if path.len() == 1 => Ok(Cow::Borrowed(host)),
        host => Ok(Cow::Owned([host, &path].concat())),
    }
}

fn to_path(path: Cow<'_, [u8]>) -> Cow<'_, Path> {
    match path {
        Cow::Borrowed(path) => Cow::Borrowed(Path::new(OsStr::from_bytes(path))),
        Cow::Owned(path) => Cow::Owned(Path::new(OsStr::from_bytes(&path)).to_owned()),
    }
}

#[cold]
fn malformed(uri: Uri<'_>, why: &str) -> Error {
    Error::failed_precondition(format_args!("{uri}: {why}"))
}

#[cold]
fn too_long(len: usize) -> Error {
    Error::failed_precondition(format_args!(
        "a path of {len} bytes is too long; the system takes {MAX_PATH}"
    ))
}
