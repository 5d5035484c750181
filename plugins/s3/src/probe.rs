//! Finds out what a store can do, with its own objects, which are deleted afterwards.
//!
//! The plugin itself never does this: it learns from the responses to its requests. To know before, or to choose the
//! settings, run the example `probe`.

use crate::Filesystem;
use crate::bucket::Bucket;
use crate::client::Client;
use crate::request::{Call, Success};
use crate::write::checksum::Crc32;
use crate::write::multipart;
use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tf_fs_object_store::http::{Chunks, Method};
use tf_fs_object_store::{Client as _, Connect as _, ErrorKind, Name, StoreError as _, retry};
use tf_fs_plugin::prelude::*;

/// What a store does with a condition, or with a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Observed {
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

impl Observed {
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

impl fmt::Display for Observed {
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
pub struct Probed {
    /// `If-Match` of PutObject.
    pub put_if_match: Observed,
    /// `If-None-Match: *` of PutObject.
    pub put_if_none_match: Observed,
    /// `If-Match` of CompleteMultipartUpload.
    pub complete_if_match: Observed,
    /// `If-None-Match: *` of CompleteMultipartUpload.
    pub complete_if_none_match: Observed,
    /// `x-amz-copy-source-if-match` of UploadPartCopy.
    pub copy_part_if_match: Observed,
    /// `x-amz-copy-source-if-match` of CopyObject.
    pub copy_if_match: Observed,
    /// `If-Match` of GetObject.
    pub get_if_match: Observed,
    /// The CRC32 of a PutObject.
    pub checksum: Observed,
    /// The CRC32 of a part in CompleteMultipartUpload.
    pub part_checksum: Observed,
}

impl Probed {
    /// Returns names and values, in the order of the table in SEMANTICS.md.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, Observed); 9] {
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
        let both = |over: Observed, new: Observed| match new.is_checked() {
            true => over.setting(),
            false => "none",
        };
        let sums = match self.part_checksum {
            Observed::Refused(_) => "omit",
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
pub fn probe(uri: &str) -> Result<Probed> {
    let s3 = Filesystem::shared();
    let mut name = Client::parse(Uri::new(uri.as_bytes()))?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    name.key = format!("{}tf-s3-probe-{}/", name.prefix(), since.as_nanos());
    let connection = s3.connection()?;
    let bucket = connection.block_on(connection.bucket(&name.bucket))?;
    let prober = Prober { bucket, name };
    connection.block_on(async {
        let probed = prober.all().await;
        for key in KEYS {
            prober.delete(key).await;
        }
        probed
    })
}

const KEYS: [&str; 4] = ["single", "parts", "new", "copy"];
const BODY: &[u8] = b"what a store can do";
/// The ETag of no object.
const WRONG: &str = "\"00000000000000000000000000000000\"";

struct Prober {
    bucket: Arc<Bucket>,
    /// A prefix that nobody else uses.
    name: Name,
}

/// The ETags of the existing objects.
struct Etags {
    single: String,
    parts: String,
}

/// The result of a request: done, or the status of the error.
type Outcome = Result<(), u16>;

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
}

fn unquoted(etag: &str) -> &str {
    etag.trim_matches('"')
}

/// Returns what the store does, from the results of a wrong condition, of a right one, and of that without quotes.
fn observed(wrong: Outcome, quoted: Outcome, unquoted: Outcome) -> Observed {
    match (wrong, quoted, unquoted) {
        (Ok(()), _, _) => Observed::Ignored,
        (Err(_), Ok(()), _) => Observed::Checked,
        (Err(_), Err(_), Ok(())) => Observed::CheckedUnquoted,
        (Err(_), Err(status), Err(_)) => Observed::Refused(status),
    }
}

impl Prober {
    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.name.key)
    }

    fn call(&self, op: &'static str, method: Method, key: &str) -> Call {
        Call::object(op, method, &self.key(key))
    }

