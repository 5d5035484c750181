//! Every fault at every request of writing: "fail the k-th request", for each way to write, each kind of fault, and
//! each k.
//!
//! After each, the result is OK and the object is the new one, or an error with the code of the fault
//! and the object is one that was published before; no process ever sees part of one; no upload is left; all of it within
//! a bounded time.

mod failures;

use s3_server::{Fault, What, When};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tf_fs_plugin::{Code, Result};
use tf_plugin_conformance_tests::effort::{one_in, unhurried};
use tf_plugin_s3_tests::faults::{Expect, Kind, On, kinds};
use tf_plugin_s3_tests::{Store, content, eventually, host};

const MIB: usize = 1 << 20;
const KEY: &str = "file";

/// A way to write.
struct Op {
    name: &'static str,
    /// What is there before.
    before: usize,
    run: fn(&Store) -> Result<()>,
    /// Everything that is published on the way, in its order.
    published: fn() -> Vec<Vec<u8>>,
}

fn old(len: usize) -> Vec<u8> {
    content(len, 99)
}

fn new(len: usize) -> Vec<u8> {
    content(len, 1)
}

fn create(store: &Store, pieces: &[&[u8]], flush: bool) -> Result<()> {
    let mut file = host().new_writable_file(store.uri(KEY))?;
    for piece in pieces {
        file.append(piece)?;
        if flush {
            file.flush()?;
        }
    }
    file.close()
}

fn append(store: &Store, bytes: &[u8]) -> Result<()> {
    let mut file = host().new_appendable_file(store.uri(KEY))?;
    file.append(bytes)?;
    file.close()
}

const OPERATIONS: [Op; 6] = [
    Op {
        name: "small file",
        before: 10,
        run: |store| create(store, &[&new(1_000)], false),
        published: || vec![new(1_000)],
    },
    Op {
        name: "three parts",
        before: 10,
        run: |store| create(store, &[&new(11 * MIB)], false),
        published: || vec![new(11 * MIB)],
    },
    Op {
        name: "small flushes",
        before: 10,
        run: |store| create(store, &[&new(1_000)[..500], &new(1_000)[500..]], true),
        published: || vec![new(1_000)[..500].to_vec(), new(1_000)],
    },
    Op {
        name: "flush and go on after 6 MiB",
        before: 10,
        run: |store| create(store, &[&new(7 * MIB)[..6 * MIB], &new(7 * MIB)[6 * MIB..]], true),
        published: || vec![new(7 * MIB)[..6 * MIB].to_vec(), new(7 * MIB)],
    },
    Op {
        name: "append to a small file",
        before: 1_000,
        run: |store| append(store, &new(10)),
        published: || vec![[old(1_000), new(10)].concat()],
    },
    Op {
        name: "append to a large file",
        before: 6 * MIB,
        run: |store| append(store, &new(10)),
        published: || vec![[old(6 * MIB), new(10)].concat()],
    },
];

/// Faults are met within milliseconds, hanging requests given up soon, but not before a busy machine has taken a part.
const PATIENCE: [(&str, &str); 5] = [
    ("max_attempts", "3"),
    ("connect_timeout_ms", "2500"),
    ("stall_timeout_ms", "2500"),
    ("listing_ttl_ms", "0"),
    ("write_part_bytes", "5MiB"),
];

/// Three attempts, each given up after the stall timeout, the waits between, the question what became of it, and
/// the end of the upload.
const LIMIT: Duration = Duration::from_secs(30);

