//! Counters, and how Python reads them: as the file `s3:///metrics.json`.

use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextMut,
    BeforeTransmitInterceptorContextRef, FinalizerInterceptorContextRef,
};
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_runtime_api::client::retries::RequestAttempts;
use aws_smithy_types::config_bag::{Storable, StoreReplace};
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};
use tf_fs_object_store::metrics::{
    Counter, LISTING_HITS, LISTING_MISSES, READ_AHEAD_HIT_BYTES, READ_AHEAD_WASTED_BYTES,
};

/// Something of which there are more or fewer.
#[derive(Debug)]
struct Gauge(AtomicI64);

impl Gauge {
    const fn new() -> Self {
        Self(AtomicI64::new(0))
    }

    fn add(&self, n: i64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Bytes of request bodies.
pub(crate) static BYTES_SENT: Counter = Counter::new();
/// Bytes of bodies of answers.
pub(crate) static BYTES_RECEIVED: Counter = Counter::new();
/// Multipart uploads of this process that are neither complete nor aborted.
static OPEN_UPLOADS: Gauge = Gauge::new();

/// The operations that are counted by name.
const OPERATIONS: [&str; 16] = [
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
    // Whatever else the SDK asks for.
    "other",
];

/// Upper bounds of the buckets of latencies, in milliseconds. The last bucket has none.
const BOUNDS: [u64; 20] =
    [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1_000, 2_000, 5_000, 20_000];

/// The requests of one operation.
#[derive(Debug)]
struct Requests {
    attempts: Counter,
    retries: Counter,
    /// By the class of the answer: none, 2xx, 3xx, 4xx, 5xx.
    outcomes: [Counter; 5],
    microseconds: Counter,
    latencies: [Counter; BOUNDS.len() + 1],
}

impl Requests {
    const fn new() -> Self {
        Self {
            attempts: Counter::new(),
            retries: Counter::new(),
            outcomes: [const { Counter::new() }; 5],
            microseconds: Counter::new(),
            latencies: [const { Counter::new() }; BOUNDS.len() + 1],
        }
    }
}

static REQUESTS: [Requests; OPERATIONS.len()] = [const { Requests::new() }; OPERATIONS.len()];

/// Why requests failed, after all attempts: S3's code, or what came instead of an answer.
const ERRORS: [&str; 13] = [
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
];

static FAILED: [Counter; ERRORS.len()] = [const { Counter::new() }; ERRORS.len()];

/// Counts an attempt of a request: after how long the head of its answer came, and its status. `None`: no
/// answer came.
pub(crate) fn attempt(operation: &str, number: u32, latency: Duration, status: Option<u16>) {
    let last = OPERATIONS.len() - 1;
    let index = OPERATIONS.iter().position(|&known| known == operation).unwrap_or(last);
    let requests = &REQUESTS[index];
    requests.attempts.add(1);
    if number > 1 {
        requests.retries.add(1);
    }
    let class = match status {
        None => 0,
        Some(..300) => 1,
        Some(300..400) => 2,
        Some(400..500) => 3,
        Some(500..) => 4,
    };
    requests.outcomes[class].add(1);
    requests.microseconds.add(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
    let bucket = BOUNDS.iter().position(|&bound| latency <= Duration::from_millis(bound));
    requests.latencies[bucket.unwrap_or(BOUNDS.len())].add(1);
}

/// Whether failures of this name are counted by it.
pub(crate) fn is_kind(name: &str) -> bool {
    ERRORS.contains(&name)
}

/// Counts a request that failed after all attempts.
pub(crate) fn failed(kind: &str) {
    let last = ERRORS.len() - 1;
    FAILED[ERRORS.iter().position(|&known| known == kind).unwrap_or(last)].add(1);
}

/// The upper bound of the bucket in which the request at this share of all is.
fn percentile(latencies: &[u64], share: f64) -> Option<u64> {
    let count: u64 = latencies.iter().sum();
    let wanted = ((count as f64) * share).ceil().max(1.0) as u64;
    let mut seen = 0;
    latencies.iter().zip(BOUNDS).find_map(|(&n, bound)| {
        seen += n;
        (seen >= wanted).then_some(bound)
    })
}

impl Requests {
    fn json(&self) -> Option<Value> {
        let latencies: Vec<u64> = self.latencies.iter().map(Counter::get).collect();
        let count: u64 = latencies.iter().sum();
        if count == 0 {
            return None;
        }
        let outcomes: Map<String, Value> = ["none", "2xx", "3xx", "4xx", "5xx"]
            .into_iter()
            .zip(&self.outcomes)
            .map(|(class, n)| (class.to_owned(), n.get().into()))
            .collect();
        let at_most = |share| percentile(&latencies, share).map_or(Value::Null, Value::from);
        Some(json!({
            "attempts": self.attempts.get(),
            "retries": self.retries.get(),
            "answers": outcomes,
            "latency_ms": {
                "count": count,
                "sum": self.microseconds.get() / 1000,
                "p50_at_most": at_most(0.5),
                "p90_at_most": at_most(0.9),
                "p99_at_most": at_most(0.99),
                "buckets": BOUNDS
                    .iter()
                    .map(ToString::to_string)
                    .chain(["more".to_owned()])
                    .zip(latencies.iter().copied())
                    .filter(|&(_, n)| n > 0)
                    .collect::<std::collections::BTreeMap<_, _>>(),
            },
        }))
    }
}

/// All counters of the process since it began, as the text of `s3:///metrics.json`.
pub(crate) fn json(budget_used: usize, budget_limit: usize) -> String {
    let requests: Map<String, Value> = OPERATIONS
        .iter()
        .zip(&REQUESTS)
        .filter_map(|(name, requests)| Some(((*name).to_owned(), requests.json()?)))
        .collect();
    let failed: Map<String, Value> = ERRORS
        .iter()
        .zip(&FAILED)
        .filter(|(_, n)| n.get() > 0)
        .map(|(name, n)| ((*name).to_owned(), n.get().into()))
        .collect();
    let total = |of: fn(&Requests) -> &Counter| REQUESTS.iter().map(|r| of(r).get()).sum::<u64>();
    let text = serde_json::to_string_pretty(&json!({
        "requests": requests,
        "attempts": total(|requests| &requests.attempts),
        "retries": total(|requests| &requests.retries),
        "failed": failed,
        "bytes_sent": BYTES_SENT.get(),
        "bytes_received": BYTES_RECEIVED.get(),
        "listing_cache": { "hits": LISTING_HITS.get(), "misses": LISTING_MISSES.get() },
        "read_ahead": {
            "hit_bytes": READ_AHEAD_HIT_BYTES.get(),
            "wasted_bytes": READ_AHEAD_WASTED_BYTES.get(),
        },
        "memory_budget": { "used_bytes": budget_used, "limit_bytes": budget_limit },
        "open_uploads": OPEN_UPLOADS.get(),
    }));
    text.unwrap_or_default() + "\n"
}

/// Counts the SDK's requests, and marks them as paid for where that is wanted.
#[derive(Debug)]
pub(crate) struct Observer {
    requester_pays: bool,
}

impl Observer {
    pub(crate) fn new(requester_pays: bool) -> Self {
        Self { requester_pays }
    }
}

/// An attempt that was sent, and its answer.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    answer: Option<(Duration, u16)>,
}

impl Storable for Sent {
    type Storer = StoreReplace<Self>;
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
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        cfg.interceptor_state().store_put(Sent { at: Instant::now(), answer: None });
        Ok(())
    }

    fn read_after_transmit(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(&Sent { at, .. }) = cfg.load::<Sent>() {
            let answer = Some((at.elapsed(), context.response().status().as_u16()));
            cfg.interceptor_state().store_put(Sent { at, answer });
        }
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        // What failed before it was sent is no request.
        let Some(&Sent { at, answer }) = cfg.load::<Sent>() else { return Ok(()) };
        let operation = cfg.load::<Metadata>().map_or("other", Metadata::name);
        let number = cfg.load::<RequestAttempts>().map_or(1, RequestAttempts::attempts);
        let latency = answer.map_or_else(|| at.elapsed(), |(latency, _)| latency);
        let status = answer.map(|(_, status)| status);
        attempt(operation, number, latency, status);
        // An error may come under a status of success.
        let done = matches!(context.output_or_error(), Some(Ok(_)));
        match operation {
            "CreateMultipartUpload" if done => OPEN_UPLOADS.add(1),
            // 404: it was complete or aborted by an attempt whose answer was lost.
            "CompleteMultipartUpload" | "AbortMultipartUpload" if done || status == Some(404) => {
                OPEN_UPLOADS.add(-1);
            }
            _ => {}
        }
        cfg.interceptor_state().unset::<Sent>();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        let mut latencies = [0; BOUNDS.len() + 1];
        latencies[0] = 90;
        latencies[4] = 9;
        latencies[BOUNDS.len()] = 1;
        assert_eq!(percentile(&latencies, 0.5), Some(1));
        assert_eq!(percentile(&latencies, 0.9), Some(1));
        assert_eq!(percentile(&latencies, 0.99), Some(7));
        assert_eq!(percentile(&latencies, 1.0), None);
    }

    #[test]
    fn attempts_are_counted() {
        attempt("HeadBucket", 1, Duration::from_millis(12), Some(200));
        attempt("HeadBucket", 2, Duration::from_millis(40), Some(503));
        attempt("HeadBucket", 3, Duration::from_secs(60), None);
        attempt("Unheard", 1, Duration::ZERO, Some(404));
        failed("Unheard");
        assert!(is_kind("SlowDown") && !is_kind("Unheard"));
        let json: Value = serde_json::from_str(&json(5, 7)).unwrap();
        let requests = &json["requests"]["HeadBucket"];
        assert_eq!(requests["attempts"], 3);
        assert_eq!(requests["retries"], 2);
        assert_eq!(requests["answers"], json!({"none": 1, "2xx": 1, "3xx": 0, "4xx": 0, "5xx": 1}));
        assert_eq!(requests["latency_ms"]["sum"], 60_052);
        assert_eq!(requests["latency_ms"]["buckets"], json!({"15": 1, "50": 1, "more": 1}));
        assert_eq!(requests["latency_ms"]["p50_at_most"], 50);
        assert_eq!(requests["latency_ms"]["p99_at_most"], Value::Null);
        assert_eq!(json["requests"]["other"]["answers"]["4xx"], 1);
        assert!(json["failed"]["other"].as_u64() >= Some(1));
        assert_eq!(json["memory_budget"], json!({"used_bytes": 5, "limit_bytes": 7}));
    }
}
