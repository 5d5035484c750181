//! Why one attempt of a request failed, and whether another one can help.

use crate::connection::{Bucket, NoCredentials, Unanswered};
use crate::failure::{Answer, find, is_denied, is_overload, of_answer, of_credentials};
use crate::metrics;
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{BoxError, ErrorMetadata, ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::create_session::CreateSessionError;
use aws_smithy_runtime_api::client::endpoint::error::ResolveEndpointError;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::error::operation::BuildError;
use std::error::Error as StdError;
use std::fmt::Display;
use std::time::Duration;
use tf_fs_object_store::http::{HttpError, PROXY_AUTH_REQUIRED, causes, is_timeout, retry_after};
use tf_fs_object_store::{ErrorKind, StoreError};
use tf_fs_plugin::prelude::*;

/// Why one attempt failed.
#[derive(Debug)]
pub(crate) enum Cause {
    /// The store refused.
    Answer(Box<Refusal>),
    /// The store did not respond, or not as it should.
    Failed(HttpError),
    /// It was done, but what the store has is wrong, or unknown.
    Unconfirmed(Error),
    /// A complete error, passed on unchanged.
    Finished(ErrorKind, Error),
    /// No source has credentials to sign with.
    NoCredentials(ErrorKind, Error),
}

/// What the store said.
#[derive(Debug)]
pub(crate) struct Refusal {
    answer: Answer,
    kind: ErrorKind,
    retry_after: Option<Duration>,
    /// Whether the reason is known and corrected: another attempt at once is worthwhile.
    is_mended: bool,
}

impl Bucket {
    /// Returns why a request of the SDK failed.
    #[cold]
    pub(crate) fn cause<E: ProvideErrorMetadata>(&self, error: SdkError<E>) -> Cause {
        let error = error.map_service_error(|error| error.meta().clone());
        match &error {
            SdkError::ServiceError(refused) => self.refused(refused.raw(), refused.err()),
            SdkError::ResponseError(refused) if !refused.raw().status().is_success() => {
                self.refused(refused.raw(), &ErrorMetadata::default())
            }
            SdkError::ResponseError(_) => HttpError::Invalid(causes(&error)).into(),
            _ if find::<CredentialsError>(&error).is_some()
                || find::<NoCredentials>(&error).is_some() =>
            {
                Cause::no_credentials(&error)
            }
            _ if find::<ResolveEndpointError>(&error).is_some()
                || find::<BuildError>(&error).is_some() =>
            {
                let text = format!("{}; look at the name, endpoint_url and region", causes(&error));
                HttpError::Other(Error::invalid_argument(text)).into()
            }
            _ => self.unanswered(error),
        }
    }

    /// Returns why a request got no response.
    fn unanswered(&self, error: SdkError<ErrorMetadata>) -> Cause {
        let mut error: BoxError = error.into_source().unwrap_or_else(Into::into);
        error = match error.downcast::<ConnectorError>() {
            Ok(error) => error.into_source(),
            Err(error) => error,
        };
        error = match error.downcast::<Unanswered>() {
            Ok(error) => return error.0.into(),
            Err(error) => error,
        };
        match error.downcast::<SdkError<CreateSessionError, HttpResponse>>() {
            // A directory bucket needs a separate request for credentials.
            Ok(error) => self.cause(*error),
            Err(error) => HttpError::Other(Error::internal("not sent").with_source(error)).into(),
        }
    }

    fn refused(&self, response: &HttpResponse, error: &ErrorMetadata) -> Cause {
        let (status, headers) = (response.status().as_u16(), response.headers());
        let body = response.body().bytes().unwrap_or_default();
        let mut answer = Answer::new(status, |name| headers.get(name), body);
        answer.had_checksum = self.checksums;
        // Only the SDK finds errors in the body of a success.
        if let Some(code) = error.code() {
            answer.code = Some(code.to_owned());
        }
        if let Some(message) = error.message() {
            answer.message = Some(message.to_owned());
        }
        let is_mended = self.may_try_again(status, |name| headers.get(name), body);
        Cause::refusal(answer, headers.get("retry-after"), is_mended)
    }
}

impl Cause {
    /// Creates the cause from the store's response, its `Retry-After`, and whether the reason is known and corrected.
    pub(crate) fn refusal(answer: Answer, wait: Option<&str>, is_mended: bool) -> Self {
        let kind = kind_of(answer.status, answer.code.as_deref());
        let retry_after = wait.and_then(retry_after);
        Self::Answer(Box::new(Refusal { answer, kind, retry_after, is_mended }))
    }

    /// Creates the cause from the error of a source of credentials.
    #[cold]
    pub(crate) fn no_credentials(error: &(dyn StdError + 'static)) -> Self {
        let may_pass = find::<NoCredentials>(error).is_some_and(|error| error.may_pass);
        let kind = if may_pass { ErrorKind::Transient } else { ErrorKind::Permanent };
        Self::NoCredentials(kind, of_credentials(error))
    }

    /// Returns the status of the response, if there was one.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Answer(refusal) => Some(refusal.answer.status),
            Self::Failed(HttpError::Changed) => Some(412),
            Self::Failed(
                HttpError::Invalid(_) | HttpError::TooLarge(_) | HttpError::Unsupported(_),
            ) => Some(200),
            _ => None,
        }
    }

    /// Returns S3's code of the response, such as `NoSuchKey`.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Answer(refusal) => refusal.answer.code.as_deref(),
            _ => None,
        }
    }

    /// Makes the engine try again at once.
    pub(crate) fn again(mut self) -> Self {
        if let Self::Answer(refusal) = &mut self {
            refusal.is_mended = true;
        }
        self
    }

    /// Sets the kind, where the response means something else than it says.
    pub(crate) fn with_kind(mut self, kind: ErrorKind) -> Self {
        if let Self::Answer(refusal) = &mut self {
            refusal.kind = kind;
        }
        self
    }
}

