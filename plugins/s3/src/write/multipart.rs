//! The requests of a multipart upload.

use super::body::body;
use super::checksum::Crc32;
use super::guard::Guard;
use super::object::{Target, crc_of, is_proof, signed, whole_etag, with_attributes};
use crate::cause::Cause;
use crate::names::copy_source;
use aws_sdk_s3::operation::upload_part_copy::UploadPartCopyOutput;
use aws_sdk_s3::types::ChecksumAlgorithm;
use tf_fs_object_store::{Content, ErrorKind, Name, Part, PutMode, Range, StoredObject};
use tf_fs_plugin::prelude::*;

impl Target<'_> {
    /// Aborts an upload.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is none.
    pub(crate) async fn abort(&self, id: &str) -> Result<(), Cause> {
        let aborted = self
            .bucket
            .client
            .abort_multipart_upload()
            .bucket(&*self.bucket.name)
            .key(&self.name.key)
            .upload_id(id)
            .set_request_payer(self.payer())
            .send()
            .await;
        aborted.map(drop).map_err(|error| self.bucket.cause(error))
    }
}

/// Begins an upload, and returns its ID.
pub(super) async fn create(target: Target<'_>) -> Result<String, Cause> {
    const OP: &str = "CreateMultipartUpload";
    let with_checksums = target.bucket.checksums;
    let answer = with_attributes!(target.bucket.client.create_multipart_upload(), &target)
        .set_checksum_algorithm(with_checksums.then_some(ChecksumAlgorithm::Crc32))
        .send()
        .await
        .map_err(|error| target.bucket.cause(error))?;
    match answer.upload_id() {
        Some(id) if !id.is_empty() => Ok(id.into()),
        _ => Err(incomplete(OP, target.name, "upload id").into()),
    }
}

/// Sends a part.
pub(super) async fn put_part(
    target: Target<'_>,
    id: &str,
    part_number: u32,
    content: &Content,
) -> Result<Part, Cause> {
    const OP: &str = "UploadPart";
    let crc = target.bucket.checksums.then(|| Crc32::of_content(content));
    let answer = target
        .bucket
        .client
        .upload_part()
        .bucket(&*target.bucket.name)
        .key(&target.name.key)
        .upload_id(id)
        .part_number(number(part_number))
        .set_request_payer(target.payer())
        .content_length(signed(content.len()))
        .body(body(content))
        .set_checksum_crc32(crc.map(Crc32::to_base64))
        .customize()
        .disable_payload_signing()
        .send()
        .await
        .map_err(|error| target.bucket.cause(error))?;
    let etag = whole_etag(answer.e_tag());
    ensure!(!etag.is_empty(), incomplete(OP, target.name, "ETag"));
    let is_proved = is_proof(OP, target.name, content, crc, answer.checksum_crc32(), &etag)?;
    let part = Part::new(part_number, etag, content.len());
    Ok(part.with_checksum(crc.map(Crc32::to_base64)).proved(is_proved))
}

/// Makes a range of `object` a part.
pub(super) async fn copy_part(
    target: Target<'_>,
    id: &str,
    part_number: u32,
    object: &StoredObject,
    range: Range,
) -> Result<Part, Cause> {
    const OP: &str = "UploadPartCopy";
    // S3 accepts ranges of large objects only, and the whole needs none.
    let is_whole = range == Range::new(0, object.size);
    let mode = PutMode::Update(object.clone());
    let part = (number(part_number), (!is_whole).then_some(range));
    let answer = upload_part_copy(&target, id, part, &target, &mode).await?;
    let copied = answer.copy_part_result();
    let etag = whole_etag(copied.and_then(|copied| copied.e_tag()));
    ensure!(!etag.is_empty(), incomplete(OP, target.name, "ETag"));
    let crc = copied.and_then(|copied| copied.checksum_crc32()).and_then(Crc32::from_base64);
    if is_whole && let (Some(copied), Some(original)) = (crc, crc_of(object.checksum.as_ref())) {
        // For stores that ignore the condition.
        ensure!(
            copied == original,
            Cause::Finished(
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
    let part = Part::new(part_number, etag, range.len());
    Ok(part.with_checksum(crc.map(Crc32::to_base64)).proved(crc.is_some()))
}

/// Makes a part of this number from a range of `source`, or from all of it, which has to be as `before` says. Where the
/// store does not check that, the source is looked at before the upload is completed.
pub(crate) async fn upload_part_copy(
    target: &Target<'_>,
    id: &str,
    (number, range): (i32, Option<Range>),
    source: &Target<'_>,
    mode: &PutMode,
) -> Result<UploadPartCopyOutput, Cause> {
    let mut guard = Guard::copy(source.bucket, mode);
    loop {
        guard.begin();
        let answer = target
            .bucket
            .client
            .upload_part_copy()
            .bucket(&*target.bucket.name)
            .key(&target.name.key)
            .upload_id(id)
            .part_number(number)
            .set_request_payer(target.payer())
            .copy_source(copy_source(source.name))
            .set_copy_source_if_match(guard.if_match())
            .set_copy_source_range(
                range.map(|range| format!("bytes={}-{}", range.start, range.end - 1)),
            )
            .send()
            .await;
        let cause = match answer {
            Ok(answer) => {
                guard.held();
                return Ok(answer);
            }
            Err(error) => target.bucket.cause(error),
        };
        let is_refused = guard.is_refused(&cause);
        let is_again =
            guard.is_unknown(&cause) || is_refused && guard.is_again(source, &cause).await?;
        if !is_again {
            return Err(match cause.code() {
                _ if is_refused => cause.with_kind(ErrorKind::Precondition),
                // The upload, not the source.
                Some("NoSuchUpload") => cause.with_kind(ErrorKind::Permanent),
                _ => cause,
            });
        }
    }
}

/// Converts a part number for the SDK.
fn number(part: u32) -> i32 {
    i32::try_from(part).unwrap_or(i32::MAX)
}

#[cold]
fn incomplete(op: &str, name: &Name, what: &str) -> Error {
    Error::unavailable(format_args!(
        "{name}: {op}: the store's response has no {what}; does it implement S3?"
    ))
}
