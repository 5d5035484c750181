//! Why a GET failed.

use crate::connection::{Attempt, TooLarge, retry_after};
use crate::failure::{Answer, failure, find, of_answer, of_transport};
use crate::metrics;
use crate::write::object::{leaves_open_whether_done, status_of};
use aws_sdk_s3::error::{ErrorMetadata, ProvideErrorMetadata, SdkError};
use std::error::Error as StdError;
use std::fmt::Display;
use std::io;
use std::time::Duration;
use tf_fs_object_store::http::{Failed, will_stay};
use tf_fs_object_store::{Class, Failure};
use tf_fs_plugin::prelude::*;

/// Why one attempt failed.
#[derive(Debug)]
pub(crate) enum Cause {
    /// The store refused.
    Answer(Box<Refusal>),
    /// The object is not the one that was opened.
    Changed,
    /// No connection to this endpoint, or it broke off.
    Transport(String, Box<dyn StdError + Send + Sync>),
    /// A connection that had been used before turned out to be closed.
    Stale,
    /// Nothing arrived for this long, or next to nothing.
    Stalled(String, Duration),
    /// The answer contradicts itself or the request.
    Nonsense(String),
    /// The official client failed, after all its attempts.
    Sdk(Box<SdkError<ErrorMetadata>>),
    /// The same of one attempt of a request that the engine repeats.
    Request(Box<Attempted>),
    /// It was done, and what the store has of it is not what it should be, or not known.
    Unconfirmed(Error),
    /// XML that ends too early has fewer names in it, and is XML all the same to the SDK.
    CutOff,
    /// Only the official client can do this.
    Unsupported,
    /// The store does not have this.
    NotOffered(String),
    /// Ready-made: credentials, settings.
    Other(Error),
    /// Ready-made, with all that is to be said.
    Finished(Class, Error),
}

/// One attempt of the official client's.
#[derive(Debug)]
pub(crate) struct Attempted {
    op: &'static str,
    error: SdkError<ErrorMetadata>,
    class: Class,
    /// It is made again at once, in another way.
    is_again: bool,
}

/// What the store said.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) answer: Answer,
    pub(crate) retry_after: Option<Duration>,
    /// The reason is known and mended: another attempt at once is worth while.
    pub(crate) is_mended: bool,
}

impl Cause {
    /// The status of the answer, if there was one.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Answer(refusal) => Some(refusal.answer.status),
            Self::Changed => Some(412),
            Self::Nonsense(_) | Self::Unsupported => Some(200),
            Self::Sdk(error) => status_of(error),
            Self::Request(attempted) => status_of(&attempted.error),
            _ => None,
        }
    }

    /// An error of the official client's, after all its attempts.
    pub(crate) fn sdk<E: ProvideErrorMetadata>(error: SdkError<E>) -> Self {
        Self::Sdk(Box::new(error.map_service_error(|error| error.meta().clone())))
    }

    /// An attempt of `op` that failed.
    pub(crate) fn request<E: ProvideErrorMetadata>(op: &'static str, error: SdkError<E>) -> Self {
        let error = error.map_service_error(|error| error.meta().clone());
        let class = class_of_attempt(&error);
        Self::Request(Box::new(Attempted { op, error, class, is_again: false }))
    }

    /// The same, where another attempt is made at once.
    pub(crate) fn again(mut self) -> Self {
        if let Self::Request(attempted) = &mut self {
            attempted.is_again = true;
        }
        self
    }

    /// The same, where the condition did not hold.
    pub(crate) fn refused(mut self) -> Self {
        if let Self::Request(attempted) = &mut self {
            attempted.class = Class::Precondition;
        }
        self
    }

    /// The same of a request that has its own name: `op` on `what`.
    pub(crate) fn of<E>(op: &str, what: &dyn Display, error: SdkError<E>) -> Self
    where
        E: StdError + ProvideErrorMetadata + Send + Sync + 'static,
    {
        Self::Finished(class_of(&error), failure(op, what, error))
    }
}

