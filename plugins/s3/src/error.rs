//! S3's errors as TensorFlow's codes.
//!
//! | Cause | Code |
//! |---|---|
//! | no such key, bucket or upload (404) | `NOT_FOUND` |
//! | refused (403), wrong signature, clocks that differ | `PERMISSION_DENIED` |
//! | no credentials, expired ones, 401 | `UNAUTHENTICATED` |
//! | condition not met (412), archived or locked object, wrong region or addressing style | `FAILED_PRECONDITION` |
//! | conflict with another request (409) | `ABORTED` |
//! | range past the end (416) | `OUT_OF_RANGE` |
//! | store overloaded or broken (429, 5xx), no connection, DNS, TLS | `UNAVAILABLE` |
//! | no progress or no connection in time | `DEADLINE_EXCEEDED` |
//! | checksum does not match | `DATA_LOSS` |
//! | quota used up, a response or a listing that is too large | `RESOURCE_EXHAUSTED` |
//! | not supported by the store (405, 501) | `UNIMPLEMENTED` |
//! | other requests that a store finds wrong (400) | `INVALID_ARGUMENT` |

mod codes;

use self::codes::{about_checksums, meaning};
use crate::credential::{Blame, NoCredentials};
use crate::metrics;
use crate::region::{REGION_HEADER, asked_for};
use std::fmt::{Display, Write};
use std::time::{Duration, SystemTime};
use tf_fs_object_store::http::{
    ErrorResponse, HttpError, PROXY_AUTH_REQUIRED, causes, is_timeout, printable, retry_after, xml,
};
use tf_fs_object_store::redact::redacted;
use tf_fs_object_store::{ErrorKind, StoreError};
use tf_fs_plugin::prelude::*;

/// Why one attempt of a request failed.
#[derive(Debug)]
pub(crate) enum S3Error {
    /// The store refused.
    Refused(Box<Refused>),
    /// The store did not respond, or not as it should.
    Failed(HttpError),
    /// It was done, but what the store has is wrong, or unknown.
    Unconfirmed(Error),
    /// A complete error, passed on unchanged.
    Finished(ErrorKind, Error),
    /// No source has credentials to sign with.
    NoCredentials(NoCredentials),
}

/// What the store said.
#[derive(Debug)]
pub(crate) struct Refused {
    refusal: ErrorResponse,
    /// The name under which it is counted.
    reason: &'static str,
    /// Whether the reason is known and corrected: another attempt at once is worthwhile.
    retry_now: bool,
}

/// Requests that send bytes, and may have a checksum of them.
const UPLOADS: [&str; 5] = [
    "PutObject",
    "UploadPart",
    "CreateMultipartUpload",
    "CompleteMultipartUpload",
    "DeleteObjects",
];

/// Returns what an error response to `op` means. `has_checksum`: whether the request may have had one of what it sends.
#[cold]
pub(crate) fn explain<'a>(
    op: &str,
    bucket: &str,
    has_checksum: bool,
    status: u16,
    header: impl Fn(&str) -> Option<&'a str>,
    body: &[u8],
) -> Refused {
    let hidden = |text: String| redacted(&text).into_owned();
    let code = xml::error_field(body, "Code").map(hidden);
    let message = xml::error_field(body, "Message").map(hidden);
    let region = asked_for(status, header(REGION_HEADER), body);
    let (name, text) =
        (code.as_deref().unwrap_or_default(), message.as_deref().unwrap_or_default());
    let (error, mut advice) = match &region {
        Some(region) if matches!(status, 301 | 302 | 307 | 308 | 400) => (
            Code::FailedPrecondition,
            format!(
                "bucket `{bucket}` is in region {region}; set AWS_REGION={region}, or region for this bucket"
            ),
        ),
        _ => {
            let about = about_checksums(status, name, text, has_checksum);
            let (error, advice) = match about.filter(|_| UPLOADS.contains(&op)) {
                Some(about) if status == 501 => (Code::Unimplemented, about),
                Some(about) => (Code::InvalidArgument, about),
                None => advice(status, name, text),
            };
            let here = httpdate(SystemTime::now());
            let there = header("date").unwrap_or("unknown");
            let advice = advice.replace("{bucket}", bucket);
            (error, advice.replace("{here}", &here).replace("{there}", &printable(there, 64)))
        }
    };
    if let Some(id) = header("x-amz-request-id") {
        let _ = write!(advice, "; request id {}", printable(id, 64));
    }
    let reason = metrics::reason(name).unwrap_or(match status {
        _ if error == Code::Unauthenticated => "credentials",
        _ if region.is_some() => "region",
        404 if code.is_none() => "NoSuchKey",
        403 if code.is_none() => "AccessDenied",
        412 if code.is_none() => "PreconditionFailed",
        416 if code.is_none() => "InvalidRange",
        429 | 503 => "SlowDown",
        500.. => "InternalError",
        _ => "other",
    });
    let refusal = ErrorResponse {
        status,
        retry_after: header("retry-after").and_then(retry_after),
        kind: Some(kind_of(status, code.as_deref())),
        code,
        message,
        advice: Some(advice),
        error_code: Some(error),
        ..ErrorResponse::default()
    };
    Refused { refusal, reason, retry_now: false }
}

