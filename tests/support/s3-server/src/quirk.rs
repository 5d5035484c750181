//! Differences of real stores from Amazon S3.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Method};

use crate::fault::Reply;

/// How a server treats a request's condition: `If-Match`, `If-None-Match`, `x-amz-copy-source-if-match`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conditions {
    /// They are checked.
    #[default]
    Checked,
    /// An ETag is compared as it was sent, quotes included, with one that has none: only an unquoted one holds.
    Literal,
    /// They are ignored.
    Ignored,
    /// 501 `NotImplemented`.
    Unknown,
    /// An ETag never holds: 412.
    NeverHold,
}

/// What else real stores do, each as a public report describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// 400 `InvalidPart` if a part that is not the last has another length than the first one, or the last one is longer:
    /// Cloudflare R2 (apache/opendal#2904, cloudflare/cloudflare-docs#9549).
    EqualParts,
    /// 400 `InvalidArgument` for headers with checksums: Backblaze B2 (stonith404/pingvin-share#798).
    NoChecksums,
    /// 403 `SecondLevelDomainForbidden` for a bucket's name in the path of the URL: Alibaba's OSS (peak/s5cmd#518).
    VirtualHostsOnly,
    /// HEAD of `d` finds an empty object where there is the marker `d/`: SeaweedFS 3.67 (seaweedfs/seaweedfs#6001).
    HeadOfMarker,
}

/// How a store differs from Amazon S3. The default does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// Of PutObject.
    pub put: Conditions,
    /// Of CompleteMultipartUpload.
    pub complete: Conditions,
    /// Of the source of CopyObject and UploadPartCopy.
    pub copy: Conditions,
    /// A PUT or POST without `Content-Length` is refused with 411.
    pub length_required: bool,
    /// Checksums in the body of CompleteMultipartUpload are refused with 400 `MalformedXML`.
    pub no_checksums_of_parts: bool,
    /// The response to DeleteObjects names only the objects that could not be deleted.
    pub quiet_deletions: bool,
    /// What else it does.
    pub habits: &'static [Habit],
}

impl Quirks {
    /// The differences of the gateway of Ceph 16.2.
    pub const CEPH: Self = Self {
        put: Conditions::Literal,
        complete: Conditions::Ignored,
        copy: Conditions::Ignored,
        length_required: true,
        no_checksums_of_parts: false,
        quiet_deletions: false,
        habits: &[],
    };
    /// The differences of the S3 API of OpenStack Swift 2.30.
    pub const SWIFT: Self = Self {
        put: Conditions::Unknown,
        complete: Conditions::NeverHold,
        copy: Conditions::NeverHold,
        length_required: false,
        no_checksums_of_parts: true,
        quiet_deletions: false,
        habits: &[],
    };

    /// Those that differ by this alone.
    #[must_use]
    pub const fn of_habits(habits: &'static [Habit]) -> Self {
        Self {
            put: Conditions::Checked,
            complete: Conditions::Checked,
            copy: Conditions::Checked,
            length_required: false,
            no_checksums_of_parts: false,
            quiet_deletions: false,
            habits,
        }
    }

    fn of(&self, operation: &str) -> Conditions {
        match operation {
            "PutObject" => self.put,
            "CompleteMultipartUpload" => self.complete,
            "CopyObject" | "UploadPartCopy" => self.copy,
            _ => Conditions::Checked,
        }
    }

    /// Returns whether the conditions of this operation are ignored.
    pub(crate) fn ignores(&self, operation: &str) -> bool {
        self.of(operation) == Conditions::Ignored
    }

    /// Returns the response that refuses a request before it is processed.
    pub(crate) fn refusal(
        &self,
        operation: &str,
        method: &Method,
        headers: &HeaderMap,
        has_bucket_in_path: bool,
    ) -> Option<Reply> {
        let has = |name: &str| headers.contains_key(name);
        if has_bucket_in_path && self.habits.contains(&Habit::VirtualHostsOnly) {
            return Some(Reply::new(403, "SecondLevelDomainForbidden"));
        }
        let is_sum = |name: &http::HeaderName| {
            let name = name.as_str();
            name.starts_with("x-amz-checksum-") || name == "x-amz-sdk-checksum-algorithm"
        };
        let sum = headers.keys().find(|name| is_sum(name));
        if let Some(name) = sum.filter(|_| self.habits.contains(&Habit::NoChecksums)) {
            let text = format!("Unsupported header '{name}' received for this API call.");
            return Some(Reply::new(400, "InvalidArgument").message(text));
        }
        if self.length_required
            && (method == Method::PUT || method == Method::POST)
            && !has(CONTENT_LENGTH.as_str())
            && !has(TRANSFER_ENCODING.as_str())
        {
            return Some(Reply::new(411, "MissingContentLength"));
        }
        let names: &[&str] = match operation {
            "CopyObject" | "UploadPartCopy" => &["x-amz-copy-source-if-match"],
            _ => &["if-match", "if-none-match"],
        };
        let etags = names.iter().filter_map(|name| headers.get(*name)).filter(|etag| *etag != "*");
        let failed = || Some(Reply::new(412, "PreconditionFailed"));
        match self.of(operation) {
            Conditions::Unknown if names.iter().any(|name| has(name)) => {
                Some(Reply::new(501, "NotImplemented"))
            }
            Conditions::NeverHold if etags.clone().next().is_some() => failed(),
            Conditions::Literal if etags.clone().any(|etag| etag.as_bytes().contains(&b'"')) => {
                failed()
            }
            _ => None,
        }
    }
}

/// The quirks that a server has now: those of some buckets by name, and of all others without one.
#[derive(Debug, Default)]
pub(crate) struct Character(Mutex<HashMap<Option<String>, Quirks>>);

impl Character {
    pub(crate) fn set(&self, bucket: Option<&str>, quirks: Quirks) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(bucket.map(str::to_owned), quirks);
    }

    pub(crate) fn get(&self, bucket: &Option<String>) -> Quirks {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(bucket).or_else(|| all.get(&None)).copied().unwrap_or_default()
    }
}
