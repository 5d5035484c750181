//! The operations of S3 on the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use base64_simd::STANDARD;
use futures_core::Stream;
use http::HeaderMap;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::*;
use s3s::{S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, TrailingHeaders, s3_error};

use crate::checksum::{Algorithm, announced, compare, from_trailers};
use crate::data::{Data, DataBuilder};
use crate::list::{self, PAGE, Query};
use crate::store::{
    Bucket, Info, PartData, Pending, Store, Stored, hex, matches, md5_of, precondition, strong,
};

/// The least length of a part that is not the last.
pub(crate) const MIN_PART: u64 = 5 << 20;
/// The most that one PUT, one part or one CopyObject may have.
pub(crate) const MAX_SINGLE: u64 = 5 << 30;
/// The most that an object may have.
pub(crate) const MAX_OBJECT: u64 = 5 << 40;

/// S3 on a [`Store`].
pub(crate) struct Service {
    pub(crate) store: Arc<Store>,
    /// What buckets without a region of their own say that theirs is.
    pub(crate) region: String,
}

/// Marks a request whose range plays no part; the header itself may be signed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IgnoreRange;

/// Marks a request whose conditions play no part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IgnoreConditions;

/// Marks a CompleteMultipartUpload in which the checksum of a part is an error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefuseChecksumsOfParts;

/// A body that has come in whole and was found good.
struct Received {
    data: Data,
    md5: Option<[u8; 16]>,
    sums: Checksum,
}

/// What a client has said about the body that it sends.
struct Promise<'a> {
    content_md5: Option<&'a str>,
    sums: Checksum,
    algorithm: Option<Algorithm>,
    headers: &'a HeaderMap,
    trailers: Option<TrailingHeaders>,
}

fn body_error(error: &s3s::StdError) -> S3Error {
    // The errors of s3s' body streams are private types: only their text tells them apart.
    let text = error.to_string();
    if text.contains("Sha256Mismatch") {
        let mut error = S3Error::with_message(
            S3ErrorCode::Custom("XAmzContentSHA256Mismatch".into()),
            "The provided 'x-amz-content-sha256' header does not match what was computed.",
        );
        error.set_status_code(http::StatusCode::BAD_REQUEST);
        error
    } else if text.contains("SignatureMismatch") {
        s3_error!(
            SignatureDoesNotMatch,
            "The signature of a chunk does not match what was computed."
        )
    } else {
        s3_error!(IncompleteBody, "The request body terminated unexpectedly: {}", text)
    }
}

async fn receive(
    body: Option<StreamingBlob>,
    promise: Promise<'_>,
    fast: bool,
) -> S3Result<Received> {
    let mut hasher = ChecksumHasher::default();
    for algorithm in Algorithm::ALL {
        if algorithm.of(&promise.sums).is_some() || promise.algorithm == Some(algorithm) {
            algorithm.enable(&mut hasher);
        }
    }
    for algorithm in announced(promise.headers) {
        algorithm.enable(&mut hasher);
    }
    let mut md5 = (!fast || promise.content_md5.is_some()).then(Md5::new);
    let mut builder = DataBuilder::default();
    if let Some(mut body) = body {
        let mut body = std::pin::pin!(&mut body);
        while let Some(bytes) = std::future::poll_fn(|cx| body.as_mut().poll_next(cx)).await {
            let bytes = bytes.map_err(|error| body_error(&error))?;
            hasher.update(&bytes);
            if let Some(md5) = &mut md5 {
                md5.update(&bytes);
            }
            builder.push(bytes);
        }
    }
    let data = builder.finish();
    let decoded = promise.headers.get("x-amz-decoded-content-length");
    if let Some(decoded) =
        decoded.and_then(|value| value.to_str().ok()).and_then(|value| value.parse::<u64>().ok())
        && decoded != data.len()
    {
        return Err(s3_error!(
            IncompleteBody,
            "The body does not have the length x-amz-decoded-content-length."
        ));
    }
    let mut expected = promise.sums;
    if let Some(trailers) = promise.trailers.and_then(|trailers| trailers.take()) {
        from_trailers(&mut expected, &trailers);
    }
    let sums = hasher.finalize();
    compare(&expected, &sums)?;
    let md5 = md5.map(Md5::finalize);
    if let (Some(expected), Some(md5)) = (promise.content_md5, md5)
        && expected != STANDARD.encode_to_string(md5)
    {
        return Err(s3_error!(
            BadDigest,
            "The Content-MD5 you specified did not match what we received."
        ));
    }
    Ok(Received { data, md5: if fast { None } else { md5 }, sums })
}

/// The checksum fields of an input.
macro_rules! sums {
    ($input:expr) => {
        Checksum {
            checksum_crc32: $input.checksum_crc32.clone(),
            checksum_crc32c: $input.checksum_crc32c.clone(),
            checksum_crc64nvme: $input.checksum_crc64nvme.clone(),
            checksum_sha1: $input.checksum_sha1.clone(),
            checksum_sha256: $input.checksum_sha256.clone(),
            ..Checksum::default()
        }
    };
}

