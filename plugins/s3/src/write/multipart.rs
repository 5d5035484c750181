//! The requests of a multipart upload.

use super::checksum::Crc32;
use super::guard::Guard;
use super::object::{Target, chunks, crc_of, is_proof, whole_etag};
use crate::bucket::Bucket;
use crate::error::S3Error;
use crate::metrics;
use crate::request::{Call, NAMESPACE};
use std::fmt::Write as _;
use tf_fs_object_store::http::Method;
use tf_fs_object_store::http::xml::escape;
use tf_fs_object_store::{Content, ErrorKind, Multipart, Name, Part, PutMode, Range, StoredObject};
use tf_fs_plugin::prelude::*;

/// Aborts an upload.
///
/// # Errors
/// [`ErrorKind::NotFound`] if there is none.
pub(crate) async fn abort(bucket: &Bucket, name: &Name, id: &str) -> Result<(), S3Error> {
    let call = Call::object("AbortMultipartUpload", Method::DELETE, &name.key);
    bucket.send(call.with_query("uploadId", id)).await.map(drop)
}

/// Begins an upload, and returns its ID.
pub(crate) async fn create(target: &Target<'_>) -> Result<String, S3Error> {
    let with_checksums = target.bucket.checksums.then_some("CRC32");
    let call = Call::object(CREATE, Method::POST, &target.name.key).with_query("uploads", "");
    let call = target.described(call)?.with_optional("x-amz-checksum-algorithm", with_checksums)?;
    begin(target.bucket, target.name, call).await
}

const CREATE: &str = "CreateMultipartUpload";

/// Sends a request that begins an upload, and returns its ID.
pub(crate) async fn begin(bucket: &Bucket, name: &Name, call: Call) -> Result<String, S3Error> {
    let mut id = None;
    bucket.send(call).await?.read("InitiateMultipartUploadResult", |path, text| {
        if path == ["UploadId"] {
            id = text;
        }
    })?;
    match id {
        Some(id) if !id.is_empty() => {
            metrics::upload_began(&id);
            Ok(id)
        }
        _ => Err(incomplete(CREATE, name, "upload id").into()),
    }
}

/// Sends a part.
pub(crate) async fn put_part(
    bucket: &Bucket,
    upload: Multipart<'_>,
    number: u32,
    content: &Content,
) -> Result<Part, S3Error> {
    const OP: &str = "UploadPart";
    let crc = bucket.checksums.then(|| Crc32::of_content(content));
    let call = Call::object(OP, Method::PUT, &upload.name.key)
        .with_query("partNumber", number.to_string())
        .with_query("uploadId", upload.id)
        .with_body(chunks(content), crc)?;
    let response = bucket.send(call).await?;
    let etag = whole_etag(response.header("etag"));
    ensure!(!etag.is_empty(), incomplete(OP, upload.name, "ETag"));
    let theirs = response.header("x-amz-checksum-crc32");
    let is_proved = is_proof(OP, upload.name, content, crc, theirs, &etag)?;
    let part = Part::new(number, etag, content.len());
    Ok(part.with_checksum(crc.map(Crc32::to_base64)).proved(is_proved))
}

/// Makes a range of `object` a part.
pub(crate) async fn copy_part(
    bucket: &Bucket,
    upload: Multipart<'_>,
    number: u32,
    object: &StoredObject,
    range: Range,
) -> Result<Part, S3Error> {
    const OP: &str = "UploadPartCopy";
    let target = Target::plain(bucket, upload.name);
    // S3 accepts ranges of large objects only, and the whole needs none.
    let is_whole = range == Range::new(0, object.size);
    let before = PutMode::Update(object.clone());
    let part = (number, (!is_whole).then_some(range));
    let copied = upload_part_copy(&target, upload.id, part, &target, &before).await?;
    ensure!(!copied.etag.is_empty(), incomplete(OP, target.name, "ETag"));
    let crc = copied.checksum.as_deref().and_then(Crc32::from_base64);
    if is_whole && let (Some(copied), Some(original)) = (crc, crc_of(object.checksum.as_ref())) {
        // For stores that ignore the condition.
        ensure!(
            copied == original,
            S3Error::Finished(
                ErrorKind::Precondition,
                Error::failed_precondition(format_args!(
                    "{}: {OP}: the checksum of the copy is {}, of the original {}",
                    target.name,
                    copied.to_base64(),
                    original.to_base64()
                ))
            )
        );
    }
    let part = Part::new(number, copied.etag, range.len());
    Ok(part.with_checksum(crc.map(Crc32::to_base64)).proved(crc.is_some()))
}