/// Returns whether another attempt can help after a response with this status and code.
pub(crate) fn kind_of(status: u16, code: Option<&str>) -> ErrorKind {
    match (status, code) {
        // First: a store under load that says 404 does not say that the object is gone.
        (
            _,
            Some(
                "RequestTimeout"
                | "RequestTimeoutException"
                | "InternalError"
                | "ServiceUnavailable",
            ),
        ) => ErrorKind::Transient,
        (_, Some(code)) if is_overload(code) => ErrorKind::Transient,
        (404, Some("NoSuchBucket" | "NoSuchAccessPoint" | "NoSuchAccessPointAlias")) => {
            ErrorKind::Permanent
        }
        // With a wrong key another request does not help.
        (403, code) if !is_denied(code) => ErrorKind::Permanent,
        // 507: the store is full.
        (..300 | 401 | 407 | 507, _) => ErrorKind::Permanent,
        _ => ErrorKind::from_http_status(status),
    }
}

impl From<HttpError> for Cause {
    fn from(failed: HttpError) -> Self {
        Self::Failed(failed)
    }
}

impl From<Error> for Cause {
    fn from(error: Error) -> Self {
        Self::Finished(ErrorKind::Permanent, error)
    }
}

impl StoreError for Cause {
    fn changed() -> Self {
        HttpError::Changed.into()
    }

    fn stalled(endpoint: String, time: Duration) -> Self {
        HttpError::Stalled(endpoint, time).into()
    }

    fn invalid(how: &str) -> Self {
        HttpError::Invalid(how.to_owned()).into()
    }

