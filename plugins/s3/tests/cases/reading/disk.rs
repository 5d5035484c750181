//! The disk cache, over the protocol.

use super::{MIB, gets, read_by, summary};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use tf_plugin_s3_tests::child::alone;
use tf_plugin_s3_tests::{Store, content, eventually, host, this_test};

fn store(topic: &str) -> (Store, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let cache = format!("{}:1GiB", directory.path().display());
    (Store::with(topic, &[("disk_cache", &cache), ("listing_ttl_ms", "0")]), directory)
}

/// The files of the blocks that are written.
fn blocks(directory: &TempDir) -> Vec<PathBuf> {
    let folders = fs::read_dir(directory.path().join("tf-disk-cache-1")).unwrap();
    let folders = folders.flatten().filter(|folder| folder.file_name() != "new");
    let files = folders.filter_map(|folder| fs::read_dir(folder.path()).ok()).flatten();
    files.flatten().map(|file| file.path()).collect()
}

/// Waits until so many blocks are written.
fn kept(directory: &TempDir, count: usize) {
    assert!(eventually(Duration::from_secs(20), || blocks(directory).len() == count));
}

#[test]
fn a_second_reading_is_one_request_of_one_byte() {
    let (store, directory) = store("disk");
    for (key, size) in [("small", 1000), ("whole", 3 * MIB), ("large", 40 * MIB + 5)] {
        store.put(key, content(size, 1));
    }
    // The last ones are what TensorFlow reads from `s3://` at once.
    for (n, round) in [300_000, 300_000, 127 * MIB, 127 * MIB].into_iter().zip(0..) {
        for (key, size) in [("small", 1000), ("whole", 3 * MIB), ("large", 40 * MIB + 5)] {
            let (read, counts) = store.requests(|| read_by(&store, key, n));
            assert!(read == content(size, 1), "{key}");
            if round > 0 {
                assert_eq!(gets(&counts), 1, "{key}{}", summary(&store));
                assert_eq!(store.log()[0].bytes_out, 1, "{key}");
            }
        }
        kept(&directory, 1 + 3 + 41);
    }
    // Another one of the same length.
    store.put("whole", content(3 * MIB, 2));
    assert!(read_by(&store, "whole", MIB) == content(3 * MIB, 2));
}

#[test]
fn one_read_is_one_file_of_its_own() {
    let (store, directory) = store("disk-parts");
    let body = content(30 * MIB, 1);
    store.put("f", body.clone());
    assert!(read_by(&store, "f", 127 * MIB) == body);
    kept(&directory, 30);
    // Nobody reads it any more, and one who is denied reads nothing of it.
    store.set(&[("access_key_id", "wrong"), ("secret_access_key", "wrong")]);
    let error = host().new_random_access_file(store.uri("f")).map(drop).unwrap_err();
    assert_eq!(error.code(), tf_fs_plugin::Code::PermissionDenied, "{error}");
}

#[test]
fn it_is_counted() {
    alone(this_test!(), || {
        let (store, directory) = store("disk-metrics");
        store.put("f", content(3 * MIB, 1));
        for _ in 0..2 {
            read_by(&store, "f", MIB);
            kept(&directory, 3);
        }
        let count = |name: &str| {
            let text = host().read_file("s3:///metrics.json").unwrap();
            let metrics: Value = serde_json::from_slice(&text).unwrap();
            metrics["disk_cache"][name].as_u64().unwrap()
        };
        assert_eq!(count("hits"), 3);
        assert_eq!(count("hit_bytes"), 3 * MIB as u64);
        // A block is counted when its file is there.
        let are_counted = || count("stored_bytes") >= 3 * MIB as u64;
        assert!(eventually(Duration::from_secs(20), are_counted), "{}", count("stored_bytes"));
        // One of them is the first, without which nothing is looked for.
        for block in blocks(&directory) {
            fs::remove_file(block).unwrap();
            read_by(&store, "f", MIB);
            kept(&directory, 3);
        }
        assert!(count("misses") >= 2);
        assert_eq!((count("evictions"), count("broken")), (0, 0));
    });
}
