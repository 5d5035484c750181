//! Copies made by the store.

use crate::bucket::Bucket;
use crate::capabilities::Condition;
use crate::credential::date_time;
use crate::error::S3Error;
use crate::request::{Call, Success};
use crate::write::COPIED;
use crate::write::checksum::{md5_etag_of_parts, same_etag};
use crate::write::guard::Guard;
use crate::write::multipart::{self, upload_part_copy};
use crate::write::object::{Target, attributes, stored};
use futures_util::stream;
use futures_util::{StreamExt, TryStreamExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use tf_fs_object_store::http::{HttpError, Method};
use tf_fs_object_store::{
    CopyOptions, ErrorKind, Lookup, Name, ObjectMeta, PutMode, Range, StoreError as _,
    StoredObject, retry,
};
use tf_fs_plugin::prelude::*;

/// Objects of this size and more are copied in parts, many at a time.
const IN_PARTS: u64 = 256 << 20;
/// The longest object that one request can copy.
const ONE_REQUEST: u64 = 5 << 30;
/// Bytes of a part, unless there would be more parts than S3 allows.
const PART: u64 = COPIED;
const MAX_PARTS: u64 = 10_000;
/// Parts that are copied at a time.
const PARTS_IN_FLIGHT: usize = 16;

/// Copies an object within a store. What the copy is, if that is known.
pub(crate) async fn copy(
    from: &Arc<Bucket>,
    to: &Arc<Bucket>,
    options: CopyOptions<'_>,
) -> Result<Outcome, S3Error> {
    let CopyOptions { src, dst, known, len, replaced, .. } = options;
    if !from.is_of_store_of(to) {
        let text = format!(
            "{src}: cannot be copied to {dst}, because the buckets are of different stores; read one and write the other"
        );
        return Err(Error::new(Code::Unimplemented, text).into());
    }
    let copy = Copy { from, to, src, dst, known, replaced };
    match len.filter(|&len| len >= IN_PARTS) {
        Some(_) => copy.in_parts().await,
        None => copy.at_once().await,
    }
}

struct Copy<'a> {
    from: &'a Arc<Bucket>,
    to: &'a Arc<Bucket>,
    src: &'a Name,
    dst: &'a Name,
    /// What is believed of the source. If it is true, it is known what the copy is.
    known: Option<ObjectMeta>,
    /// What is believed to be at the destination.
    replaced: &'a Lookup,
}

type Outcome = Option<ObjectMeta>;

