//! Threads and connections.

use super::{KIB, MIB, gets, open, read_by};
use s3_server::{Fault, Gate, Options, Reply, Shape, Tls, What, When};
use std::sync::Barrier;
use std::time::{Duration, Instant};
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{Store, content, host};

#[test]
fn threads_that_ask_for_the_same_share_a_request() {
    let store = Store::new("shared");
    let body = content(32 * MIB, 9);
    store.put("f", body.clone());
    let file = open(&store, "f");
    store.quiet();
    let gate = Gate::new();
    store.inject(Fault::new(When::All, What::Pause(gate.clone())).operation("GetObject"));
    let barrier = Barrier::new(8);
    let ((), counts) = store.requests(|| {
        std::thread::scope(|threads| {
            for i in 0..8 {
                let (file, body, barrier) = (&file, &body, &barrier);
                threads.spawn(move || {
                    let start = 20 * MIB + if i == 7 { 60_000 } else { 0 };
                    if i > 0 {
                        barrier.wait();
                    }
                    let read = file.read(start as u64, 100_000).unwrap();
                    assert_eq!(read, body[start..start + 100_000]);
                });
            }
            // The first is on its way before the others request a part that overlaps it.
            assert!(gate.wait_for(1, Duration::from_secs(5)));
            barrier.wait();
            barrier_passed(&gate);
        });
    });
    // Six requested the same part, and one a part that overlaps it: only the rest of that is fetched.
    let bytes: u64 = store.log().iter().map(|request| request.bytes_out).sum();
    assert_eq!((gets(&counts), bytes), (2, 160_000));

    /// Lets all requests go once some more had time to come.
    fn barrier_passed(gate: &Gate) {
        std::thread::sleep(Duration::from_millis(200));
        gate.open();
    }
}

#[test]
fn many_threads_read_one_file() {
    let store = Store::with("threads", &[("read_part_bytes", "262144")]);
    let body = content(16 * MIB, 2);
    store.put("f", body.clone());
    let file = open(&store, "f");
    std::thread::scope(|threads| {
        for thread in 0..16 {
            let (file, body) = (&file, &body);
            threads.spawn(move || {
                // Some in sequence, each from a place of its own, some at random.
                let mut place = thread * MIB;
                for i in 0..40 {
                    let n = 1 + (thread * 7_919 + i * 104_729) % 60_000;
                    if thread % 2 == 0 {
                        place = (place * 31 + 777_777) % body.len();
                    }
                    let end = body.len().min(place + n);
                    assert!(file.read(place as u64, n).unwrap() == body[place..end], "{place} {n}");
                    place = if end == body.len() { 0 } else { end };
                }
            });
        }
    });
}

#[test]
fn connections_are_used_again() {
    let store = Store::new("kept");
    store.put("f", content(1_000, 1));
    for _ in 0..20 {
        read_by(&store, "f", 2_000);
    }
    let log = store.log();
    let connections: std::collections::BTreeSet<_> =
        log.iter().map(|request| request.connection).collect();
    assert!(connections.len() <= 2, "{connections:?}");
    // All of them closed by the store: no read notices.
    store.reset_connections();
    store.inject(Fault::new(When::Nth(3), What::ResetOnReuse));
    for _ in 0..5 {
        assert_eq!(read_by(&store, "f", 2_000).len(), 1_000);
    }
}

#[test]
fn a_file_that_is_closed_stops_its_requests() {
    let store = Store::new("closed");
    store.put("f", content(64 * MIB, 1));
    store.shape(Shape { bytes_per_second_per_connection: Some(20_000_000), ..Shape::default() });
    let file = open(&store, "f");
    file.read(0, 2 * MIB).unwrap();
    drop(file);
    let start = Instant::now();
    assert!(store.quiet(), "requests go on after the file was closed");
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn a_wrong_region_is_corrected() {
    let store = Store::new("region");
    let body = content(100_000, 1);
    store.put("f", body.clone());
    store.inject(Fault::new(When::Nth(1), What::Status(Reply::redirect(301, "eu-west-1"))));
    assert!(read_by(&store, "f", MIB) == body);
    assert_eq!(store.log().len(), 2);
}

#[test]
fn tls_is_spoken() {
    let options =
        Options { tls: Some(Tls::default()), fast: true, threads: 1, ..Options::default() };
    let store = Store::start("tls", options, &[]);
    let body = content(20 * MIB, 1);
    store.put("f", body.clone());
    // Not trusted.
    let error = host().new_random_access_file(store.uri("f")).expect_err("an unknown issuer");
    assert_eq!(error.code(), Code::Unavailable, "{error:#}");
    let file = std::env::temp_dir().join(format!("s3-tests-reading-{}.pem", std::process::id()));
    std::fs::write(&file, store.ca_pem().unwrap()).unwrap();
    store.set(&[("ca_file", file.to_str().unwrap())]);
    let (read, counts) = store.requests(|| read_by(&store, "f", 512 * KIB));
    assert!(read == body);
    assert!(gets(&counts) <= 5, "{counts:?}");
    assert!(read_by(&store, "f", 32 * MIB) == body);
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_public_bucket_needs_no_signature() {
    let store = Store::with("public", &[("anonymous", "true")]);
    store.put("f", "public");
    let error = host().new_random_access_file(store.uri("f")).expect_err("not public yet");
    assert_eq!(error.code(), Code::PermissionDenied, "{error:#}");
    store.set_public(store.bucket(), true);
    store.reset_log();
    assert_eq!(read_by(&store, "f", 100), b"public");
    assert!(store.log().iter().all(|request| !request.signed));
}
