//! Deleting many objects with one request.

use super::pages::payer;
use crate::cause::Cause;
use crate::connection::Bucket;
use crate::failure::{blames_credentials, is_denied, is_overload};
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use std::collections::BTreeSet;
use tf_fs_object_store::http::{HttpError, printable};
use tf_fs_object_store::{ErrorKind, Name, StoreError as _};
use tf_fs_plugin::prelude::*;

/// Deletes keys, and returns those that could not be deleted.
pub(crate) async fn delete_many(
    bucket: &Bucket,
    name: &Name,
    keys: &[String],
) -> Result<Vec<(String, Cause)>, Cause> {
    let objects = keys.iter().filter_map(|key| ObjectIdentifier::builder().key(key).build().ok());
    let delete = Delete::builder().set_objects(Some(objects.collect())).build();
    let answer = bucket
        .client
        .delete_objects()
        .bucket(&*bucket.name)
        .delete(delete.map_err(Error::internal)?)
        .set_request_payer(payer(bucket))
        .send()
        .await;
    let answer = answer.map_err(|error| {
        let cause = bucket.cause(error);
        let is_final = cause.kind() == ErrorKind::Permanent && !cause.retry_immediately();
        // Older stores require the checksum of the request in another header.
        let is_other = cause
            .code()
            .is_some_and(|code| code == "MalformedXML" || blames_credentials(code).is_some());
        match cause.status() == Some(400) && is_final && !is_other {
            true => HttpError::Unsupported("DeleteObjects".to_owned()).into(),
            false => cause,
        }
    })?;
    let mut unconfirmed: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
    for deleted in answer.deleted() {
        unconfirmed.remove(deleted.key().unwrap_or_default());
    }
    let mut failed = Vec::new();
    for error in answer.errors() {
        let Some(key) = error.key().filter(|key| keys.iter().any(|own| own == key)) else {
            continue;
        };
        unconfirmed.remove(key);
        let reason = error.code().unwrap_or("no code");
        if reason != "NoSuchKey" {
            let (code, class) = judge(reason);
            let what = error.message().unwrap_or("no message");
            let error = not_deleted(name, key, code, reason, what);
            failed.push((key.to_owned(), Cause::Finished(class, error)));
        }
    }
    // Stores tell of failures only, or write keys in another way: each is deleted alone, which is confirmed.
    failed.extend(
        unconfirmed
            .into_iter()
            .map(|key| (key.to_owned(), HttpError::Unsupported("DeleteObjects".to_owned()).into())),
    );
    Ok(failed)
}

#[cold]
fn not_deleted(directory: &Name, key: &str, code: Code, reason: &str, what: &str) -> Error {
    let name = directory.with_key(key);
    let (reason, what) = (printable(reason, 64), printable(what, 300));
    Error::new(code, format!("{name}: DeleteObjects: {reason}: {what}"))
}

/// Returns the code for a store's error about a single key, and whether it may pass.
fn judge(code: &str) -> (Code, ErrorKind) {
    match code {
        code if is_denied(Some(code)) => (Code::PermissionDenied, ErrorKind::Denied),
        "InternalError" | "ServiceUnavailable" | "RequestTimeout" => {
            (Code::Unavailable, ErrorKind::Transient)
        }
        code if is_overload(code) => (Code::Unavailable, ErrorKind::Transient),
        code if blames_credentials(code).is_some() => (Code::Unauthenticated, ErrorKind::Permanent),
        "InvalidRequest" | "MethodNotAllowed" => (Code::FailedPrecondition, ErrorKind::Permanent),
        _ => (Code::Unknown, ErrorKind::Permanent),
    }
}

/// Returns whether XML can carry a key to the store without losing any of it.
pub(crate) fn fits_xml(key: &str) -> bool {
    let is_odd = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{fffe}' | '\u{ffff}');
    !key.contains(is_odd) && key.trim() == key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_may_pass() {
        assert_eq!(judge("AccessDenied"), (Code::PermissionDenied, ErrorKind::Denied));
        assert_eq!(judge("SlowDown"), (Code::Unavailable, ErrorKind::Transient));
        assert_eq!(judge("NeverHeardOf"), (Code::Unknown, ErrorKind::Permanent));
    }

    #[test]
    fn keys_that_xml_would_change() {
        for key in ["a", "a b", "a<&>\"'é😀"] {
            assert!(fits_xml(key), "{key:?}");
        }
        for key in [" a", "a ", "a\u{1}", "a\nb", "a\tb", "a\u{ffff}", "a\u{85}b"] {
            assert!(!fits_xml(key), "{key:?}");
        }
    }
}
