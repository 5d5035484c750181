//! The object that a file becomes: its attributes, and the proof that it is stored.

use super::checksum::{Crc32, md5_etag, same_etag};
use crate::bucket::Bucket;
use crate::error::S3Error;
use crate::request::{Call, Success};
use std::collections::HashMap;
use std::time::Duration;
use tf_fs_object_store::http::{Chunks, Method, date};
use tf_fs_object_store::{
    Attributes, Content, ErrorKind, Name, ObjectMeta, StoreError as _, StoredObject, retry,
};
use tf_fs_plugin::prelude::*;

/// The wait before another attempt.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// The content type that other tools write for a directory.
const DIRECTORY: &str = "application/x-directory";

/// Where a file is stored, and with what attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) bucket: &'a Bucket,
    pub(crate) name: &'a Name,
    pub(crate) attributes: &'a Attributes,
}

impl<'a> Target<'a> {
    pub(crate) fn of(bucket: &'a Bucket, to: tf_fs_object_store::PutOptions<'a>) -> Self {
        Self { bucket, name: to.name, attributes: to.attributes }
    }

    /// Creates the target of an object of which only the name matters.
    pub(crate) fn plain(bucket: &'a Bucket, name: &'a Name) -> Self {
        Self { bucket, name, attributes: &const { Attributes::NONE } }
    }
}

impl Target<'_> {
    /// Sets the encryption, the access and the storage class of the object on a request that makes it.
    pub(crate) fn placed(&self, call: Call) -> Result<Call> {
        let class = self.bucket.settings.storage_class.as_deref();
        with_settings(self.bucket, call)?.with_optional("x-amz-storage-class", class)
    }

    /// Sets these and the attributes of the object.
    pub(crate) fn described(&self, call: Call) -> Result<Call> {
        let kept = self.attributes;
        let kind = kept.content_type.as_ref().or(self.bucket.settings.content_type.as_ref());
        let mut call = self.placed(call)?;
        for (name, value) in [
            ("content-type", kind),
            ("cache-control", kept.cache_control.as_ref()),
            ("content-disposition", kept.content_disposition.as_ref()),
            ("content-encoding", kept.content_encoding.as_ref()),
            ("content-language", kept.content_language.as_ref()),
        ] {
            call = call.with_optional(name, value.map(String::as_str))?;
        }
        for (name, value) in kept.metadata.iter().flatten() {
            call = call.with_header(&format!("{METADATA}{name}"), value)?;
        }
        Ok(call)
    }

    /// Requests an object's length where the store gave no other proof. Returns its ETag.
    pub(super) async fn confirm_len(&self, len: u64, etag: &str) -> Result<String> {
        let head = retry(self.bucket, "HeadObject", self.name, || self.head()).await?;
        let found = whole_etag(head.header("etag"));
        let is_other = !etag.is_empty() && !found.is_empty() && !same_etag(&found, etag);
        let found_len = head.content_length;
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
    pub(crate) async fn look(&self) -> Result<Option<StoredObject>, S3Error> {
        match self.find().await {
            Ok((stored, _)) => Ok(Some(stored)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Looks up the object, and its attributes besides its bytes.
    pub(crate) async fn find(&self) -> Result<(StoredObject, Attributes), S3Error> {
        let head = self.head().await?;
        let len = head.content_length.ok_or_else(|| {
            Error::unavailable(format_args!(
                "{}: HeadObject: the store's response has no length; does it implement S3?",
                self.name
            ))
        })?;
        let checksum = head.header("x-amz-checksum-crc32").map(str::to_owned);
        let found = stored(head.header("etag").unwrap_or_default(), len, checksum);
        let found = found.with_modified(head.header("last-modified").and_then(date));
        Ok((found, attributes(&head)))
    }

    async fn head(&self) -> Result<Success, S3Error> {
        let call = Call::object("HeadObject", Method::HEAD, &self.name.key);
        let mode = self.bucket.checksums.then_some("ENABLED");
        self.bucket.send(call.with_optional("x-amz-checksum-mode", mode)?).await
    }
}

const METADATA: &str = "x-amz-meta-";

/// Returns what an object has besides its bytes.
pub(crate) fn attributes(head: &Success) -> Attributes {
    let value = |name: &str| head.header(name).map(str::to_owned);
    let metadata: HashMap<_, _> = head
        .headers
        .iter()
        .filter_map(|(name, value)| {
            let name = name.as_str().strip_prefix(METADATA)?;
            Some((name.to_owned(), String::from_utf8(value.as_bytes().to_vec()).ok()?))
        })
        .collect();
    Attributes {
        content_type: value("content-type"),
        cache_control: value("cache-control"),
        content_disposition: value("content-disposition"),
        content_encoding: value("content-encoding"),
        content_language: value("content-language"),
        metadata: Some(metadata).filter(|metadata| !metadata.is_empty()),
    }
}

/// Sets what the settings say of all written objects on a request that makes one.
pub(crate) fn with_settings(bucket: &Bucket, mut call: Call) -> Result<Call> {
    let settings = &bucket.settings;
    for (name, value) in [
        ("x-amz-server-side-encryption", &settings.server_side_encryption),
        ("x-amz-server-side-encryption-aws-kms-key-id", &settings.sse_kms_key_id),
        ("x-amz-acl", &settings.acl),
    ] {
        call = call.with_optional(name, value.as_deref())?;
    }
    Ok(call)
}

/// Requests the metadata of an object, where listings are not permitted.
pub(crate) async fn head(bucket: &Bucket, name: &Name) -> Result<ObjectMeta, S3Error> {
    let head = bucket.send(Call::object("HeadObject", Method::HEAD, &name.key)).await?;
    let mut meta = ObjectMeta::default().with_etag(head.header("etag").map(str::to_owned));
    meta.size = head.content_length;
    Ok(meta.with_modified(head.header("last-modified").and_then(date)))
}

/// Writes the empty object that marks a directory.
pub(crate) async fn put_marker(bucket: &Bucket, marker: &Name) -> Result<(), S3Error> {
    let call = Call::object("PutObject", Method::PUT, &marker.key)
        .with_header("content-type", DIRECTORY)?
        .with_crc(bucket.checksums.then(|| Crc32::of([])))?;
    bucket.send(with_settings(bucket, call)?).await.map(drop)
}

/// Returns the body of a request.
pub(super) fn chunks(content: &Content) -> Chunks {
    Chunks::new(content.chunks().iter().cloned())
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
