//! The object that a file becomes: its attributes, and the proof that it is stored.

use super::checksum::{Crc32, md5_etag, same_etag};
use crate::cause::Cause;
use crate::connection::Bucket;
use aws_sdk_s3::operation::head_object::HeadObjectOutput;
use aws_sdk_s3::operation::head_object::builders::HeadObjectFluentBuilder;
use aws_sdk_s3::types::{ChecksumMode, RequestPayer};
use std::time::{Duration, SystemTime};
use tf_fs_object_store::{
    Attributes, Content, ErrorKind, Name, StoreError as _, StoredObject, retry,
};
use tf_fs_plugin::prelude::*;

/// The wait before another attempt.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// Where a file is stored, and with what attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) bucket: &'a Bucket,
    pub(crate) name: &'a Name,
    pub(crate) attributes: &'a Attributes,
}

/// Sets the attributes of the settings on a request that makes an object.
macro_rules! with_attributes {
    ($request:expr, $target:expr) => {{
        let target: &Target<'_> = $target;
        let (settings, kept) = (&target.bucket.settings, target.attributes);
        $request
            .bucket(&*target.bucket.name)
            .key(&target.name.key)
            .set_request_payer(target.payer())
            .set_server_side_encryption(
                settings.server_side_encryption.as_deref().map(|value| value.into()),
            )
            .set_ssekms_key_id(settings.sse_kms_key_id.clone())
            .set_storage_class(settings.storage_class.as_deref().map(|value| value.into()))
            .set_acl(settings.acl.as_deref().map(|value| value.into()))
            .set_content_type(kept.content_type.clone().or_else(|| settings.content_type.clone()))
            .set_cache_control(kept.cache_control.clone())
            .set_content_disposition(kept.content_disposition.clone())
            .set_content_encoding(kept.content_encoding.clone())
            .set_content_language(kept.content_language.clone())
            .set_metadata(kept.metadata.clone())
    }};
}
pub(super) use with_attributes;

impl<'a> Target<'a> {
    /// Creates the target of an object of which only the name matters.
    pub(crate) fn plain(bucket: &'a Bucket, name: &'a Name) -> Self {
        Self { bucket, name, attributes: &const { Attributes::NONE } }
    }
}

impl Target<'_> {
    pub(super) fn payer(&self) -> Option<RequestPayer> {
        self.bucket.settings.requester_pays.then_some(RequestPayer::Requester)
    }

    /// Requests an object's length where the store gave no other proof. Returns its ETag.
    pub(super) async fn confirm_len(&self, len: u64, etag: &str) -> Result<String> {
        let ask = || async { self.ask().send().await.map_err(|error| self.bucket.cause(error)) };
        let head = retry(self.bucket, "HeadObject", self.name, ask).await?;
        let found = whole_etag(head.e_tag());
        let is_other = !etag.is_empty() && !found.is_empty() && !same_etag(&found, etag);
        let found_len = head.content_length().and_then(|len| u64::try_from(len).ok());
        let stated = found_len.map_or_else(|| "an unknown number of".into(), |len| len.to_string());
        // If somebody else has replaced it already, its length says nothing about ours.
        ensure!(
            is_other || found_len == Some(len),
            Error::data_loss(format_args!(
                "{}: the store has {stated} bytes of the {len} that were written; write it again",
                self.name
            ))
        );
        Ok(if is_other { etag.to_owned() } else { found })
    }

    /// Looks up the object; `None` if there is none.
    ///
    /// # Errors
    /// Those of the request.
    pub(crate) async fn look(&self) -> Result<Option<StoredObject>, Cause> {
        match self.find().await {
            Ok((stored, _)) => Ok(Some(stored)),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(cause),
        }
    }

    /// Looks up the object, and its attributes besides its bytes.
    pub(crate) async fn find(&self) -> Result<(StoredObject, Attributes), Cause> {
        let head = self.ask().send().await.map_err(|error| self.bucket.cause(error))?;
        let stored = self.stored(&head)?;
        let attributes = Attributes {
            content_type: head.content_type,
            cache_control: head.cache_control,
            content_disposition: head.content_disposition,
            content_encoding: head.content_encoding,
            content_language: head.content_language,
            metadata: head.metadata,
        };
        Ok((stored, attributes))
    }

    fn stored(&self, head: &HeadObjectOutput) -> Result<StoredObject> {
        let len = head.content_length().and_then(|len| u64::try_from(len).ok());
        let len = len.ok_or_else(|| {
            Error::unavailable(format_args!(
                "{}: HeadObject: the store's response has no length; does it implement S3?",
                self.name
            ))
        })?;
        let checksum = head.checksum_crc32().map(str::to_owned);
        let modified = head.last_modified().and_then(|time| SystemTime::try_from(*time).ok());
        Ok(stored(head.e_tag().unwrap_or_default(), len, checksum).with_modified(modified))
    }

    fn ask(&self) -> HeadObjectFluentBuilder {
        self.bucket
            .client
            .head_object()
            .bucket(&*self.bucket.name)
            .key(&self.name.key)
            .set_request_payer(self.payer())
            .set_checksum_mode(self.bucket.checksums.then_some(ChecksumMode::Enabled))
    }
}

