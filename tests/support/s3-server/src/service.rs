//! The operations of S3 on the store.

#[macro_use]
mod conditions;
#[macro_use]
mod receive;
mod objects;
mod uploads;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use base64_simd::STANDARD;
use futures_core::Stream;
use http::HeaderMap;
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::*;
use s3s::{S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, TrailingHeaders, s3_error};

use conditions::{Conditions, selected};
use receive::{Promise, receive};

use crate::checksum::{Algorithm, Hasher, announced, compare, from_trailers};
use crate::data::{Data, DataBuilder};
use crate::list::{self, PAGE, Query};
use crate::quirk::Habit;
use crate::store::{
    Bucket, Info, PartData, Pending, Store, Stored, hex, matches, md5_of, precondition, strong,
};

/// The smallest length of a part that is not the last.
pub(crate) const MIN_PART: u64 = 5 << 20;
/// The most bytes of one PUT, one part or one CopyObject.
pub(crate) const MAX_SINGLE: u64 = 5 << 30;
/// The most bytes of an object.
pub(crate) const MAX_OBJECT: u64 = 5 << 40;

/// S3 on a [`Store`].
pub(crate) struct Service {
    pub(crate) store: Arc<Store>,
    /// The region of buckets without their own.
    pub(crate) region: String,
}

/// Marks a request whose range is ignored; the header itself may be signed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IgnoreRange;

/// Marks a request whose conditions are ignored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IgnoreConditions;

/// Marks a CompleteMultipartUpload in which the checksum of a part is an error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefuseChecksumsOfParts;

/// Removes `aws-chunked`, which belongs to the transport, not to the object.
fn stored_encoding(value: String) -> Option<String> {
    let kept: Vec<&str> =
        value.split(',').map(str::trim).filter(|part| *part != "aws-chunked").collect();
    (!kept.is_empty() && !kept[0].is_empty()).then(|| kept.join(","))
}

fn checksums(info: &Info) -> (Checksum, Option<ChecksumType>) {
    let mut sums = Checksum::default();
    for algorithm in Algorithm::ALL {
        if let Some(value) = info.checksums.get(algorithm.name()) {
            algorithm.set(&mut sums, value.clone());
        }
    }
    (sums, info.checksum_type.map(ChecksumType::from_static))
}

fn max_keys(max: Option<i32>) -> S3Result<usize> {
    match max.unwrap_or(PAGE as i32) {
        max @ 0.. => Ok((max as usize).min(PAGE)),
        _ => Err(s3_error!(
            InvalidArgument,
            "Argument max-keys must be an integer between 0 and 2147483647"
        )),
    }
}

/// How a listing writes names.
struct Names(bool);

impl Names {
    fn new(encoding: Option<&EncodingType>) -> S3Result<Names> {
        match encoding.map(EncodingType::as_str) {
            None => Ok(Names(false)),
            Some(EncodingType::URL) => Ok(Names(true)),
            Some(_) => {
                Err(s3_error!(InvalidArgument, "Invalid Encoding Method specified in Request"))
            }
        }
    }

    fn write(&self, name: &str) -> String {
        if self.0 { list::encode(name) } else { name.to_owned() }
    }

    fn prefixes(&self, prefixes: &[String]) -> Option<Vec<CommonPrefix>> {
        let one = |prefix: &String| CommonPrefix { prefix: Some(self.write(prefix)) };
        (!prefixes.is_empty()).then(|| prefixes.iter().map(one).collect())
    }
}

fn contents(names: &Names, entries: &[(String, Arc<Stored>)], owner: bool) -> Option<Vec<Object>> {
    let one = |(key, object): &(String, Arc<Stored>)| {
        let class = object.info.storage_class.clone();
        Object {
            key: Some(names.write(key)),
            size: Some(object.data.len() as i64),
            e_tag: Some(strong(&object.info.etag)),
            last_modified: object.info.modified.map(Timestamp::from),
            storage_class: Some(class.unwrap_or_else(|| StorageClass::STANDARD.to_owned()).into()),
            owner: owner.then(self::owner),
            ..Object::default()
        }
    };
    (!entries.is_empty()).then(|| entries.iter().map(one).collect())
}

fn owner() -> Owner {
    Owner { display_name: Some("owner".to_owned()), id: Some("0".repeat(64)) }
}

fn part_number(number: i32) -> S3Result<u32> {
    if (1..=10_000).contains(&number) {
        return Ok(number as u32);
    }
    Err(s3_error!(InvalidArgument, "Part number must be an integer between 1 and 10000, inclusive"))
}

impl Service {
    /// Returns the source of a copy, after checking its conditions.
    fn source(&self, source: &CopySource, conditions: &Conditions<'_>) -> S3Result<Arc<Stored>> {
        let CopySource::Bucket { bucket, key, version_id } = source else {
            return Err(s3_error!(NotImplemented, "Access points are not implemented"));
        };
        if version_id.as_deref().is_some_and(|version| version != "null") {
            return Err(s3_error!(NoSuchVersion, "The specified version does not exist."));
        }
        let object = self.store.bucket(bucket, |bucket| bucket.object(key))?;
        conditions.check(&object.info, true)?;
        Ok(object)
    }

    fn copied(&self, data: &Data) -> String {
        self.store.etag(data, None)
    }

