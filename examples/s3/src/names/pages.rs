//! Pages of `ListObjectsV2`.

use crate::connection::Bucket;
use crate::failure::failure;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::list_objects_v2::ListObjectsV2Error;
use aws_sdk_s3::types::{EncodingType, RequestPayer};
use percent_encoding::percent_decode;
use std::borrow::Cow;
use std::time::SystemTime;
use tf_fs_object_store::{Known, Name, Object, Page, Query};
use tf_fs_plugin::prelude::*;

/// Why there is no page.
#[derive(Debug)]
pub enum NoPage {
    /// The store refused.
    Failed(Box<SdkError<ListObjectsV2Error>>),
    /// XML that ends too early has fewer names in it, and is XML all the same to the SDK.
    CutOff,
}

impl tf_fs_object_store::NoPage for NoPage {
    /// Who may read a bucket's objects may not always list it; and some stores cannot list so. Whoever has the wrong key
    /// is not helped by another request.
    fn head_may_tell(&self) -> bool {
        matches!(self, Self::Failed(error) if is_denied(error) || matches!(status(error), Some(405 | 501)))
    }

    #[cold]
    fn into_error(self, name: &Name) -> Error {
        match self {
            Self::Failed(error) => failure("ListObjectsV2", name, *error),
            Self::CutOff => Error::data_loss(format_args!(
                "{name}: ListObjectsV2: the store's answer is cut off; try again, and ask whoever runs the store"
            )),
        }
    }
}

/// Who pays for a request.
pub(crate) fn payer(bucket: &Bucket) -> Option<RequestPayer> {
    bucket.settings.requester_pays.then_some(RequestPayer::Requester)
}

/// One page, as the store answers.
pub(crate) async fn page(
    bucket: &Bucket,
    query: &Query,
    token: Option<&str>,
) -> Result<Page, NoPage> {
    let output = bucket
        .client
        .list_objects_v2()
        .bucket(&*bucket.name)
        .set_prefix((!query.prefix.is_empty()).then(|| query.prefix.clone()))
        .set_delimiter(query.by_directory.then(|| "/".into()))
        // XML cannot hold every character that a key can.
        .encoding_type(EncodingType::Url)
        .set_start_after(query.after.clone().filter(|_| token.is_none()))
        .set_continuation_token(token.map(str::to_owned))
        .set_max_keys(query.max_keys)
        .set_request_payer(payer(bucket))
        .send()
        .await
        .map_err(|error| NoPage::Failed(error.into()))?;
    let Some(is_truncated) = output.is_truncated() else { return Err(NoPage::CutOff) };
    let names = output.contents().len() + output.common_prefixes().len();
    if output.key_count().is_some_and(|count| usize::try_from(count) != Ok(names)) {
        return Err(NoPage::CutOff);
    }
    let is_encoded = output.encoding_type() == Some(&EncodingType::Url);
    let text = |text: String| if is_encoded { decode(&text) } else { text };
    let mut page = Page { is_truncated, next: output.next_continuation_token, ..Page::default() };
    for object in output.contents.unwrap_or_default() {
        let Some(key) = object.key.map(text).filter(|key| key.starts_with(&query.prefix)) else {
            continue;
        };
        let known = Known {
            size: object.size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
            modified: object
                .last_modified
                .and_then(|time| SystemTime::try_from(time).ok())
                .unwrap_or(SystemTime::UNIX_EPOCH),
            etag: object.e_tag.unwrap_or_default(),
        };
        page.objects.push(Object { key, known });
    }
    for directory in output.common_prefixes.unwrap_or_default() {
        page.directories.extend(
            directory
                .prefix
                .map(text)
                .filter(|found| found.starts_with(&query.prefix) && found.ends_with('/')),
        );
    }
    Ok(page)
}

pub(super) fn is_denied(error: &SdkError<ListObjectsV2Error>) -> bool {
    status(error) == Some(403)
        && matches!(error.code(), None | Some("AccessDenied" | "AllAccessDisabled"))
}

pub(super) fn status<E>(error: &SdkError<E>) -> Option<u16> {
    error.raw_response().map(|response| response.status().as_u16())
}

/// A key of an answer with `encoding-type=url`, where a blank may be a `+`.
fn decode(text: &str) -> String {
    let text: Cow<'_, str> =
        if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
    percent_decode(text.as_bytes()).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_decoded() {
        for (encoded, key) in [
            ("a/b", "a/b"),
            ("a+b%20c%2Bd", "a b c+d"),
            ("%F0%9F%98%80%01%0A", "😀\u{1}\n"),
            ("100%", "100%"),
        ] {
            assert_eq!(decode(encoded), key);
        }
    }
}
