//! Why a request failed, and the error for the user.
//!
//! A status has the kind of [`ErrorKind::from_http_status`], and the code of its kind, except for those in this table.
//!
//! | Cause | Kind | Code |
//! |---|---|---|
//! | a status of the kind | not found | `NOT_FOUND` |
//! | | transient | `UNAVAILABLE` |
//! | | denied | `PERMISSION_DENIED` |
//! | | precondition; changed while it was open | `FAILED_PRECONDITION` |
//! | | unsupported, by the status or by the store | `UNIMPLEMENTED` |
//! | | permanent | `INVALID_ARGUMENT` |
//! | 401, 407 | denied | `UNAUTHENTICATED` |
//! | 409 | permanent | `ABORTED` |
//! | 416 | permanent | `OUT_OF_RANGE` |
//! | 3xx | permanent | `FAILED_PRECONDITION` |
//! | no connection, broken off | transient | `UNAVAILABLE` |
//! | a certificate that is not trusted | invalid response | `UNAVAILABLE` |
//! | no progress, no connection in time | transient | `DEADLINE_EXCEEDED` |
//! | a response that cannot be right | invalid response | `UNAVAILABLE` |
//! | a response that is too large | permanent | `RESOURCE_EXHAUSTED` |

use super::{PROXY_AUTH_REQUIRED, causes, is_lasting, is_timeout, printable};
use crate::{ErrorKind, RequestError, StoreError};
use std::error::Error as StdError;
use std::fmt::{Display, Write};
use std::time::Duration;
use tf_fs_plugin::prelude::*;

/// Why one attempt of a request failed.
#[derive(Debug)]
pub enum HttpError {
    /// The server refused.
    Status(Box<ErrorResponse>),
    /// The object is not the version that was requested.
    Changed,
    /// No connection to this endpoint, or it broke off.
    Transport(String, Box<dyn StdError + Send + Sync>),
    /// A connection to this endpoint that had been used before turned out to be closed.
    Stale(String),
    /// No bytes or too few arrived from this endpoint in this time.
    Stalled(String, Duration),
    /// The response contradicts itself or the request.
    Invalid(String),
    /// The response has more bytes than this, the most that any response has.
    TooLarge(usize),
    /// The store does not support this.
    Unsupported(String),
    /// The failure of a store that does not speak HTTP, in a plugin with others that do.
    Request(Box<RequestError>),
    /// Anything else. It is not retried.
    Other(Error),
}

/// A server's response with a status that is not a success.
#[derive(Clone, Debug, Default)]
pub struct ErrorResponse {
    /// The status.
    pub status: u16,
    /// Scheme, host and port of the server.
    pub endpoint: String,
    /// How long it wants no requests.
    pub retry_after: Option<Duration>,
    /// Its own code, such as `ContainerNotFound`.
    pub code: Option<String>,
    /// Its own words.
    pub message: Option<String>,
    /// The next step for the user.
    pub advice: Option<String>,
    /// The kind, in place of that of the status.
    pub kind: Option<ErrorKind>,
    /// The code for the user, in place of that of the status.
    pub error_code: Option<Code>,
}

impl ErrorResponse {
    /// Returns whether another attempt can help.
    pub fn kind(&self) -> ErrorKind {
        self.kind.unwrap_or(ErrorKind::from_http_status(self.status))
    }

    fn code(&self) -> Code {
        if let Some(code) = self.error_code {
            return code;
        }
        match self.status {
            401 | 407 => return Code::Unauthenticated,
            409 => return Code::Aborted,
            416 => return Code::OutOfRange,
            300..=399 => return Code::FailedPrecondition,
            _ => {}
        }
        match ErrorKind::from_http_status(self.status) {
            ErrorKind::NotFound => Code::NotFound,
            ErrorKind::Precondition => Code::FailedPrecondition,
            ErrorKind::Denied => Code::PermissionDenied,
            ErrorKind::Unsupported => Code::Unimplemented,
            ErrorKind::Transient => Code::Unavailable,
            ErrorKind::InvalidResponse | ErrorKind::Permanent => Code::InvalidArgument,
        }
    }

