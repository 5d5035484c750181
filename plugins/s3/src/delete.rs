//! Deletes many objects with one request.

use crate::bucket::Bucket;
use crate::error::{S3Error, blames_credentials, is_denied, is_overload};
use crate::request::{Call, NAMESPACE};
use crate::write::checksum::Crc32;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tf_fs_object_store::http::{HttpError, Method, printable, xml};
use tf_fs_object_store::{ErrorKind, Name, StoreError as _};
use tf_fs_plugin::prelude::*;

/// Deletes keys, and returns those that could not be deleted.
pub(crate) async fn delete_many(
    bucket: &Bucket,
    name: &Name,
    keys: &[String],
) -> Result<Vec<(String, S3Error)>, S3Error> {
    let mut document = format!("<Delete xmlns=\"{}\">", NAMESPACE);
    for key in keys {
        let _ = write!(document, "<Object><Key>{}</Key></Object>", xml::escape(key));
    }
    document.push_str("</Delete>");
    // S3 requires a checksum of this request.
    let crc = Crc32::of([document.as_bytes()]);
    let call = Call::bucket("DeleteObjects", Method::POST)
        .with_query("delete", "")
        .with_xml(document)?
        .with_crc(Some(crc))?;
    let response = bucket.send(call).await.map_err(|error| {
        let is_final = error.kind() == ErrorKind::Permanent && !error.retry_immediately();
        // Older stores require the checksum of the request in another header.
        let is_other = error
            .code()
            .is_some_and(|code| code == "MalformedXML" || blames_credentials(code).is_some());
        match error.status() == Some(400) && is_final && !is_other {
            true => HttpError::Unsupported("DeleteObjects".to_owned()).into(),
            false => error,
        }
    })?;
    let mut unconfirmed: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
    let mut refused = Vec::new();
    let mut fields: [Option<String>; 3] = Default::default();
    response.read("DeleteResult", |path, text| match (path, text) {
        (["Deleted", "Key"], Some(key)) => drop(unconfirmed.remove(&*key)),
        (["Error", "Key"], key) => fields[0] = key,
        (["Error", "Code"], code) => fields[1] = code,
        (["Error", "Message"], message) => fields[2] = message,
        (["Error"], _) => refused.push(std::mem::take(&mut fields)),
        _ => {}
    })?;
    let mut failed = Vec::new();
    for [key, code, message] in refused {
        let Some(key) = key.filter(|key| keys.contains(key)) else { continue };
        unconfirmed.remove(&*key);
        let reason = code.as_deref().unwrap_or("no code");
        if reason != "NoSuchKey" {
            let (code, class) = judge(reason);
            let message = message.as_deref().unwrap_or("no message");
            let error = not_deleted(name, &key, code, reason, message);
            failed.push((key, S3Error::Finished(class, error)));
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
