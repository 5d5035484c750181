//! Errors of the operating system, and errors on their way through `std::io`.

use crate::error::{Code, Error};
use std::io;

impl From<io::Error> for Error {
    /// Converts with the code that TensorFlow's own filesystem returns for the same system error, except
    /// for a file that is too large (`RESOURCE_EXHAUSTED`) and an invalid name (`FAILED_PRECONDITION`, as
    /// the header requires). The message is the error's. An `Error` that was converted to an
    /// [`io::Error`] comes back unchanged.
    #[cold]
    fn from(error: io::Error) -> Self {
        let code = error.raw_os_error().and_then(code_of_os_error);
        let code = code.unwrap_or_else(|| code_of_kind(error.kind()));
        error.downcast().unwrap_or_else(|error| match error.get_ref() {
            None => Self::new(code, error.to_string()),
            // An error of another library, which may have causes.
            Some(_) => Self::from_foreign(code, error),
        })
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.code() {
            Code::NotFound => io::ErrorKind::NotFound,
            Code::AlreadyExists => io::ErrorKind::AlreadyExists,
            Code::PermissionDenied | Code::Unauthenticated => io::ErrorKind::PermissionDenied,
            Code::InvalidArgument => io::ErrorKind::InvalidInput,
            Code::DeadlineExceeded => io::ErrorKind::TimedOut,
            Code::DataLoss => io::ErrorKind::InvalidData,
            Code::Unimplemented => io::ErrorKind::Unsupported,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// Returns the code of a system error for which the standard library has no kind, or a kind that it shares with others.
fn code_of_os_error(errno: i32) -> Option<Code> {
    Some(match errno {
        libc::EMFILE | libc::ENFILE | libc::ENOBUFS => Code::ResourceExhausted,
        libc::ENXIO | libc::ENODEV => Code::NotFound,
        libc::EBADF => Code::FailedPrecondition,
        libc::ENOLCK | libc::ENOLINK | libc::ENETRESET | libc::EHOSTDOWN => Code::Unavailable,
        libc::ESTALE => Code::Aborted,
        libc::ESPIPE => Code::InvalidArgument,
        libc::ECANCELED => Code::Cancelled,
        _ => return None,
    })
}

fn code_of_kind(kind: io::ErrorKind) -> Code {
    use io::ErrorKind as Kind;
    match kind {
        Kind::NotFound => Code::NotFound,
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => Code::PermissionDenied,
        Kind::AlreadyExists => Code::AlreadyExists,
        Kind::NotADirectory
        | Kind::IsADirectory
        | Kind::DirectoryNotEmpty
        | Kind::ResourceBusy
        | Kind::ExecutableFileBusy
        | Kind::BrokenPipe
        // The header's code for a path that the filesystem cannot accept.
        | Kind::InvalidFilename => Code::FailedPrecondition,
        Kind::InvalidInput | Kind::ArgumentListTooLong => Code::InvalidArgument,
        // A stream that ends too early is a loss. Were it taken for the end of the file, TensorFlow
        // would continue without the rest.
        Kind::InvalidData | Kind::UnexpectedEof => Code::DataLoss,
        Kind::TimedOut => Code::DeadlineExceeded,
        Kind::StorageFull
        | Kind::QuotaExceeded
        | Kind::FileTooLarge
        | Kind::OutOfMemory
        | Kind::TooManyLinks => Code::ResourceExhausted,
        Kind::WouldBlock
        | Kind::Interrupted
        | Kind::ConnectionRefused
        | Kind::ConnectionReset
        | Kind::ConnectionAborted
        | Kind::NotConnected
        | Kind::AddrNotAvailable
        | Kind::HostUnreachable
        | Kind::NetworkUnreachable
        | Kind::NetworkDown => Code::Unavailable,
        Kind::Deadlock => Code::Aborted,
        Kind::Unsupported | Kind::CrossesDevices => Code::Unimplemented,
        _ => Code::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_keep_their_meaning() {
        for (kind, code) in [
            (io::ErrorKind::NotFound, Code::NotFound),
            (io::ErrorKind::NotADirectory, Code::FailedPrecondition),
            (io::ErrorKind::DirectoryNotEmpty, Code::FailedPrecondition),
            (io::ErrorKind::StorageFull, Code::ResourceExhausted),
            (io::ErrorKind::UnexpectedEof, Code::DataLoss),
        ] {
            assert_eq!(Error::from(io::Error::from(kind)).code(), code, "{kind:?}");
        }
        for (errno, code) in [
            (libc::ENOENT, Code::NotFound),
            (libc::EMFILE, Code::ResourceExhausted),
            (libc::EBADF, Code::FailedPrecondition),
            (libc::ENOSPC, Code::ResourceExhausted),
        ] {
            assert_eq!(Error::from(io::Error::from_raw_os_error(errno)).code(), code, "{errno}");
        }
    }

    #[test]
    fn the_causes_of_what_an_io_error_holds_are_kept() {
        let foreign = Error::unavailable("the pool is empty").with_source("timeout");
        let wrapped = io::Error::other(Box::<dyn std::error::Error + Send + Sync>::from(
            serde_json::Error::io(io::Error::other(foreign)),
        ));
        assert_eq!(format!("{:#}", Error::from(wrapped)), "the pool is empty: timeout");
    }

    #[test]
    fn an_error_survives_being_an_io_error() {
        let error = Error::new(Code::Aborted, "conflict").with_payload("key", "value");
        let back = Error::from(io::Error::from(error));
        assert_eq!((back.code(), back.message()), (Code::Aborted, "conflict"));
        assert_eq!(back.payloads().collect::<Vec<_>>(), [("key", "value")]);
    }
}