/// Creates an object of this ETag, which is empty if the store did not tell. Stores differ in its quotes.
pub(crate) fn stored(etag: &str, len: u64, checksum: Option<String>) -> StoredObject {
    let etag = whole_etag(Some(etag));
    let is_bare = !etag.is_empty() && !etag.ends_with('"');
    let etag = if is_bare { format!("\"{etag}\"") } else { etag };
    StoredObject::new(len).with_etag(etag).with_checksum(checksum)
}

/// Returns the CRC32 of an object or a part, if it is known.
pub(super) fn crc_of(checksum: Option<&String>) -> Option<Crc32> {
    checksum.and_then(|checksum| Crc32::from_base64(checksum))
}

/// Returns the ETag of a response; empty if there is none, or it was cut off with the rest of a document.
pub(super) fn whole_etag(etag: Option<&str>) -> String {
    let etag = etag.unwrap_or_default();
    let is_whole = match etag.strip_prefix("W/").unwrap_or(etag).strip_prefix('"') {
        Some(rest) => rest.ends_with('"'),
        None => !etag.ends_with('"'),
    };
    if is_whole { etag.to_owned() } else { String::new() }
}

/// Returns whether a response proves that the store has `content`.
///
/// # Errors
/// `DATA_LOSS` if it proves the contrary.
pub(super) fn is_proof(
    op: &str,
    name: &Name,
    content: &Content,
    crc: Option<Crc32>,
    checksum: Option<&str>,
    etag: &str,
) -> Result<bool> {
    match (crc.map(Crc32::to_base64), checksum) {
        (Some(own), Some(theirs)) => {
            ensure!(
                own == theirs,
                Error::data_loss(format_args!(
                    "{name}: {op}: the store's checksum is {theirs}, of what was sent {own}; write it again"
                ))
            );
            Ok(true)
        }
        // For stores without checksums. Some ETags are not MD5 sums, so an unequal one proves nothing.
        _ => Ok(same_etag(etag, &md5_etag(content))),
    }
}

/// Converts a length for the SDK.
pub(super) fn signed(len: u64) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_that_was_cut_off_is_none() {
        assert_eq!(whole_etag(Some("\"0123-4\"")), "\"0123-4\"");
        assert_eq!(whole_etag(Some("0123-4")), "0123-4");
        assert_eq!(whole_etag(Some("W/\"0123\"")), "W/\"0123\"");
        for cut in [None, Some(""), Some("\""), Some("\"0123"), Some("0123\"")] {
            assert_eq!(whole_etag(cut), "", "{cut:?}");
        }
    }
}
