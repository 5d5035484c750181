//! How S3 makes an object visible: PutObject, or CompleteMultipartUpload.

use super::body::body;
use super::checksum::{Crc32, composite, md5_etag_of_parts};
use super::guard::Guard;
use super::object::{Target, crc_of, is_proof, signed, stored, whole_etag, with_attributes};
use crate::cause::Cause;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use tf_fs_object_store::{
    CommitStrategy, ConflictOutcome, Content, ErrorKind, MissingCheck, Part, Payload, PutMode,
    StoreError as _, StoredObject,
};
use tf_fs_plugin::prelude::*;

/// The publication of one content as an object.
#[derive(Debug)]
pub(crate) struct Publishing<'a> {
    target: Target<'a>,
    sent: Payload<'a>,
    guard: Guard<'a>,
    /// The checksum of the whole object, if it is known.
    crc: Option<Crc32>,
    /// Whether the list of parts had checksums, and was refused.
    refuses_checksums: bool,
}

impl<'a> Publishing<'a> {
    pub(super) fn new(target: Target<'a>, mode: &'a PutMode, sent: Payload<'a>) -> Self {
        let (guard, crc) = match sent {
            Payload::Whole(content) => {
                let checksums = target.bucket.checksums;
                let crc = checksums.then(|| Crc32::of_content(content));
                (Guard::put(target.bucket, mode), crc)
            }
            Payload::Parts { parts, .. } => {
                (Guard::complete(target.bucket, mode), whole_crc(parts))
            }
        };
        Self { target, sent, guard, crc, refuses_checksums: false }
    }

    async fn put(&mut self, content: &Content) -> Result<StoredObject, Cause> {
        let Self { target, guard, crc, .. } = self;
        let sent = with_attributes!(target.bucket.client.put_object(), target)
            .content_length(signed(content.len()))
            .body(body(content))
            .set_checksum_crc32(crc.map(Crc32::to_base64))
            .set_if_match(guard.if_match())
            .set_if_none_match(guard.if_none_match())
            .customize()
            .disable_payload_signing()
            .send()
            .await;
        let answer = sent.map_err(|error| self.cause(error))?;
        let etag = whole_etag(answer.e_tag());
        let (name, theirs) = (self.target.name, answer.checksum_crc32());
        let is_proved = is_proof("PutObject", name, content, self.crc, theirs, &etag);
        let is_proved = is_proved.map_err(Cause::Unconfirmed)?;
        self.confirmed(content.len(), etag, is_proved).await
    }

    async fn complete(&mut self, id: &str, parts: &[Part]) -> Result<StoredObject, Cause> {
        const OP: &str = "CompleteMultipartUpload";
        let Self { target, guard, .. } = self;
        let len = self.sent.size();
        let setting = target.bucket.settings.part_checksums;
        let takes_checksums = || target.bucket.abilities().takes_part_checksums();
        let with_checksums = setting.unwrap_or_else(takes_checksums)
            && target.bucket.checksums
            && !self.refuses_checksums;
        let list = list_of_parts(parts, with_checksums);
        let has_checksums = list.parts().iter().any(|part| part.checksum_crc32().is_some());
        let sent = target
            .bucket
            .client
            .complete_multipart_upload()
            .bucket(&*target.bucket.name)
            .key(&target.name.key)
            .upload_id(id)
            .set_request_payer(target.payer())
            .mpu_object_size(signed(len))
            .set_if_match(guard.if_match())
            .set_if_none_match(guard.if_none_match())
            .multipart_upload(list)
            .customize()
            .send()
            .await;
        let answer = match sent.map_err(|error| self.cause(error)) {
            Ok(answer) => answer,
            // The store does not support this element. If it is something else, the store will say so again.
            Err(cause)
                if has_checksums && setting.is_none() && cause.code() == Some("MalformedXML") =>
            {
                self.refuses_checksums = true;
                return Err(cause.again());
            }
            // What the store said of a part was wrong.
            Err(cause) if matches!(cause.code(), Some("InvalidPart" | "InvalidPartOrder")) => {
                let error = cause.into_error(OP, self.target.name, 1);
                return Err(Cause::Unconfirmed(error.with_code(Code::DataLoss)));
            }
            Err(cause) => return Err(cause),
        };
        let expected = checksums_of_parts(parts);
        let is_proved = match answer.checksum_crc32().filter(|_| !expected.is_empty()) {
            None => parts.iter().all(|part| part.is_proved),
            Some(theirs) if expected.iter().any(|own| own == theirs) => true,
            Some(theirs) => {
                return Err(Cause::Unconfirmed(Error::data_loss(format_args!(
                    "{}: {OP}: the store's checksum is {theirs}, of what was sent {}; write it again",
                    self.target.name,
                    expected.join(" or ")
                ))));
            }
        };
        if has_checksums || self.refuses_checksums {
            self.target.bucket.abilities().part_checksums(has_checksums);
        }
        self.confirmed(len, whole_etag(answer.e_tag()), is_proved).await
    }

