//! Every fault at every request: "fail the k-th request", for each operation, each kind of fault, and each k.
//!
//! After each, the result is right or an error with the code of the fault, within a bounded time; what is in the store is
//! what was there before or what the operation makes of it, key by key; nothing is left behind; and without the fault the
//! same operation succeeds.

mod attempt;
mod operation;
mod operations;

use attempt::{requests, try_one};
use operation::Op;
use operations::{operations, writes};
use s3_server::{Options, What};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tf_plugin_conformance_tests::effort::{one_in, unhurried};
use tf_plugin_s3_tests::faults::kinds;
use tf_plugin_s3_tests::{IMPATIENT, Store, host};

/// Runs these operations, each with each kind of fault on the next free store, with these settings besides those of an
/// impatient user. `fast`: without the ETags of S3, by which copies are known.
fn sweep(
    topic: &str,
    persistent: bool,
    operations: Vec<Op>,
    settings: &[(&str, &str)],
    fast: bool,
) {
    const WORKERS: usize = 10;
    let settings = [IMPATIENT, settings].concat();
    let options = Options { threads: 1, fast, ..Options::default() };
    let stores: Vec<_> =
        (0..WORKERS).map(|_| Store::start(topic, options.clone(), &settings)).collect();
    let kinds = kinds();
    let only = std::env::var("S3_SWEEP_ONLY").unwrap_or_default();
    let pairs: Vec<_> = operations
        .iter()
        .flat_map(|op| kinds.iter().map(move |kind| (op, kind)))
        .filter(|(op, kind)| format!("{} / {}", op.name, kind.name).contains(&only))
        .collect();
    let (next, cases) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (failures, times) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let start = Instant::now();
    let plain: Vec<_> = {
        let first = &stores[0];
        operations.iter().map(|op| (op.name, requests(first, op))).collect()
    };
    for (_, log) in &plain {
        if let Err(what) = log {
            failures.lock().expect("no panic").push(what.clone());
        }
    }
    let plain: BTreeMap<_, _> =
        plain.into_iter().filter_map(|(name, log)| Some((name, log.ok()?))).collect();
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((op, kind)) = pairs.get(number) else { break };
                    let Some(log) = plain.get(op.name) else { continue };
                    if !log.iter().any(|operation| kind.on.includes(operation)) {
                        continue;
                    }
                    // A store that says the same wrong length whatever it is asked is believed.
                    if persistent && op.appends && matches!(kind.what, What::ContentLength(_)) {
                        continue;
                    }
                    for k in (1..=log.len() + 8).filter(|k| (op.at)(*k)) {
                        // A kind for some requests only: those that the operation makes at this place.
                        if !persistent
                            && log.get(k - 1).is_some_and(|operation| !kind.on.includes(operation))
                        {
                            continue;
                        }
                        // Of a sample, each operation and each kind of fault has its part.
                        let skipped = match persistent {
                            true => (number / kinds.len() + number % kinds.len()) % one_in(5),
                            false => {
                                (k + number / kinds.len() + number % kinds.len())
                                    % op.sample.max(one_in(8))
                            }
                        };
                        if skipped != 0 && only.is_empty() {
                            if persistent {
                                break;
                            }
                            continue;
                        }
                        // An operation that changes nothing may list at any request, and repeat one.
                        let is_listing = op.moves.is_empty()
                            || log.get(k - 1).is_none_or(|name| *name == "ListObjectsV2");
                        let is_refused = is_listing && kind.is_refusal();
                        if !persistent && op.needs_listing && is_refused {
                            continue;
                        }
                        let k = (!persistent).then_some(k);
                        let tried =
                            unhurried(|| try_one(store, op, kind, k, log), |(wrong, _)| wrong);
                        let Some((wrong, took)) = tried else { break };
                        cases.fetch_add(1, Ordering::Relaxed);
                        let place = k.map_or("all".into(), |k| format!("request {k}"));
                        times
                            .lock()
                            .expect("no panic")
                            .push((took, format!("{} / {} / {place}", op.name, kind.name)));
                        let mut failures = failures.lock().expect("no panic");
                        failures.extend(
                            wrong.into_iter().map(|what| {
                                format!("{} / {} / {place}: {what}", op.name, kind.name)
                            }),
                        );
                        if persistent {
                            break;
                        }
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("no panic");
    failures.sort();
    let cases = cases.into_inner();
    let mut times = times.into_inner().expect("no panic");
    times.sort();
    println!(
        "{cases} cases in {:?}; the slowest: {:#?}",
        start.elapsed(),
        &times[times.len().saturating_sub(8)..]
    );
    assert!(failures.is_empty(), "{} of {cases} cases:\n{}", failures.len(), failures.join("\n"));
    assert!(!only.is_empty() || cases > 30, "only {cases} cases");
    assert_eq!(host().take_violations(), [], "the rules of the C boundary");
}

const READS: [(&str, &str); 2] = [("read_part_bytes", "65536"), ("read_concurrency", "4")];

/// A busy machine takes a while to take a part.
const WRITES: [(&str, &str); 3] =
    [("connect_timeout_ms", "2500"), ("stall_timeout_ms", "2500"), ("write_part_bytes", "5MiB")];

#[test]
fn each_fault_at_each_request() {
    sweep("faults", false, operations(), &READS, false);
}

#[test]
fn each_fault_at_all_requests() {
    sweep("lasting-faults", true, operations(), &READS, false);
}

#[test]
fn a_fault_at_each_request_of_a_write() {
    sweep("writing-fault", false, writes(), &WRITES, true);
}

#[test]
fn a_fault_at_all_requests_of_a_write() {
    sweep("writing-faults", true, writes(), &WRITES, true);
}
