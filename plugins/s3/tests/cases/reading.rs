//! What reads send to the store. How they behave is tested on the memory store of the engine.

use s3_server::{At, Fault, Reply, What, When};
use std::time::Duration;
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{Store, content, counts, eventually, host};

const MIB: usize = 1 << 20;

/// All of a file, by reads of `n` bytes, as TensorFlow's buffered streams make them.
fn read_by(store: &Store, key: &str, n: usize) -> Vec<u8> {
    let file = host().new_random_access_file(store.uri(key)).unwrap();
    let mut bytes = Vec::new();
    loop {
        let read = file.read(bytes.len() as u64, n).unwrap();
        bytes.extend_from_slice(&read);
        if read.len() < n {
            return bytes;
        }
    }
}

#[test]
fn a_file_is_read_by_ranged_gets_alone() {
    let store = Store::new("ranges");
    for (len, n, most) in [(0, 10, 1), (MIB, 1000, 1), (64 * MIB, MIB, 10), (64 * MIB, 65 * MIB, 9)]
    {
        // What is remembered of another object would cost a request.
        let key = format!("{len}-by-{n}");
        store.put(&key, content(len, 3));
        let (read, requests) = store.requests(|| read_by(&store, &key, n));
        assert!(read == content(len, 3), "{len} by {n}");
        assert!(requests["GetObject"] <= most && requests.len() == 1, "{len} by {n}: {requests:?}");
    }
}

#[test]
fn only_what_is_missing_is_requested_again() {
    let store = Store::new("rest");
    let body = content(MIB, 9);
    store.put("f", body.clone());
    store.inject(Fault::new(When::Nth(1), What::CutBody(At::Byte(300_000))));
    assert!(read_by(&store, "f", 2 * MIB) == body);
    let again = &store.log()[1];
    assert!(again.headers["range"].starts_with("bytes=300000-"), "{again:?}");
    let etag = store.stat(store.bucket(), "f").unwrap().etag;
    assert_eq!(again.headers["if-match"], format!("\"{etag}\""));
}

#[test]
fn connections_are_used_again() {
    let store = Store::new("kept");
    store.put("f", content(1000, 1));
    for _ in 0..20 {
        read_by(&store, "f", 2000);
    }
    let log = store.log();
    let connections: std::collections::BTreeSet<_> =
        log.iter().map(|request| request.connection).collect();
    assert!(connections.len() <= 2, "{connections:?}");
    // All of them closed by the store: no read notices.
    store.reset_connections();
    store.inject(Fault::new(When::Nth(3), What::ResetOnReuse));
    for _ in 0..5 {
        assert_eq!(read_by(&store, "f", 2000).len(), 1000);
    }
}

#[test]
fn a_file_that_is_closed_stops_its_requests() {
    let store = Store::new("closed");
    store.put("f", content(64 * MIB, 1));
    store.shape(s3_server::Shape {
        bytes_per_second_per_connection: Some(20_000_000),
        ..Default::default()
    });
    let file = host().new_random_access_file(store.uri("f")).unwrap();
    file.read(0, 2 * MIB).unwrap();
    drop(file);
    let is_quiet = || store.log().iter().all(|request| request.duration.is_some());
    assert!(eventually(Duration::from_secs(1), is_quiet), "requests go on");
}

#[test]
fn a_wrong_region_is_corrected() {
    let store = Store::new("region");
    let body = content(100_000, 1);
    store.put("f", body.clone());
    store.inject(Fault::new(When::Nth(1), What::Status(Reply::redirect(301, "eu-west-1"))));
    let (read, requests) = store.requests(|| read_by(&store, "f", MIB));
    assert!(read == body);
    assert_eq!(requests, counts([("GetObject", 2)]));
}

#[test]
fn a_second_read_from_the_disk_cache_is_one_request_of_one_byte() {
    let directory = tempfile::tempdir().unwrap();
    let cache = format!("{}:1GiB", directory.path().display());
    let store = Store::with("disk", &[("disk_cache", &cache), ("listing_ttl_ms", "0")]);
    store.put("f", content(3 * MIB, 1));
    assert!(read_by(&store, "f", MIB) == content(3 * MIB, 1));
    // Blocks are written after they were read.
    let is_cached = || {
        let (read, requests) = store.requests(|| read_by(&store, "f", MIB));
        assert!(read == content(3 * MIB, 1));
        requests == counts([("GetObject", 1)]) && store.log()[0].bytes_out == 1
    };
    assert!(eventually(Duration::from_secs(20), is_cached));
    // One who is denied reads nothing of it.
    store.set(&[("access_key_id", "wrong"), ("secret_access_key", "wrong")]);
    let error = host().new_random_access_file(store.uri("f")).map(drop).unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied, "{error}");
}
