//! The requests of a multipart upload.

use super::body::body;
use super::checksum::{Crc32, composite, md5_etag_of_parts};
use super::course::{Course, Once};
use super::guard::{Guard, Refusal};
use super::object::{
    Expected, Target, crc_of, is_proof, leaves_open_whether_done, signed, stored, whole_etag,
    with_attributes, with_crc,
};
use crate::names::copy_source;
use aws_sdk_s3::error::ProvideErrorMetadata as _;
use aws_sdk_s3::types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart};
use tf_fs_object_store::{Before, Content, Name, Part, Range, Stored, replaced, unknown};
use tf_fs_plugin::prelude::*;

/// The parts of an upload that becomes an object, in their order.
#[derive(Debug)]
struct Parts<'a> {
    target: Target<'a>,
    stored: &'a [Part],
}

/// Makes the object of the parts, if what is there is as it was `before`.
///
/// # Errors
/// As [`Target::put`]. The upload has to be aborted then.
pub(super) async fn complete(
    target: Target<'_>,
    id: &str,
    parts: &[Part],
    before: &Before,
) -> Result<Stored> {
    Parts { target, stored: parts }.complete(id, before).await
}

impl Parts<'_> {
    async fn complete(&self, id: &str, before: &Before) -> Result<Stored> {
        let expected = self.expected();
        let crc = self.crc();
        let target = &self.target;
        let takes_checksums = || target.bucket.abilities().takes_part_checksums();
        let mut with_checksums =
            target.bucket.settings.part_checksums.unwrap_or_else(takes_checksums);
        let mut refuses_checksums = false;
        let mut course = Course::default();
        loop {
            let guard = Guard::complete(target.bucket, before, &course);
            let must_look = guard.must_look();
            if must_look
                && !course.has_looked
                && let Some(stored) = guard.look(&course, target, || self.expected()).await?
            {
                return Ok(with_crc(stored, crc));
            }
            course.begin();
            let list = self.list_of_parts(with_checksums);
            let has_checksums = list.parts().iter().any(|part| part.checksum_crc32().is_some());
            let sent = target
                .bucket
                .client
                .complete_multipart_upload()
                .bucket(&*target.bucket.name)
                .key(&target.name.key)
                .upload_id(id)
                .set_request_payer(target.payer())
                .mpu_object_size(signed(expected.len))
                .set_if_match(guard.if_match())
                .set_if_none_match(guard.if_none_match())
                .multipart_upload(list)
                .customize()
                .interceptor(Once(must_look))
                .send()
                .await;
            let error = match sent {
                Ok(answer) => {
                    let mut etag = whole_etag(answer.e_tag());
                    if !self.is_proved(&expected, answer.checksum_crc32())? || etag.is_empty() {
                        etag = target.confirm_len(expected.len, &etag).await?;
                    }
                    guard.held(&course);
                    if has_checksums || refuses_checksums {
                        target.bucket.abilities().part_checksums(has_checksums);
                    }
                    let stored = stored(&etag, expected.len, crc);
                    if guard.must_look() {
                        guard.look_after(target, &stored).await?;
                    }
                    return Ok(stored);
                }
                Err(error) => error,
            };
            if has_checksums
                && target.bucket.settings.part_checksums.is_none()
                && error.code() == Some("MalformedXML")
            {
                // The store knows no such element; if it is something else, it will say so again.
                (with_checksums, refuses_checksums) = (false, true);
                continue;
            }
            if guard.is_unknown(&mut course, &error) {
                continue;
            }
            let is_replaced = guard.is_refused(&error);
            if is_replaced {
                let refusal = guard.refusal(&mut course, target, &error, Some(&expected)).await;
                match refusal.map_err(unknown)? {
                    Refusal::Ours(stored) => return Ok(with_crc(stored, crc)),
                    Refusal::None => continue,
                    Refusal::Theirs => {}
                }
            } else if must_look && course.again(&target.bucket.settings, target.name, &error).await
            {
                continue;
            }
            // The store may have done it and the acknowledgement be lost: a second attempt then finds
            // no upload, or its own object in place of the one to be replaced.
            let may_be_done = is_replaced
                || course.is_open
                || leaves_open_whether_done(&error)
                || error.code() == Some("NoSuchUpload");
            if may_be_done {
                match target.settle(id, &expected).await {
                    Ok(Some(stored)) => return Ok(with_crc(stored, crc)),
                    Err(error) if is_replaced => return Err(unknown(error)),
                    Ok(None) | Err(_) => {}
                }
            }
            let code = error.code().map(str::to_owned);
            let error = target.failure("CompleteMultipartUpload", error);
            return Err(match code.as_deref() {
                _ if is_replaced => replaced(error),
                // What it said of a part was not so.
                Some("InvalidPart" | "InvalidPartOrder") => error.with_code(Code::DataLoss),
                // Nobody knows what became of it, and another attempt may do better.
                Some("NoSuchUpload") => error.with_code(Code::Unavailable),
                _ => error,
            });
        }
    }

    fn expected(&self) -> Expected {
        let mut checksums: Vec<_> = self.crc().map(Crc32::to_base64).into_iter().collect();
        let crcs: Option<Vec<_>> =
            self.stored.iter().map(|part| crc_of(part.checksum.as_ref())).collect();
        checksums.extend(crcs.as_deref().map(composite));
        Expected {
            len: self.stored.iter().map(|part| part.len).sum(),
            checksums,
            etag: md5_etag_of_parts(self.stored.iter().map(|part| part.id.as_str())),
            replaced: None,
        }
    }

    /// Of the whole object.
    fn crc(&self) -> Option<Crc32> {
        self.stored.iter().try_fold(Crc32::of([]), |crc, part| {
            Some(crc.followed_by(crc_of(part.checksum.as_ref())?, part.len))
        })
    }

    /// Whether the store has proved that it has the right bytes.
    fn is_proved(&self, expected: &Expected, checksum: Option<&str>) -> Result<bool> {
        let Some(theirs) = checksum.filter(|_| !expected.checksums.is_empty()) else {
            return Ok(self.stored.iter().all(|part| part.is_proved));
        };
        ensure!(
            expected.checksums.iter().any(|own| own == theirs),
            Error::data_loss(format_args!(
                "{}: CompleteMultipartUpload: the store's checksum is {theirs}, of what was sent {}; \
                 write it again",
                self.target.name,
                expected.checksums.join(" or ")
            ))
        );
        Ok(true)
    }

    fn list_of_parts(&self, with_checksums: bool) -> CompletedMultipartUpload {
        let with_checksums = with_checksums && self.target.bucket.settings.checksums;
        let parts = self.stored.iter().map(|part| {
            let checksum = part.checksum.clone().filter(|_| with_checksums);
            CompletedPart::builder()
                .part_number(number(part.number))
                .e_tag(&part.id)
                .set_checksum_crc32(checksum)
                .build()
        });
        CompletedMultipartUpload::builder().set_parts(Some(parts.collect())).build()
    }
}