/// Fills the checksum fields of an output.
macro_rules! set_sums {
    ($output:expr, $sums:expr) => {{
        let sums: Checksum = $sums;
        $output.checksum_crc32 = sums.checksum_crc32;
        $output.checksum_crc32c = sums.checksum_crc32c;
        $output.checksum_crc64nvme = sums.checksum_crc64nvme;
        $output.checksum_sha1 = sums.checksum_sha1;
        $output.checksum_sha256 = sums.checksum_sha256;
    }};
}

/// The headers of an object, from any input that creates one.
macro_rules! info {
    ($input:expr) => {
        Info {
            metadata: $input.metadata.clone().unwrap_or_default().into_iter().collect(),
            content_type: $input.content_type.clone().map(|value| value.to_string()),
            content_encoding: $input.content_encoding.clone().and_then(stored_encoding),
            cache_control: $input.cache_control.clone(),
            content_disposition: $input.content_disposition.clone(),
            content_language: $input.content_language.clone(),
            sse: $input.server_side_encryption.clone().map(|value| value.as_str().to_owned()),
            sse_kms_key_id: $input.ssekms_key_id.clone(),
            sse_customer_key_md5: $input.sse_customer_key_md5.clone(),
            storage_class: $input.storage_class.clone().map(|value| value.as_str().to_owned()),
            ..Info::default()
        }
    };
}

/// The headers of GetObject and HeadObject.
macro_rules! describe {
    ($output:expr, $info:expr) => {{
        let info: &Info = $info;
        $output.accept_ranges = Some("bytes".to_owned());
        $output.e_tag = Some(strong(&info.etag));
        $output.last_modified = info.modified.map(Timestamp::from);
        $output.metadata = (!info.metadata.is_empty())
            .then(|| info.metadata.clone().into_iter().collect::<Metadata>());
        // What AWS says for an object that was put without one.
        $output.content_type =
            Some(info.content_type.clone().unwrap_or_else(|| "binary/octet-stream".to_owned()));
        $output.content_encoding = info.content_encoding.clone();
        $output.cache_control = info.cache_control.clone();
        $output.content_disposition = info.content_disposition.clone();
        $output.content_language = info.content_language.clone();
        $output.server_side_encryption = info.sse.clone().map(ServerSideEncryption::from);
        $output.ssekms_key_id = info.sse_kms_key_id.clone();
        $output.sse_customer_key_md5 = info.sse_customer_key_md5.clone();
        $output.sse_customer_algorithm =
            info.sse_customer_key_md5.as_ref().map(|_| "AES256".to_owned());
        $output.storage_class = info
            .storage_class
            .clone()
            .filter(|class| class != StorageClass::STANDARD)
            .map(StorageClass::from);
    }};
}

/// `aws-chunked` is the transport's, not the object's.
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

/// The conditions of a read, or those on the source of a copy.
struct Conditions<'a> {
    if_match: Option<&'a ETagCondition>,
    if_none_match: Option<&'a ETagCondition>,
    if_modified_since: Option<&'a Timestamp>,
    if_unmodified_since: Option<&'a Timestamp>,
}

impl Conditions<'_> {
    /// # Errors
    /// `PreconditionFailed`, or `NotModified` for a read (`copy` is false).
    fn check(&self, info: &Info, copy: bool) -> S3Result<()> {
        let modified = info.modified.map(|at| {
            // The headers have whole seconds.
            let at = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
            Timestamp::from(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(at))
        });
        let since = |since: Option<&Timestamp>| {
            since.zip(modified.as_ref()).map(|(since, modified)| {
                let at = |t: &Timestamp| time::OffsetDateTime::from(t.clone());
                at(modified) > at(since)
            })
        };
        match self.if_match {
            Some(condition) if !matches(condition, &info.etag) => {
                return Err(precondition("If-Match"));
            }
            Some(_) => {}
            None if since(self.if_unmodified_since) == Some(true) => {
                return Err(precondition("If-Unmodified-Since"));
            }
            None => {}
        }
        let unchanged = match self.if_none_match {
            Some(condition) => matches(condition, &info.etag),
            None => since(self.if_modified_since) == Some(false),
        };
        match (unchanged, copy) {
            (false, _) => Ok(()),
            (true, true) => Err(precondition("If-None-Match")),
            (true, false) => {
                let mut error = s3_error!(NotModified);
                let mut headers = HeaderMap::new();
                if let Ok(etag) = strong(&info.etag).to_http_header() {
                    headers.insert(http::header::ETAG, etag);
                }
                error.set_headers(headers);
                Err(error)
            }
        }
    }
}

/// The conditions of an input.
macro_rules! conditions {
    ($input:expr, copy) => {
        Conditions {
            if_match: $input.copy_source_if_match.as_ref(),
            if_none_match: $input.copy_source_if_none_match.as_ref(),
            if_modified_since: $input.copy_source_if_modified_since.as_ref(),
            if_unmodified_since: $input.copy_source_if_unmodified_since.as_ref(),
        }
    };
    ($input:expr) => {
        Conditions {
            if_match: $input.if_match.as_ref(),
            if_none_match: $input.if_none_match.as_ref(),
            if_modified_since: $input.if_modified_since.as_ref(),
            if_unmodified_since: $input.if_unmodified_since.as_ref(),
        }
    };
}