    /// Returns the stored object. Where the store gave no other proof, its length is requested.
    async fn confirmed(
        &self,
        len: u64,
        mut etag: String,
        is_proved: bool,
    ) -> Result<StoredObject, Cause> {
        if !is_proved || etag.is_empty() {
            etag = self.target.confirm_len(len, &etag).await.map_err(Cause::Unconfirmed)?;
        }
        self.guard.held();
        Ok(stored(&etag, len, self.crc.map(Crc32::to_base64)))
    }

    fn cause<E: ProvideErrorMetadata>(&mut self, error: SdkError<E>) -> Cause {
        let cause = self.target.bucket.cause(error);
        if self.guard.is_unknown(&cause) {
            return cause.again();
        }
        match self.sent {
            _ if self.guard.is_refused(&cause) => cause.with_kind(ErrorKind::Precondition),
            // Another request was in progress. For an upload, all parts would have to be sent again.
            Payload::Whole(_) if is_conflict(&cause) => cause.with_kind(ErrorKind::Transient),
            _ => cause,
        }
    }
}

fn is_conflict(cause: &Cause) -> bool {
    matches!(cause.code(), Some("ConditionalRequestConflict" | "OperationAborted"))
}

impl CommitStrategy for Publishing<'_> {
    type Error = Cause;

    fn missing_check(&self) -> Option<MissingCheck> {
        self.guard.missing_check()
    }

    async fn send(&mut self) -> Result<StoredObject, Cause> {
        self.guard.begin();
        match self.sent {
            Payload::Whole(content) => self.put(content).await,
            Payload::Parts { id, parts } => self.complete(id, parts).await,
        }
    }

    fn has_false_conflicts(&self) -> bool {
        self.guard.is_sent()
    }

    fn on_conflict(&mut self, failure: &Cause, is_as_before: bool) -> ConflictOutcome {
        self.guard.refused(self.target.name, failure.status(), is_as_before)
    }
}

/// Returns the checksums that S3 may have for an object of these parts.
pub(super) fn checksums_of_parts(parts: &[Part]) -> Vec<String> {
    let crcs: Option<Vec<_>> = parts.iter().map(|part| crc_of(part.checksum.as_ref())).collect();
    let mut checksums: Vec<_> = whole_crc(parts).map(Crc32::to_base64).into_iter().collect();
    checksums.extend(crcs.as_deref().map(composite));
    checksums
}

/// Returns the ETag that most stores give to an object of these parts.
pub(super) fn etag_of_parts(parts: &[Part]) -> Option<String> {
    md5_etag_of_parts(parts.iter().map(|part| part.id.as_str()))
}

/// Returns the checksum of the whole object, if those of all parts are known.
fn whole_crc(parts: &[Part]) -> Option<Crc32> {
    parts.iter().try_fold(Crc32::of([]), |crc, part| {
        Some(crc.followed_by(crc_of(part.checksum.as_ref())?, part.len))
    })
}

fn list_of_parts(parts: &[Part], with_checksums: bool) -> CompletedMultipartUpload {
    let parts = parts.iter().map(|part| {
        CompletedPart::builder()
            .part_number(i32::try_from(part.number).unwrap_or(i32::MAX))
            .e_tag(&part.id)
            .set_checksum_crc32(part.checksum.clone().filter(|_| with_checksums))
            .build()
    });
    CompletedMultipartUpload::builder().set_parts(Some(parts.collect())).build()
}
