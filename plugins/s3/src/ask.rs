//! Finds out what a store can do, with its own objects, which are deleted afterwards.
//!
//! The plugin itself never does this: it learns from the responses to its requests. To know before, or to choose the
//! settings, run the example `ask`.

use crate::Filesystem;
use crate::connection::{Bucket, Client};
use crate::names::copy_source;
use crate::write::checksum::Crc32;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart};
use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tf_fs_object_store::{Client as _, Connect as _, ErrorKind, Name, StoreError as _, retry};
use tf_fs_plugin::prelude::*;

/// What a store does with a condition, or with a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ability {
    /// A condition that holds is accepted, one that does not is refused.
    Checked,
    /// The same, if the ETag has no quotes.
    CheckedUnquoted,
    /// The same, but for an object that was made from parts even a condition that holds is refused.
    CheckedButOfParts,
    /// A condition that does not hold is accepted.
    Ignored,
    /// No condition is accepted. The HTTP status for one that holds.
    Refused(u16),
}

impl Ability {
    /// Returns whether the store itself protects what somebody else wrote.
    #[must_use]
    pub fn is_checked(self) -> bool {
        matches!(self, Self::Checked | Self::CheckedUnquoted)
    }

    /// Returns the value of the setting for it.
    #[must_use]
    pub fn setting(self) -> &'static str {
        match self {
            Self::Checked => "quoted",
            Self::CheckedUnquoted => "unquoted",
            Self::CheckedButOfParts | Self::Ignored | Self::Refused(_) => "none",
        }
    }
}

impl fmt::Display for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checked => f.write_str("checked"),
            Self::CheckedUnquoted => f.write_str("checked, without quotes only"),
            Self::CheckedButOfParts => f.write_str("checked, but of objects made of parts refused"),
            Self::Ignored => f.write_str("ignored"),
            Self::Refused(status) => write!(f, "refused ({status})"),
        }
    }
}

/// What a store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Abilities {
    /// `If-Match` of PutObject.
    pub put_if_match: Ability,
    /// `If-None-Match: *` of PutObject.
    pub put_if_none_match: Ability,
    /// `If-Match` of CompleteMultipartUpload.
    pub complete_if_match: Ability,
    /// `If-None-Match: *` of CompleteMultipartUpload.
    pub complete_if_none_match: Ability,
    /// `x-amz-copy-source-if-match` of UploadPartCopy.
    pub copy_part_if_match: Ability,
    /// `x-amz-copy-source-if-match` of CopyObject.
    pub copy_if_match: Ability,
    /// `If-Match` of GetObject.
    pub get_if_match: Ability,
    /// The CRC32 of a PutObject.
    pub checksum: Ability,
    /// The CRC32 of a part in CompleteMultipartUpload.
    pub part_checksum: Ability,
}

impl Abilities {
    /// Returns names and values, in the order of the table in SEMANTICS.md.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, Ability); 9] {
        [
            ("`If-Match` of PutObject", self.put_if_match),
            ("`If-None-Match: *` of PutObject", self.put_if_none_match),
            ("`If-Match` of CompleteMultipartUpload", self.complete_if_match),
            ("`If-None-Match: *` of CompleteMultipartUpload", self.complete_if_none_match),
            ("`x-amz-copy-source-if-match` of UploadPartCopy", self.copy_part_if_match),
            ("`x-amz-copy-source-if-match` of CopyObject", self.copy_if_match),
            ("`If-Match` of GetObject", self.get_if_match),
            ("CRC32 of PutObject", self.checksum),
            ("CRC32 of a part in CompleteMultipartUpload", self.part_checksum),
        ]
    }

    /// Returns what `s3://` guarantees on such a store, in the order of the table in SEMANTICS.md.
    #[must_use]
    pub fn guarantees(&self) -> [(&'static str, &'static str); 6] {
        let kept = |all: bool| if all { "kept" } else { "looked for" };
        [
            ("theirs stays: in one request", kept(self.put_if_match.is_checked())),
            ("theirs stays: in parts", kept(self.complete_if_match.is_checked())),
            ("theirs stays: new, in one request", kept(self.put_if_none_match.is_checked())),
            ("theirs stays: new, in parts", kept(self.complete_if_none_match.is_checked())),
            ("a copy is of one version", kept(self.copy_part_if_match.is_checked())),
            ("an open file is one version", kept(self.get_if_match.is_checked())),
        ]
    }

    /// Returns the settings, with values, that tell the plugin what it would otherwise find out.
    #[must_use]
    pub fn settings(&self) -> [(&'static str, &'static str); 4] {
        // One setting is for both conditions of an operation.
        let both = |over: Ability, new: Ability| match new.is_checked() {
            true => over.setting(),
            false => "none",
        };
        let sums = match self.part_checksum {
            Ability::Refused(_) => "omit",
            _ => "send",
        };
        [
            ("put_conditions", both(self.put_if_match, self.put_if_none_match)),
            ("complete_conditions", both(self.complete_if_match, self.complete_if_none_match)),
            ("copy_conditions", self.copy_part_if_match.setting()),
            ("part_checksums", sums),
        ]
    }
}