impl Copy<'_> {
    /// With one request.
    async fn at_once(&self) -> Result<Outcome, S3Error> {
        let knows = self.to.support(Condition::CopyOf).is_sent();
        let known = self.known.as_ref().filter(|_| knows);
        match self.send(known).await {
            Ok((etag, modified)) => {
                ensure!(
                    !etag.is_empty(),
                    Error::data_loss(format_args!(
                        "{}: CopyObject: the store did not confirm the copy {}; copy it again",
                        self.src, self.dst
                    ))
                );
                // Another one is that of the copy of other bytes, or of an object made of parts.
                let known = known.filter(|known| is_tag(known, &etag));
                let copy = known
                    .zip(modified)
                    .map(|(known, modified)| known.clone().with_etag(etag).with_modified(modified));
                Ok(copy)
            }
            // It has changed since, or the store cannot tell.
            Err(error) if known.is_some() && matches!(error.status(), Some(412 | 501)) => {
                Err(HttpError::Changed.into())
            }
            Err(error) => {
                let one_request = match error {
                    _ if may_be_too_long(&error) => ONE_REQUEST,
                    // Some stores do not respond before the copy is made: of a part that takes less time.
                    S3Error::Failed(HttpError::Stalled(..)) => IN_PARTS - 1,
                    _ => return Err(error),
                };
                match retry(&**self.from, "HeadObject", self.src, || self.head()).await {
                    Ok(head) if len(&head)? > one_request => Ok(self.parts_of(head).await?),
                    // What was said of the copy tells more.
                    _ => Err(error),
                }
            }
        }
    }

    /// Requests the copy, of exactly `known` if that is given. Returns its ETag, and when it was made.
    async fn send(
        &self,
        known: Option<&ObjectMeta>,
    ) -> Result<(String, Option<SystemTime>), S3Error> {
        let known = known
            .and_then(|known| known.etag.clone())
            .map(|etag| self.to.support(Condition::CopyOf).form(etag));
        let call = Call::object("CopyObject", Method::PUT, &self.dst.key)
            .with_copy_source(self.src)?
            .with_optional("x-amz-copy-source-if-match", known.as_deref())?;
        // The copy keeps the source's type: some stores would apply the setting's.
        let call = Target::plain(self.to, self.dst).placed(call)?;
        let (mut etag, mut modified) = (String::new(), None);
        self.to.send(call).await?.read("CopyObjectResult", |path, text| match path {
            ["ETag"] => etag = text.unwrap_or_default(),
            ["LastModified"] => modified = text.as_deref().and_then(date_time),
            _ => {}
        })?;
        Ok((etag, modified))
    }

    async fn in_parts(&self) -> Result<Outcome, S3Error> {
        let head = self.head().await?;
        if len(&head)? < IN_PARTS {
            // It has become shorter since this process knew its length.
            return Box::pin(self.at_once()).await;
        }
        Ok(self.parts_of(head).await?)
    }

    async fn head(&self) -> Result<Success, S3Error> {
        self.from.send(Call::object("HeadObject", Method::HEAD, &self.src.key)).await
    }

    async fn parts_of(&self, head: Success) -> Result<Outcome> {
        let len = len(&head)?;
        let source = Target::plain(self.from, self.src);
        let before = PutMode::Update(stored(head.header("etag").unwrap_or_default(), len, None));
        let attributes = attributes(&head);
        let target = Target { bucket: self.to, name: self.dst, attributes: &attributes };
        let redirect = head.header("x-amz-website-redirect-location");
        let call = Call::object("CreateMultipartUpload", Method::POST, &self.dst.key)
            .with_query("uploads", "")
            .with_optional("x-amz-website-redirect-location", redirect)?;
        let call = target.described(call)?;
        let begin = || multipart::begin(self.to, self.dst, call.clone());
        let upload = &*retry(&**self.to, "CreateMultipartUpload", self.dst, begin).await?;
        let done = match self.parts(&target, upload, len, &source, &before).await {
            Ok(parts) => self.complete(&target, upload, len, parts).await,
            Err(error) => Err(error),
        };
        if done.is_err() {
            // What is left of it costs money. The error that counts is the first.
            if let Err(error) = abort(&target, upload).await
                && error.code() != Code::NotFound
            {
                log::warn!(
                    "{error:#}: the store keeps its parts; let a lifecycle rule delete them"
                );
            }
        }
        done.map(|()| None)
    }

    /// All parts of one version of the source.
    async fn parts(
        &self,
        target: &Target<'_>,
        upload: &str,
        len: u64,
        original: &Target<'_>,
        before: &PutMode,
    ) -> Result<Vec<(u32, String)>> {
        let parts = stream::iter(ranges(len))
            .map(|(number, range)| async move {
                let part = (number, Some(range));
                let copy = || upload_part_copy(target, upload, part, original, before);
                let copied = retry(&**self.to, "UploadPartCopy", self.src, copy).await?;
                ensure!(
                    !copied.etag.is_empty(),
                    Error::data_loss(format_args!(
                        "{}: UploadPartCopy: the store did not confirm part {number}; copy it again",
                        self.src
                    ))
                );
                Ok::<_, Error>((number, copied.etag))
            })
            .buffered(PARTS_IN_FLIGHT)
            .try_collect()
            .await?;
        // Where the store does not check it, somebody may have replaced the source between two parts.
        let guard = Guard::copy(original.bucket, before);
        let look = || guard.look_at_source(original);
        retry(&**self.from, "HeadObject", self.src, look).await?;
        Ok(parts)
    }

    async fn complete(
        &self,
        target: &Target<'_>,
        upload: &str,
        len: u64,
        parts: Vec<(u32, String)>,
    ) -> Result<()> {
        let etags = parts.iter().map(|(_, etag)| etag.as_str());
        let own = md5_etag_of_parts(etags);
        let count = format!("-{}", parts.len());
        let is_other = |etag: &str| match self.replaced {
            Lookup::File(known) => known.etag.is_none() || is_tag(known, etag),
            Lookup::Missing | Lookup::Directory => false,
        };
        // Or the ETag of another object than the one that is replaced, which has as many parts as the new one, for stores
        // whose ETags are made of something else.
        let is_copy = |found: &StoredObject| {
            let etag = found.etag.as_deref().unwrap_or_default();
            found.size == len
                && !etag.is_empty()
                && (own.as_deref().is_some_and(|own| same_etag(own, etag))
                    || etag.trim_matches('"').ends_with(&count) && !is_other(etag))
        };
        let list = parts.iter().map(|(number, etag)| (*number, etag.as_str(), None));
        let call = multipart::complete(self.dst, upload, list)?;
        let is_ambiguous = AtomicBool::new(false);
        let make = || async {
            let completed = async {
                let response = self.to.send(call.clone()).await?;
                response.read("CompleteMultipartUploadResult", |_, _| {})
            };
            completed.await.inspect_err(|error: &S3Error| {
                is_ambiguous.fetch_or(error.is_ambiguous(), Ordering::Relaxed);
            })
        };
        let completed = retry(&**self.to, "CompleteMultipartUpload", self.dst, make).await;
        // The answer may be lost, and a second attempt finds no upload.
        if completed.is_err()
            && is_ambiguous.load(Ordering::Relaxed)
            && settle(target, upload, is_copy).await
        {
            return Ok(());
        }
        completed.map(drop)
    }
}

