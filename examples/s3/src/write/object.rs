//! The object that a file becomes: PUT in one request, and the proof that it is stored.

use super::body::body;
use super::checksum::{Crc32, md5_etag, same_etag};
use super::course::{Course, Once};
use super::guard::{Guard, Refusal};
use crate::connection::Bucket;
use crate::failure::failure;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::head_object::builders::HeadObjectFluentBuilder;
use aws_sdk_s3::operation::head_object::{HeadObjectError, HeadObjectOutput};
use aws_sdk_s3::operation::put_object::PutObjectOutput;
use aws_sdk_s3::types::{ChecksumMode, RequestPayer};
use std::sync::LazyLock;
use std::time::Duration;
use tf_fs_object_store::{Attributes, Before, Content, Name, Stored, replaced, unknown};
use tf_fs_plugin::prelude::*;

/// Before another attempt.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// Where a file goes, and with what attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) bucket: &'a Bucket,
    pub(crate) name: &'a Name,
    pub(crate) attributes: &'a Attributes,
}

/// How an object would be recognised as the one that was sent.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) len: u64,
    /// What its CRC32 may be, as S3 writes it.
    pub(crate) checksums: Vec<String>,
    /// What its ETag may be.
    pub(crate) etag: Option<String>,
    /// What it replaces, for stores whose ETags are made of something else.
    pub(crate) replaced: Option<Replaced>,
}

/// What was there before an object of parts.
#[derive(Debug)]
pub(crate) struct Replaced {
    /// Empty if nothing was there.
    pub(crate) etag: String,
    /// Of how many parts the new one is.
    pub(crate) parts: usize,
}

impl Replaced {
    /// Whether this is the ETag of another object, which has as many parts as the new one.
    fn is_by(&self, etag: &str) -> bool {
        etag.trim_matches('"').ends_with(&format!("-{}", self.parts))
            && !same_etag(etag, &self.etag)
    }
}

impl Expected {
    fn is(&self, head: &HeadObjectOutput) -> bool {
        let etag = whole_etag(head.e_tag());
        has_len(head, self.len)
            && (head
                .checksum_crc32()
                .is_some_and(|sum| self.checksums.iter().any(|own| own == sum))
                || !etag.is_empty()
                    && (self.etag.as_deref().is_some_and(|own| same_etag(&etag, own))
                        || self.replaced.as_ref().is_some_and(|old| old.is_by(&etag))))
    }
}

fn has_len(head: &HeadObjectOutput, len: u64) -> bool {
    head.content_length().and_then(|found| u64::try_from(found).ok()) == Some(len)
}

/// Sets on a request that makes an object what the settings want of objects.
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
    /// An object of which nothing but its name matters.
    pub(crate) fn plain(bucket: &'a Bucket, name: &'a Name) -> Self {
        static NONE: LazyLock<Attributes> = LazyLock::new(Attributes::default);
        Self { bucket, name, attributes: &NONE }
    }
}

