//! Why a request failed, and whether another attempt can help.

use crate::redact::redacted;
use std::error::Error as StdError;
use std::fmt::{Debug, Display};
use std::io;
use std::time::Duration;
use tf_fs_plugin::prelude::*;

/// Why one attempt of a request failed. [`RequestError`] serves most stores.
///
/// The engine handles it in this order. A [`ErrorKind::NotFound`] of a lookup is a result; of a
/// [`put`](crate::ObjectStore::put) or another write it is a failure. The engine
/// [retries some immediately](Self::retry_immediately), whatever their kind. Then the [kind](Self::kind) decides.
pub trait StoreError: Debug + Send + Sync + Sized + 'static {
    /// Creates a failure: the object is not the version that was requested.
    fn changed() -> Self;

    /// Creates a failure: no bytes or too few arrived from this [endpoint](crate::ObjectStore::endpoint) in `time`.
    fn stalled(endpoint: String, time: Duration) -> Self;

    /// Creates a failure: the response contradicts itself or the request.
    fn invalid(how: &str) -> Self;

    /// Creates a failure of [`ErrorKind::Unsupported`]: the store does not support this.
    fn unsupported(what: &str) -> Self;

    /// Returns whether another attempt can help.
    fn kind(&self) -> ErrorKind;

    /// Returns whether the failure says nothing of the store's health, so that the engine retries at once and does not
    /// count it: a connection that the store had closed while it was idle, or an error whose reason the store named and
    /// that is corrected now. After 80 of them in a row the kind decides.
    fn retry_immediately(&self) -> bool {
        false
    }

    /// Returns the wait that the store requests. Honoured up to [`MAX_RETRY_AFTER`](crate::MAX_RETRY_AFTER).
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// Returns whether the request may have been done although it failed.
    fn is_ambiguous(&self) -> bool {
        matches!(self.kind(), ErrorKind::Transient | ErrorKind::InvalidResponse)
    }

    /// Returns what went wrong, for the log.
    fn summary(&self) -> String;

    /// Returns the error for the user after the last attempt: `op` on `what` failed `attempts` times.
    fn into_error(self, op: &str, what: &dyn Display, attempts: u32) -> Error;
}

/// Whether another attempt can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such object. It is not retried.
    NotFound,
    /// A condition of the request does not hold: the object is another version than the request names, or is there
    /// although the request says that it must not be. It is not retried.
    Precondition,
    /// The user may not do this. It is not retried.
    Denied,
    /// The store does not support this request. It is not retried.
    Unsupported,
    /// It may pass: no connection, an overloaded store. It is retried for
    /// [`Settings::retry_timeout`](crate::Settings::retry_timeout).
    Transient,
    /// It is unlikely to pass: a response that cannot be right, a certificate that is not trusted. There are
    /// [`MAX_INVALID_RESPONSES`](crate::MAX_INVALID_RESPONSES) attempts.
    InvalidResponse,
    /// The store refused, or its client has made all attempts itself. It is not retried.
    Permanent,
}

impl ErrorKind {
    /// Returns the kind of an error of the system, such as a connection that was reset.
    pub fn from_io(kind: io::ErrorKind) -> Self {
        match kind {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Denied,
            io::ErrorKind::AlreadyExists
            | io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory => Self::Precondition,
            io::ErrorKind::Unsupported => Self::Unsupported,
            io::ErrorKind::InvalidData => Self::InvalidResponse,
            io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidFilename
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::StorageFull => Self::Permanent,
            _ => Self::Transient,
        }
    }

    /// Returns the kind of a response with this HTTP status, which is not a success.
    pub fn from_http_status(status: u16) -> Self {
        match status {
            404 | 410 => Self::NotFound,
            304 | 412 => Self::Precondition,
            401 | 403 | 407 | 451 => Self::Denied,
            405 | 501 | 505 => Self::Unsupported,
            408 | 425 | 429 | 500.. => Self::Transient,
            100..=299 => Self::InvalidResponse,
            _ => Self::Permanent,
        }
    }
}

/// Gives an error of another library its kind, in one line.
///
/// ```
/// use std::io;
/// use tf_fs_object_store::{ErrorKind, OrKind as _, RequestError};
///
/// fn read(path: &str) -> Result<Vec<u8>, RequestError> {
///     std::fs::read(path).or_kind(|error| ErrorKind::from_io(error.kind()))
/// }
/// assert!(read("/none").is_err());
/// ```
pub trait OrKind<T, E> {
    /// Returns the error as a failure of this kind, with its text and its causes; see [`RequestError::from_foreign`].
    ///
    /// # Errors
    /// The failure, if there is an error.
    fn or_kind(self, kind: impl FnOnce(&E) -> ErrorKind) -> Result<T, RequestError>;
}

impl<T, E: StdError + Send + Sync + 'static> OrKind<T, E> for Result<T, E> {
    fn or_kind(self, kind: impl FnOnce(&E) -> ErrorKind) -> Result<T, RequestError> {
        self.map_err(|error| RequestError::from_foreign(kind(&error), error))
    }
}

/// Why a request failed, for stores that need no custom type.
///
/// ```
/// use tf_fs_object_store::{ErrorKind, StoreError, RequestError};
///
/// let error = RequestError::new(ErrorKind::Transient, "the store is overloaded");
/// let error = error.into_error("get", &"mem://b/k", 3);
/// assert_eq!(error.to_string(), "mem://b/k: get: the store is overloaded (3 attempts)");
/// ```
#[derive(Debug)]
pub struct RequestError {
    kind: ErrorKind,
    code: Code,
    reason: String,
    retry_after: Option<Duration>,
    retry_immediately: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
    /// The error for the user, unchanged.
    finished: Option<Error>,
}