    /// Returns the error for the user.
    fn into_error(self, op: &str, what: &dyn Display, attempts: u32) -> Error {
        let mut text = format!("{what}: {op}: HTTP {}", self.status);
        if let Some(code) = &self.code {
            let _ = write!(text, " {}", printable(code, 64));
        }
        if !self.endpoint.is_empty() {
            let _ = write!(text, " from {}", self.endpoint);
        }
        if let Some(message) = &self.message {
            let _ = write!(text, ": \"{}\"", printable(message.trim(), 300));
        }
        let _ = write!(text, " ({})", plural(attempts));
        if let Some(advice) = &self.advice {
            let _ = write!(text, "; {advice}");
        }
        Error::new(self.code(), text)
    }
}

fn plural(attempts: u32) -> String {
    format!("{attempts} {}", if attempts == 1 { "attempt" } else { "attempts" })
}

fn size(bytes: usize) -> String {
    if bytes < 1 << 20 { format!("{bytes} bytes") } else { format!("{} MiB", bytes >> 20) }
}

impl Display for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.summary())
    }
}

impl StdError for HttpError {}

impl From<RequestError> for HttpError {
    fn from(error: RequestError) -> Self {
        Self::Request(Box::new(error))
    }
}

impl StoreError for HttpError {
    fn changed() -> Self {
        Self::Changed
    }

    fn stalled(endpoint: String, time: Duration) -> Self {
        Self::Stalled(endpoint, time)
    }

    fn invalid(how: &str) -> Self {
        Self::Invalid(how.to_owned())
    }