impl Refused {
    /// Returns the error of a request to this endpoint. `retry_now`: another attempt at once is worthwhile.
    pub(crate) fn into_error(mut self, endpoint: String, retry_now: bool) -> S3Error {
        self.refusal.endpoint = endpoint;
        self.retry_now = retry_now;
        S3Error::Refused(Box::new(self))
    }
}

impl S3Error {
    /// Returns the status of the response, if there was one.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refused) => Some(refused.refusal.status),
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
            Self::Refused(refused) => refused.refusal.code.as_deref(),
            _ => None,
        }
    }

    /// Makes the engine try again at once.
    pub(crate) fn again(mut self) -> Self {
        if let Self::Refused(refused) = &mut self {
            refused.retry_now = true;
        }
        self
    }

    /// Sets the class, where the response means something else than it says.
    pub(crate) fn with_kind(mut self, class: ErrorKind) -> Self {
        if let Self::Refused(refused) = &mut self {
            refused.refusal.kind = Some(class);
        }
        self
    }
}

/// Returns whether another attempt can help after a response with this status and code.
fn kind_of(status: u16, code: Option<&str>) -> ErrorKind {
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

/// Returns TensorFlow's code, and what to do. `{bucket}`, `{here}` and `{there}` stand for the bucket and both clocks.
fn advice(status: u16, code: &str, message: &str) -> (Code, &'static str) {
    match code {
        "InternalError" | "ServiceUnavailable" | "OperationAborted" if status < 400 => {
            return (Code::Unavailable, "the store failed; try again");
        }
        "InvalidRequest" if message.contains("Server Side Encryption") => {
            return (
                Code::FailedPrecondition,
                "the object is encrypted with a key of a customer (SSE-C), which this plugin does not send",
            );
        }
        // As Cloudflare R2 says it.
        "InvalidPart" if message.contains("the same length") => {
            return (
                Code::FailedPrecondition,
                "the store requires parts of one length; set TF_S3_WRITE_PARTS_EQUAL=1, or write_parts_equal for this bucket",
            );
        }
        code if is_about_old_credentials(code) => {
            return (Code::Unauthenticated, "the credentials have expired; renew them");
        }
        code if is_overload(code) => {
            return (
                Code::Unavailable,
                "the store is overloaded; use fewer files at a time, or try again",
            );
        }
        code => {
            if let Some(meaning) = meaning(code) {
                return meaning;
            }
        }
    }
    match status {
        404 => (Code::NotFound, "not found"),
        401 => (Code::Unauthenticated, "the store requires credentials"),
        403 if is_denied(Some(code).filter(|code| !code.is_empty())) => {
            (Code::PermissionDenied, "access denied; the credentials in use lack the permission")
        }
        403 => (Code::PermissionDenied, "the store refuses this for the reason that it names"),
        405 | 501 => (Code::Unimplemented, "the store does not support this"),
        410 => (Code::NotFound, "it is not there any more"),
        507 => (Code::ResourceExhausted, "the store is full"),
        407 => (
            Code::Unauthenticated,
            "the proxy requires credentials; put them into HTTPS_PROXY or HTTP_PROXY",
        ),
        413 => (
            Code::InvalidArgument,
            "the store or a proxy does not take a request of this size; lower TF_S3_WRITE_PART_BYTES, or raise the limit \
             of the proxy",
        ),
        408 => (Code::DeadlineExceeded, "the store waited too long for the request"),
        409 => (Code::Aborted, "another request is in progress; try again"),
        412 => (Code::FailedPrecondition, "the object does not meet the condition of the request"),
        416 => (Code::OutOfRange, "the range begins past the end"),
        429 => {
            (Code::Unavailable, "the store is overloaded; use fewer files at a time, or try again")
        }
        503 => (Code::Unavailable, "the store is overloaded or down; try again"),
        500.. => (Code::Unavailable, "the store failed; try again"),
        300..=399 => (
            Code::FailedPrecondition,
            "the store redirects the request; check endpoint_url and region",
        ),
        400 => (Code::InvalidArgument, "the store rejects the request as invalid"),
        402..=499 => (Code::FailedPrecondition, "the store refused the request"),
        _ => (Code::Unavailable, "the store responded with an error"),
    }
}

impl From<HttpError> for S3Error {
    fn from(failed: HttpError) -> Self {
        Self::Failed(failed)
    }
}

impl From<Error> for S3Error {
    fn from(error: Error) -> Self {
        Self::Finished(ErrorKind::Permanent, error)
    }
}

impl StoreError for S3Error {
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
            Self::Refused(refused) => refused.refusal.kind(),
            Self::Failed(failed) => failed.kind(),
            Self::Unconfirmed(_) => ErrorKind::Permanent,
            Self::Finished(class, _) => *class,
            Self::NoCredentials(error) if error.may_pass => ErrorKind::Transient,
            Self::NoCredentials(_) => ErrorKind::Permanent,
        }
    }

    fn retry_immediately(&self) -> bool {
        match self {
            Self::Refused(refused) => refused.retry_now,
            Self::Failed(failed) => failed.retry_immediately(),
            _ => false,
        }
    }

    fn summary(&self) -> String {
        match self {
            Self::Refused(refused) => {
                format!("the store responds with HTTP {}", refused.refusal.status)
            }
            Self::Failed(failed) => failed.summary(),
            Self::Unconfirmed(error) | Self::Finished(_, error) => error.message().to_owned(),
            Self::NoCredentials(error) => error.to_string(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refused) => refused.refusal.retry_after,
            _ => None,
        }
    }

    fn is_ambiguous(&self) -> bool {
        match self {
            Self::Refused(refused) if refused.retry_now => false,
            // An upload that was completed is gone, too.
            Self::Refused(_) if self.code() == Some("NoSuchUpload") => true,
            Self::Refused(refused) => {
                !matches!(refused.refusal.status, 300..=401 | 403 | 404 | 405 | 411 | 413 | 501)
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
            Self::Refused(refused) => {
                metrics::failed(refused.reason);
                HttpError::Status(Box::new(refused.refusal)).into_error(op, what, attempts)
            }
            Self::Failed(failed) => {
                // Metrics counted the others where they were found.
                if !matches!(failed, HttpError::Other(_)) {
                    metrics::failed(reason(&failed));
                }
                failed.into_error(op, what, attempts)
            }
            Self::Finished(_, error) | Self::Unconfirmed(error) => error,
            Self::NoCredentials(error) => {
                metrics::failed("credentials");
                Error::new(Code::Unauthenticated, format!("{what}: {op}: {error}"))
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

/// Returns the name under which a failure is counted.
fn reason(failed: &HttpError) -> &'static str {
    match failed {
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

/// Returns a date as HTTP writes it.
fn httpdate(time: SystemTime) -> String {
    let time = aws_smithy_types::DateTime::from(time);
    time.fmt(aws_smithy_types::date_time::Format::HttpDate).unwrap_or_default()
}

/// Returns whether this code of a store demands fewer requests.
pub(crate) fn is_overload(code: &str) -> bool {
    matches!(
        code,
        "SlowDown"
            | "SlowDownRead"
            | "SlowDownWrite"
            | "Throttling"
            | "ThrottlingException"
            | "ThrottledException"
            | "RequestThrottled"
            | "TooManyRequests"
            | "TooManyRequestsException"
            | "RequestLimitExceeded"
            | "BandwidthLimitExceeded"
            | "RateLimitExceeded"
            | "QpsLimitExceeded"
            | "ServerBusy"
            | "DownloadTrafficRateLimitExceeded"
            | "UploadTrafficRateLimitExceeded"
    )
}

/// Returns whether this code of a store says that the credentials are too old.
fn is_about_old_credentials(code: &str) -> bool {
    matches!(
        code,
        "ExpiredToken"
            | "ExpiredTokenException"
            | "InvalidToken"
            | "InvalidTokenId"
            | "TokenRefreshRequired"
            | "InvalidSecurityToken"
            | "SecurityTokenExpired"
            | "InvalidSecurity"
    )
}

/// Returns whether a response 403 with this code is about permissions.
pub(crate) fn is_denied(code: Option<&str>) -> bool {
    code.is_none_or(|code| {
        matches!(
            code,
            "AccessDenied"
                | "AllAccessDisabled"
                | "Forbidden"
                | "AccessForbidden"
                | "InsufficientPermission"
        )
    })
}

/// Returns how far newer credentials may help after this code.
pub(crate) fn blames_credentials(code: &str) -> Option<Blame> {
    match code {
        // The key may have been replaced, and this one deleted.
        "InvalidAccessKeyId" => Some(Blame::Certain),
        code if is_about_old_credentials(code) => Some(Blame::Certain),
        // Half of them may have been read before they were replaced, and half afterwards.
        "SignatureDoesNotMatch" => Some(Blame::Possible),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
