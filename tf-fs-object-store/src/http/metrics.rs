//! Requests and failures of a store, counted by name, and shown as JSON.

use crate::metrics::{
    BYTES_RECEIVED, BYTES_SENT, Counter, DISK_CACHE_BROKEN, DISK_CACHE_EVICTIONS,
    DISK_CACHE_HIT_BYTES, DISK_CACHE_HITS, DISK_CACHE_MISSES, DISK_CACHE_STORED_BYTES,
    LISTING_HITS, LISTING_MISSES, READ_AHEAD_HIT_BYTES, READ_AHEAD_WASTED_BYTES,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Upper bounds of the buckets of latencies, in milliseconds. The last bucket has none.
const BOUNDS: [u64; 20] =
    [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1_000, 2_000, 5_000, 20_000];

/// A store's counters for all files of a process: requests by operation, and failures by reason. The last name of each
/// list includes all others.
#[derive(Debug)]
pub struct RequestCounts<const OPERATIONS: usize, const REASONS: usize> {
    operations: [&'static str; OPERATIONS],
    requests: [Requests; OPERATIONS],
    reasons: [&'static str; REASONS],
    failed: [Counter; REASONS],
}

/// The requests of one operation.
#[derive(Debug)]
struct Requests {
    attempts: Counter,
    retries: Counter,
    /// By the kind of the response: none, 2xx, 3xx, 4xx, 5xx.
    outcomes: [Counter; 5],
    microseconds: Counter,
    latencies: [Counter; BOUNDS.len() + 1],
}

impl<const OPERATIONS: usize, const REASONS: usize> RequestCounts<OPERATIONS, REASONS> {
    /// Creates counts that are all 0.
    pub const fn new(
        operations: [&'static str; OPERATIONS],
        reasons: [&'static str; REASONS],
    ) -> Self {
        Self {
            operations,
            requests: [const { Requests::new() }; OPERATIONS],
            reasons,
            failed: [const { Counter::new() }; REASONS],
        }
    }

    /// Counts attempt `number` of a request: how long the head of its response took, and its status. `None`: there was
    /// no response.
    pub fn attempt(&self, operation: &str, number: u32, latency: Duration, status: Option<u16>) {
        let index = self.operations.iter().position(|&known| known == operation);
        let requests = &self.requests[index.unwrap_or(OPERATIONS - 1)];
        requests.attempts.add(1);
        if number > 1 {
            requests.retries.add(1);
        }
        let kind = match status {
            None => 0,
            Some(..300) => 1,
            Some(300..400) => 2,
            Some(400..500) => 3,
            Some(500..) => 4,
        };
        requests.outcomes[kind].add(1);
        requests.microseconds.add(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
        let bucket = BOUNDS.iter().position(|&bound| latency <= Duration::from_millis(bound));
        requests.latencies[bucket.unwrap_or(BOUNDS.len())].add(1);
    }

    /// Returns whether failures of this name have their own count.
    pub fn has_reason(&self, name: &str) -> bool {
        self.reasons.contains(&name)
    }

    /// Counts a request that failed after all attempts.
    pub fn failed(&self, reason: &str) {
        let index = self.reasons.iter().position(|&known| known == reason);
        self.failed[index.unwrap_or(REASONS - 1)].add(1);
    }

    /// Returns all counts since the process began, and the engine's. The memory budget is in bytes.
    pub fn json(&self, budget_used: usize, budget_limit: usize) -> Map<String, Value> {
        let named = self.operations.iter().zip(&self.requests);
        let requests: Map<String, Value> = named
            .filter_map(|(&name, requests)| Some((name.to_owned(), requests.json()?)))
            .collect();
        let failed: Map<String, Value> = self
            .reasons
            .iter()
            .zip(&self.failed)
            .filter(|(_, n)| n.get() > 0)
            .map(|(&name, n)| (name.to_owned(), n.get().into()))
            .collect();
        let total = |of: fn(&Requests) -> &Counter| -> u64 {
            self.requests.iter().map(|requests| of(requests).get()).sum()
        };
        let all = json!({
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
            "disk_cache": {
                "hits": DISK_CACHE_HITS.get(),
                "misses": DISK_CACHE_MISSES.get(),
                "hit_bytes": DISK_CACHE_HIT_BYTES.get(),
                "stored_bytes": DISK_CACHE_STORED_BYTES.get(),
                "evictions": DISK_CACHE_EVICTIONS.get(),
                "broken": DISK_CACHE_BROKEN.get(),
            },
            "memory_budget": { "used_bytes": budget_used, "limit_bytes": budget_limit },
        });
        match all {
            Value::Object(all) => all,
            _ => Map::new(),
        }
    }
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

    fn json(&self) -> Option<Value> {
        let latencies: Vec<u64> = self.latencies.iter().map(Counter::get).collect();
        let count: u64 = latencies.iter().sum();
        if count == 0 {
            return None;
        }
        let outcomes: Map<String, Value> = ["none", "2xx", "3xx", "4xx", "5xx"]
            .into_iter()
            .zip(&self.outcomes)
            .map(|(kind, n)| (kind.to_owned(), n.get().into()))
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
                    .collect::<BTreeMap<_, _>>(),
            },
        }))
    }
}

/// Returns the upper bound of the bucket that holds the percentile `share` of the requests.
fn percentile(latencies: &[u64], share: f64) -> Option<u64> {
    let count: u64 = latencies.iter().sum();
    let wanted = ((count as f64) * share).ceil().max(1.0) as u64;
    let mut seen = 0;
    latencies.iter().zip(BOUNDS).find_map(|(&n, bound)| {
        seen += n;
        (seen >= wanted).then_some(bound)
    })
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
        let counts = RequestCounts::new(["get", "other"], ["timeout", "other"]);
        counts.attempt("get", 1, Duration::from_millis(12), Some(200));
        counts.attempt("get", 2, Duration::from_millis(40), Some(503));
        counts.attempt("get", 3, Duration::from_secs(60), None);
        counts.attempt("Unheard", 1, Duration::ZERO, Some(404));
        counts.failed("Unheard");
        assert!(counts.has_reason("timeout") && !counts.has_reason("Unheard"));
        let json = counts.json(5, 7);
        let requests = &json["requests"]["get"];
        assert_eq!(requests["attempts"], 3);
        assert_eq!(requests["retries"], 2);
        assert_eq!(requests["answers"], json!({"none": 1, "2xx": 1, "3xx": 0, "4xx": 0, "5xx": 1}));
        assert_eq!(requests["latency_ms"]["sum"], 60_052);
        assert_eq!(requests["latency_ms"]["buckets"], json!({"15": 1, "50": 1, "more": 1}));
        assert_eq!(requests["latency_ms"]["p50_at_most"], 50);
        assert_eq!(requests["latency_ms"]["p99_at_most"], Value::Null);
        assert_eq!(json["requests"]["other"]["answers"]["4xx"], 1);
        assert_eq!((json["attempts"].as_u64(), json["retries"].as_u64()), (Some(4), Some(2)));
        assert_eq!(json["failed"], json!({"other": 1}));
        assert_eq!(json["memory_budget"], json!({"used_bytes": 5, "limit_bytes": 7}));
    }
}