impl Target<'_> {
    pub(super) fn payer(&self) -> Option<RequestPayer> {
        self.bucket.settings.requester_pays.then_some(RequestPayer::Requester)
    }

    /// The error of a request for this object.
    #[cold]
    pub(super) fn failure<E>(&self, op: &str, error: SdkError<E>) -> Error
    where
        E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
    {
        failure(op, self.name, error)
    }

    /// Stores all of a file in one request, if what is there is as it was `before`. `is_open`: whether the store may have
    /// done so, in an attempt that failed.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if somebody else changed that, `DATA_LOSS` if the store has other bytes
    /// than were sent, and those of the request.
    pub(super) async fn put(
        &self,
        content: &Content,
        before: &Before,
        is_open: &mut bool,
    ) -> Result<Stored> {
        let crc = self.bucket.settings.checksums.then(|| Crc32::of_content(content));
        let expected = || Expected {
            len: content.len(),
            checksums: vec![crc.unwrap_or_else(|| Crc32::of_content(content)).to_base64()],
            etag: Some(md5_etag(content)),
            replaced: None,
        };
        let mut course = Course::after(*is_open);
        loop {
            let guard = Guard::put(self.bucket, before, &course);
            let must_look = guard.must_look();
            if must_look
                && !course.has_looked
                && let Some(stored) = guard.look(&course, self, &expected).await?
            {
                return Ok(with_crc(stored, crc));
            }
            course.begin();
            let sent = with_attributes!(self.bucket.client.put_object(), self)
                .content_length(signed(content.len()))
                .body(body(content))
                .set_checksum_crc32(crc.map(Crc32::to_base64))
                .set_if_match(guard.if_match())
                .set_if_none_match(guard.if_none_match())
                .customize()
                .disable_payload_signing()
                .interceptor(Once(must_look))
                .send()
                .await;
            let error = match sent {
                Ok(answer) => {
                    *is_open = true;
                    let stored = self.confirm(content, crc, &answer).await?;
                    guard.held(&course);
                    if guard.must_look() {
                        guard.look_after(self, &stored).await?;
                    }
                    return Ok(stored);
                }
                Err(error) => error,
            };
            if guard.is_unknown(&mut course, &error) {
                continue;
            }
            if guard.is_refused(&error) {
                let refusal = guard.refusal(&mut course, self, &error, Some(&expected())).await;
                match refusal.map_err(unknown)? {
                    Refusal::Ours(stored) => return Ok(with_crc(stored, crc)),
                    Refusal::None => {}
                    Refusal::Theirs => return Err(replaced(self.failure("PutObject", error))),
                }
                continue;
            }
            course.is_open |= leaves_open_whether_done(&error);
            *is_open = course.is_open;
            if must_look && course.again(&self.bucket.settings, self.name, &error).await {
                continue;
            }
            // A PUT that was done but not acknowledged is done again, and finds its own object.
            if course.is_open
                && let Ok(Some(stored)) = self.find(&expected()).await
            {
                return Ok(with_crc(stored, crc));
            }
            return Err(self.failure("PutObject", error));
        }
    }

    async fn confirm(
        &self,
        content: &Content,
        crc: Option<Crc32>,
        answer: &PutObjectOutput,
    ) -> Result<Stored> {
        let mut etag = whole_etag(answer.e_tag());
        if !is_proof("PutObject", self.name, content, crc, answer.checksum_crc32(), &etag)?
            || etag.is_empty()
        {
            etag = self.confirm_len(content.len(), &etag).await?;
        }
        Ok(stored(&etag, content.len(), crc))
    }

    /// Asks the store for an object's length where it gave no other proof. Its ETag.
    pub(super) async fn confirm_len(&self, len: u64, etag: &str) -> Result<String> {
        let head = self.ask().send().await.map_err(|error| self.failure("HeadObject", error))?;
        let found = whole_etag(head.e_tag());
        let is_other = !etag.is_empty() && !found.is_empty() && !same_etag(&found, etag);
        // If somebody else has replaced it already, its length says nothing about ours.
        ensure!(
            is_other || has_len(&head, len),
            Error::data_loss(format_args!(
                "{}: the store has {} bytes of the {len} that were written; write it again",
                self.name,
                head.content_length().unwrap_or_default()
            ))
        );
        Ok(if is_other { etag.to_owned() } else { found })
    }

    /// The object, if it is the one that was sent.
    ///
    /// # Errors
    /// If the store does not say.
    pub(super) async fn find(&self, expected: &Expected) -> Result<Option<Stored>> {
        // The request has been waited for already.
        let twice = RetryConfig::standard().with_max_attempts(2).with_initial_backoff(PAUSE);
        let config = aws_sdk_s3::config::Builder::new().retry_config(twice);
        let head = self.shown(self.ask().customize().config_override(config).send().await)?;
        Ok(head.and_then(|head| self.recognised(expected, &head)))
    }

    /// The object that HeadObject shows, if it is the one that was sent.
    pub(super) fn recognised(
        &self,
        expected: &Expected,
        head: &HeadObjectOutput,
    ) -> Option<Stored> {
        expected.is(head).then(|| {
            log::debug!("{}: stored, although no acknowledgement came", self.name);
            stored(&whole_etag(head.e_tag()), expected.len, None)
        })
    }

    /// What HeadObject shows; `None` if there is no object.
    ///
    /// # Errors
    /// Those of the request.
    pub(super) async fn look(&self) -> Result<Option<HeadObjectOutput>> {
        self.shown(self.ask().send().await)
    }

    fn shown(
        &self,
        answer: Result<HeadObjectOutput, SdkError<HeadObjectError>>,
    ) -> Result<Option<HeadObjectOutput>> {
        match answer {
            Ok(head) => Ok(Some(head)),
            Err(error) if status_of(&error) == Some(404) => Ok(None),
            Err(error) => Err(self.failure("HeadObject", error)),
        }
    }

    fn ask(&self) -> HeadObjectFluentBuilder {
        self.bucket
            .client
            .head_object()
            .bucket(&*self.bucket.name)
            .key(&self.name.key)
            .set_request_payer(self.payer())
            .checksum_mode(ChecksumMode::Enabled)
    }
}