/// Finds out what the store can do, in about fifty requests for objects below `uri`, which are deleted afterwards.
///
/// # Errors
/// As a write and a read below `uri`.
pub fn ask(uri: &str) -> Result<Abilities> {
    let s3 = Filesystem::shared();
    let mut name = Client::parse(Uri::new(uri.as_bytes()))?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    name.key = format!("{}tf-s3-ask-{}/", name.prefix(), since.as_nanos());
    let connection = s3.connection()?;
    let bucket = connection.block_on(connection.bucket(&name.bucket))?;
    let asking = Asking { bucket, name };
    connection.block_on(async {
        let asked = asking.all().await;
        for key in KEYS {
            asking.delete(key).await;
        }
        asked
    })
}

const KEYS: [&str; 4] = ["single", "parts", "new", "copy"];
const BODY: &[u8] = b"what a store can do";
/// The ETag of no object.
const WRONG: &str = "\"00000000000000000000000000000000\"";

struct Asking {
    bucket: Arc<Bucket>,
    /// A prefix that nobody else uses.
    name: Name,
}

/// The ETags of the existing objects.
struct There {
    single: String,
    parts: String,
}

/// The result of a request: done, or the status of the error.
type Done = Result<(), u16>;

/// The condition of a request.
#[derive(Clone, Copy, Default)]
struct If<'a> {
    matches: Option<&'a str>,
    is_new: bool,
}

impl<'a> If<'a> {
    fn matches(etag: &'a str) -> Self {
        Self { matches: Some(etag), is_new: false }
    }

    const NEW: Self = Self { matches: None, is_new: true };

    fn none_match(self) -> Option<String> {
        self.is_new.then(|| "*".to_owned())
    }
}

fn unquoted(etag: &str) -> &str {
    etag.trim_matches('"')
}

/// Returns the ability, from the results of a wrong condition, of a right one, and of that without quotes.
fn ability(wrong: Done, quoted: Done, unquoted: Done) -> Ability {
    match (wrong, quoted, unquoted) {
        (Ok(()), _, _) => Ability::Ignored,
        (Err(_), Ok(()), _) => Ability::Checked,
        (Err(_), Err(_), Ok(())) => Ability::CheckedUnquoted,
        (Err(_), Err(status), Err(_)) => Ability::Refused(status),
    }
}

