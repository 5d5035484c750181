//! S3's errors as TensorFlow's codes.
//!
//! | Cause | Code |
//! |---|---|
//! | no such key, bucket or upload (404) | `NOT_FOUND` |
//! | refused (403), wrong signature, clocks that differ | `PERMISSION_DENIED` |
//! | no credentials, expired ones, 401 | `UNAUTHENTICATED` |
//! | condition not met (412), archived object, wrong region | `FAILED_PRECONDITION` |
//! | conflict with another request (409) | `ABORTED` |
//! | range past the end (416) | `OUT_OF_RANGE` |
//! | store overloaded or broken (429, 5xx), no connection, DNS, TLS | `UNAVAILABLE` |
//! | no progress or no connection in time | `DEADLINE_EXCEEDED` |
//! | checksum does not match | `DATA_LOSS` |
//! | quota used up, a response or a listing without end | `RESOURCE_EXHAUSTED` |
//! | not offered by the store (405, 501) | `UNIMPLEMENTED` |
//! | other requests that a store finds wrong (400) | `INVALID_ARGUMENT` |

use crate::connection::{
    ATTEMPT_HEADER, Attempt, NoCredentials, REGION_HEADER, Stalled, TooLarge, asked_for, code_of,
    is_about_old_credentials,
};
use crate::metrics;
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::endpoint::error::ResolveEndpointError;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use aws_smithy_types::error::operation::BuildError;
use std::error::Error as StdError;
use std::fmt::{Display, Write};
use std::time::SystemTime;
use tf_fs_object_store::http::{PROXY_WANTS_CREDENTIALS, causes, printable};
use tf_fs_plugin::prelude::*;

/// An answer of a store that is no success.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// S3's code, such as `NoSuchKey`.
    pub(crate) code: Option<String>,
    /// The store's own words.
    pub(crate) message: Option<String>,
    pub(crate) request_id: Option<String>,
    /// The region that the store asks for.
    pub(crate) region: Option<String>,
    /// The store's clock: the `Date` header.
    pub(crate) date: Option<String>,
    /// How many attempts were made in all.
    pub(crate) attempts: u32,
}