/// The class of an error after which no further attempt is made.
fn class_of<E: ProvideErrorMetadata>(error: &SdkError<E>) -> Class {
    let status = error.raw_response().map_or(0, |raw| raw.status().as_u16());
    match (status, error.code()) {
        // A store under load that says 404 does not say that the object is gone.
        (404, Some(code)) if code == "NoSuchBucket" || is_overload(code) => Class::Permanent,
        (404, _) => Class::NotFound,
        // Whoever has the wrong key is not helped by another request.
        (403, None | Some("AccessDenied" | "AllAccessDisabled")) => Class::Denied,
        (405 | 501, _) => Class::Unsupported,
        (412, _) => Class::Precondition,
        _ => Class::Permanent,
    }
}

/// The class of an error after which the engine makes further attempts.
fn class_of_attempt(error: &SdkError<ErrorMetadata>) -> Class {
    match error {
        _ if find::<TooLarge>(error).is_some() => Class::Permanent,
        _ if matches!(status_of(error), Some(408 | 429 | 500 | 502 | 503 | 504)) => {
            Class::Transient
        }
        SdkError::ServiceError(_) if error.code().is_some_and(is_overload) => Class::Transient,
        SdkError::ResponseError(_) => Class::Doubtful,
        // One without a number was not sent.
        SdkError::DispatchFailure(_) => match find::<Attempt>(error) {
            Some(attempt) if will_stay(attempt.cause()) => Class::Doubtful,
            Some(_) => Class::Transient,
            None => Class::Permanent,
        },
        SdkError::TimeoutError(_) => Class::Transient,
        _ => class_of(error),
    }
}

fn is_overload(code: &str) -> bool {
    matches!(code, "RequestTimeout" | "SlowDown" | "InternalError" | "ServiceUnavailable")
}

impl From<Failed> for Cause {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Changed => Self::Changed,
            Failed::Transport(endpoint, error) => Self::Transport(endpoint, error),
            Failed::Stale(_) => Self::Stale,
            Failed::Stalled(endpoint, time) => Self::Stalled(endpoint, time),
            Failed::Invalid(how) => Self::Nonsense(how),
            Failed::Unsupported(_) => Self::Unsupported,
            Failed::Other(error) => Self::Other(error),
            // Only the store says what a refusal is.
            Failed::Refused(refusal) => Self::Nonsense(format!("HTTP {}", refusal.status)),
        }
    }
}

impl From<Error> for Cause {
    fn from(error: Error) -> Self {
        Self::Finished(Class::Permanent, error)
    }
}

impl Failure for Cause {
    fn changed() -> Self {
        Self::Changed
    }

    fn stalled(endpoint: String, time: Duration) -> Self {
        Self::Stalled(endpoint, time)
    }

    fn invalid(how: &str) -> Self {
        Self::Nonsense(how.to_owned())
    }

    fn unsupported(what: &str) -> Self {
        Self::NotOffered(what.to_owned())
    }

    fn class(&self) -> Class {
        match self {
            // First: a store under load that says 404 does not say that the object is gone.
            Self::Answer(refusal) if refusal.is_transient() => Class::Transient,
            Self::Answer(refusal) if refusal.is_no_such_key() => Class::NotFound,
            Self::Sdk(error) => class_of(error),
            Self::Request(attempted) => attempted.class,
            Self::Finished(class, _) => *class,
            Self::NotOffered(_) => Class::Unsupported,
            Self::Changed => Class::Precondition,
            Self::Nonsense(_) => Class::Doubtful,
            Self::Transport(_, error) if will_stay(&**error) => Class::Doubtful,
            Self::Transport(..) | Self::Stale | Self::Stalled(..) => Class::Transient,
            Self::Answer(_)
            | Self::CutOff
            | Self::Unsupported
            | Self::Other(_)
            | Self::Unconfirmed(_) => Class::Permanent,
        }
    }

    fn is_spurious(&self) -> bool {
        match self {
            Self::Answer(refusal) => refusal.is_mended,
            Self::Request(attempted) => attempted.is_again,
            Self::Stale => true,
            _ => false,
        }
    }

