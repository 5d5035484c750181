//! A file on its way to the store in parts.

use super::body::body;
use super::checksum::{Crc32, composite, md5_etag_of_parts};
use super::course::{Course, Once};
use super::guard::{Before, Guard, Refusal, replaced, unknown};
use super::object::{
    Expected, Stored, Target, is_proof, leaves_open_whether_done, signed, whole_etag,
    with_attributes,
};
use super::parts;
use crate::names::copy_source;
use aws_sdk_s3::error::ProvideErrorMetadata as _;
use aws_sdk_s3::types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart};
use futures_util::future::{BoxFuture, Shared};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use std::ops::Range;
use std::sync::Arc;
use tf_fs_object_store::{Content, Name, Process};
use tf_fs_plugin::prelude::*;
use tokio::task::{JoinError, JoinHandle};

/// The store's name of an upload, or why there is none.
type Created = Result<Arc<str>, Arc<Error>>;

/// A multipart upload. Whoever drops one without [`complete`](Self::complete) aborts it first.
#[derive(Debug)]
pub(super) struct Upload {
    target: Arc<Target>,
    process: Arc<Process>,
    id: Shared<BoxFuture<'static, Created>>,
    sending: FuturesUnordered<JoinHandle<Result<Part>>>,
    stored: Vec<Part>,
    next: u32,
    /// What has to be there still when it is complete.
    before: Before,
}

/// A part that the store has.
#[derive(Debug)]
struct Part {
    number: u32,
    etag: String,
    len: u64,
    crc: Option<Crc32>,
    /// Whether the store has proved that it has the right bytes.
    is_proved: bool,
}

impl Upload {
    /// Begins an upload, in the background. It becomes an object if what is there then is as it was
    /// `before`.
    pub(super) fn start(target: &Arc<Target>, process: &Arc<Process>, before: Before) -> Self {
        let create = process.spawn(create(Arc::clone(target)));
        // A task of its own: were it cancelled, the store would keep an upload that nobody knows.
        let id = create.map(|done| done.map_err(lost_task).and_then(|done| done).map_err(Arc::new));
        Self {
            target: Arc::clone(target),
            process: Arc::clone(process),
            id: id.boxed().shared(),
            sending: FuturesUnordered::new(),
            stored: Vec::new(),
            next: 1,
            before,
        }
    }

    /// The number of the next part.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Parts on their way.
    pub(super) fn in_flight(&self) -> usize {
        self.sending.len()
    }

    /// Makes a range of `object`, as [`parts::copies`] gives it, the next part. No byte of it is transferred.
    pub(super) fn copy(&mut self, object: &Stored, range: Range<u64>) {
        let part = copy_part(
            Arc::clone(&self.target),
            self.id.clone(),
            self.next,
            object.clone(),
            // S3 takes ranges of large objects only, and all of it needs none.
            (range != (0..object.len)).then_some(range),
        );
        self.next += 1;
        self.sending.push(self.process.spawn(part));
    }

    /// Sends the next part, in the background.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if the object has as many parts as it can have.
    pub(super) fn send(&mut self, content: Content) -> Result<()> {
        ensure!(
            self.next <= parts::MOST,
            Error::resource_exhausted(format_args!(
                "{}: an object has at most {} parts; set write_part_bytes to more than {}",
                self.target.name,
                parts::MOST,
                content.len()
            ))
        );
        let part = send_part(Arc::clone(&self.target), self.id.clone(), self.next, content);
        self.next += 1;
        self.sending.push(self.process.spawn(part));
        Ok(())
    }

    /// Waits until one of the parts on their way has arrived.
    ///
    /// # Errors
    /// Why it has not.
    pub(super) async fn arrival(&mut self) -> Result<()> {
        if let Some(done) = self.sending.next().await {
            self.stored.push(done.map_err(lost_task).and_then(|done| done)?);
        }
        Ok(())
    }

    /// Looks, without waiting, which parts have arrived.
    ///
    /// # Errors
    /// Why one has not.
    pub(super) fn arrivals(&mut self) -> Result<()> {
        while !self.sending.is_empty() {
            match self.arrival().now_or_never() {
                Some(result) => result?,
                None => break,
            }
        }
        Ok(())
    }