/// Which bytes of an object a request wants; the flag says whether the answer is a 206.
fn selected(
    object: &Stored,
    range: Option<Range>,
    part: Option<i32>,
) -> S3Result<(std::ops::Range<u64>, bool)> {
    let len = object.data.len();
    if let Some(part) = part {
        if range.is_some() {
            return Err(s3_error!(
                InvalidRequest,
                "Cannot specify both Range header and partNumber query parameter"
            ));
        }
        let whole = [len];
        let parts = if object.info.parts.is_empty() { &whole[..] } else { &object.info.parts };
        let Some(index) =
            part.checked_sub(1).map(|index| index as usize).filter(|index| *index < parts.len())
        else {
            return Err(s3_error!(InvalidRange, "The requested partnumber is not satisfiable"));
        };
        let start: u64 = parts[..index].iter().sum();
        return Ok((start..start + parts[index], true));
    }
    match range {
        None => Ok((0..len, false)),
        Some(range) => match range.check(len) {
            Ok(range) => Ok((range, true)),
            Err(_) => {
                let mut error = s3_error!(InvalidRange, "The requested range is not satisfiable");
                let mut headers = HeaderMap::new();
                if let Ok(value) = format!("bytes */{len}").parse() {
                    headers.insert(http::header::CONTENT_RANGE, value);
                }
                error.set_headers(headers);
                Err(error)
            }
        },
    }
}