    /// Makes a request. Returns the status of a refusal that tells what the store can do.
    async fn try_to(&self, call: Call) -> Result<Result<Success, u16>> {
        let send = || async {
            let error = match self.bucket.send(call.clone()).await {
                Ok(done) => return Ok(Ok(done)),
                Err(error) => error,
            };
            let may_pass = error.retry_immediately() || error.kind() == ErrorKind::Transient;
            match error.status() {
                Some(status @ (400 | 404..=499 | 501)) if !may_pass => Ok(Err(status)),
                _ => Err(error),
            }
        };
        retry(&*self.bucket, call.op, &self.name, send).await
    }

    /// Makes a request that every store supports.
    async fn make(&self, call: Call) -> Result<Success> {
        let send = || self.bucket.send(call.clone());
        retry(&*self.bucket, call.op, &self.name, send).await
    }

    async fn all(&self) -> Result<Probed> {
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
        let etags = Etags { single: self.etag("single").await?, parts: self.etag("parts").await? };
        Ok(Probed {
            get_if_match: self.of_get(&etags).await?,
            copy_if_match: self.of_copies(&etags, false).await?,
            copy_part_if_match: self.of_copies(&etags, true).await?,
            checksum: self.of_checksums().await?,
            part_checksum: self.of_part_checksums().await?,
            put_if_none_match: self.of_new(false).await?,
            complete_if_none_match: self.of_new(true).await?,
            put_if_match: self.of_writes(false).await?,
            complete_if_match: self.of_writes(true).await?,
        })
    }

    async fn etag(&self, key: &str) -> Result<String> {
        let head = self.make(self.call("HeadObject", Method::HEAD, key)).await?;
        Ok(head.header("etag").unwrap_or_default().to_owned())
    }

    async fn of_get(&self, etags: &Etags) -> Result<Observed> {
        let wrong = self.get("single", WRONG).await?;
        let mut seen = observed(
            wrong,
            self.get("single", &etags.single).await?,
            self.get("single", unquoted(&etags.single)).await?,
        );
        if seen.is_checked() && self.get("parts", &etags.parts).await?.is_err() {
            seen = Observed::CheckedButOfParts;
        }
        Ok(seen)
    }

    async fn of_copies(&self, etags: &Etags, in_parts: bool) -> Result<Observed> {
        let wrong = self.copy("single", WRONG, in_parts).await?;
        let mut seen = observed(
            wrong,
            self.copy("single", &etags.single, in_parts).await?,
            self.copy("single", unquoted(&etags.single), in_parts).await?,
        );
        if seen.is_checked() {
            let of_parts = match seen {
                Observed::CheckedUnquoted => unquoted(&etags.parts),
                _ => &etags.parts,
            };
            if self.copy("parts", of_parts, in_parts).await?.is_err() {
                seen = Observed::CheckedButOfParts;
            }
        }
        Ok(seen)
    }

    async fn of_writes(&self, in_parts: bool) -> Result<Observed> {
        let wrong = self.write("single", If::matches(WRONG), in_parts).await?;
        // Each write changes it.
        let etag = self.etag("single").await?;
        let quoted = self.write("single", If::matches(&etag), in_parts).await?;
        let etag = self.etag("single").await?;
        let unquoted = self.write("single", If::matches(unquoted(&etag)), in_parts).await?;
        Ok(observed(wrong, quoted, unquoted))
    }

    async fn of_new(&self, in_parts: bool) -> Result<Observed> {
        let wrong = self.write("single", If::NEW, in_parts).await?;
        self.delete("new").await;
        let right = self.write("new", If::NEW, in_parts).await?;
        Ok(observed(wrong, right, right))
    }

    async fn of_checksums(&self) -> Result<Observed> {
        let right = Crc32::of([BODY]).to_base64();
        let wrong = self.put("new", If::default(), Some("AAAAAA==")).await?;
        let right = self.put("new", If::default(), Some(&right)).await?;
        Ok(observed(wrong, right, right))
    }

    async fn of_part_checksums(&self) -> Result<Observed> {
        let right = Crc32::of([BODY]).to_base64();
        let right = self.upload("new", If::default(), Some(&right)).await?;
        let wrong = self.upload("new", If::default(), Some("AAAAAA==")).await?;
        Ok(observed(wrong, right, right))
    }

