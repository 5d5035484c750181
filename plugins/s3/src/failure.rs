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
use crate::connection::{Blame, NoCredentials, REGION_HEADER, asked_for};
use crate::metrics;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use std::error::Error as StdError;
use std::fmt::{Display, Write};
use std::time::SystemTime;
use tf_fs_object_store::http::{causes, printable};
use tf_fs_plugin::prelude::*;

/// An error response of a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// S3's code, such as `NoSuchKey`.
    pub(crate) code: Option<String>,
    /// The store's own words.
    pub(crate) message: Option<String>,
    pub(crate) request_id: Option<String>,
    /// The region that the store requires.
    pub(crate) region: Option<String>,
    /// The store's clock: the `Date` header.
    pub(crate) date: Option<String>,
    /// Whether the request may have had a checksum of what it sends.
    pub(crate) had_checksum: bool,
}

/// Requests that send bytes, and may have a checksum of them.
const UPLOADS: [&str; 5] = [
    "PutObject",
    "UploadPart",
    "CreateMultipartUpload",
    "CompleteMultipartUpload",
    "DeleteObjects",
];

impl Answer {
    /// Creates it from the head of a response and as much of its body as was read.
    pub(crate) fn new<'a>(
        status: u16,
        header: impl Fn(&str) -> Option<&'a str>,
        body: &[u8],
    ) -> Self {
        let owned = |name| header(name).map(str::to_owned);
        Self {
            status,
            code: element(body, "Code").filter(|code| !code.is_empty()),
            message: element(body, "Message"),
            request_id: owned("x-amz-request-id"),
            region: asked_for(status, header(REGION_HEADER), body),
            date: owned("date"),
            had_checksum: false,
        }
    }

    /// Returns TensorFlow's code, and an explanation.
    fn explain(&self, op: &str, what: &str) -> (Code, String) {
        let bucket = what.split_once("://").map_or(what, |(_, rest)| rest);
        let bucket = bucket.split('/').next().unwrap_or(bucket);
        let text = |code, text: &str| (code, text.to_owned());
        if let Some(region) = &self.region
            && matches!(self.status, 301 | 302 | 307 | 308 | 400)
        {
            return (
                Code::FailedPrecondition,
                format!(
                    "bucket `{bucket}` is in region {region}; set AWS_REGION={region}, or region for this bucket"
                ),
            );
        }
        let (name, message) = (self.code.as_deref().unwrap_or_default(), self.message.as_deref());
        let message = message.unwrap_or_default();
        if UPLOADS.contains(&op)
            && let Some(about) = about_checksums(self.status, name, message, self.had_checksum)
        {
            let code = if self.status == 501 { Code::Unimplemented } else { Code::InvalidArgument };
            return text(code, about);
        }
        match name {
            "NoSuchBucket" => {
                return (
                    Code::NotFound,
                    format!("there is no bucket `{bucket}`; look at its name, and at endpoint_url"),
                );
            }
            "RequestTimeTooSkewed" => {
                let here = DateTime::from(SystemTime::now());
                let here = here.fmt(Format::HttpDate).unwrap_or_default();
                let there = self.date.as_deref().unwrap_or("unknown");
                return (
                    Code::PermissionDenied,
                    format!(
                        "the clocks differ too much: here it is {here}, at the store {there}; set this machine's clock"
                    ),
                );
            }
            "InternalError" | "ServiceUnavailable" | "OperationAborted" if self.status < 400 => {
                return text(Code::Unavailable, "the store failed; try again");
            }
            "InvalidRequest" if message.contains("Server Side Encryption") => {
                return text(
                    Code::FailedPrecondition,
                    "the object is encrypted with a key of a customer (SSE-C), which this plugin does not send",
                );
            }
            code if is_about_old_credentials(code) => {
                return text(Code::Unauthenticated, "the credentials have expired; renew them");
            }
            code if is_overload(code) => {
                return text(
                    Code::Unavailable,
                    "the store is overloaded; use fewer files at a time, or try again",
                );
            }
            code => {
                if let Some((code, about)) = meaning(code) {
                    return text(code, about);
                }
            }
        }
        match self.status {
            404 => text(Code::NotFound, "not found"),
            401 => text(Code::Unauthenticated, "the store requires credentials"),
            403 if is_denied(self.code.as_deref()) => text(
                Code::PermissionDenied,
                "access denied; the credentials in use lack the permission",
            ),
            403 => {
                text(Code::PermissionDenied, "the store refuses this for the reason that it names")
            }
            405 | 501 => text(Code::Unimplemented, "the store does not support this"),
            410 => text(Code::NotFound, "it is not there any more"),
            507 => text(Code::ResourceExhausted, "the store is full"),
            407 => text(
                Code::Unauthenticated,
                "the proxy requires credentials; put them into HTTPS_PROXY or HTTP_PROXY",
            ),
            413 => text(
                Code::InvalidArgument,
                "the store or a proxy does not take a request of this size; lower TF_S3_WRITE_PART_BYTES, or raise the limit \
                 of the proxy",
            ),
            408 => text(Code::DeadlineExceeded, "the store waited too long for the request"),
            409 => text(Code::Aborted, "another request is in progress; try again"),
            412 => text(
                Code::FailedPrecondition,
                "the object does not meet the condition of the request",
            ),
            416 => text(Code::OutOfRange, "the range begins past the end"),
            429 => text(
                Code::Unavailable,
                "the store is overloaded; use fewer files at a time, or try again",
            ),
            503 => text(Code::Unavailable, "the store is overloaded or down; try again"),
            500.. => text(Code::Unavailable, "the store failed; try again"),
            300..=399 => text(
                Code::FailedPrecondition,
                "the store redirects the request; check endpoint_url and region",
            ),
            400 => text(Code::InvalidArgument, "the store rejects the request as invalid"),
            402..=499 => text(Code::FailedPrecondition, "the store refused the request"),
            _ => text(Code::Unavailable, "the store responded with an error"),
        }
    }
}

