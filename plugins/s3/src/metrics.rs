//! Counters, and how Python reads them: as the file `s3:///metrics.json`.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::Duration;
use tf_fs_object_store::http::RequestCounts;
use tf_fs_plugin::sync::{Mutex, MutexGuard};

/// The ids of multipart uploads of this process that are neither complete nor aborted.
static OPEN_UPLOADS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn open_uploads() -> MutexGuard<'static, BTreeSet<String>> {
    OPEN_UPLOADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// S3's code, or why there was no response.
const REASONS: [&str; 12] = [
    "timeout",
    "connection",
    "NoSuchKey",
    "NoSuchBucket",
    "AccessDenied",
    "SlowDown",
    "InternalError",
    "PreconditionFailed",
    "InvalidRange",
    "region",
    "credentials",
    "other",
];

static COUNTS: RequestCounts<13, 12> = RequestCounts::new(
    [
        "GetObject",
        "HeadObject",
        "PutObject",
        "CopyObject",
        "DeleteObject",
        "DeleteObjects",
        "ListObjectsV2",
        "CreateMultipartUpload",
        "UploadPart",
        "UploadPartCopy",
        "CompleteMultipartUpload",
        "AbortMultipartUpload",
        "ListBuckets",
    ],
    REASONS,
);

/// Counts an attempt of a request: how long the head of its response took, and its status. `None`: there was no
/// response.
pub(crate) fn attempt(operation: &str, latency: Duration, status: Option<u16>) {
    COUNTS.attempt(operation, tf_fs_object_store::attempt().number, latency, status);
}

/// Returns the reason of this name, if there is one.
pub(crate) fn reason(name: &str) -> Option<&'static str> {
    REASONS.into_iter().find(|&reason| reason == name)
}

/// Counts a request that failed after all attempts.
pub(crate) fn failed(kind: &str) {
    COUNTS.failed(kind);
}

/// Returns all counters of the process since it began, as the text of `s3:///metrics.json`.
pub(crate) fn json(budget_used: usize, budget_limit: usize) -> String {
    let mut all = COUNTS.json(budget_used, budget_limit);
    all.insert("open_uploads".into(), open_uploads().len().into());
    serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
}

/// Records that an upload has begun.
pub(crate) fn upload_began(id: &str) {
    open_uploads().insert(id.to_owned());
}

/// Records that an upload was completed or aborted.
pub(crate) fn upload_ended(id: &str) {
    open_uploads().remove(id);
}