    fn region(&self, bucket: &Bucket) -> String {
        bucket.region.clone().unwrap_or_else(|| self.region.clone())
    }
}

#[async_trait::async_trait]
impl S3 for Service {
    async fn list_buckets(
        &self,
        _: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        let buckets = self.store.lock();
        let one = |(name, bucket): (&String, &Bucket)| s3s::dto::Bucket {
            name: Some(name.clone()),
            creation_date: Some(bucket.created.into()),
            bucket_region: Some(self.region(bucket)),
        };
        let buckets = Some(buckets.iter().map(one).collect());
        Ok(S3Response::new(ListBucketsOutput {
            buckets,
            owner: Some(owner()),
            ..Default::default()
        }))
    }

    async fn head_bucket(
        &self,
        req: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        let region = self.store.bucket(&req.input.bucket, |bucket| Ok(self.region(bucket)))?;
        Ok(S3Response::new(HeadBucketOutput { bucket_region: Some(region), ..Default::default() }))
    }

    async fn get_object(
        &self,
        req: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        Self::get_object(self, req).await
    }

    async fn head_object(
        &self,
        req: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        Self::head_object(self, req).await
    }

    async fn put_object(
        &self,
        req: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        Self::put_object(self, req).await
    }

    async fn copy_object(
        &self,
        req: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        Self::copy_object(self, req).await
    }

    async fn delete_object(
        &self,
        req: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        Self::delete_object(self, req).await
    }

    async fn delete_objects(
        &self,
        req: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        Self::delete_objects(self, req).await
    }

    async fn list_objects(
        &self,
        req: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        let input = req.input;
        let names = Names::new(input.encoding_type.as_ref())?;
        let max = max_keys(input.max_keys)?;
        let query = Query {
            prefix: input.prefix.as_deref().unwrap_or(""),
            delimiter: input.delimiter.as_deref().unwrap_or(""),
            after: input.marker.as_deref().filter(|marker| !marker.is_empty()),
            max,
        };
        let page: list::ObjectPage =
            self.store.bucket(&input.bucket, |bucket| Ok(list::page(&bucket.objects, &query)))?;
        let delimited = !query.delimiter.is_empty();
        Ok(S3Response::new(ListObjectsOutput {
            is_truncated: Some(page.next.is_some()),
            next_marker: page.next.as_deref().filter(|_| delimited).map(|next| names.write(next)),
            contents: contents(&names, &page.entries, true),
            common_prefixes: names.prefixes(&page.prefixes),
            prefix: Some(names.write(query.prefix)),
            marker: Some(names.write(query.after.unwrap_or(""))),
            delimiter: delimited.then(|| names.write(query.delimiter)),
            max_keys: Some(max as i32),
            encoding_type: input.encoding_type.clone(),
            name: Some(input.bucket.clone()),
            ..Default::default()
        }))
    }

    async fn list_objects_v2(
        &self,
        req: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = req.input;
        let names = Names::new(input.encoding_type.as_ref())?;
        let max = max_keys(input.max_keys)?;
        let token = match &input.continuation_token {
            None => None,
            Some(token) => Some(
                STANDARD
                    .decode_to_vec(token)
                    .ok()
                    .and_then(|raw| String::from_utf8(raw).ok())
                    .ok_or_else(|| {
                        s3_error!(InvalidArgument, "The continuation token provided is incorrect")
                    })?,
            ),
        };
        let query = Query {
            prefix: input.prefix.as_deref().unwrap_or(""),
            delimiter: input.delimiter.as_deref().unwrap_or(""),
            after: token
                .as_deref()
                .or(input.start_after.as_deref())
                .filter(|after| !after.is_empty()),
            max,
        };
        let page: list::ObjectPage =
            self.store.bucket(&input.bucket, |bucket| Ok(list::page(&bucket.objects, &query)))?;
        Ok(S3Response::new(ListObjectsV2Output {
            is_truncated: Some(page.next.is_some()),
            next_continuation_token: page.next.map(|next| STANDARD.encode_to_string(next)),
            key_count: Some((page.entries.len() + page.prefixes.len()) as i32),
            contents: contents(&names, &page.entries, input.fetch_owner.unwrap_or(false)),
            common_prefixes: names.prefixes(&page.prefixes),
            prefix: Some(names.write(query.prefix)),
            delimiter: (!query.delimiter.is_empty()).then(|| names.write(query.delimiter)),
            start_after: input.start_after.as_deref().map(|after| names.write(after)),
            continuation_token: input.continuation_token.clone(),
            max_keys: Some(max as i32),
            encoding_type: input.encoding_type.clone(),
            name: Some(input.bucket.clone()),
            ..Default::default()
        }))
    }

    async fn create_multipart_upload(
        &self,
        req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        Self::create_multipart_upload(self, req).await
    }

    async fn upload_part(
        &self,
        req: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        Self::upload_part(self, req).await
    }

    async fn upload_part_copy(
        &self,
        req: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        Self::upload_part_copy(self, req).await
    }

    async fn complete_multipart_upload(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        Self::complete_multipart_upload(self, req).await
    }

    async fn abort_multipart_upload(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        Self::abort_multipart_upload(self, req).await
    }
}

fn content_range(range: &std::ops::Range<u64>, len: u64) -> String {
    format!("bytes {}-{}/{len}", range.start, range.end - 1)
}
