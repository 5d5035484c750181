//! Operations and failures, counted: `sftp:///metrics.json` shows them.

use std::time::Instant;
use tf_fs_object_store::http::{HttpError, RequestCounts};
use tf_fs_object_store::{ErrorKind, StoreError as _};

static COUNTS: RequestCounts<8, 7> = RequestCounts::new(
    ["Read", "Stat", "List", "Write", "CreateDirectory", "Delete", "Copy", "Rename"],
    ["missing", "precondition", "denied", "unsupported", "connection", "invalid", "other"],
);

/// Runs an operation, and counts it.
pub(crate) async fn counted<T>(
    operation: &str,
    run: impl Future<Output = Result<T, HttpError>>,
) -> Result<T, HttpError> {
    let began = Instant::now();
    let done = run.await;
    // Other protocols have no statuses of HTTP: these count as what they mean.
    let (status, reason) = match done.as_ref().err().map(HttpError::kind) {
        None => (Some(200), None),
        Some(ErrorKind::NotFound) => (Some(404), Some("missing")),
        Some(ErrorKind::Precondition) => (Some(412), Some("precondition")),
        Some(ErrorKind::Denied) => (Some(403), Some("denied")),
        Some(ErrorKind::Unsupported) => (Some(405), Some("unsupported")),
        Some(ErrorKind::Transient) => (None, Some("connection")),
        Some(ErrorKind::InvalidResponse) => (None, Some("invalid")),
        Some(_) => (Some(400), Some("other")),
    };
    COUNTS.attempt(operation, tf_fs_object_store::attempt().number, began.elapsed(), status);
    if let Some(reason) = reason {
        COUNTS.failed(reason);
    }
    done
}

/// Returns all counts of the process since it began, as JSON.
pub(crate) fn json(budget_used: usize, budget_limit: usize) -> String {
    let all = COUNTS.json(budget_used, budget_limit);
    serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
}