impl Target<'_> {
    /// The object that an upload was to become, if the store made it although it did not say so. Otherwise the
    /// upload is aborted.
    ///
    /// # Errors
    /// If the store does not say.
    pub(crate) async fn settle(&self, id: &str, expected: &Expected) -> Result<Option<Stored>> {
        if let Ok(Some(stored)) = self.find(expected).await {
            return Ok(Some(stored));
        }
        // It may be about to. Aborting ends that, or comes too late.
        match self.abort(id).await {
            Ok(true) => Ok(None),
            Ok(false) | Err(_) => self.find(expected).await,
        }
    }

    /// Makes the store forget an upload. Whether there was one.
    pub(crate) async fn abort(&self, id: &str) -> Result<bool> {
        self.bucket
            .client
            .abort_multipart_upload()
            .bucket(&*self.bucket.name)
            .key(&self.name.key)
            .upload_id(id)
            .set_request_payer(self.payer())
            .send()
            .await
            .map(|_| true)
            .or_else(|error| {
                let is_gone = error.code() == Some("NoSuchUpload");
                if is_gone { Ok(false) } else { Err(self.failure("AbortMultipartUpload", error)) }
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
    let mut course = Course::default();
    let answer = loop {
        let guard = Guard::copy(target.bucket, &before, &course);
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
                guard.held(&course);
                break answer;
            }
            Err(error) if guard.is_unknown(&mut course, &error) => continue,
            Err(error) => error,
        };
        let is_refused = guard.is_refused(&error);
        if is_refused {
            let refusal = guard.refusal(&mut course, &target, &error, None).await;
            if let Refusal::None = refusal.map_err(unknown)? {
                continue;
            }
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
