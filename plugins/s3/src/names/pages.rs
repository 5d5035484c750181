//! Pages of `ListObjectsV2`.

use crate::cause::Cause;
use crate::connection::Bucket;
use aws_sdk_s3::types::{EncodingType, RequestPayer};
use percent_encoding::percent_decode;
use std::borrow::Cow;
use std::time::SystemTime;
use tf_fs_object_store::{ListOptions, Object, ObjectMeta, Page};

/// Returns who pays for a request.
pub(crate) fn payer(bucket: &Bucket) -> Option<RequestPayer> {
    bucket.settings.requester_pays.then_some(RequestPayer::Requester)
}

/// Requests one page, as the store returns it.
pub(crate) async fn page(
    bucket: &Bucket,
    options: &ListOptions,
    token: Option<&str>,
) -> Result<Page, Cause> {
    let output = bucket
        .client
        .list_objects_v2()
        .bucket(&*bucket.name)
        .set_prefix((!options.prefix.is_empty()).then(|| options.prefix.clone()))
        .set_delimiter(options.delimiter.then(|| "/".into()))
        // XML cannot hold every character that a key can.
        .encoding_type(EncodingType::Url)
        .set_start_after(options.start_after.clone().filter(|_| token.is_none()))
        .set_continuation_token(token.map(str::to_owned))
        .set_max_keys(options.max_keys.and_then(|keys| keys.try_into().ok()))
        .set_request_payer(payer(bucket))
        .send()
        .await
        .map_err(|error| bucket.cause(error))?;
    let is_encoded = output.encoding_type() == Some(&EncodingType::Url);
    let text = |text: String| if is_encoded { decode(&text) } else { text };
    let mut page = Page::default();
    for object in output.contents.unwrap_or_default() {
        let Some(key) = object.key.map(text) else { continue };
        let modified = object.last_modified.and_then(|time| SystemTime::try_from(time).ok());
        let mut meta = ObjectMeta::default().with_etag(object.e_tag);
        meta.size = object.size.and_then(|size| u64::try_from(size).ok());
        page.objects.push(Object::new(key, meta.with_modified(modified)));
    }
    let prefixes = output.common_prefixes.unwrap_or_default().into_iter();
    page.common_prefixes = prefixes.filter_map(|prefix| prefix.prefix.map(text)).collect();
    // `KeyCount` and `MaxKeys` are not read: stores count differently. SeaweedFS, Versity and NooBaa leave the common
    // prefixes out. A response that was cut off is refused before.
    let token = output.next_continuation_token.filter(|token| !token.is_empty());
    page.next = match output.is_truncated {
        Some(true) => Some(token.unwrap_or_default()),
        Some(false) => None,
        None => token,
    };
    Ok(page)
}

/// Decodes a key of a response with `encoding-type=url`, where a blank may be a `+`.
pub(crate) fn decode(text: &str) -> String {
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
