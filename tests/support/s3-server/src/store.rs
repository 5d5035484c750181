//! The buckets and their contents, behind one lock; nothing slow happens while it is held.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use s3s::dto::{Checksum, ETag, ETagCondition};
use s3s::{S3Result, s3_error};

use crate::checksum::Algorithm;
use crate::data::Data;

/// The metadata of an object.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Info {
    /// Length in bytes.
    pub len: u64,
    /// Without quotes.
    pub etag: String,
    /// When it was written; `None` only for an incomplete upload.
    pub modified: Option<SystemTime>,
    /// The `x-amz-meta-*` headers, without that prefix.
    pub metadata: BTreeMap<String, String>,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Content-Encoding`.
    pub content_encoding: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
    /// `Content-Disposition`.
    pub content_disposition: Option<String>,
    /// `Content-Language`.
    pub content_language: Option<String>,
    /// `x-amz-server-side-encryption`: recorded and returned, nothing is encrypted.
    pub sse: Option<String>,
    /// `x-amz-server-side-encryption-aws-kms-key-id`.
    pub sse_kms_key_id: Option<String>,
    /// `x-amz-storage-class`.
    pub storage_class: Option<String>,
    /// Lengths of the parts of a multipart upload; empty for any other object.
    pub parts: Vec<u64>,
    /// Checksums by algorithm (`CRC32`, `CRC32C`, `CRC64NVME`, `SHA1`, `SHA256`), in base64.
    pub checksums: BTreeMap<&'static str, String>,
    /// `COMPOSITE` or `FULL_OBJECT`, where there are checksums.
    pub checksum_type: Option<&'static str>,
}

impl Info {
    pub(crate) fn set_checksums(&mut self, sums: &Checksum, kind: &'static str) {
        for algorithm in Algorithm::ALL {
            if let Some(value) = algorithm.of(sums) {
                self.checksums.insert(algorithm.name(), value.clone());
                self.checksum_type = Some(kind);
            }
        }
    }
}

/// An object as [`Handle::get`](crate::Handle::get) returns it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Object {
    /// The whole content.
    pub bytes: Bytes,
    /// The rest; its fields are also those of the object.
    pub info: Info,
}

impl std::ops::Deref for Object {
    type Target = Info;

    fn deref(&self) -> &Info {
        &self.info
    }
}

/// A multipart upload that is neither complete nor aborted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Upload {
    /// Its ID.
    pub id: String,
    /// The key that it will have.
    pub key: String,
    /// Lengths of the parts so far, by number.
    pub parts: BTreeMap<u32, u64>,
}

/// An object in its bucket.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) data: Data,
    pub(crate) info: Info,
}

#[derive(Clone, Debug)]
pub(crate) struct PartData {
    pub(crate) data: Data,
    pub(crate) etag: String,
    pub(crate) sums: Checksum,
}

#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) key: String,
    pub(crate) info: Info,
    pub(crate) algorithm: Option<Algorithm>,
    pub(crate) full_object: bool,
    pub(crate) parts: BTreeMap<u32, PartData>,
}

#[derive(Debug)]
pub(crate) struct Bucket {
    /// The only region that a signature may name; any if `None`.
    pub(crate) region: Option<String>,
    pub(crate) public: bool,
    pub(crate) created: SystemTime,
    pub(crate) objects: BTreeMap<String, Arc<Stored>>,
    pub(crate) uploads: BTreeMap<String, Pending>,
}

impl Bucket {
    fn new(region: Option<String>) -> Bucket {
        let (objects, uploads) = (BTreeMap::new(), BTreeMap::new());
        Bucket { region, public: false, created: SystemTime::now(), objects, uploads }
    }

    /// Returns the object of this key, or `NoSuchKey`.
    pub(crate) fn object(&self, key: &str) -> S3Result<Arc<Stored>> {
        let object = self.objects.get(key).cloned();
        object.ok_or_else(|| s3_error!(NoSuchKey, "The specified key does not exist."))
    }

    /// Returns the upload of this ID and key, or `NoSuchUpload`.
    pub(crate) fn upload(&mut self, id: &str, key: &str) -> S3Result<&mut Pending> {
        let upload = self.uploads.get_mut(id).filter(|upload| upload.key == key);
        upload.ok_or_else(|| {
            s3_error!(
                NoSuchUpload,
                "The specified upload does not exist. The upload ID may be invalid, or the upload may \
                 have been aborted or completed."
            )
        })
    }

    /// Checks whether a write to `key` is allowed.
    ///
    /// # Errors
    /// `PreconditionFailed`; `NoSuchKey` for `If-Match` on a missing key.
    pub(crate) fn may_write(
        &self,
        key: &str,
        if_match: Option<&ETagCondition>,
        if_none_match: Option<&ETagCondition>,
    ) -> S3Result<()> {
        let current = self.objects.get(key);
        if let Some(condition) = if_match {
            let current =
                current.ok_or_else(|| s3_error!(NoSuchKey, "The specified key does not exist."))?;
            if !matches(condition, &current.info.etag) {
                return Err(precondition("If-Match"));
            }
        }
        if let (Some(condition), Some(current)) = (if_none_match, current)
            && matches(condition, &current.info.etag)
        {
            return Err(precondition("If-None-Match"));
        }
        Ok(())
    }
}

pub(crate) fn precondition(name: &str) -> s3s::S3Error {
    s3_error!(
        PreconditionFailed,
        "At least one of the pre-conditions you specified did not hold: {}",
        name
    )
}

/// Returns whether `condition` holds for an object with `etag`.
pub(crate) fn matches(condition: &ETagCondition, etag: &str) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(wanted) => wanted.value() == etag,
    }
}

pub(crate) fn strong(etag: &str) -> ETag {
    ETag::Strong(etag.to_owned())
}

/// All buckets.
#[derive(Debug)]
pub(crate) struct Store {
    buckets: Mutex<BTreeMap<String, Bucket>>,
    /// For cheap unique ETags and upload IDs.
    counter: AtomicU64,
    seed: u64,
    pub(crate) fast: bool,
}

impl Store {
    pub(crate) fn new(fast: bool) -> Store {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Store {
            buckets: Mutex::default(),
            counter: AtomicU64::new(1),
            seed: now.as_nanos() as u64,
            fast,
        }
    }

    /// Returns 32 hexadecimal digits that no other call returns.
    pub(crate) fn unique(&self) -> String {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        format!("{:016x}{number:016x}", self.seed)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Bucket>> {
        // A panic of one request must not hide the others' results.
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` with the bucket.
    ///
    /// # Errors
    /// `NoSuchBucket`, and those of `work`.
    pub(crate) fn bucket<T>(
        &self,
        name: &str,
        work: impl FnOnce(&mut Bucket) -> S3Result<T>,
    ) -> S3Result<T> {
        match self.lock().get_mut(name) {
            Some(bucket) => work(bucket),
            None => Err(s3_error!(NoSuchBucket, "The specified bucket does not exist")),
        }
    }

    /// Creates a bucket; `false` if there is one already.
    pub(crate) fn create(&self, name: &str, region: Option<String>) -> bool {
        let mut buckets = self.lock();
        if buckets.contains_key(name) {
            return false;
        }
        buckets.insert(name.to_owned(), Bucket::new(region)).is_none()
    }

    /// Returns the ETag of `data`: its MD5, or a cheap one in fast mode and for runs of zeros.
    pub(crate) fn etag(&self, data: &Data, md5: Option<[u8; 16]>) -> String {
        match md5 {
            Some(md5) => hex(&md5),
            None if self.fast || data.is_sparse() => self.unique(),
            None => hex(&md5_of(data)),
        }
    }
}

pub(crate) fn md5_of(data: &Data) -> [u8; 16] {
    use s3s::crypto::{Checksum as _, Md5};
    let mut md5 = Md5::new();
    data.for_each(|bytes| md5.update(bytes));
    md5.finalize()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