/// One way to write with one fault; all that is wrong. `None` if the fault met nothing.
fn try_one(
    store: &Store,
    op: &Op,
    log: &[&str],
    kind: &Kind,
    at: Option<(usize, &str)>,
) -> Option<Vec<String>> {
    let before = old(op.before);
    store.put(KEY, before.clone());
    if let What::Status(_) = &kind.what
        && (kind.name.contains("region") || kind.name.starts_with("301"))
    {
        // Where the bucket is has to be found out each time: the plugin remembers it.
        forget_region(store);
    }
    if matches!(kind.what, What::Refuse) {
        // Only new connections are refused.
        store.reset_connections();
    }
    let (faults, expect): (Vec<_>, _) = match at {
        Some((k, _)) => {
            (vec![store.inject(Fault::new(When::Nth(k), kind.what.clone()))], kind.once)
        }
        None if kind.on == On::Any => {
            (vec![store.inject(Fault::new(When::All, kind.what.clone()))], kind.always)
        }
        None => {
            let operations: BTreeSet<_> =
                log.iter().filter(|operation| kind.on.includes(operation)).collect();
            let faults = operations.into_iter().map(|operation| {
                store.inject(Fault::new(When::All, kind.what.clone()).operation(operation))
            });
            (faults.collect(), kind.always)
        }
    };
    let start = Instant::now();
    let answer = (op.run)(store);
    let took = start.elapsed();
    let met = faults.into_iter().any(|fault| store.met(fault) > 0);
    store.clear_faults();
    if !met {
        return None;
    }
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            wrong.push(what);
        }
    };
    // Of a huge document or a slow response that comes in the end, the time to read it counts.
    let is_slow = matches!(kind.what, What::HugeXml(_) | What::SlowHead(_));
    check(took < LIMIT || is_slow, format!("took {took:?}"));
    // Appending begins with HEAD, whose response has no body to say what is wrong.
    let asks_first = log.first() == Some(&"HeadObject") && at.is_none_or(|(k, _)| k == 1);
    let also: &[Code] = match kind.what {
        // Nor which name it does not know: then a file is made, and that finds the object.
        What::Status(_) if asks_first && kind.name == "no bucket" => &[Code::FailedPrecondition],
        What::Status(_) if asks_first && kind.name == "expired token" => &[Code::InvalidArgument],
        // The store, which knows the length, finds that the parts have another.
        What::ContentLength(_) if asks_first => &[Code::InvalidArgument],
        // Completed, but too late to hear of it; and asking what became of it takes as long.
        What::SlowHead(_) => &[Code::Unavailable],
        _ => &[],
    };
    let allowed = match (expect, answer.as_ref().map_err(tf_fs_plugin::Error::code)) {
        (Expect::Right | Expect::RightOr(_), Ok(())) => true,
        (Expect::Error(_), Ok(())) | (Expect::Right, Err(_)) => false,
        (Expect::RightOr(codes) | Expect::Error(codes), Err(code)) => {
            codes.contains(&code) || also.contains(&code)
        }
    };
    let said = match &answer {
        Ok(()) => "OK".to_owned(),
        Err(error) => format!("{:?}: {error:#}", error.code()),
    };
    check(allowed, format!("{said}; wanted {expect:?}"));
    // A store that says the same wrong length whatever it is asked is believed.
    let lies = at.is_none() && matches!(kind.what, What::ContentLength(_));
    let published = (op.published)();
    let is = store.get(KEY);
    let len = is.as_ref().map(Vec::len);
    if answer.is_ok() {
        check(
            is.as_ref() == published.last() || lies,
            format!("OK, but the object has {len:?} bytes"),
        );
    } else {
        let is_whole =
            is == Some(before) || published.iter().any(|version| is.as_ref() == Some(version));
        check(is_whole || lies, format!("the object has {len:?} bytes"));
    }
    // An upload whose beginning was not acknowledged nobody knows; it has no parts and costs nothing. And while
    // everything fails none can be ended.
    let abandoned = || {
        let uploads = store.uploads(store.bucket()).into_iter();
        uploads.filter(|upload| !upload.parts.is_empty()).count()
    };
    if at.is_some() {
        let none_left = eventually(Duration::from_secs(5), || abandoned() == 0);
        check(none_left, format!("{} uploads are left ({said})", abandoned()));
    }
    Some(wrong)
}

fn forget_region(store: &Store) {
    // Any region may sign for the bucket; another one makes the plugin begin again.
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    store.set(&[("region", &format!("nowhere-{}", NEXT.fetch_add(1, Ordering::Relaxed)))]);
}

fn sweep(topic: &str, persistent: bool) {
    const WORKERS: usize = 6;
    let stores: Vec<_> = (0..WORKERS).map(|_| Store::with(topic, &PATIENCE)).collect();
    let kinds = kinds();
    let only = std::env::var("S3_SWEEP_ONLY").unwrap_or_default();
    let logs = OPERATIONS.map(|op| {
        stores[0].put(KEY, old(op.before));
        stores[0].reset_log();
        (op.run)(&stores[0]).unwrap();
        assert_eq!(stores[0].get(KEY).as_ref(), (op.published)().last(), "{}", op.name);
        stores[0].log().iter().map(|request| request.operation).collect::<Vec<_>>()
    });
    let pairs: Vec<_> = OPERATIONS
        .iter()
        .zip(&logs)
        .flat_map(|(op, log)| kinds.iter().map(move |kind| (op, log, kind)))
        .enumerate()
        .filter(|(_, (op, log, kind))| {
            let name = format!("{} / {}", op.name, kind.name);
            name.contains(&only) && log.iter().any(|operation| kind.on.includes(operation))
        })
        .collect();
    let (next, cases) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(|| {
                while let Some((number, (op, log, kind))) =
                    pairs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let places: Vec<_> = match persistent {
                        true => vec![None],
                        false => (1..).zip(log.iter().copied()).map(Some).collect(),
                    };
                    for at in places {
                        if at.is_some_and(|(_, operation)| !kind.on.includes(operation)) {
                            continue;
                        }
                        // Of a sample, each operation and each kind of fault has its part.
                        let place =
                            number / kinds.len() + number % kinds.len() + at.map_or(0, |(k, _)| k);
                        if !place.is_multiple_of(one_in(if persistent { 3 } else { 5 }))
                            && only.is_empty()
                        {
                            continue;
                        }
                        let tried = unhurried(|| try_one(store, op, log, kind, at), |wrong| wrong);
                        let Some(wrong) = tried else { break };
                        cases.fetch_add(1, Ordering::Relaxed);
                        let mut failures = failures.lock().unwrap();
                        failures.extend(
                            wrong.into_iter().map(|what| {
                                format!("{} / {} / {at:?}: {what}", op.name, kind.name)
                            }),
                        );
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    let cases = cases.into_inner();
    assert!(failures.is_empty(), "{} of {cases} cases:\n{}", failures.len(), failures.join("\n"));
    assert!(!only.is_empty() || cases > 60 / one_in(2), "only {cases} cases");
}

#[test]
fn one_request_fails() {
    sweep("writing-fault", false);
}

#[test]
fn all_requests_fail() {
    sweep("writing-faults", true);
}