    async fn write(&self, key: &str, condition: If<'_>, in_parts: bool) -> Result<Outcome> {
        match in_parts {
            true => self.upload(key, condition, None).await,
            false => self.put(key, condition, None).await,
        }
    }

    async fn put(&self, key: &str, condition: If<'_>, crc: Option<&str>) -> Result<Outcome> {
        let call = self
            .call("PutObject", Method::PUT, key)
            .with_optional("if-match", condition.matches)?
            .with_optional("if-none-match", condition.is_new.then_some("*"))?
            .with_optional("x-amz-checksum-crc32", crc)?
            .with_body(Chunks::new([BODY.into()]), None)?;
        Ok(self.try_to(call).await?.map(drop))
    }

    async fn create(&self, key: &str, with_checksum: bool) -> Result<String> {
        let call = self
            .call("CreateMultipartUpload", Method::POST, key)
            .with_query("uploads", "")
            .with_optional("x-amz-checksum-algorithm", with_checksum.then_some("CRC32"))?;
        let begin = || multipart::begin(&self.bucket, &self.name, call.clone());
        retry(&*self.bucket, call.op, &self.name, begin).await
    }

    async fn abort(&self, key: &str, id: &str) {
        let call = self.call("AbortMultipartUpload", Method::DELETE, key);
        if let Err(error) = self.make(call.with_query("uploadId", id)).await {
            log::warn!("{error}");
        }
    }

    /// Uploads an object of one part. Its checksum is right; `crc` is the one sent at the end.
    async fn upload(&self, key: &str, condition: If<'_>, crc: Option<&str>) -> Result<Outcome> {
        let id = self.create(key, crc.is_some()).await?;
        let part = self
            .call("UploadPart", Method::PUT, key)
            .with_query("partNumber", "1")
            .with_query("uploadId", &*id)
            .with_body(Chunks::new([BODY.into()]), crc.map(|_| Crc32::of([BODY])))?;
        let part = match self.make(part).await {
            Ok(part) => part,
            Err(error) => {
                self.abort(key, &id).await;
                return Err(error);
            }
        };
        let part = (1, part.header("etag").unwrap_or_default(), crc);
        let name = self.name.with_key(self.key(key));
        let complete = multipart::complete(&name, &id, [part].into_iter())?
            .with_optional("if-match", condition.matches)?
            .with_optional("if-none-match", condition.is_new.then_some("*"))?;
        let done = self.try_to(complete).await;
        if !matches!(done, Ok(Ok(_))) {
            self.abort(key, &id).await;
        }
        Ok(done?.map(drop))
    }

    async fn get(&self, key: &str, etag: &str) -> Result<Outcome> {
        let call = self.call("GetObject", Method::GET, key).with_header("if-match", etag)?;
        Ok(self.try_to(call).await?.map(drop))
    }

    async fn copy(&self, key: &str, etag: &str, in_parts: bool) -> Result<Outcome> {
        let source = self.name.with_key(self.key(key));
        let from = |call: Call| {
            call.with_copy_source(&source)?.with_header("x-amz-copy-source-if-match", etag)
        };
        if !in_parts {
            let call = from(self.call("CopyObject", Method::PUT, "copy"))?;
            return Ok(self.try_to(call).await?.map(drop));
        }
        let id = self.create("copy", false).await?;
        let call = self
            .call("UploadPartCopy", Method::PUT, "copy")
            .with_query("partNumber", "1")
            .with_query("uploadId", &*id);
        let copied = self.try_to(from(call)?).await;
        self.abort("copy", &id).await;
        Ok(copied?.map(drop))
    }

    /// Deletes an object, if there is one.
    async fn delete(&self, key: &str) {
        let deleted = self.make(self.call("DeleteObject", Method::DELETE, key)).await;
        if let Err(error) = deleted
            && error.code() != Code::NotFound
        {
            log::warn!("{error}");
        }
    }
}