impl Asking {
    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.name.key)
    }

    /// Makes a request. Returns the status of a refusal that tells what the store can do.
    async fn try_to<T, E, R>(&self, op: &str, send: impl Fn() -> R) -> Result<Result<T, u16>>
    where
        E: ProvideErrorMetadata,
        R: Future<Output = Result<T, SdkError<E>>>,
    {
        let send = || async {
            let cause = match send().await {
                Ok(done) => return Ok(Ok(done)),
                Err(error) => self.bucket.cause(error),
            };
            let may_pass = cause.retry_immediately() || cause.kind() == ErrorKind::Transient;
            match cause.status() {
                Some(status @ (400 | 404..=499 | 501)) if !may_pass => Ok(Err(status)),
                _ => Err(cause),
            }
        };
        retry(&*self.bucket, op, &self.name, send).await
    }

    /// Makes a request that every store supports.
    async fn make<T, E, R>(&self, op: &str, send: impl Fn() -> R) -> Result<T>
    where
        E: ProvideErrorMetadata,
        R: Future<Output = Result<T, SdkError<E>>>,
    {
        let send = || async { send().await.map_err(|error| self.bucket.cause(error)) };
        retry(&*self.bucket, op, &self.name, send).await
    }

    async fn all(&self) -> Result<Abilities> {
        let single = self.put("single", If::default(), None).await?;
        let parts = self.upload("parts", If::default(), None).await?;
        for done in [single, parts] {
            ensure!(
                done.is_ok(),
                Error::failed_precondition(format_args!(
                    "{}: the store takes no plain object: HTTP {}",
                    self.name,
                    done.unwrap_err()
                ))
            );
        }
        let there = There { single: self.etag("single").await?, parts: self.etag("parts").await? };
        Ok(Abilities {
            get_if_match: self.of_get(&there).await?,
            copy_if_match: self.of_copies(&there, false).await?,
            copy_part_if_match: self.of_copies(&there, true).await?,
            checksum: self.of_checksums().await?,
            part_checksum: self.of_part_checksums().await?,
            put_if_none_match: self.of_new(false).await?,
            complete_if_none_match: self.of_new(true).await?,
            put_if_match: self.of_writes(false).await?,
            complete_if_match: self.of_writes(true).await?,
        })
    }

    async fn etag(&self, key: &str) -> Result<String> {
        let client = &self.bucket.client;
        let head = || client.head_object().bucket(&*self.bucket.name).key(self.key(key)).send();
        let head = self.make("HeadObject", head).await?;
        Ok(head.e_tag().unwrap_or_default().to_owned())
    }

    async fn of_get(&self, there: &There) -> Result<Ability> {
        let wrong = self.get("single", WRONG).await?;
        let mut ability = ability(
            wrong,
            self.get("single", &there.single).await?,
            self.get("single", unquoted(&there.single)).await?,
        );
        if ability.is_checked() && self.get("parts", &there.parts).await?.is_err() {
            ability = Ability::CheckedButOfParts;
        }
        Ok(ability)
    }

    async fn of_copies(&self, there: &There, in_parts: bool) -> Result<Ability> {
        let wrong = self.copy("single", WRONG, in_parts).await?;
        let mut ability = ability(
            wrong,
            self.copy("single", &there.single, in_parts).await?,
            self.copy("single", unquoted(&there.single), in_parts).await?,
        );
        if ability.is_checked() {
            let of_parts = match ability {
                Ability::CheckedUnquoted => unquoted(&there.parts),
                _ => &there.parts,
            };
            if self.copy("parts", of_parts, in_parts).await?.is_err() {
                ability = Ability::CheckedButOfParts;
            }
        }
        Ok(ability)
    }

    async fn of_writes(&self, in_parts: bool) -> Result<Ability> {
        let wrong = self.write("single", If::matches(WRONG), in_parts).await?;
        // Each write changes it.
        let etag = self.etag("single").await?;
        let quoted = self.write("single", If::matches(&etag), in_parts).await?;
        let etag = self.etag("single").await?;
        let unquoted = self.write("single", If::matches(unquoted(&etag)), in_parts).await?;
        Ok(ability(wrong, quoted, unquoted))
    }

    async fn of_new(&self, in_parts: bool) -> Result<Ability> {
        let wrong = self.write("single", If::NEW, in_parts).await?;
        self.delete("new").await;
        let right = self.write("new", If::NEW, in_parts).await?;
        Ok(ability(wrong, right, right))
    }

    async fn of_checksums(&self) -> Result<Ability> {
        let right = Crc32::of([BODY]).to_base64();
        let wrong = self.put("new", If::default(), Some("AAAAAA==")).await?;
        let right = self.put("new", If::default(), Some(&right)).await?;
        Ok(ability(wrong, right, right))
    }

    async fn of_part_checksums(&self) -> Result<Ability> {
        let right = Crc32::of([BODY]).to_base64();
        let right = self.upload("new", If::default(), Some(&right)).await?;
        let wrong = self.upload("new", If::default(), Some("AAAAAA==")).await?;
        Ok(ability(wrong, right, right))
    }

    async fn write(&self, key: &str, condition: If<'_>, in_parts: bool) -> Result<Done> {
        match in_parts {
            true => self.upload(key, condition, None).await,
            false => self.put(key, condition, None).await,
        }
    }

    async fn put(&self, key: &str, condition: If<'_>, crc: Option<&str>) -> Result<Done> {
        let put = || {
            self.bucket
                .client
                .put_object()
                .bucket(&*self.bucket.name)
                .key(self.key(key))
                .set_if_match(condition.matches.map(str::to_owned))
                .set_if_none_match(condition.none_match())
                .set_checksum_crc32(crc.map(str::to_owned))
                .body(ByteStream::from_static(BODY))
                .customize()
                .disable_payload_signing()
                .send()
        };
        Ok(self.try_to("PutObject", put).await?.map(drop))
    }

    async fn create(&self, key: &str, with_checksum: bool) -> Result<String> {
        let create = || {
            self.bucket
                .client
                .create_multipart_upload()
                .bucket(&*self.bucket.name)
                .key(self.key(key))
                .set_checksum_algorithm(with_checksum.then_some(ChecksumAlgorithm::Crc32))
                .send()
        };
        let created = self.make("CreateMultipartUpload", create).await?;
        Ok(created.upload_id().unwrap_or_default().to_owned())
    }

    async fn abort(&self, key: &str, id: &str) {
        let abort = || {
            let aborting = self.bucket.client.abort_multipart_upload();
            aborting.bucket(&*self.bucket.name).key(self.key(key)).upload_id(id).send()
        };
        if let Err(error) = self.make("AbortMultipartUpload", abort).await {
            log::warn!("{error}");
        }
    }

    /// Uploads an object of one part. Its checksum is right; `crc` is the one sent at the end.
    async fn upload(&self, key: &str, condition: If<'_>, crc: Option<&str>) -> Result<Done> {
        let id = self.create(key, crc.is_some()).await?;
        let right = crc.map(|_| Crc32::of([BODY]).to_base64());
        let part = || {
            self.bucket
                .client
                .upload_part()
                .bucket(&*self.bucket.name)
                .key(self.key(key))
                .upload_id(&id)
                .part_number(1)
                .set_checksum_crc32(right.clone())
                .body(ByteStream::from_static(BODY))
                .customize()
                .disable_payload_signing()
                .send()
        };
        let part = match self.make("UploadPart", part).await {
            Ok(part) => part,
            Err(error) => {
                self.abort(key, &id).await;
                return Err(error);
            }
        };
        let part = CompletedPart::builder()
            .part_number(1)
            .set_e_tag(part.e_tag().map(str::to_owned))
            .set_checksum_crc32(crc.map(str::to_owned))
            .build();
        let parts = CompletedMultipartUpload::builder().parts(part).build();
        let complete = || {
            self.bucket
                .client
                .complete_multipart_upload()
                .bucket(&*self.bucket.name)
                .key(self.key(key))
                .upload_id(&id)
                .set_if_match(condition.matches.map(str::to_owned))
                .set_if_none_match(condition.none_match())
                .multipart_upload(parts.clone())
                .send()
        };
        let done = self.try_to("CompleteMultipartUpload", complete).await;
        if !matches!(done, Ok(Ok(_))) {
            self.abort(key, &id).await;
        }
        Ok(done?.map(drop))
    }

    async fn get(&self, key: &str, etag: &str) -> Result<Done> {
        let get = || {
            let get = self.bucket.client.get_object();
            get.bucket(&*self.bucket.name).key(self.key(key)).if_match(etag).send()
        };
        Ok(self.try_to("GetObject", get).await?.map(drop))
    }

    async fn copy(&self, key: &str, etag: &str, in_parts: bool) -> Result<Done> {
        let source = copy_source(&self.name.with_key(self.key(key)));
        if !in_parts {
            let copy = || {
                self.bucket
                    .client
                    .copy_object()
                    .bucket(&*self.bucket.name)
                    .key(self.key("copy"))
                    .copy_source(&source)
                    .copy_source_if_match(etag)
                    .send()
            };
            return Ok(self.try_to("CopyObject", copy).await?.map(drop));
        }
        let id = self.create("copy", false).await?;
        let copy = || {
            self.bucket
                .client
                .upload_part_copy()
                .bucket(&*self.bucket.name)
                .key(self.key("copy"))
                .upload_id(&id)
                .part_number(1)
                .copy_source(&source)
                .copy_source_if_match(etag)
                .send()
        };
        let copied = self.try_to("UploadPartCopy", copy).await;
        self.abort("copy", &id).await;
        Ok(copied?.map(drop))
    }

    /// Deletes an object, if it is there.
    async fn delete(&self, key: &str) {
        let delete = || {
            let deleting = self.bucket.client.delete_object();
            deleting.bucket(&*self.bucket.name).key(self.key(key)).send()
        };
        if let Err(error) = self.make("DeleteObject", delete).await
            && error.code() != Code::NotFound
        {
            log::warn!("{error}");
        }
    }
}