    fn summary(&self) -> String {
        match self {
            Self::Answer(refusal) => {
                format!("the store responds with HTTP {}", refusal.answer.status)
            }
            Self::Request(attempted) => match status_of(&attempted.error) {
                Some(status) => format!("the store responds with HTTP {status}"),
                None => "no response".to_owned(),
            },
            Self::Transport(endpoint, error) => format!("{endpoint}: {error}"),
            Self::Stalled(endpoint, time) => format!("{endpoint}: no progress for {time:?}"),
            Self::Nonsense(how) => format!("the response cannot be right: {how}"),
            Self::Stale => "it keeps closing connections".to_owned(),
            _ => "no usable response".to_owned(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Answer(refusal) => refusal.retry_after,
            Self::Request(attempted) => attempted.error.raw_response().and_then(retry_after),
            _ => None,
        }
    }

    fn may_be_done(&self) -> bool {
        match self {
            // An upload is also gone when it was completed.
            Self::Request(attempted) if attempted.error.code() == Some("NoSuchUpload") => true,
            Self::Request(attempted) => leaves_open_whether_done(&attempted.error),
            Self::Unconfirmed(_) => true,
            _ => matches!(self.class(), Class::Transient | Class::Doubtful),
        }
    }

    #[cold]
    fn into_error(self, op: &str, what: &dyn Display, attempts: u32) -> Error {
        match self {
            Self::Answer(refusal) => of_answer(op, what, &Answer { attempts, ..refusal.answer }),
            Self::Sdk(error) => failure(op, what, *error),
            Self::Request(attempted) => failure(attempted.op, what, attempted.error),
            Self::Changed => {
                metrics::failed("PreconditionFailed");
                Error::failed_precondition(format_args!(
                    "{what}: {op}: the object changed while it was open; open it again"
                ))
            }
            Self::Transport(endpoint, error) => {
                of_transport(op, what, Some(&endpoint), attempts, &*error)
            }
            Self::Stale => {
                let error = io::Error::other("it keeps closing connections");
                of_transport(op, what, None, attempts, &error)
            }
            Self::Stalled(endpoint, time) => {
                let error =
                    io::Error::new(io::ErrorKind::TimedOut, format!("no progress for {time:?}"));
                of_transport(op, what, Some(&endpoint), attempts, &error)
            }
            Self::Nonsense(how) => {
                metrics::failed("other");
                Error::unavailable(format_args!(
                    "{what}: {op}: the response cannot be right: {how} ({attempts} attempts); check what is \
                     between here and the store"
                ))
            }
            Self::Unsupported => {
                Error::internal(format_args!("{what}: {op}: unsupported response"))
            }
            Self::CutOff => Error::data_loss(format_args!(
                "{what}: {op}: the store's answer is cut off; try again, and ask whoever runs the store"
            )),
            Self::NotOffered(what_not) => Error::unimplemented(format_args!(
                "{what}: {op}: the store does not support {what_not}"
            )),
            Self::Other(error) => error.context(format_args!("{what}: {op}")),
            Self::Finished(_, error) | Self::Unconfirmed(error) => error,
        }
    }
}

impl Refusal {
    fn is_transient(&self) -> bool {
        matches!(self.answer.status, 408 | 429 | 500 | 502 | 503 | 504)
            || self.answer.code.as_deref().is_some_and(is_overload)
    }

    fn is_no_such_key(&self) -> bool {
        self.answer.status == 404 && self.answer.code.as_deref() != Some("NoSuchBucket")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_under_load_does_not_say_that_an_object_is_gone() {
        let class = |status, code: &str| {
            let answer = Answer { status, code: Some(code.to_owned()), ..Answer::default() };
            Cause::Answer(Box::new(Refusal { answer, retry_after: None, is_mended: false })).class()
        };
        for code in ["RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable"] {
            assert_eq!(class(404, code), Class::Transient, "{code}");
        }
        assert_eq!(class(404, "NoSuchKey"), Class::NotFound);
        assert_eq!(class(404, "NoSuchBucket"), Class::Permanent);
        assert_eq!(class(503, "SlowDown"), Class::Transient);
    }
}
