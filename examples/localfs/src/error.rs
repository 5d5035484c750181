//! Converts the system's errors to TensorFlow's.

use rustix::io::Errno;
use std::fmt;
use std::io;
use tf_fs_plugin::{Code, Error};

/// Returns the error of an operation on `what`. The codes are those that `filesystem_interface.h`
/// names for each condition; where it names none, those of TensorFlow's own POSIX filesystem.
#[cold]
pub(crate) fn describe(error: io::Error, what: impl fmt::Display) -> Error {
    if is_escape(&error) {
        return Error::permission_denied(format_args!(
            "{what}: a symbolic link on the way leaves the root; make it relative and keep it inside"
        ));
    }
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT) => Error::not_found(what),
        Some(Errno::EXIST) => Error::already_exists(what),
        Some(Errno::NOTDIR) => Error::expected_directory(what),
        Some(Errno::ISDIR) => Error::expected_file(what),
        Some(Errno::NOTEMPTY) => Error::expected_empty_directory(what),
        // A path that no filesystem of this machine accepts: malformed.
        Some(Errno::NAMETOOLONG | Errno::LOOP | Errno::ILSEQ) => {
            Error::failed_precondition(format_args!("{what}: {error}"))
        }
        // `std` has no kind for these.
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS) => {
            Error::resource_exhausted(format_args!("{what}: {error}"))
        }
        Some(Errno::IO) => Error::new(Code::DataLoss, format!("{what}: {error}")),
        _ => Error::from(error).context(what),
    }
}

/// Returns whether a symbolic link would have left the root: the only refusal of `cap-std` itself,
/// without an error of the system.
pub(crate) fn is_escape(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

/// Returns whether a path leads nowhere: it, or something on the way to it, is missing or not a directory.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR))
}

/// Returns whether a pattern has nothing to find at a path: it is missing, a link out of the root,
/// or a loop of links.
pub(crate) fn leads_nowhere(error: &io::Error) -> bool {
    is_absent(error) || is_escape(error) || Errno::from_io_error(error) == Some(Errno::LOOP)
}