/// Whether the customer's key (SSE-C) of a request is the one that the object was written with.
fn check_customer_key(info: &Info, md5: Option<&String>) -> S3Result<()> {
    if info.sse_customer_key_md5.as_ref() == md5 {
        return Ok(());
    }
    Err(match md5 {
        Some(_) if info.sse_customer_key_md5.is_some() => s3_error!(AccessDenied, "Access Denied"),
        _ => s3_error!(
            InvalidRequest,
            "The object was stored using a form of Server Side Encryption. The correct parameters must be \
             provided to retrieve the object."
        ),
    })
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

/// How names are written in a listing.
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
    /// The source of a copy, its conditions checked.
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

    fn complete(
        &self,
        input: &CompleteMultipartUploadInput,
        pending: &Pending,
    ) -> S3Result<Stored> {
        let wanted = input.multipart_upload.as_ref().and_then(|upload| upload.parts.as_ref());
        let Some(wanted) = wanted.filter(|parts| !parts.is_empty()) else {
            return Err(s3_error!(MalformedXML, "You must specify at least one part"));
        };
        let mut parts: Vec<(u32, &PartData)> = Vec::new();
        for part in wanted {
            let number = part_number(part.part_number.unwrap_or(0))?;
            if parts.last().is_some_and(|(last, _)| *last >= number) {
                return Err(s3_error!(
                    InvalidPartOrder,
                    "The list of parts was not in ascending order. Parts must be ordered by part number."
                ));
            }
            let known = pending.parts.get(&number);
            let good = |known: &&PartData| {
                part.e_tag.as_ref().is_some_and(|etag| etag.value() == known.etag)
            };
            let Some(known) =
                known.filter(good).filter(|known| compare(&sums!(part), &known.sums).is_ok())
            else {
                return Err(s3_error!(
                    InvalidPart,
                    "One or more of the specified parts could not be found. The part may not have been \
                     uploaded, or the specified entity tag may not match the part's entity tag."
                ));
            };
            if let Some(algorithm) = pending.algorithm
                && !pending.full_object
                && algorithm.of(&sums!(part)).is_none()
            {
                return Err(s3_error!(
                    InvalidRequest,
                    "The upload was created using a {} checksum. The complete request must include the \
                     checksum for each part. It was missing for part {} in the request.",
                    algorithm.name().to_lowercase(),
                    number
                ));
            }
            parts.push((number, known));
        }
        let all_but_last = &parts[..parts.len() - 1];
        if all_but_last.iter().any(|(_, part)| part.data.len() < MIN_PART) {
            return Err(s3_error!(
                EntityTooSmall,
                "Your proposed upload is smaller than the minimum allowed size"
            ));
        }
        let data = Data::concat(parts.iter().map(|(_, part)| &part.data));
        if data.len() > MAX_OBJECT {
            return Err(s3_error!(
                EntityTooLarge,
                "Your proposed upload exceeds the maximum allowed size"
            ));
        }
        if input.mpu_object_size.is_some_and(|size| size as u64 != data.len()) {
            return Err(s3_error!(
                InvalidRequest,
                "The provided 'x-amz-mp-object-size' header does not match what was computed."
            ));
        }
        let mut info = pending.info.clone();
        let mut computed = Checksum::default();
        if let Some(algorithm) = pending.algorithm {
            let values: Vec<(&str, u64)> = parts
                .iter()
                .map(|(_, part)| {
                    (algorithm.of(&part.sums).map_or("", String::as_str), part.data.len())
                })
                .collect();
            let value = if pending.full_object {
                algorithm.joined(&values).unwrap_or_else(|| algorithm.compute(&data))
            } else {
                algorithm.composite(&values.iter().map(|(value, _)| *value).collect::<Vec<_>>())
            };
            algorithm.set(&mut computed, value);
        }
        let mut expected = sums!(input);
        if let (Some(algorithm), false) = (pending.algorithm, pending.full_object)
            && let Some(value) = algorithm.of(&expected).cloned()
            && !value.contains('-')
        {
            // Some clients leave the count of parts out.
            algorithm.set(&mut expected, format!("{value}-{}", parts.len()));
        }
        compare(&expected, &computed)?;
        info.set_checksums(
            &computed,
            if pending.full_object { "FULL_OBJECT" } else { "COMPOSITE" },
        );
        let digest = if self.store.fast || data.is_sparse() {
            self.store.unique()
        } else {
            let digests: Vec<u8> = parts
                .iter()
                .flat_map(|(_, part)| {
                    (0..16)
                        .map(|i| u8::from_str_radix(&part.etag[2 * i..2 * i + 2], 16).unwrap_or(0))
                })
                .collect();
            hex(&md5_of(&bytes::Bytes::from(digests).into()))
        };
        info.etag = format!("{digest}-{}", parts.len());
        info.len = data.len();
        info.parts = parts.iter().map(|(_, part)| part.data.len()).collect();
        info.modified = Some(SystemTime::now());
        Ok(Stored { data, info })
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

    async fn create_bucket(
        &self,
        req: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        let region =
            req.input.create_bucket_configuration.and_then(|config| config.location_constraint);
        if !self.store.create(&req.input.bucket, region.map(|region| region.as_str().to_owned())) {
            return Err(s3_error!(
                BucketAlreadyOwnedByYou,
                "Your previous request to create the named bucket succeeded and you already own it."
            ));
        }
        Ok(S3Response::new(CreateBucketOutput { location: Some(format!("/{}", req.input.bucket)) }))
    }

    async fn delete_bucket(
        &self,
        req: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        self.store.bucket(&req.input.bucket, |bucket| {
            if bucket.objects.is_empty() {
                Ok(())
            } else {
                Err(s3_error!(BucketNotEmpty, "The bucket you tried to delete is not empty"))
            }
        })?;
        self.store.lock().remove(&req.input.bucket);
        Ok(S3Response::with_status(DeleteBucketOutput {}, http::StatusCode::NO_CONTENT))
    }

    async fn head_bucket(
        &self,
        req: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        let region = self.store.bucket(&req.input.bucket, |bucket| Ok(self.region(bucket)))?;
        Ok(S3Response::new(HeadBucketOutput { bucket_region: Some(region), ..Default::default() }))
    }

    async fn get_bucket_location(
        &self,
        req: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        let region = self.store.bucket(&req.input.bucket, |bucket| Ok(self.region(bucket)))?;
        // The oldest region has no name here.
        let region = (region != "us-east-1").then(|| BucketLocationConstraint::from(region));
        Ok(S3Response::new(GetBucketLocationOutput { location_constraint: region }))
    }

    async fn get_object(
        &self,
        req: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let mut input = req.input;
        if req.extensions.get::<IgnoreRange>().is_some() {
            input.range = None;
        }
        let object = self.store.bucket(&input.bucket, |bucket| bucket.object(&input.key))?;
        check_customer_key(&object.info, input.sse_customer_key_md5.as_ref())?;
        conditions!(input).check(&object.info, false)?;
        let (range, partial) = selected(&object, input.range, input.part_number)?;
        let mut output = GetObjectOutput::default();
        describe!(output, &object.info);
        output.content_length = Some((range.end - range.start) as i64);
        if partial && !range.is_empty() {
            output.content_range = Some(content_range(&range, object.data.len()));
        }
        if input.part_number.is_some() && !object.info.parts.is_empty() {
            output.parts_count = Some(object.info.parts.len() as i32);
        }
        if input.checksum_mode.is_some() && range.end - range.start == object.data.len() {
            let (sums, kind) = checksums(&object.info);
            set_sums!(output, sums);
            output.checksum_type = kind;
        }
        output.body = Some(StreamingBlob::new(object.data.slice(range).stream()));
        Ok(S3Response::new(output))
    }

    async fn head_object(
        &self,
        req: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = req.input;
        let object = self.store.bucket(&input.bucket, |bucket| bucket.object(&input.key))?;
        check_customer_key(&object.info, input.sse_customer_key_md5.as_ref())?;
        conditions!(input).check(&object.info, false)?;
        let (range, partial) = selected(&object, input.range, input.part_number)?;
        let mut output = HeadObjectOutput::default();
        describe!(output, &object.info);
        output.content_length = Some((range.end - range.start) as i64);
        if input.part_number.is_some() && !object.info.parts.is_empty() {
            output.parts_count = Some(object.info.parts.len() as i32);
        }
        if input.checksum_mode.is_some() {
            let (sums, kind) = checksums(&object.info);
            set_sums!(output, sums);
            output.checksum_type = kind;
        }
        let mut response = S3Response::new(output);
        if partial && !range.is_empty() {
            response.output.content_range = Some(content_range(&range, object.data.len()));
            response.status = Some(http::StatusCode::PARTIAL_CONTENT);
        }
        Ok(response)
    }

    async fn put_object(
        &self,
        req: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let mut input = req.input;
        if req.extensions.get::<IgnoreConditions>().is_some() {
            (input.if_match, input.if_none_match) = (None, None);
        }
        self.store.bucket(&input.bucket, |_| Ok(()))?;
        if input.content_length.is_some_and(|len| len as u64 > MAX_SINGLE) {
            return Err(s3_error!(
                EntityTooLarge,
                "Your proposed upload exceeds the maximum allowed size"
            ));
        }
        let body = input.body.take();
        let promise = Promise {
            content_md5: input.content_md5.as_deref(),
            sums: sums!(input),
            algorithm: input
                .checksum_algorithm
                .as_ref()
                .and_then(|name| Algorithm::named(name.as_str())),
            headers: &req.headers,
            trailers: req.trailing_headers,
        };
        let received = receive(body, promise, self.store.fast).await?;
        let mut info = info!(input);
        info.etag = self.store.etag(&received.data, received.md5);
        info.len = received.data.len();
        info.modified = Some(SystemTime::now());
        info.set_checksums(&received.sums, "FULL_OBJECT");
        let mut output = PutObjectOutput {
            e_tag: Some(strong(&info.etag)),
            server_side_encryption: info.sse.clone().map(ServerSideEncryption::from),
            ssekms_key_id: info.sse_kms_key_id.clone(),
            sse_customer_key_md5: info.sse_customer_key_md5.clone(),
            checksum_type: info.checksum_type.map(ChecksumType::from_static),
            ..Default::default()
        };
        set_sums!(output, received.sums);
        let stored = Arc::new(Stored { data: received.data, info });
        self.store.bucket(&input.bucket, |bucket| {
            bucket.may_write(&input.key, input.if_match.as_ref(), input.if_none_match.as_ref())?;
            bucket.objects.insert(input.key, stored);
            Ok(())
        })?;
        Ok(S3Response::new(output))
    }

    async fn copy_object(
        &self,
        req: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        let mut input = req.input;
        if req.extensions.get::<IgnoreConditions>().is_some() {
            input.copy_source_if_match = None;
        }
        let source = self.source(&input.copy_source, &conditions!(input, copy))?;
        check_customer_key(&source.info, input.copy_source_sse_customer_key_md5.as_ref())?;
        if source.data.len() > MAX_SINGLE {
            return Err(s3_error!(
                InvalidRequest,
                "The specified copy source is larger than the maximum allowable size for a copy source: {}",
                MAX_SINGLE
            ));
        }
        let replace = input
            .metadata_directive
            .as_ref()
            .is_some_and(|d| d.as_str() == MetadataDirective::REPLACE);
        let mut info = info!(input);
        if !replace {
            let CopySource::Bucket { bucket, key, .. } = &input.copy_source else {
                return Err(s3_error!(NotImplemented, "Access points are not implemented"));
            };
            let itself = **bucket == *input.bucket && **key == *input.key;
            if itself
                && info.storage_class.is_none()
                && info.sse.is_none()
                && info.sse_customer_key_md5.is_none()
            {
                return Err(s3_error!(
                    InvalidRequest,
                    "This copy request is illegal because it is trying to copy an object to itself without \
                     changing the object's metadata, storage class, website redirect location or encryption \
                     attributes."
                ));
            }
            info = Info {
                sse: info.sse,
                sse_kms_key_id: info.sse_kms_key_id,
                sse_customer_key_md5: info.sse_customer_key_md5,
                storage_class: info.storage_class,
                ..source.info.clone()
            };
        }
        // A copy is one object, also of a multipart upload: its ETag is new then.
        let same = source.info.parts.is_empty() && !self.store.fast;
        info.etag = if same { source.info.etag.clone() } else { self.copied(&source.data) };
        info.parts = Vec::new();
        info.len = source.data.len();
        info.modified = Some(SystemTime::now());
        if let Some(algorithm) =
            input.checksum_algorithm.as_ref().and_then(|name| Algorithm::named(name.as_str()))
        {
            info.checksums = BTreeMap::from([(algorithm.name(), algorithm.compute(&source.data))]);
            info.checksum_type = Some("FULL_OBJECT");
        } else if source.info.checksum_type == Some("COMPOSITE") {
            let sums = source.info.checksums.keys().filter_map(|name| Algorithm::named(name));
            info.checksums =
                sums.map(|algorithm| (algorithm.name(), algorithm.compute(&source.data))).collect();
            info.checksum_type = Some("FULL_OBJECT");
        } else {
            info.checksums = source.info.checksums.clone();
            info.checksum_type = source.info.checksum_type;
        }
        let mut result = CopyObjectResult {
            e_tag: Some(strong(&info.etag)),
            last_modified: info.modified.map(Timestamp::from),
            ..Default::default()
        };
        let (sums, kind) = checksums(&info);
        set_sums!(result, sums);
        result.checksum_type = kind;
        let output = CopyObjectOutput {
            copy_object_result: Some(result),
            server_side_encryption: info.sse.clone().map(ServerSideEncryption::from),
            ssekms_key_id: info.sse_kms_key_id.clone(),
            ..Default::default()
        };
        let stored = Arc::new(Stored { data: source.data.clone(), info });
        let condition = |name: &str| {
            let value = req
                .headers
                .get(name)
                .map(|value| ETagCondition::parse_http_header(value.as_bytes()));
            value.transpose().map_err(|_| s3_error!(InvalidArgument, "invalid header: {}", name))
        };
        let (if_match, if_none_match) = (condition("if-match")?, condition("if-none-match")?);
        self.store.bucket(&input.bucket, |bucket| {
            bucket.may_write(&input.key, if_match.as_ref(), if_none_match.as_ref())?;
            bucket.objects.insert(input.key, stored);
            Ok(())
        })?;
        Ok(S3Response::new(output))
    }

    async fn delete_object(
        &self,
        req: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let input = req.input;
        self.store.bucket(&input.bucket, |bucket| {
            if input.if_match.is_some() {
                bucket.may_write(&input.key, input.if_match.as_ref(), None)?;
            }
            bucket.objects.remove(&input.key);
            Ok(())
        })?;
        Ok(S3Response::with_status(DeleteObjectOutput::default(), http::StatusCode::NO_CONTENT))
    }

    async fn delete_objects(
        &self,
        req: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let input = req.input;
        if input.delete.objects.is_empty() || input.delete.objects.len() > PAGE {
            return Err(s3_error!(
                MalformedXML,
                "The XML you provided was not well-formed or did not validate"
            ));
        }
        // The body is small and wanted whole by s3s: only its length is left to check here.
        let quiet = input.delete.quiet.unwrap_or(false);
        let (mut deleted, mut errors) = (Vec::new(), Vec::new());
        self.store.bucket(&input.bucket, |bucket| {
            for object in input.delete.objects {
                let condition = object.e_tag.map(ETagCondition::ETag);
                match bucket.may_write(&object.key, condition.as_ref(), None) {
                    Ok(()) => {
                        bucket.objects.remove(&object.key);
                        deleted.push(DeletedObject { key: Some(object.key), ..Default::default() });
                    }
                    Err(error) => errors.push(Error {
                        key: Some(object.key),
                        code: Some(error.code().as_str().to_owned()),
                        message: error.message().map(str::to_owned),
                        ..Default::default()
                    }),
                }
            }
            Ok(())
        })?;
        Ok(S3Response::new(DeleteObjectsOutput {
            deleted: (!quiet && !deleted.is_empty()).then_some(deleted),
            errors: (!errors.is_empty()).then_some(errors),
            ..Default::default()
        }))
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
        let input = req.input;
        let algorithm = match &input.checksum_algorithm {
            None => None,
            Some(name) => Some(Algorithm::named(name.as_str()).ok_or_else(|| {
                s3_error!(InvalidRequest, "Checksum algorithm provided is unsupported.")
            })?),
        };
        let crc64 = algorithm == Some(Algorithm::Crc64Nvme);
        let full_object = match input.checksum_type.as_ref().map(ChecksumType::as_str) {
            None => crc64,
            Some(ChecksumType::FULL_OBJECT) => true,
            Some(_) => false,
        };
        let sha = matches!(algorithm, Some(Algorithm::Sha1 | Algorithm::Sha256));
        if (full_object && sha) || (!full_object && crc64) {
            return Err(s3_error!(
                InvalidRequest,
                "The checksum type cannot be used with the specified checksum algorithm."
            ));
        }
        let id = self.store.unique();
        let pending = Pending {
            key: input.key.clone(),
            initiated: SystemTime::now(),
            info: info!(input),
            algorithm,
            full_object,
            parts: BTreeMap::new(),
        };
        let output = CreateMultipartUploadOutput {
            bucket: Some(input.bucket.clone()),
            key: Some(input.key.clone()),
            upload_id: Some(id.clone()),
            checksum_algorithm: algorithm
                .map(|algorithm| ChecksumAlgorithm::from_static(algorithm.name())),
            checksum_type: algorithm.map(|_| {
                ChecksumType::from_static(if full_object { "FULL_OBJECT" } else { "COMPOSITE" })
            }),
            server_side_encryption: pending.info.sse.clone().map(ServerSideEncryption::from),
            ssekms_key_id: pending.info.sse_kms_key_id.clone(),
            ..Default::default()
        };
        self.store.bucket(&input.bucket, |bucket| {
            bucket.uploads.insert(id, pending);
            Ok(())
        })?;
        Ok(S3Response::new(output))
    }

    async fn upload_part(
        &self,
        req: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let mut input = req.input;
        let number = part_number(input.part_number)?;
        if input.content_length.is_some_and(|len| len as u64 > MAX_SINGLE) {
            return Err(s3_error!(
                EntityTooLarge,
                "Your proposed upload exceeds the maximum allowed size"
            ));
        }
        let wanted = self.store.bucket(&input.bucket, |bucket| {
            Ok(bucket.upload(&input.upload_id, &input.key)?.algorithm)
        })?;
        let body = input.body.take();
        let promise = Promise {
            content_md5: input.content_md5.as_deref(),
            sums: sums!(input),
            algorithm: wanted,
            headers: &req.headers,
            trailers: req.trailing_headers,
        };
        let received = receive(body, promise, self.store.fast).await?;
        if let Some(wanted) = wanted {
            let other = Algorithm::ALL
                .into_iter()
                .find(|one| *one != wanted && one.of(&received.sums).is_some());
            if let Some(other) = other {
                return Err(s3_error!(
                    InvalidRequest,
                    "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: {}",
                    wanted.name().to_lowercase(),
                    other.name().to_lowercase()
                ));
            }
        }
        let etag = self.store.etag(&received.data, received.md5);
        let mut output = UploadPartOutput { e_tag: Some(strong(&etag)), ..Default::default() };
        set_sums!(output, received.sums.clone());
        let part = PartData {
            data: received.data,
            etag,
            modified: SystemTime::now(),
            sums: received.sums,
        };
        self.store.bucket(&input.bucket, |bucket| {
            bucket.upload(&input.upload_id, &input.key)?.parts.insert(number, part);
            Ok(())
        })?;
        Ok(S3Response::new(output))
    }

    async fn upload_part_copy(
        &self,
        req: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        let mut input = req.input;
        if req.extensions.get::<IgnoreConditions>().is_some() {
            input.copy_source_if_match = None;
        }
        let number = part_number(input.part_number)?;
        let algorithm = self.store.bucket(&input.bucket, |bucket| {
            Ok(bucket.upload(&input.upload_id, &input.key)?.algorithm)
        })?;
        let source = self.source(&input.copy_source, &conditions!(input, copy))?;
        check_customer_key(&source.info, input.copy_source_sse_customer_key_md5.as_ref())?;
        let len = source.data.len();
        let range = match &input.copy_source_range {
            None => 0..len,
            Some(text) => match Range::parse(text) {
                Ok(Range::Int { first, last: Some(last) }) if last < len => first..last + 1,
                Ok(Range::Int { last: Some(_), .. }) => {
                    return Err(s3_error!(
                        InvalidArgument,
                        "Range specified is not valid for source object of size: {}",
                        len
                    ));
                }
                _ => {
                    return Err(s3_error!(
                        InvalidArgument,
                        "The x-amz-copy-source-range value must be of the form bytes=first-last where first \
                         and last are the zero-based offsets of the first and last bytes to copy"
                    ));
                }
            },
        };
        if range.end - range.start > MAX_SINGLE {
            return Err(s3_error!(
                InvalidRequest,
                "The specified copy source is larger than the maximum allowable size for a copy source: {}",
                MAX_SINGLE
            ));
        }
        let data = source.data.slice(range);
        let mut sums = Checksum::default();
        if let Some(algorithm) = algorithm {
            algorithm.set(&mut sums, algorithm.compute(&data));
        }
        let etag = self.copied(&data);
        let modified = SystemTime::now();
        let mut result = CopyPartResult {
            e_tag: Some(strong(&etag)),
            last_modified: Some(modified.into()),
            ..Default::default()
        };
        set_sums!(result, sums.clone());
        self.store.bucket(&input.bucket, |bucket| {
            let parts = &mut bucket.upload(&input.upload_id, &input.key)?.parts;
            parts.insert(number, PartData { data, etag, modified, sums });
            Ok(())
        })?;
        let copy_part_result = Some(result);
        Ok(S3Response::new(UploadPartCopyOutput { copy_part_result, ..Default::default() }))
    }

    async fn complete_multipart_upload(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let mut input = req.input;
        if req.extensions.get::<IgnoreConditions>().is_some() {
            (input.if_match, input.if_none_match) = (None, None);
        }
        let mut pending = self.store.bucket(&input.bucket, |bucket| {
            Ok(bucket.upload(&input.upload_id, &input.key)?.clone())
        })?;
        if req.extensions.get::<RefuseChecksumsOfParts>().is_some() {
            let parts = input.multipart_upload.as_ref().and_then(|upload| upload.parts.as_ref());
            let has_sums = |part: &CompletedPart| {
                Algorithm::ALL.into_iter().any(|one| one.of(&sums!(part)).is_some())
            };
            if parts.is_some_and(|parts| parts.iter().any(has_sums)) {
                return Err(s3_error!(
                    MalformedXML,
                    "The XML you provided was not well-formed or did not validate"
                ));
            }
            // Such a store knows nothing of them.
            pending.algorithm = None;
        }
        // Checksums are computed with the lock released; two at once are settled by the removal.
        let stored = Arc::new(self.complete(&input, &pending)?);
        let info = stored.info.clone();
        self.store.bucket(&input.bucket, |bucket| {
            bucket.upload(&input.upload_id, &input.key)?;
            bucket.may_write(&input.key, input.if_match.as_ref(), input.if_none_match.as_ref())?;
            bucket.uploads.remove(&*input.upload_id);
            bucket.objects.insert(input.key.clone(), stored);
            Ok(())
        })?;
        let mut output = CompleteMultipartUploadOutput {
            e_tag: Some(strong(&info.etag)),
            location: Some(format!("/{}/{}", input.bucket, list::encode(&input.key))),
            bucket: Some(input.bucket),
            key: Some(input.key),
            server_side_encryption: info.sse.clone().map(ServerSideEncryption::from),
            ssekms_key_id: info.sse_kms_key_id.clone(),
            ..Default::default()
        };
        let (sums, kind) = checksums(&info);
        set_sums!(output, sums);
        output.checksum_type = kind;
        Ok(S3Response::new(output))
    }

    async fn abort_multipart_upload(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let input = req.input;
        self.store.bucket(&input.bucket, |bucket| {
            bucket.upload(&input.upload_id, &input.key)?;
            bucket.uploads.remove(&*input.upload_id);
            Ok(())
        })?;
        Ok(S3Response::with_status(
            AbortMultipartUploadOutput::default(),
            http::StatusCode::NO_CONTENT,
        ))
    }

    async fn list_parts(
        &self,
        req: S3Request<ListPartsInput>,
    ) -> S3Result<S3Response<ListPartsOutput>> {
        let input = req.input;
        let pending = self.store.bucket(&input.bucket, |bucket| {
            Ok(bucket.upload(&input.upload_id, &input.key)?.clone())
        })?;
        let max = max_keys(input.max_parts)?;
        let marker = input.part_number_marker.unwrap_or(0);
        let after = u32::try_from(marker).unwrap_or(0) + 1;
        let mut parts: Vec<Part> = Vec::new();
        let mut truncated = false;
        for (number, part) in pending.parts.range(after..) {
            if parts.len() == max {
                truncated = true;
                break;
            }
            let mut one = Part {
                part_number: Some(*number as i32),
                e_tag: Some(strong(&part.etag)),
                size: Some(part.data.len() as i64),
                last_modified: Some(part.modified.into()),
                ..Default::default()
            };
            set_sums!(one, part.sums.clone());
            parts.push(one);
        }
        Ok(S3Response::new(ListPartsOutput {
            next_part_number_marker: parts
                .last()
                .and_then(|part| part.part_number)
                .filter(|_| truncated),
            is_truncated: Some(truncated),
            parts: (!parts.is_empty()).then_some(parts),
            part_number_marker: Some(marker),
            max_parts: Some(max as i32),
            checksum_algorithm: pending
                .algorithm
                .map(|one| ChecksumAlgorithm::from_static(one.name())),
            owner: Some(owner()),
            storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(input.upload_id),
            ..Default::default()
        }))
    }

    async fn list_multipart_uploads(
        &self,
        req: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        let input = req.input;
        let names = Names::new(input.encoding_type.as_ref())?;
        let max = max_keys(input.max_uploads)?;
        let prefix = input.prefix.as_deref().unwrap_or("");
        let delimiter = input.delimiter.as_deref().unwrap_or("");
        let key_marker = input.key_marker.clone().unwrap_or_default();
        let id_marker = input.upload_id_marker.clone().unwrap_or_default();
        let mut all: Vec<(String, String, SystemTime)> =
            self.store.bucket(&input.bucket, |bucket| {
                let uploads = bucket.uploads.iter();
                Ok(uploads
                    .map(|(id, upload)| (upload.key.clone(), id.clone(), upload.initiated))
                    .collect())
            })?;
        all.sort();
        let (mut uploads, mut prefixes): (Vec<MultipartUpload>, Vec<String>) =
            (Vec::new(), Vec::new());
        let mut last = None;
        let mut next = None;
        for (key, id, initiated) in all {
            let Some(rest) = key.strip_prefix(prefix) else { continue };
            // Without an upload marker the whole key is behind us.
            let after = if id_marker.is_empty() {
                key > key_marker
            } else {
                (&key, &id) > (&key_marker, &id_marker)
            };
            if !key_marker.is_empty() && !after {
                continue;
            }
            let common = rest
                .find(delimiter)
                .filter(|_| !delimiter.is_empty())
                .map(|end| key[..prefix.len() + end + delimiter.len()].to_owned());
            if common
                .as_ref()
                .is_some_and(|common| *common == key_marker || prefixes.last() == Some(common))
            {
                continue;
            }
            if uploads.len() + prefixes.len() == max {
                next = last;
                break;
            }
            match common {
                Some(common) => {
                    last = Some((common.clone(), String::new()));
                    prefixes.push(common);
                }
                None => {
                    last = Some((key.clone(), id.clone()));
                    uploads.push(MultipartUpload {
                        key: Some(names.write(&key)),
                        upload_id: Some(id),
                        initiated: Some(initiated.into()),
                        owner: Some(owner()),
                        storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
                        ..Default::default()
                    });
                }
            }
        }
        Ok(S3Response::new(ListMultipartUploadsOutput {
            is_truncated: Some(next.is_some()),
            next_key_marker: next.as_ref().map(|(key, _)| names.write(key)),
            next_upload_id_marker: next.map(|(_, id)| id),
            uploads: (!uploads.is_empty()).then_some(uploads),
            common_prefixes: names.prefixes(&prefixes),
            key_marker: Some(names.write(&key_marker)),
            upload_id_marker: Some(id_marker),
            max_uploads: Some(max as i32),
            prefix: Some(names.write(prefix)),
            delimiter: (!delimiter.is_empty()).then(|| names.write(delimiter)),
            encoding_type: input.encoding_type.clone(),
            bucket: Some(input.bucket),
            ..Default::default()
        }))
    }
}

fn content_range(range: &std::ops::Range<u64>, len: u64) -> String {
    format!("bytes {}-{}/{len}", range.start, range.end - 1)
}
