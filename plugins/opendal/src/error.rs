//! The engine's errors, through OpenDAL and back.

use crate::service::{failure, missing};
use opendal_core::{Error, ErrorKind};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use tf_fs_object_store::http::{ErrorResponse, HttpError};
use tf_fs_object_store::redact::redacted;
use tf_fs_object_store::{ErrorKind as Kind, StoreError as _};
use tf_fs_plugin::prelude::Code;

/// An error of the engine in one of OpenDAL.
#[derive(Debug)]
struct Carried(Mutex<Option<HttpError>>);

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request failed")
    }
}

impl std::error::Error for Carried {}

/// Puts an error of the engine into one of OpenDAL, which only looks at the kind.
pub(crate) fn carried(error: HttpError) -> Error {
    let kind = match error.kind() {
        Kind::NotFound => ErrorKind::NotFound,
        Kind::Denied => ErrorKind::PermissionDenied,
        Kind::Precondition => ErrorKind::ConditionNotMatch,
        Kind::Unsupported => ErrorKind::Unsupported,
        _ => ErrorKind::Unexpected,
    };
    Error::new(kind, "").set_source(Carried(Mutex::new(Some(error))))
}

/// Returns the engine's error that one of OpenDAL carries, or else what OpenDAL found wrong with a response.
pub(crate) fn returned(error: Error) -> HttpError {
    let first: &(dyn std::error::Error + 'static) = &error;
    for cause in std::iter::successors(Some(first), |cause| cause.source()) {
        if let Some(Carried(carried)) = cause.downcast_ref()
            && let Some(error) = carried.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            return error;
        }
    }
    match error.kind() {
        ErrorKind::NotFound => missing(),
        ErrorKind::ConditionNotMatch => HttpError::Changed,
        ErrorKind::Unsupported => HttpError::Unsupported(error.message().to_owned()),
        ErrorKind::PermissionDenied => failure(Kind::Denied, redacted(error.message())),
        _ if error.is_temporary() => failure(Kind::Transient, redacted(error.message())),
        _ => HttpError::Invalid(redacted(error.message()).into_owned()),
    }
}

/// Adds to a server's refusal what it means in WebDAV, and the next step.
pub(crate) fn explain(refusal: &mut ErrorResponse) {
    let (kind, code, advice) = match refusal.status {
        207 => (
            Some(Kind::Permanent),
            Some(Code::FailedPrecondition),
            "it did not change all of it; look at its log, and at the rights of the user",
        ),
        401 => (
            None,
            None,
            "set user and password, or bearer_token, beside the url of this server; credentials go to no other one",
        ),
        403 => (None, None, "look at the rights of the user on the server"),
        300..=399 => (None, None, "the files are at another place; set url to that place"),
        405 | 501 => {
            (None, None, "look at the url: the server has no WebDAV there, or not for writing")
        }
        409 => (None, None, "another program changed the directory at the same time; try it again"),
        413 => {
            (None, Some(Code::ResourceExhausted), "raise the server's limit for the size of a file")
        }
        423 => (
            Some(Kind::Transient),
            Some(Code::FailedPrecondition),
            "another program has locked it; close it there, or try again later",
        ),
        429 => {
            (None, None, "the server limits requests; read fewer files at once, or try again later")
        }
        507 => (
            Some(Kind::Permanent),
            Some(Code::ResourceExhausted),
            "the server's disk or the user's quota is full; free space there",
        ),
        500.. => (None, None, "the server is at fault; look at its log, or try again later"),
        _ => return,
    };
    refusal.kind = refusal.kind.or(kind);
    refusal.error_code = refusal.error_code.or(code);
    refusal.advice = Some(advice.to_owned());
}
