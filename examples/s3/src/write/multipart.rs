//! The requests of a multipart upload.

use super::body::body;
use super::checksum::Crc32;
use super::guard::Guard;
use super::object::{Target, crc_of, is_proof, signed, whole_etag, with_attributes};
use crate::get::Cause;
use crate::names::copy_source;
use aws_sdk_s3::error::ProvideErrorMetadata as _;
use aws_sdk_s3::types::ChecksumAlgorithm;
use tf_fs_object_store::{Before, Class, Content, Name, Part, Range, Stored, replaced, unknown};
use tf_fs_plugin::prelude::*;

impl Target<'_> {
    /// Makes the store forget an upload.
    ///
    /// # Errors
    /// [`Class::NotFound`] if there is none.
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
        aborted.map(drop).map_err(|error| {
            let is_gone = error.code() == Some("NoSuchUpload");
            let error = self.failure("AbortMultipartUpload", error);
            Cause::Finished(if is_gone { Class::NotFound } else { Class::Permanent }, error)
        })
    }
}

/// Begins an upload. The store's name of it.
pub(super) async fn create(target: Target<'_>) -> Result<String> {
    const OP: &str = "CreateMultipartUpload";
    let with_checksums = target.bucket.settings.checksums;
    let answer = with_attributes!(target.bucket.client.create_multipart_upload(), &target)
        .set_checksum_algorithm(with_checksums.then_some(ChecksumAlgorithm::Crc32))
        .send()
        .await
        .map_err(|error| target.failure(OP, error))?;
    match answer.upload_id() {
        Some(id) if !id.is_empty() => Ok(id.into()),
        _ => Err(incomplete(OP, target.name, "upload id")),
    }
}

/// Sends a part.
pub(super) async fn put_part(
    target: Target<'_>,
    id: &str,
    part_number: u32,
    content: &Content,
) -> Result<Part> {
    const OP: &str = "UploadPart";
    let crc = target.bucket.settings.checksums.then(|| Crc32::of_content(content));
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
        .map_err(|error| target.failure(OP, error))?;
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
    object: &Stored,
    range: Range,
) -> Result<Part> {
    const OP: &str = "UploadPartCopy";
    // S3 takes ranges of large objects only, and all of it needs none.
    let is_whole = range == Range::new(0, object.size);
    let header = (!is_whole).then(|| format!("bytes={}-{}", range.start, range.end - 1));
    let before = Before::This(object.clone());
    let mut guard = Guard::copy(target.bucket, &before);
    let answer = loop {
        guard.begin();
        let answer = target
            .bucket
            .client
            .upload_part_copy()
            .bucket(&*target.bucket.name)
            .key(&target.name.key)
            .upload_id(id)
            .part_number(number(part_number))
            .set_request_payer(target.payer())
            .copy_source(copy_source(target.name))
            .set_copy_source_if_match(guard.if_match())
            .set_copy_source_range(header.clone())
            .send()
            .await;
        // Where the store does not check it, what is there is looked at before the upload is completed.
        let error = match answer {
            Ok(answer) => {
                guard.held();
                break answer;
            }
            Err(error) if guard.is_unknown(&error) => continue,
            Err(error) => error,
        };
        let is_refused = guard.is_refused(&error);
        if is_refused && guard.is_again(&target, &error).await.map_err(unknown)? {
            continue;
        }
        let error = target.failure(OP, error);
        return Err(if is_refused { replaced(error) } else { error });
    };
    let copied = answer.copy_part_result();
    let etag = whole_etag(copied.and_then(|copied| copied.e_tag()));
    ensure!(!etag.is_empty(), incomplete(OP, target.name, "ETag"));
    let crc = copied.and_then(|copied| copied.checksum_crc32()).and_then(Crc32::from_base64);
    if is_whole && let (Some(copied), Some(original)) = (crc, crc_of(object.checksum.as_ref())) {
        // For stores that do not look at the condition.
        ensure!(
            copied == original,
            replaced(Error::failed_precondition(format_args!(
                "{}: {OP}: the checksum of the copy is {}, of the original {}",
                target.name,
                copied.to_base64(),
                original.to_base64()
            )))
        );
    }
    let part = Part::new(part_number, etag, range.len());
    Ok(part.with_checksum(crc.map(Crc32::to_base64)).proved(crc.is_some()))
}

/// As the SDK wants part numbers.
fn number(part: u32) -> i32 {
    i32::try_from(part).unwrap_or(i32::MAX)
}

#[cold]
fn incomplete(op: &str, name: &Name, what: &str) -> Error {
    Error::unavailable(format_args!(
        "{name}: {op}: the store's response has no {what}; does it implement S3?"
    ))
}