/// An object of this ETag, which is empty if the store did not tell.
pub(crate) fn stored(etag: &str, len: u64, crc: Option<Crc32>) -> Stored {
    with_crc(Stored::new(len).with_etag(whole_etag(Some(etag))), crc)
}

pub(super) fn with_crc(stored: Stored, crc: Option<Crc32>) -> Stored {
    stored.with_checksum(crc.map(Crc32::to_base64))
}

/// The CRC32 of an object or a part, if it is known.
pub(super) fn crc_of(checksum: Option<&String>) -> Option<Crc32> {
    checksum.and_then(|checksum| Crc32::from_base64(checksum))
}

/// Whether HeadObject shows this object.
pub(super) fn is_shown_by(stored: &Stored, head: &HeadObjectOutput) -> bool {
    let etag = whole_etag(head.e_tag());
    let own = stored.etag.as_deref();
    let is_same = etag.is_empty() || own.is_none_or(|own| same_etag(&etag, own));
    has_len(head, stored.size) && is_same
}

/// The ETag of an answer; empty if there is none, or it was cut off with the rest of a document.
pub(super) fn whole_etag(etag: Option<&str>) -> String {
    let etag = etag.unwrap_or_default();
    let is_whole = match etag.strip_prefix('"') {
        Some(rest) => rest.ends_with('"'),
        None => !etag.ends_with('"'),
    };
    if is_whole { etag.to_owned() } else { String::new() }
}

/// Whether an answer proves that the store has `content`.
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
        // For stores without checksums. Some ETags are no MD5, so an unequal one proves nothing.
        _ => Ok(same_etag(etag, &md5_etag(content))),
    }
}

pub(crate) fn status_of<E>(error: &SdkError<E>) -> Option<u16> {
    error.raw_response().map(|response| response.status().as_u16())
}

/// Whether the store may have done what it was asked for nevertheless.
pub(crate) fn leaves_open_whether_done<E>(error: &SdkError<E>) -> bool {
    !matches!(error, SdkError::ConstructionFailure(_))
        && !matches!(status_of(error), Some(400 | 401 | 403 | 404 | 405 | 411 | 413 | 501))
}

/// As the SDK wants lengths.
pub(super) fn signed(len: u64) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}

/// The object of this name and what it has beside its bytes; `None` if there is none.
pub(super) async fn find(bucket: &Bucket, name: &Name) -> Result<Option<(Stored, Attributes)>> {
    let Some(head) = Target::plain(bucket, name).look().await? else { return Ok(None) };
    let len = head.content_length().and_then(|len| u64::try_from(len).ok()).ok_or_else(|| {
        Error::unavailable(format_args!(
            "{name}: HeadObject: the store's response has no length; does it implement S3?"
        ))
    })?;
    let crc = head.checksum_crc32().and_then(Crc32::from_base64);
    let stored = stored(head.e_tag().unwrap_or_default(), len, crc);
    let attributes = Attributes {
        content_type: head.content_type,
        cache_control: head.cache_control,
        content_disposition: head.content_disposition,
        content_encoding: head.content_encoding,
        content_language: head.content_language,
        metadata: head.metadata,
    };
    Ok(Some((stored, attributes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_that_was_cut_off_is_none() {
        assert_eq!(whole_etag(Some("\"0123-4\"")), "\"0123-4\"");
        assert_eq!(whole_etag(Some("0123-4")), "0123-4");
        for cut in [None, Some(""), Some("\""), Some("\"0123"), Some("0123\"")] {
            assert_eq!(whole_etag(cut), "", "{cut:?}");
        }
    }
}
