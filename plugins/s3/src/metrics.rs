//! Counters, and how Python reads them: as the file `s3:///metrics.json`.

use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::operation::create_multipart_upload::CreateMultipartUploadOutput;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextMut,
    BeforeTransmitInterceptorContextRef, FinalizerInterceptorContextRef,
};
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_types::config_bag::{Storable, StoreReplace};
use percent_encoding::percent_decode_str;
use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::{Duration, Instant};
use tf_fs_object_store::http::RequestCounts;
use tf_fs_plugin::sync::{Mutex, MutexGuard};

/// The ids of multipart uploads of this process that are neither complete nor aborted.
static OPEN_UPLOADS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn open_uploads() -> MutexGuard<'static, BTreeSet<String>> {
    OPEN_UPLOADS.lock().unwrap_or_else(PoisonError::into_inner)
}

static COUNTS: RequestCounts<16, 13> = RequestCounts::new(
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
        "ListParts",
        "HeadBucket",
        "ListBuckets",
        // All other requests of the SDK.
        "other",
    ],
    // S3's code, or why there was no response.
    [
        "timeout",
        "connection",
        "checksum",
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
    ],
);

/// Counts an attempt of a request: how long the head of its response took, and its status. `None`: there was no
/// response.
pub(crate) fn attempt(operation: &str, latency: Duration, status: Option<u16>) {
    COUNTS.attempt(operation, tf_fs_object_store::attempt().number, latency, status);
}

/// Returns whether failures of this name have their own count.
pub(crate) fn is_kind(name: &str) -> bool {
    COUNTS.has_reason(name)
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

/// Counts the SDK's requests, and adds the header of requester-pays where that is set.
#[derive(Debug)]
pub(crate) struct Observer {
    requester_pays: bool,
}

impl Observer {
    pub(crate) fn new(requester_pays: bool) -> Self {
        Self { requester_pays }
    }
}

/// An attempt that was sent, and its response.
#[derive(Clone, Debug)]
struct Sent {
    at: Instant,
    answer: Option<(Duration, u16)>,
    /// The ID of its upload.
    upload: Option<String>,
}

impl Storable for Sent {
    type Storer = StoreReplace<Self>;
}

/// Returns the ID of the upload in the URL of a request.
fn upload_of(url: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let id = query.split('&').find_map(|parameter| parameter.strip_prefix("uploadId="))?;
    Some(percent_decode_str(id).decode_utf8_lossy().into_owned())
}

impl Intercept for Observer {
    fn name(&self) -> &'static str {
        "s3 metrics"
    }

    fn modify_before_signing(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if self.requester_pays {
            context.request_mut().headers_mut().insert("x-amz-request-payer", "requester");
        }
        Ok(())
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let upload = upload_of(context.request().uri());
        cfg.interceptor_state().store_put(Sent { at: Instant::now(), answer: None, upload });
        Ok(())
    }

    fn read_after_transmit(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(sent) = cfg.load::<Sent>().cloned() {
            let answer = Some((sent.at.elapsed(), context.response().status().as_u16()));
            cfg.interceptor_state().store_put(Sent { answer, ..sent });
        }
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        // What failed before it was sent is not a request.
        let Some(Sent { at, answer, upload }) = cfg.load::<Sent>().cloned() else { return Ok(()) };
        let operation = cfg.load::<Metadata>().map_or("other", Metadata::name);
        let latency = answer.map_or_else(|| at.elapsed(), |(latency, _)| latency);
        let status = answer.map(|(_, status)| status);
        attempt(operation, latency, status);
        // A response with a successful status may contain an error.
        let output = context.output_or_error().and_then(Result::ok);
        let created =
            output.and_then(|output| output.downcast_ref::<CreateMultipartUploadOutput>());
        if let Some(id) = created.and_then(|created| created.upload_id()) {
            open_uploads().insert(id.to_owned());
        }
        // 404: it was completed or aborted by an attempt whose response was lost.
        let is_over = output.is_some() || status == Some(404);
        let may_end = matches!(operation, "CompleteMultipartUpload" | "AbortMultipartUpload");
        if let Some(id) = upload.filter(|_| may_end && is_over) {
            open_uploads().remove(&id);
        }
        cfg.interceptor_state().unset::<Sent>();
        Ok(())
    }
}
