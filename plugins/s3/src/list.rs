//! Pages of listings: of objects, and of buckets.

use crate::bucket::Bucket;
use crate::credential::date_time;
use crate::error::S3Error;
use crate::request::Call;
use percent_encoding::percent_decode;
use std::borrow::Cow;
use tf_fs_object_store::http::{Method, number};
use tf_fs_object_store::{BucketPage, ListOptions, Object, ObjectMeta, Page};

/// Requests a page of objects, as the store returns it.
pub(crate) async fn objects(
    bucket: &Bucket,
    options: &ListOptions,
    token: Option<&str>,
) -> Result<Page, S3Error> {
    let mut call = Call::bucket("ListObjectsV2", Method::GET).with_query("list-type", "2");
    if !options.prefix.is_empty() {
        call = call.with_query("prefix", &*options.prefix);
    }
    if options.delimiter {
        call = call.with_query("delimiter", "/");
    }
    // XML cannot hold every character that a key can.
    call = call.with_query("encoding-type", "url");
    match (token, &options.start_after) {
        (Some(token), _) => call = call.with_query("continuation-token", token),
        (None, Some(key)) => call = call.with_query("start-after", &**key),
        (None, None) => {}
    }
    if let Some(keys) = options.max_keys {
        call = call.with_query("max-keys", keys.to_string());
    }
    let response = bucket.send(call).await?;
    let mut page = Page::default();
    let (mut key, mut meta) = (None, ObjectMeta::default());
    let (mut is_encoded, mut is_truncated, mut next) = (false, None, None);
    response.read("ListBucketResult", |path, text| match (path, text) {
        (["Contents", name], Some(text)) => match *name {
            "Key" => key = Some(text),
            "Size" => meta.size = number(&text),
            "ETag" => meta.etag = Some(text),
            "LastModified" => meta.modified = date_time(&text),
            _ => {}
        },
        (["Contents"], _) => {
            let meta = std::mem::take(&mut meta);
            page.objects.extend(key.take().map(|key| Object::new(key, meta)));
        }
        (["CommonPrefixes", "Prefix"], Some(prefix)) => page.common_prefixes.push(prefix),
        (["EncodingType"], Some(text)) => is_encoded = text == "url",
        (["IsTruncated"], Some(text)) => is_truncated = text.parse().ok(),
        (["NextContinuationToken"], Some(token)) if !token.is_empty() => next = Some(token),
        _ => {}
    })?;
    if is_encoded {
        let keys = page.objects.iter_mut().map(|object| &mut object.key);
        for text in keys.chain(&mut page.common_prefixes) {
            *text = decode(text);
        }
    }
    // `KeyCount` and `MaxKeys` are not read: stores count differently. SeaweedFS, Versity and NooBaa leave the common
    // prefixes out.
    page.next = match is_truncated {
        Some(true) => Some(next.unwrap_or_default()),
        Some(false) => None,
        None => next,
    };
    Ok(page)
}

/// Requests a page of the buckets that the credentials may list, with any bucket's client.
pub(crate) async fn buckets(any: &Bucket, token: Option<&str>) -> Result<BucketPage, S3Error> {
    let mut call = Call::bucket("ListBuckets", Method::GET);
    if let Some(token) = token {
        call = call.with_query("continuation-token", token);
    }
    let response = any.send(call).await?;
    let (mut names, mut next) = (Vec::new(), None);
    response.read("ListAllMyBucketsResult", |path, text| match (path, text) {
        (["Buckets", "Bucket", "Name"], Some(name)) => names.push(name),
        (["ContinuationToken"], Some(token)) if !token.is_empty() => next = Some(token),
        _ => {}
    })?;
    Ok(BucketPage::new(names, next))
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