/// What the store says of a part that it has copied.
#[derive(Debug, Default)]
pub(crate) struct CopiedPart {
    /// Empty if the store does not say.
    pub(crate) etag: String,
    checksum: Option<String>,
}

/// Makes a part of this number from a range of `source`, or from all of it, which has to be as `before` says. Where the
/// store does not check that, the source is looked at before the upload is completed.
pub(crate) async fn upload_part_copy(
    target: &Target<'_>,
    id: &str,
    (number, range): (u32, Option<Range>),
    source: &Target<'_>,
    before: &PutMode,
) -> Result<CopiedPart, S3Error> {
    let mut guard = Guard::copy(source.bucket, before);
    loop {
        guard.begin();
        let range = range.map(|range| format!("bytes={}-{}", range.start, range.end - 1));
        let call = Call::object("UploadPartCopy", Method::PUT, &target.name.key)
            .with_query("partNumber", number.to_string())
            .with_query("uploadId", id)
            .with_copy_source(source.name)?
            .with_optional("x-amz-copy-source-if-match", guard.if_match().as_deref())?
            .with_optional("x-amz-copy-source-range", range.as_deref())?;
        let error = match target.bucket.send(call).await {
            Ok(response) => {
                let mut part = CopiedPart::default();
                response.read("CopyPartResult", |path, text| match path {
                    ["ETag"] => part.etag = whole_etag(text.as_deref()),
                    ["ChecksumCRC32"] => part.checksum = text,
                    _ => {}
                })?;
                guard.held();
                return Ok(part);
            }
            Err(error) => error,
        };
        let is_refused = guard.is_refused(&error);
        let is_again =
            guard.is_unknown(&error) || is_refused && guard.is_again(source, &error).await?;
        if !is_again {
            return Err(match error.code() {
                _ if is_refused => error.with_kind(ErrorKind::Precondition),
                // The upload, not the source.
                Some("NoSuchUpload") => error.with_kind(ErrorKind::Permanent),
                _ => error,
            });
        }
    }
}

/// Returns the request that makes an object of parts: numbers, ETags, and checksums if the store takes them.
pub(crate) fn complete<'p>(
    name: &Name,
    id: &str,
    parts: impl Iterator<Item = (u32, &'p str, Option<&'p str>)>,
) -> Result<Call> {
    let mut document = format!("<CompleteMultipartUpload xmlns=\"{NAMESPACE}\">");
    for (number, etag, checksum) in parts {
        let _ = write!(document, "<Part>");
        if let Some(checksum) = checksum {
            let _ = write!(document, "<ChecksumCRC32>{}</ChecksumCRC32>", escape(checksum));
        }
        let etag = escape(etag);
        let _ = write!(document, "<ETag>{etag}</ETag><PartNumber>{number}</PartNumber></Part>");
    }
    document.push_str("</CompleteMultipartUpload>");
    Call::object("CompleteMultipartUpload", Method::POST, &name.key)
        .with_query("uploadId", id)
        .with_xml(document)
}

#[cold]
fn incomplete(op: &str, name: &Name, what: &str) -> Error {
    Error::unavailable(format_args!(
        "{name}: {op}: the store's response has no {what}; does it implement S3?"
    ))
}
