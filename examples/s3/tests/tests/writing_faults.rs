//! Every fault at every request of writing: "fail the k-th request", for each way to write, each kind of fault, and
//! each k.
//!
//! After each, the answer is OK and the object is the new one, or an error with the code that the fault stands for
//! and the object is one that was published before; nobody ever sees part of one; no upload is left; all of it within
//! a bounded time.

use s3_server::{Fault, Gate, Options, Reply, What, When};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tf_fs_plugin::{Code, Result};
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
    // Of a huge document or a slow answer that comes in the end, the time to read it counts.
    let is_slow = matches!(kind.what, What::HugeXml(_) | What::SlowHead(_));
    check(took < LIMIT || is_slow, format!("took {took:?}"));
    // Appending begins with HEAD, whose answer has no body to say what is wrong.
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
    // Any region may sign for the bucket; another one makes the plugin begin anew.
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
        .filter(|(op, log, kind)| {
            let name = format!("{} / {}", op.name, kind.name);
            name.contains(&only) && log.iter().any(|operation| kind.on.includes(operation))
        })
        .collect();
    let (next, cases) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(|| {
                while let Some((op, log, kind)) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let places: Vec<_> = match persistent {
                        true => vec![None],
                        false => (1..).zip(log.iter().copied()).map(Some).collect(),
                    };
                    for at in places {
                        if at.is_some_and(|(_, operation)| !kind.on.includes(operation)) {
                            continue;
                        }
                        let Some(wrong) = try_one(store, op, log, kind, at) else { break };
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
    assert!(!only.is_empty() || cases > 100, "only {cases} cases");
}

#[test]
fn one_request_fails() {
    sweep("writing-fault", false);
}

#[test]
fn all_requests_fail() {
    sweep("writing-faults", true);
}

fn write_parts(store: &Store) -> Result<()> {
    create(store, &[&new(11 * MIB)], false)
}

fn impatient(topic: &str) -> Store {
    Store::with(topic, &PATIENCE)
}

#[test]
fn a_completion_that_was_done_but_not_acknowledged_is_done() {
    for fast in [true, false] {
        for checksums in ["when_supported", "when_required"] {
            if fast && checksums == "when_required" {
                // Neither a checksum nor an MD5: nothing to know one's own object by.
                continue;
            }
            let settings: Vec<_> =
                PATIENCE.iter().copied().chain([("checksums", checksums)]).collect();
            let store =
                Store::start("writing-ack", Options { fast, ..Options::default() }, &settings);
            let lost = [
                What::LoseAck,
                What::DoneThenStatus(Reply::new(500, "InternalError")),
                What::DoneThenStatus(Reply::new(404, "NoSuchUpload")),
            ];
            for what in lost {
                store.put(KEY, "old");
                let fault =
                    Fault::new(When::Nth(1), what.clone()).operation("CompleteMultipartUpload");
                let id = store.inject(fault);
                write_parts(&store)
                    .unwrap_or_else(|error| panic!("{what:?} {checksums}: {error:#}"));
                assert_eq!(store.met(id), 1);
                store.clear_faults();
                assert_eq!(store.get(KEY), Some(new(11 * MIB)));
                assert_eq!(store.open_uploads(), [""; 0]);
            }
        }
    }
}

#[test]
fn an_upload_that_vanished_is_an_error_and_the_old_object_stays() {
    let store = impatient("writing-vanished");
    // The same length as the new one, so that only its content tells.
    store.put(KEY, old(11 * MIB));
    let what = What::status(404, "NoSuchUpload");
    store.inject(Fault::new(When::All, what).operation("CompleteMultipartUpload"));
    let error = write_parts(&store).unwrap_err();
    assert!(error.to_string().contains("NoSuchUpload"), "{error}");
    store.clear_faults();
    assert_eq!(store.get(KEY), Some(old(11 * MIB)));
    assert_eq!(store.open_uploads(), [""; 0]);
}

#[test]
fn a_flush_whose_acknowledgement_was_lost_finds_its_own_object() {
    // The second attempt's condition does not hold: its own first attempt has replaced the object.
    let store = impatient("writing-own");
    for (size, operation) in [(1_000, "PutObject"), (6 * MIB, "CompleteMultipartUpload")] {
        let mut file = host().new_writable_file(store.uri(KEY)).unwrap();
        file.append(&new(size)).unwrap();
        file.flush().unwrap();
        file.append(b"more").unwrap();
        let id = store.inject(Fault::new(When::Nth(1), What::LoseAck).operation(operation));
        file.flush().unwrap();
        assert_eq!(store.met(id), 1);
        store.clear_faults();
        // And it goes on from there.
        file.append(b"and more").unwrap();
        file.close().unwrap();
        assert_eq!(store.get(KEY), Some([&new(size)[..], b"more", b"and more"].concat()));
    }
}

#[test]
fn a_failed_part_is_told_at_once_and_again() {
    let store = impatient("writing-part");
    store.put(KEY, "old");
    store.inject(Fault::new(When::All, What::status(403, "AccessDenied")).operation("UploadPart"));
    let mut file = host().new_writable_file(store.uri(KEY)).unwrap();
    // Told by an append soon after, however small.
    let mut error = file.append(&new(11 * MIB)).err();
    let end = Instant::now() + Duration::from_secs(20);
    while error.is_none() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
        error = file.append(b"x").err();
    }
    let error = error.expect("an append fails");
    assert_eq!(error.code(), Code::PermissionDenied);
    assert!(error.to_string().contains("UploadPart"), "{error}");
    // The upload is gone already, and nothing more is sent.
    assert_eq!(store.open_uploads(), [""; 0]);
    store.clear_faults();
    store.reset_log();
    for again in [file.append(b"x"), file.flush(), file.sync(), file.close(), file.close()] {
        let again = again.unwrap_err();
        assert_eq!(again.code(), Code::PermissionDenied);
        assert!(again.to_string().contains("UploadPart"), "{again}");
    }
    assert_eq!(file.tell().unwrap_err().code(), Code::PermissionDenied);
    drop(file);
    assert_eq!(store.log().len(), 0);
    assert_eq!(store.get(KEY), Some(b"old".to_vec()));
}

#[test]
fn a_small_file_that_could_not_be_stored_can_be_closed_again() {
    let store = impatient("writing-again");
    let id = store.inject(Fault::new(When::All, What::status(503, "SlowDown")));
    let mut file = host().new_writable_file(store.uri(KEY)).unwrap();
    file.append(b"bytes").unwrap();
    assert_eq!(file.close().unwrap_err().code(), Code::Unavailable);
    assert!(store.met(id) > 0);
    store.clear_faults();
    file.close().unwrap();
    assert_eq!(store.get(KEY), Some(b"bytes".to_vec()));
}

#[test]
fn bytes_that_change_on_their_way_are_refused_by_the_store() {
    // What the plugin proves with its checksums, proved with a wrong one.
    let store = impatient("writing-corrupt");
    let what = What::Header("x-amz-checksum-crc32".into(), "AAAAAA==".into());
    for (operation, size) in [("PutObject", 100), ("UploadPart", 11 * MIB)] {
        let id = store.inject(Fault::new(When::Nth(1), what.clone()).operation(operation));
        let error = create(&store, &[&new(size)], false).unwrap_err();
        assert_eq!(error.code(), Code::DataLoss, "{error}");
        assert_eq!(store.met(id), 1);
        store.clear_faults();
        assert_eq!(store.open_uploads(), [""; 0]);
    }
}

#[test]
fn dropping_never_waits_long() {
    let store = Store::with("writing-patience", &[("write_part_bytes", "5MiB")]);
    let gate = Gate::new();
    store
        .inject(Fault::new(When::All, What::Pause(gate.clone())).operation("AbortMultipartUpload"));
    let mut file = host().new_writable_file(store.uri(KEY)).unwrap();
    file.append(&new(11 * MIB)).unwrap();
    let start = Instant::now();
    drop(file);
    let took = start.elapsed();
    assert!(took < Duration::from_millis(1_800), "{took:?}");
    // It goes on in the background.
    assert_eq!(store.open_uploads(), [KEY]);
    gate.open();
    assert!(eventually(Duration::from_secs(5), || store.open_uploads().is_empty()));
}

#[test]
fn an_upload_whose_beginning_is_slow_is_aborted_too() {
    let store = Store::with("writing-slow-start", &[("write_part_bytes", "5MiB")]);
    let gate = Gate::new();
    store.inject(
        Fault::new(When::All, What::PauseDone(gate.clone())).operation("CreateMultipartUpload"),
    );
    let mut file = host().new_writable_file(store.uri(KEY)).unwrap();
    file.append(&new(11 * MIB)).unwrap();
    assert!(gate.wait_for(1, Duration::from_secs(5)));
    drop(file);
    gate.open();
    assert!(eventually(Duration::from_secs(5), || store.open_uploads().is_empty()));
}

#[test]
fn a_transfer_that_breaks_is_tried_again() {
    let store = impatient("writing-fetch");
    store.put(KEY, old(1_000));
    for what in [What::ResetBody(s3_server::At::Middle), What::StallBody(s3_server::At::Middle)] {
        let id = store.inject(Fault::new(When::Nth(1), what).operation("GetObject"));
        let mut file = host().new_appendable_file(store.uri(KEY)).unwrap();
        assert_eq!(store.met(id), 1);
        store.clear_faults();
        file.append(b"more").unwrap();
        file.close().unwrap();
        assert_eq!(store.get(KEY), Some([&old(1_000)[..], b"more"].concat()));
        store.put(KEY, old(1_000));
    }
}

#[test]
fn stores_without_conditions_are_written_without() {
    let store = impatient("writing-unconditional");
    store.set(&[("put_conditions", "auto"), ("complete_conditions", "auto")]);
    let what = What::status(501, "NotImplemented");
    for (size, operation) in [(100, "PutObject"), (6 * MIB, "CompleteMultipartUpload")] {
        let mut file = host().new_writable_file(store.uri(KEY)).unwrap();
        file.append(&new(size)).unwrap();
        file.flush().unwrap();
        file.append(b"more").unwrap();
        let id = store.inject(Fault::new(When::Nth(1), what.clone()).operation(operation));
        file.close().unwrap();
        assert_eq!(store.met(id), 1);
        store.clear_faults();
        assert_eq!(store.get(KEY), Some([&new(size)[..], b"more"].concat()));
    }
}

#[test]
fn whose_object_it_is_is_not_guessed() {
    let store = impatient("writing-whose");
    for (len, request) in [(500, "PutObject"), (6 * MIB, "CompleteMultipartUpload")] {
        let mut file = host().new_writable_file(store.uri(KEY)).unwrap();
        file.append(&new(len)).unwrap();
        file.flush().unwrap();
        file.append(b"more").unwrap();
        // Done, not said, and nobody can look.
        store.inject(Fault::new(When::Nth(1), What::LoseAck).operation(request));
        store.inject(Fault::new(When::All, What::status(503, "SlowDown")).operation("HeadObject"));
        let error = file.close().unwrap_err();
        store.clear_faults();
        let text = format!("{error:#}");
        assert_eq!(error.code(), Code::Unavailable, "{request}: {text}");
        assert!(!text.contains("somebody else replaced"), "{request}: {text}");
        assert_eq!(store.get(KEY), Some([&new(len)[..], b"more"].concat()), "{request}");
    }
}
