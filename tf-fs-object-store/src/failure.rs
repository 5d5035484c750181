//! Why a request failed, and whether another attempt can help.

use std::error::Error as StdError;
use std::fmt::{Debug, Display};
use std::time::Duration;
use tf_fs_plugin::prelude::*;

/// Why one attempt of a request failed. [`RequestError`] serves most stores.
///
/// The engine handles it in this order. A [`Class::NotFound`] of a lookup is a result; of a
/// [`put`](crate::ObjectStore::put) or another write it is a failure. One that [is spurious](Self::is_spurious) is
/// retried at once, whatever its class. Then the [class](Self::class) decides.
pub trait Failure: Debug + Send + Sync + Sized + 'static {
    /// Creates a failure: the object is not the version that was requested.
    fn changed() -> Self;

    /// Creates a failure: no bytes or too few arrived from this [endpoint](crate::ObjectStore::endpoint) in `time`.
    fn stalled(endpoint: String, time: Duration) -> Self;

    /// Creates a failure: the response contradicts itself or the request.
    fn invalid(how: &str) -> Self;

    /// Creates a failure of [`Class::Unsupported`]: the store does not support this.
    fn unsupported(what: &str) -> Self;

    /// Returns whether another attempt can help.
    fn class(&self) -> Class;

    /// Returns whether the failure says nothing of the store's health, so that the engine retries at once and does not
    /// count it: a connection that the store had closed while it was idle, or an error whose reason the store named and
    /// that is corrected now. After 80 of them in a row the class decides.
    fn is_spurious(&self) -> bool {
        false
    }

    /// Returns the wait that the store requests. Honoured up to [`LONGEST_RETRY_AFTER`](crate::LONGEST_RETRY_AFTER).
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// Returns whether the request may have been done although it failed.
    fn may_be_done(&self) -> bool {
        matches!(self.class(), Class::Transient | Class::Doubtful)
    }

    /// Returns what went wrong, for the log.
    fn summary(&self) -> String;

    /// Returns the error for the user after the last attempt: `op` on `what` failed `attempts` times.
    fn into_error(self, op: &str, what: &dyn Display, attempts: u32) -> Error;
}

/// Whether another attempt can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Class {
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
    /// [`WRONG_ANSWERS`](crate::WRONG_ANSWERS) attempts.
    Doubtful,
    /// The store refused, or its client has made all attempts itself. It is not retried.
    Permanent,
}

impl Class {
    /// Returns the class of a response with this HTTP status, which is not a success.
    pub fn of_http_status(status: u16) -> Self {
        match status {
            404 | 410 => Self::NotFound,
            304 | 412 => Self::Precondition,
            401 | 403 | 407 | 451 => Self::Denied,
            405 | 501 | 505 => Self::Unsupported,
            408 | 425 | 429 | 500.. => Self::Transient,
            100..=299 => Self::Doubtful,
            _ => Self::Permanent,
        }
    }
}

/// Why a request failed, for stores that need no custom type.
///
/// ```
/// use tf_fs_object_store::{Class, Failure, RequestError};
///
/// let error = RequestError::new(Class::Transient, "the store is overloaded");
/// let error = error.into_error("get", &"mem://b/k", 3);
/// assert_eq!(error.to_string(), "mem://b/k: get: the store is overloaded (3 attempts)");
/// ```
#[derive(Debug)]
pub struct RequestError {
    class: Class,
    code: Code,
    reason: String,
    retry_after: Option<Duration>,
    is_spurious: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
    /// The error for the user, unchanged.
    finished: Option<Error>,
}

impl RequestError {
    /// Creates a failure with this reason, which also says what to do next. The code follows from the class.
    pub fn new(class: Class, reason: impl Into<String>) -> Self {
        let code = match class {
            Class::NotFound => Code::NotFound,
            Class::Precondition => Code::FailedPrecondition,
            Class::Denied => Code::PermissionDenied,
            Class::Unsupported => Code::Unimplemented,
            Class::Transient | Class::Doubtful => Code::Unavailable,
            Class::Permanent => Code::Unknown,
        };
        Self {
            class,
            code,
            reason: reason.into(),
            retry_after: None,
            is_spurious: false,
            source: None,
            finished: None,
        }
    }

    /// Creates a failure that is not retried, and reaches the user as this error.
    pub fn finished(error: Error) -> Self {
        let code = error.code();
        Self { finished: Some(error), code, ..Self::new(Class::Permanent, "") }
    }

    /// Sets another code for the user than that of the class.
    #[must_use]
    pub fn with_code(self, code: Code) -> Self {
        Self { code, ..self }
    }

    /// Sets how long the store wants no requests.
    #[must_use]
    pub fn with_retry_after(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..self }
    }

    /// Marks it as [spurious](Failure::is_spurious).
    #[must_use]
    pub fn spurious(self) -> Self {
        Self { is_spurious: true, ..self }
    }

    /// Sets the error that caused it.
    #[must_use]
    pub fn with_source(self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }
}

impl Failure for RequestError {
    fn changed() -> Self {
        Self::new(Class::Precondition, "the object changed while it was open; open it again")
    }

    fn stalled(endpoint: String, time: Duration) -> Self {
        let by = if endpoint.is_empty() { String::new() } else { format!(" by {endpoint}") };
        let reason = format!("not answered{by}: no progress for {time:?}");
        Self::new(Class::Transient, reason).with_code(Code::DeadlineExceeded)
    }

    fn invalid(how: &str) -> Self {
        let reason = format!(
            "the response cannot be right: {how}; check what is between here and the store"
        );
        Self::new(Class::Doubtful, reason)
    }

    fn unsupported(what: &str) -> Self {
        Self::new(Class::Unsupported, format!("the store does not support {what}"))
    }

    fn class(&self) -> Class {
        self.class
    }

    fn is_spurious(&self) -> bool {
        self.is_spurious
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
    fn from(error: Error) -> Self {
        Self::finished(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_error_is_told_as_it_is() {
        let error =
            RequestError::from(Error::new(Code::Aborted, "x: copy: it stopped; copy it again"));
        assert_eq!(error.class(), Class::Permanent);
        let error = error.into_error("copy", &"x", 1);
        assert_eq!(
            (error.code(), error.message()),
            (Code::Aborted, "x: copy: it stopped; copy it again")
        );
    }

    #[test]
    fn statuses_have_classes() {
        for (status, class) in [
            (404, Class::NotFound),
            (412, Class::Precondition),
            (403, Class::Denied),
            (501, Class::Unsupported),
            (503, Class::Transient),
            (206, Class::Doubtful),
            (400, Class::Permanent),
        ] {
            assert_eq!(Class::of_http_status(status), class, "{status}");
        }
    }
}
