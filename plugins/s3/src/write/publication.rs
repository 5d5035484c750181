//! How S3 makes an object visible: PutObject, or CompleteMultipartUpload.

use super::checksum::{Crc32, composite, md5_etag_of_parts};
use super::guard::Guard;
use super::multipart;
use super::object::{Target, chunks, crc_of, is_proof, stored, whole_etag};
use crate::error::S3Error;
use crate::request::{Call, Success};
use tf_fs_object_store::http::Method;
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
    pub(crate) fn new(target: Target<'a>, mode: &'a PutMode, sent: Payload<'a>) -> Self {
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

    async fn put(&mut self, content: &Content) -> Result<StoredObject, S3Error> {
        let call = Call::object("PutObject", Method::PUT, &self.target.name.key);
        let call = self.target.described(call)?.with_body(chunks(content), self.crc)?;
        let response = self.send_guarded(call).await?;
        let etag = whole_etag(response.header("etag"));
        let (name, theirs) = (self.target.name, response.header("x-amz-checksum-crc32"));
        let is_proved = is_proof("PutObject", name, content, self.crc, theirs, &etag);
        let is_proved = is_proved.map_err(S3Error::Unconfirmed)?;
        self.confirmed(content.len(), etag, is_proved).await
    }

    /// Sends a request with the condition.
    async fn send_guarded(&mut self, call: Call) -> Result<Success, S3Error> {
        let call = call
            .with_optional("if-match", self.guard.if_match().as_deref())?
            .with_optional("if-none-match", self.guard.if_none_match().as_deref())?;
        self.target.bucket.send(call).await.map_err(|error| self.refused_as(error))
    }

    async fn complete(&mut self, id: &str, parts: &[Part]) -> Result<StoredObject, S3Error> {
        const OP: &str = "CompleteMultipartUpload";
        let target = &self.target;
        let len = self.sent.size();
        let setting = target.bucket.settings.part_checksums;
        let takes_checksums = || target.bucket.capabilities.takes_part_checksums();
        let with_checksums = setting.unwrap_or_else(takes_checksums)
            && target.bucket.checksums
            && !self.refuses_checksums;
        let list = parts.iter().map(|part| {
            let checksum = part.checksum.as_deref().filter(|_| with_checksums);
            (part.number, part.id.as_str(), checksum)
        });
        let has_checksums = list.clone().any(|(.., checksum)| checksum.is_some());
        let call = multipart::complete(target.name, id, list)?
            .with_header("x-amz-mp-object-size", &len.to_string())?;
        let response = match self.send_guarded(call).await {
            Ok(response) => response,
            // The store does not support this element. If it is something else, the store will say so again.
            Err(error)
                if has_checksums && setting.is_none() && error.code() == Some("MalformedXML") =>
            {
                self.refuses_checksums = true;
                return Err(error.again());
            }
            // What the store said of a part was wrong.
            Err(error) if matches!(error.code(), Some("InvalidPart" | "InvalidPartOrder")) => {
                let error = error.into_error(OP, self.target.name, 1);
                return Err(S3Error::Unconfirmed(match error.code() {
                    // It is the lengths of the parts that it does not take.
                    Code::FailedPrecondition => error,
                    _ => error.with_code(Code::DataLoss),
                }));
            }
            Err(error) => return Err(error),
        };
        let expected = checksums_of_parts(parts);
        let (mut etag, mut checksum) = (String::new(), None);
        response.read("CompleteMultipartUploadResult", |path, text| match path {
            ["ETag"] => etag = whole_etag(text.as_deref()),
            ["ChecksumCRC32"] => checksum = text,
            _ => {}
        })?;
        let is_proved = match checksum.filter(|_| !expected.is_empty()) {
            None => parts.iter().all(|part| part.is_proved),
            Some(theirs) if expected.contains(&theirs) => true,
            Some(theirs) => {
                return Err(S3Error::Unconfirmed(Error::data_loss(format_args!(
                    "{}: {OP}: the store's checksum is {theirs}, of what was sent {}; write it again",
                    self.target.name,
                    expected.join(" or ")
                ))));
            }
        };
        if has_checksums || self.refuses_checksums {
            self.target.bucket.capabilities.part_checksums(has_checksums);
        }
        self.confirmed(len, etag, is_proved).await
    }

    /// Returns the stored object. Where the store gave no other proof, its length is requested.
    async fn confirmed(
        &self,
        len: u64,
        mut etag: String,
        is_proved: bool,
    ) -> Result<StoredObject, S3Error> {
        if !is_proved || etag.is_empty() {
            etag = self.target.confirm_len(len, &etag).await.map_err(S3Error::Unconfirmed)?;
        }
        self.guard.held();
        Ok(stored(&etag, len, self.crc.map(Crc32::to_base64)))
    }

    /// Returns what a failure means for this publication.
    fn refused_as(&mut self, error: S3Error) -> S3Error {
        if self.guard.is_unknown(&error) {
            return error.again();
        }
        match self.sent {
            _ if self.guard.is_refused(&error) => error.with_kind(ErrorKind::Precondition),
            // Another request was in progress. For an upload, all parts would have to be sent again.
            Payload::Whole(_) if is_conflict(&error) => error.with_kind(ErrorKind::Transient),
            _ => error,
        }
    }
}

fn is_conflict(error: &S3Error) -> bool {
    matches!(error.code(), Some("ConditionalRequestConflict" | "OperationAborted"))
}

impl CommitStrategy for Publishing<'_> {
    type Error = S3Error;

    fn missing_check(&self) -> Option<MissingCheck> {
        self.guard.missing_check()
    }

    async fn send(&mut self) -> Result<StoredObject, S3Error> {
        self.guard.begin();
        match self.sent {
            Payload::Whole(content) => self.put(content).await,
            Payload::Parts { id, parts } => self.complete(id, parts).await,
        }
    }

    fn has_false_conflicts(&self) -> bool {
        self.guard.is_sent()
    }

    fn on_conflict(&mut self, failure: &S3Error, is_as_before: bool) -> ConflictOutcome {
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