    fn unsupported(what: &str) -> Self {
        HttpError::Unsupported(what.to_owned()).into()
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Answer(refusal) => refusal.kind,
            Self::Failed(failed) => failed.kind(),
            Self::Unconfirmed(_) => ErrorKind::Permanent,
            Self::Finished(kind, _) | Self::NoCredentials(kind, _) => *kind,
        }
    }

    fn retry_immediately(&self) -> bool {
        match self {
            Self::Answer(refusal) => refusal.is_mended,
            Self::Failed(failed) => failed.retry_immediately(),
            _ => false,
        }
    }

    fn summary(&self) -> String {
        match self {
            Self::Answer(refusal) => {
                format!("the store responds with HTTP {}", refusal.answer.status)
            }
            Self::Failed(failed) => failed.summary(),
            Self::Unconfirmed(error) | Self::Finished(_, error) | Self::NoCredentials(_, error) => {
                error.message().to_owned()
            }
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Answer(refusal) => refusal.retry_after,
            _ => None,
        }
    }

    fn is_ambiguous(&self) -> bool {
        match self {
            Self::Answer(refusal) if refusal.is_mended => false,
            // An upload that was completed is gone, too.
            Self::Answer(_) if self.code() == Some("NoSuchUpload") => true,
            Self::Answer(refusal) => {
                let status = refusal.answer.status;
                !matches!(status, 300..=401 | 403 | 404 | 405 | 411 | 413 | 501)
            }
            Self::Failed(failed) => failed.is_ambiguous(),
            Self::Unconfirmed(_) => true,
            Self::Finished(..) | Self::NoCredentials(..) => false,
        }
    }

    #[cold]
    fn into_error(self, op: &str, what: &dyn Display, attempts: u32) -> Error {
        let op = operation(op);
        match self {
            Self::Answer(refusal) => of_answer(op, what, &refusal.answer, attempts),
            // Metrics counted it where it was found.
            Self::Failed(failed @ HttpError::Other(_)) => failed.into_error(op, what, attempts),
            Self::Failed(failed) => {
                let reason = reason(&failed);
                metrics::failed(reason);
                let error = failed.into_error(op, what, attempts);
                if reason == CHECKSUM { error.with_code(Code::DataLoss) } else { error }
            }
            Self::Finished(_, error) | Self::Unconfirmed(error) => error,
            Self::NoCredentials(_, error) => {
                metrics::failed("credentials");
                error.context(format_args!("{what}: {op}"))
            }
        }
    }
}

/// Returns S3's name of an engine request.
fn operation(op: &str) -> &str {
    match op {
        "head" => "HeadObject",
        "put" | "put marker" => "PutObject",
        "delete" => "DeleteObject",
        "delete many" => "DeleteObjects",
        "copy" => "CopyObject",
        "list buckets" => "ListBuckets",
        "create multipart" => "CreateMultipartUpload",
        "put part" => "UploadPart",
        "copy part" => "UploadPartCopy",
        "complete multipart" => "CompleteMultipartUpload",
        "abort multipart" => "AbortMultipartUpload",
        op => op,
    }
}

const CHECKSUM: &str = "checksum";

/// Returns the name under which a failure is counted.
fn reason(failed: &HttpError) -> &'static str {
    match failed {
        // The SDK verifies what it receives.
        HttpError::Transport(_, error) if causes(&**error).contains("hecksum mismatch") => CHECKSUM,
        HttpError::Changed => "PreconditionFailed",
        HttpError::Stalled(..) => "timeout",
        HttpError::Transport(_, error) if is_timeout(&**error) => "timeout",
        HttpError::Transport(_, error) if causes(&**error).contains(PROXY_AUTH_REQUIRED) => {
            "credentials"
        }
        HttpError::Transport(..) | HttpError::Stale(_) => "connection",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_under_load_does_not_say_that_an_object_is_gone() {
        for code in ["RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable"] {
            assert_eq!(kind_of(404, Some(code)), ErrorKind::Transient, "{code}");
        }
        assert_eq!(kind_of(404, Some("NoSuchKey")), ErrorKind::NotFound);
        assert_eq!(kind_of(404, Some("NoSuchBucket")), ErrorKind::Permanent);
        assert_eq!(kind_of(503, Some("SlowDown")), ErrorKind::Transient);
        assert_eq!(kind_of(507, None), ErrorKind::Permanent);
    }

    #[test]
    fn a_wrong_key_is_no_missing_permission() {
        assert_eq!(kind_of(403, None), ErrorKind::Denied);
        assert_eq!(kind_of(403, Some("AccessDenied")), ErrorKind::Denied);
        assert_eq!(kind_of(403, Some("SignatureDoesNotMatch")), ErrorKind::Permanent);
        assert_eq!(kind_of(401, None), ErrorKind::Permanent);
        assert_eq!(kind_of(200, Some("MalformedXML")), ErrorKind::Permanent);
    }
}