impl Answer {
    /// From the head of an answer and as much of its body as was read.
    pub(crate) fn new<'a>(
        status: u16,
        header: impl Fn(&str) -> Option<&'a str>,
        body: &[u8],
        attempts: u32,
    ) -> Self {
        let owned = |name| header(name).map(str::to_owned);
        Self {
            status,
            code: code_of(body),
            message: element(body, "Message"),
            request_id: owned("x-amz-request-id"),
            region: asked_for(status, header(REGION_HEADER), body),
            date: owned("date"),
            attempts,
        }
    }

    /// The code for TensorFlow, and what to say about it.
    fn explain(&self, what: &str) -> (Code, String) {
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
        match self.code.as_deref().unwrap_or_default() {
            "NoSuchBucket" => {
                return (
                    Code::NotFound,
                    format!("there is no bucket `{bucket}`; look at its name, and at endpoint_url"),
                );
            }
            "NoSuchUpload" => {
                return text(
                    Code::NotFound,
                    "the upload does not exist any more; another client aborted it",
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
            "SignatureDoesNotMatch" => {
                return text(
                    Code::PermissionDenied,
                    "the signature is wrong; look at the secret access key",
                );
            }
            "InvalidAccessKeyId" => {
                return text(
                    Code::PermissionDenied,
                    "the store does not know the access key; look at the credentials and at endpoint_url",
                );
            }
            code if is_about_old_credentials(code) => {
                return text(Code::Unauthenticated, "the credentials have expired; renew them");
            }
            "InvalidObjectState" => {
                return text(Code::FailedPrecondition, "the object is archived; restore it first");
            }
            "BadDigest"
            | "InvalidDigest"
            | "XAmzContentSHA256Mismatch"
            | "XAmzContentChecksumMismatch" => {
                return text(Code::DataLoss, "the store received other bytes than were sent");
            }
            "RequestTimeout" => {
                return text(Code::DeadlineExceeded, "the store waited too long for the request");
            }
            "SlowDown"
            | "SlowDownRead"
            | "SlowDownWrite"
            | "Throttling"
            | "ThrottlingException"
            | "TooManyRequests"
            | "RequestLimitExceeded"
            | "BandwidthLimitExceeded" => {
                return text(
                    Code::Unavailable,
                    "the store is overloaded; use fewer files at a time, or try again",
                );
            }
            "InternalError" | "ServiceUnavailable" | "OperationAborted" if self.status < 400 => {
                return text(Code::Unavailable, "the store failed; try again");
            }
            "IncompleteBody" => {
                return text(Code::Unavailable, "the store received only a part; try again");
            }
            "QuotaExceeded" | "XMinioStorageFull" | "XMinioAdminBucketQuotaExceeded" => {
                return text(Code::ResourceExhausted, "the store is full");
            }
            "BucketAlreadyExists" | "BucketAlreadyOwnedByYou" => {
                return text(Code::AlreadyExists, "there is one already");
            }
            "NotImplemented" => {
                return text(Code::Unimplemented, "the store does not support this");
            }
            _ => {}
        }
        match self.status {
            404 => text(Code::NotFound, "not found"),
            401 => text(Code::Unauthenticated, "the store requires credentials"),
            403 => text(
                Code::PermissionDenied,
                "access denied; the credentials in use lack the permission",
            ),
            405 | 501 => text(Code::Unimplemented, "the store does not support this"),
            407 => text(
                Code::Unauthenticated,
                "the proxy requires credentials; put them into HTTPS_PROXY or HTTP_PROXY",
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

/// The error of an answer that is no success: `op` on `what`.
#[cold]
pub(crate) fn of_answer(op: &str, what: &dyn Display, answer: &Answer) -> Error {
    let what = what.to_string();
    let (code, explanation) = answer.explain(&what);
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
    text.push_str(&attempts(answer.attempts));
    text.push(')');
    Error::new(code, text)
}

/// The error of a request that got no whole answer: `op` on `what`, which `endpoint` was asked for.
#[cold]
pub(crate) fn of_transport(
    op: &str,
    what: &dyn Display,
    endpoint: Option<&str>,
    attempts_made: u32,
    error: &(dyn StdError + 'static),
) -> Error {
    let causes = causes(error);
    let code = if is_timeout(error) {
        Code::DeadlineExceeded
    } else if causes.contains("hecksum mismatch") {
        Code::DataLoss
    } else if causes.contains(PROXY_WANTS_CREDENTIALS) {
        Code::Unauthenticated
    } else {
        Code::Unavailable
    };
    metrics::failed(match code {
        Code::DeadlineExceeded => "timeout",
        Code::DataLoss => "checksum",
        Code::Unauthenticated => "credentials",
        _ => "connection",
    });
    let endpoint = endpoint.map(|endpoint| format!(" by {endpoint}")).unwrap_or_default();
    let explanation = match code {
        Code::DeadlineExceeded => "not answered in time",
        Code::DataLoss => "wrong bytes were sent",
        Code::Unauthenticated => {
            "the proxy requires credentials; put them into HTTPS_PROXY or HTTP_PROXY; not answered"
        }
        _ => "not answered",
    };
    Error::new(
        code,
        format!(
            "{what}: {op}: {explanation}{endpoint}: {} ({})",
            printable(&causes, 600),
            attempts(attempts_made).trim_start_matches(", ")
        ),
    )
}

/// The error of credentials that cannot be had.
#[cold]
pub(crate) fn of_credentials(error: &(dyn StdError + 'static)) -> Error {
    metrics::failed("credentials");
    match find::<NoCredentials>(error) {
        Some(tried) => Error::new(Code::Unauthenticated, tried.to_string()),
        None => Error::new(Code::Unauthenticated, format!("no AWS credentials: {}", causes(error))),
    }
}

/// The error of a request of the SDK's: `op` on `what`.
#[cold]
pub(crate) fn failure<E>(op: &str, what: &dyn Display, error: SdkError<E>) -> Error
where
    E: StdError + ProvideErrorMetadata + Send + Sync + 'static,
{
    if let Some(too_large) = find::<TooLarge>(&error) {
        metrics::failed("other");
        return Error::resource_exhausted(format_args!(
            "{what}: {op}: {too_large}, which cannot be right; check what is between here and the store"
        ));
    }
    match &error {
        SdkError::ServiceError(service) => {
            of_answer(op, what, &answer_of(service.raw(), service.err().meta()))
        }
        SdkError::ResponseError(response) if !response.raw().status().is_success() => {
            of_answer(op, what, &answer_of(response.raw(), &Default::default()))
        }
        SdkError::ResponseError(response) => {
            let attempts = attempts_of(response.raw());
            of_transport(op, what, None, attempts, &error)
        }
        _ if find::<CredentialsError>(&error).is_some()
            || find::<NoCredentials>(&error).is_some() =>
        {
            let cause = of_credentials(&error);
            Error::new(cause.code(), format!("{what}: {op}: {}", cause.message()))
        }
        _ if find::<ResolveEndpointError>(&error).is_some()
            || find::<BuildError>(&error).is_some() =>
        {
            let text = format!(
                "{what}: {op}: {}; look at the name, endpoint_url and region",
                causes(&error)
            );
            Error::new(Code::InvalidArgument, text)
        }
        _ => {
            let attempt = find::<Attempt>(&error);
            let endpoint = attempt.map(|attempt| attempt.endpoint.as_str());
            let (attempts, cause): (_, &(dyn StdError + 'static)) = match attempt {
                Some(attempt) => (attempt.number, attempt.cause()),
                None => (1, &error),
            };
            of_transport(op, what, endpoint, attempts, cause)
        }
    }
}

fn answer_of(response: &HttpResponse, metadata: &aws_smithy_types::error::ErrorMetadata) -> Answer {
    let headers = response.headers();
    let body = response.body().bytes().unwrap_or_default();
    let mut answer = Answer::new(
        response.status().as_u16(),
        |name| headers.get(name),
        body,
        attempts_of(response),
    );
    // Errors in the body of a success are known to the SDK only.
    if let Some(code) = metadata.code() {
        answer.code = Some(code.to_owned());
    }
    if let Some(message) = metadata.message() {
        answer.message = Some(message.to_owned());
    }
    answer
}

fn attempts_of(response: &HttpResponse) -> u32 {
    response.headers().get(ATTEMPT_HEADER).and_then(|number| number.parse().ok()).unwrap_or(1)
}

fn attempts(number: u32) -> String {
    if number == 1 { ", 1 attempt".to_owned() } else { format!(", {number} attempts") }
}

fn is_timeout(error: &(dyn StdError + 'static)) -> bool {
    find::<Stalled>(error).is_some()
        || find::<tokio::time::error::Elapsed>(error).is_some()
        || find::<std::io::Error>(error)
            .is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
        || causes(error).contains("timeout occurred")
}

/// The first cause of this type.
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

/// The text of the first element of this name.
fn element(body: &[u8], name: &str) -> Option<String> {
    let body = std::str::from_utf8(body.get(..body.len().min(4096))?).ok()?;
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    Some(text.replace("&apos;", "'").replace("&amp;", "&"))
}

#[cfg(test)]
mod tests;