/// Returns the error for an error response: `op` on `what`.
#[cold]
pub(crate) fn of_answer(op: &str, what: &dyn Display, answer: &Answer, attempts: u32) -> Error {
    let what = what.to_string();
    let (code, explanation) = answer.explain(op, &what);
    metrics::failed(match (&answer.code, answer.status) {
        (Some(name), _) if metrics::is_kind(name) => name,
        _ if code == Code::Unauthenticated => "credentials",
        _ if answer.region.is_some() => "region",
        (None, 404) => "NoSuchKey",
        (None, 403) => "AccessDenied",
        (None, 412) => "PreconditionFailed",
        (None, 416) => "InvalidRange",
        (_, 429 | 503) => "SlowDown",
        (_, 500..) => "InternalError",
        _ => "other",
    });
    let mut text = format!("{what}: {op}: {explanation} (HTTP {}", answer.status);
    if let Some(code) = &answer.code {
        let _ = write!(text, " {}", printable(code, 64));
    }
    if let Some(message) = &answer.message {
        let _ = write!(text, ", \"{}\"", printable(message, 300));
    }
    if let Some(id) = &answer.request_id {
        let _ = write!(text, ", request id {}", printable(id, 64));
    }
    let plural = if attempts == 1 { "" } else { "s" };
    let _ = write!(text, ", {attempts} attempt{plural})");
    Error::new(code, text)
}

/// Returns the error of missing credentials.
#[cold]
pub(crate) fn of_credentials(error: &(dyn StdError + 'static)) -> Error {
    match find::<NoCredentials>(error) {
        Some(tried) => Error::new(Code::Unauthenticated, tried.to_string()),
        None => Error::new(Code::Unauthenticated, format!("no AWS credentials: {}", causes(error))),
    }
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

/// Returns the first cause of this type.
pub(crate) fn find<'a, E: StdError + 'static>(
    error: &'a (dyn StdError + 'static),
) -> Option<&'a E> {
    let mut next = Some(error);
    for _ in 0..16 {
        let error = next?;
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// Returns the text of the first element of this name.
pub(crate) fn element(body: &[u8], name: &str) -> Option<String> {
    let body = std::str::from_utf8(body.get(..body.len().min(4096))?).ok()?;
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    Some(text.replace("&apos;", "'").replace("&amp;", "&"))
}

#[cfg(test)]
mod tests;