impl RequestError {
    /// Creates a failure with this reason, which also says what to do next. The code follows from the kind.
    pub fn new(kind: ErrorKind, reason: impl Into<String>) -> Self {
        let code = match kind {
            ErrorKind::NotFound => Code::NotFound,
            ErrorKind::Precondition => Code::FailedPrecondition,
            ErrorKind::Denied => Code::PermissionDenied,
            ErrorKind::Unsupported => Code::Unimplemented,
            ErrorKind::Transient | ErrorKind::InvalidResponse => Code::Unavailable,
            ErrorKind::Permanent => Code::Unknown,
        };
        Self {
            kind,
            code,
            reason: reason.into(),
            retry_after: None,
            retry_immediately: false,
            source: None,
            finished: None,
        }
    }

    /// Creates a failure of an error of another library. Its text is the reason, on one line and without the secrets that this
    /// process [knows](crate::redact).
    pub fn from_foreign(kind: ErrorKind, error: impl StdError + Send + Sync + 'static) -> Self {
        let on_one_line = |error: &dyn StdError| {
            let text = error.to_string();
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            lines.collect::<Vec<_>>().join("; ")
        };
        let mut reason = on_one_line(&error);
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = on_one_line(error);
            // Many libraries show their causes themselves.
            if !reason.contains(&text) {
                reason = format!("{reason}: {text}");
            }
            cause = error.source();
        }
        Self::new(kind, redacted(&reason).into_owned())
    }

    /// Sets another code for the user than that of the kind.
    #[must_use]
    pub fn with_code(self, code: Code) -> Self {
        Self { code, ..self }
    }

    /// Sets how long the store wants no requests.
    #[must_use]
    pub fn with_retry_after(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..self }
    }

    /// Makes the engine [retry it immediately](StoreError::retry_immediately).
    #[must_use]
    pub fn with_immediate_retry(self) -> Self {
        Self { retry_immediately: true, ..self }
    }

    /// Sets the error that caused it.
    #[must_use]
    pub fn with_source(self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }
}

impl StoreError for RequestError {
    fn changed() -> Self {
        Self::new(ErrorKind::Precondition, "the object changed while it was open; open it again")
    }

    fn stalled(endpoint: String, time: Duration) -> Self {
        let by = if endpoint.is_empty() { String::new() } else { format!(" by {endpoint}") };
        let reason = format!("not answered{by}: no progress for {time:?}");
        Self::new(ErrorKind::Transient, reason).with_code(Code::DeadlineExceeded)
    }

    fn invalid(how: &str) -> Self {
        let reason = format!(
            "the response cannot be right: {how}; check what is between here and the store"
        );
        Self::new(ErrorKind::InvalidResponse, reason)
    }

    fn unsupported(what: &str) -> Self {
        Self::new(ErrorKind::Unsupported, format!("the store does not support {what}"))
    }

    fn kind(&self) -> ErrorKind {
        self.kind
    }

    fn retry_immediately(&self) -> bool {
        self.retry_immediately
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    fn summary(&self) -> String {
        self.reason.clone()
    }

    fn into_error(self, op: &str, what: &dyn Display, attempts: u32) -> Error {
        if let Some(error) = self.finished {
            return error;
        }
        let attempts = match attempts {
            0 | 1 => String::new(),
            attempts => format!(" ({attempts} attempts)"),
        };
        let error = Error::new(self.code, format!("{what}: {op}: {}{attempts}", self.reason));
        match self.source {
            Some(source) => error.with_source(source),
            None => error,
        }
    }
}

impl From<Error> for RequestError {
    /// Creates an error that is not retried, and reaches the user as it is.
    fn from(error: Error) -> Self {
        let code = error.code();
        Self { finished: Some(error), code, ..Self::new(ErrorKind::Permanent, "") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_error_is_told_once_and_on_one_line() {
        #[derive(Debug)]
        struct Wrapped(&'static str, io::Error);
        impl Display for Wrapped {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.0)
            }
        }
        impl StdError for Wrapped {
            fn source(&self) -> Option<&(dyn StdError + 'static)> {
                Some(&self.1)
            }
        }
        for (text, shown) in [
            ("cannot stat", "x: stat: cannot stat: no route"),
            ("cannot stat: no route", "x: stat: cannot stat: no route"),
            ("cannot\n  stat\n", "x: stat: cannot; stat: no route"),
        ] {
            let failed: Result<(), _> = Err(Wrapped(text, io::Error::other("no route")));
            let error = failed.or_kind(|_| ErrorKind::Denied).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Denied);
            let error = error.into_error("stat", &"x", 1);
            assert_eq!((error.code(), error.to_string().as_str()), (Code::PermissionDenied, shown));
        }
        for (io, kind) in [
            (io::ErrorKind::NotFound, ErrorKind::NotFound),
            (io::ErrorKind::PermissionDenied, ErrorKind::Denied),
            (io::ErrorKind::AlreadyExists, ErrorKind::Precondition),
            (io::ErrorKind::StorageFull, ErrorKind::Permanent),
            (io::ErrorKind::UnexpectedEof, ErrorKind::Transient),
            (io::ErrorKind::BrokenPipe, ErrorKind::Transient),
        ] {
            assert_eq!(ErrorKind::from_io(io), kind, "{io}");
        }
    }

    #[test]
    fn a_finished_error_is_told_as_it_is() {
        let error =
            RequestError::from(Error::new(Code::Aborted, "x: copy: it stopped; copy it again"));
        assert_eq!(error.kind(), ErrorKind::Permanent);
        let error = error.into_error("copy", &"x", 1);
        assert_eq!(
            (error.code(), error.message()),
            (Code::Aborted, "x: copy: it stopped; copy it again")
        );
    }
}