    fn unsupported(what: &str) -> Self {
        Self::Unsupported(what.to_owned())
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Status(refusal) => refusal.kind(),
            Self::Invalid(_) => ErrorKind::InvalidResponse,
            Self::Transport(_, error) if is_lasting(&**error) => ErrorKind::InvalidResponse,
            Self::Transport(..) | Self::Stale(_) | Self::Stalled(..) => ErrorKind::Transient,
            Self::Changed => ErrorKind::Precondition,
            Self::Unsupported(_) => ErrorKind::Unsupported,
            Self::Request(error) => error.kind(),
            Self::TooLarge(_) | Self::Other(_) => ErrorKind::Permanent,
        }
    }

    fn retry_immediately(&self) -> bool {
        match self {
            Self::Request(error) => error.retry_immediately(),
            error => matches!(error, Self::Stale(_)),
        }
    }

    fn is_ambiguous(&self) -> bool {
        matches!(self, Self::TooLarge(_))
            || matches!(self.kind(), ErrorKind::Transient | ErrorKind::InvalidResponse)
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status(refusal) => refusal.retry_after,
            Self::Request(error) => error.retry_after(),
            _ => None,
        }
    }

    fn summary(&self) -> String {
        match self {
            Self::Status(refusal) => format!("HTTP {} from {}", refusal.status, refusal.endpoint),
            Self::Changed => "it changed while it was open".to_owned(),
            Self::Transport(endpoint, error) => format!("{endpoint}: {}", causes(&**error)),
            Self::Stale(endpoint) => format!("{endpoint} keeps closing connections"),
            Self::Stalled(endpoint, time) => format!("{endpoint}: no progress for {time:?}"),
            Self::Invalid(how) => format!("the response cannot be right: {how}"),
            Self::TooLarge(most) => format!("the response has more than {}", size(*most)),
            Self::Unsupported(what) => format!("the store does not support {what}"),
            Self::Request(error) => error.summary(),
            Self::Other(error) => error.message().to_owned(),
        }
    }

    #[cold]
    fn into_error(self, op: &str, what: &dyn Display, attempts: u32) -> Error {
        let made = plural(attempts);
        match self {
            Self::Status(refusal) => refusal.into_error(op, what, attempts),
            Self::Changed => Error::failed_precondition(format_args!(
                "{what}: {op}: it changed while it was open; open it again"
            )),
            Self::Transport(endpoint, error) => {
                let causes = causes(&*error);
                let (code, advice) = if causes.contains(PROXY_AUTH_REQUIRED) {
                    let text =
                        "the proxy requires credentials; put them into HTTPS_PROXY or HTTP_PROXY";
                    (Code::Unauthenticated, text)
                } else if is_lasting(&*error) {
                    let text = "look at the certificates that are trusted, and at what is between here and the server";
                    (Code::Unavailable, text)
                } else if is_timeout(&*error) {
                    (
                        Code::DeadlineExceeded,
                        "look at the host name, and at the network and its proxies",
                    )
                } else {
                    (Code::Unavailable, "look at the host name, and at the network and its proxies")
                };
                let causes = printable(&causes, 600);
                Error::new(
                    code,
                    format!(
                        "{what}: {op}: no response from {endpoint}: {causes} ({made}); {advice}"
                    ),
                )
            }
            Self::Stale(endpoint) => Error::unavailable(format_args!(
                "{what}: {op}: {endpoint} keeps closing connections ({made}); try again later"
            )),
            Self::Stalled(endpoint, time) => Error::new(
                Code::DeadlineExceeded,
                format!(
                    "{what}: {op}: {endpoint} made no progress for {time:?} ({made}); try again later, or allow more time"
                ),
            ),
            Self::Invalid(how) => Error::unavailable(format_args!(
                "{what}: {op}: the response cannot be right: {} ({made}); check what is between here and the server",
                printable(&how, 600)
            )),
            Self::TooLarge(most) => Error::resource_exhausted(format_args!(
                "{what}: {op}: the response has more than {}, which cannot be right; check what is between here and the \
                 server",
                size(most)
            )),
            Self::Unsupported(missing) => Error::new(
                Code::Unimplemented,
                format!("{what}: {op}: the store does not support {missing}"),
            ),
            Self::Request(error) => error.into_error(op, what, attempts),
            Self::Other(error) => error.context(format_args!("{what}: {op}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_codes_of_statuses() {
        use ErrorKind::{
            Denied, InvalidResponse, NotFound, Permanent, Precondition, Transient, Unsupported,
        };
        for (status, kind, code) in [
            (206, InvalidResponse, Code::InvalidArgument),
            (301, Permanent, Code::FailedPrecondition),
            (400, Permanent, Code::InvalidArgument),
            (401, Denied, Code::Unauthenticated),
            (403, Denied, Code::PermissionDenied),
            (404, NotFound, Code::NotFound),
            (405, Unsupported, Code::Unimplemented),
            (408, Transient, Code::Unavailable),
            (409, Permanent, Code::Aborted),
            (410, NotFound, Code::NotFound),
            (412, Precondition, Code::FailedPrecondition),
            (416, Permanent, Code::OutOfRange),
            (429, Transient, Code::Unavailable),
            (500, Transient, Code::Unavailable),
            (501, Unsupported, Code::Unimplemented),
            (503, Transient, Code::Unavailable),
        ] {
            let failed =
                HttpError::Status(Box::new(ErrorResponse { status, ..ErrorResponse::default() }));
            assert_eq!(failed.kind(), kind, "{status}");
            assert_eq!(failed.into_error("read", &"x", 1).code(), code, "{status}");
        }
    }

    #[test]
    fn an_error_says_who_said_what_and_what_to_do() {
        let refusal = ErrorResponse {
            status: 503,
            endpoint: "https://h".into(),
            code: Some("Busy".into()),
            message: Some("come\nback".into()),
            advice: Some("wait".into()),
            ..ErrorResponse::default()
        };
        assert_eq!(
            HttpError::Status(Box::new(refusal)).into_error("read", &"x://b/k", 3).message(),
            "x://b/k: read: HTTP 503 Busy from https://h: \"come back\" (3 attempts); wait"
        );
    }
}