    /// Makes the object of the parts, once they have all arrived.
    ///
    /// # Errors
    /// As [`Target::put`], for any part too. The upload has to be aborted then.
    pub(super) async fn complete(&mut self) -> Result<Stored> {
        while !self.sending.is_empty() {
            self.arrival().await?;
        }
        let id = self.id.clone().await.map_err(|error| again(&error))?;
        self.stored.sort_unstable_by_key(|part| part.number);
        let expected = self.expected();
        let crc = self.crc();
        let target = &*self.target;
        let takes_checksums = || target.bucket.abilities().takes_part_checksums();
        let mut with_checksums =
            target.bucket.settings.part_checksums.unwrap_or_else(takes_checksums);
        let mut refuses_checksums = false;
        let mut course = Course::default();
        loop {
            let guard = Guard::complete(&target.bucket, &self.before, &course);
            let must_look = guard.must_look();
            if must_look
                && !course.has_looked
                && let Some(stored) = guard.look(&course, target, || self.expected()).await?
            {
                return Ok(Stored { crc, ..stored });
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
                .upload_id(&*id)
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
                    let stored = Stored { etag, len: expected.len, crc };
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
                    Refusal::Ours(stored) => return Ok(Stored { crc, ..stored }),
                    Refusal::None => continue,
                    Refusal::Theirs => {}
                }
            } else if must_look && course.again(&target.bucket.settings, &target.name, &error).await
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
                match target.settle(&id, &expected).await {
                    Ok(Some(stored)) => return Ok(Stored { crc, ..stored }),
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
        let crcs: Option<Vec<_>> = self.stored.iter().map(|part| part.crc).collect();
        checksums.extend(crcs.as_deref().map(composite));
        Expected {
            len: self.stored.iter().map(|part| part.len).sum(),
            checksums,
            etag: md5_etag_of_parts(self.stored.iter().map(|part| part.etag.as_str())),
            replaced: None,
        }
    }

    /// Of the whole object.
    fn crc(&self) -> Option<Crc32> {
        self.stored
            .iter()
            .try_fold(Crc32::of([]), |crc, part| Some(crc.followed_by(part.crc?, part.len)))
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
            let crc = part.crc.filter(|_| with_checksums);
            CompletedPart::builder()
                .part_number(number(part.number))
                .e_tag(&part.etag)
                .set_checksum_crc32(crc.map(Crc32::to_base64))
                .build()
        });
        CompletedMultipartUpload::builder().set_parts(Some(parts.collect())).build()
    }

    /// Gives the upload up, in the background: what is on its way is cancelled, and the store forgets
    /// the parts it has.
    pub(super) fn abort(self) -> JoinHandle<()> {
        let Self { target, process, id, sending, .. } = self;
        for part in &sending {
            part.abort();
        }
        process.spawn(async move {
            // A part that arrives after the upload was aborted could stay for ever.
            sending.collect::<Vec<_>>().await;
            let Ok(id) = id.await else { return };
            if let Err(error) = target.abort(&id).await {
                log::warn!(
                    "{error:#}; its parts cost money until a lifecycle rule \
                     (AbortIncompleteMultipartUpload) removes them"
                );
            }
        })
    }
}

impl Target {
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

async fn create(target: Arc<Target>) -> Result<Arc<str>> {
    const OP: &str = "CreateMultipartUpload";
    let with_checksums = target.bucket.settings.checksums;
    let answer = with_attributes!(target.bucket.client.create_multipart_upload(), &target)
        .set_checksum_algorithm(with_checksums.then_some(ChecksumAlgorithm::Crc32))
        .send()
        .await
        .map_err(|error| target.failure(OP, error))?;
    match answer.upload_id() {
        Some(id) if !id.is_empty() => Ok(id.into()),
        _ => Err(incomplete(OP, &target.name, "upload id")),
    }
}

async fn send_part(
    target: Arc<Target>,
    id: impl Future<Output = Created>,
    part_number: u32,
    content: Content,
) -> Result<Part> {
    const OP: &str = "UploadPart";
    let id = id.await.map_err(|error| again(&error))?;
    let crc = target.bucket.settings.checksums.then(|| Crc32::of_content(&content));
    let answer = target
        .bucket
        .client
        .upload_part()
        .bucket(&*target.bucket.name)
        .key(&target.name.key)
        .upload_id(&*id)
        .part_number(number(part_number))
        .set_request_payer(target.payer())
        .content_length(signed(content.len()))
        .body(body(&content))
        .set_checksum_crc32(crc.map(Crc32::to_base64))
        .customize()
        .disable_payload_signing()
        .send()
        .await
        .map_err(|error| target.failure(OP, error))?;
    let etag = whole_etag(answer.e_tag());
    ensure!(!etag.is_empty(), incomplete(OP, &target.name, "ETag"));
    let is_proved = is_proof(OP, &target.name, &content, crc, answer.checksum_crc32(), &etag)?;
    Ok(Part { number: part_number, etag, len: content.len(), crc, is_proved })
}

async fn copy_part(
    target: Arc<Target>,
    id: impl Future<Output = Created>,
    part_number: u32,
    object: Stored,
    range: Option<Range<u64>>,
) -> Result<Part> {
    const OP: &str = "UploadPartCopy";
    let id = id.await.map_err(|error| again(&error))?;
    let before = Before::This(object.clone());
    let mut course = Course::default();
    let answer = loop {
        let guard = Guard::copy(&target.bucket, &before, &course);
        let answer = target
            .bucket
            .client
            .upload_part_copy()
            .bucket(&*target.bucket.name)
            .key(&target.name.key)
            .upload_id(&*id)
            .part_number(number(part_number))
            .set_request_payer(target.payer())
            .copy_source(copy_source(&target.name))
            .set_copy_source_if_match(guard.if_match())
            .set_copy_source_range(
                range.as_ref().map(|range| format!("bytes={}-{}", range.start, range.end - 1)),
            )
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
    ensure!(!etag.is_empty(), incomplete(OP, &target.name, "ETag"));
    let crc = copied.and_then(|copied| copied.checksum_crc32()).and_then(Crc32::from_base64);
    if range.is_none()
        && let (Some(copied), Some(original)) = (crc, object.crc)
    {
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
    let len = range.map_or(object.len, |range| range.end - range.start);
    Ok(Part { number: part_number, etag, len, crc, is_proved: crc.is_some() })
}

/// As the SDK wants part numbers.
fn number(part: u32) -> i32 {
    i32::try_from(part).unwrap_or(i32::MAX)
}

/// An error that is told more than once.
#[cold]
pub(super) fn again(error: &Error) -> Error {
    Error::new(error.code(), format!("{error:#}"))
}

#[cold]
fn incomplete(op: &str, name: &Name, what: &str) -> Error {
    Error::unavailable(format_args!(
        "{name}: {op}: the store's response has no {what}; does it implement S3?"
    ))
}

#[cold]
fn lost_task(error: JoinError) -> Error {
    Error::internal("an upload's task ended early").with_source(error)
}