/// Makes the store forget the upload.
async fn abort(target: &Target<'_>, upload: &str) -> Result<()> {
    let abort = || multipart::abort(target.bucket, target.name, upload);
    retry(target.bucket, "AbortMultipartUpload", target.name, abort).await
}

/// Whether the store made the copy although it did not say so. Otherwise the upload is aborted.
async fn settle(
    target: &Target<'_>,
    upload: &str,
    is_copy: impl Fn(&StoredObject) -> bool,
) -> bool {
    let is_there = async || {
        // The request has been waited for already.
        for _ in 0..2 {
            match target.find().await {
                Ok((found, _)) => return is_copy(&found),
                Err(error) if error.kind() == ErrorKind::NotFound => return false,
                Err(_) => {}
            }
        }
        false
    };
    // It may be about to. Aborting ends that, or comes too late.
    is_there().await || abort(target, upload).await.is_err() && is_there().await
}

fn len(head: &Success) -> Result<u64> {
    head.content_length.ok_or_else(|| Error::data_loss("HeadObject: the store gave no length"))
}

/// Number and bytes of each part.
fn ranges(len: u64) -> impl Iterator<Item = (u32, Range)> {
    const MIB: u64 = 1 << 20;
    let part = len.div_ceil(MAX_PARTS).next_multiple_of(MIB).max(PART);
    (1..).zip((0..len).step_by(usize::try_from(part).unwrap_or(usize::MAX))).map(
        move |(number, first)| (number, Range::new(first, len.min(first.saturating_add(part)))),
    )
}

/// Whether an object has this ETag.
fn is_tag(known: &ObjectMeta, etag: &str) -> bool {
    known.etag.as_deref().is_some_and(|known| same_etag(etag, known))
}

fn may_be_too_long(error: &S3Error) -> bool {
    matches!(error.code(), Some("InvalidRequest" | "EntityTooLarge" | "InvalidArgument"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_and_within_the_limits() {
        for len in [
            1,
            PART - 1,
            PART,
            PART + 1,
            (100 << 20) + 1,
            ONE_REQUEST,
            ONE_REQUEST + 1,
            PART * MAX_PARTS,
            PART * MAX_PARTS + 1,
            5 << 40,
        ] {
            let mut next = 0;
            let mut count = 0;
            for (number, part) in ranges(len) {
                count += 1;
                assert_eq!((u64::from(number), part.start), (count, next), "{len}");
                assert!(part.len() <= ONE_REQUEST);
                assert!(part.end == len || part.len() >= 5 << 20);
                next = part.end;
            }
            assert_eq!(next, len);
            assert!(count <= 10_000);
        }
    }
}
