//! Objects that are appended to while they are open, as TensorBoard reads event files.

use std::time::Duration;
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{Store, host};

fn store(topic: &str, ttl: &str) -> Store {
    Store::with(topic, &[("listing_ttl_ms", ttl)])
}

#[test]
fn a_reader_at_the_end_sees_what_is_appended() {
    let store = store("growth-seen", "0");
    for len in [0, 1, 11, 5000, 300_000] {
        let mut content: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        store.put("events", content.clone());
        let file = host().new_random_access_file(store.uri("events")).unwrap();
        assert_eq!(file.read(0, 1 << 20).unwrap(), content);
        assert_eq!(file.read(content.len() as u64, 100).unwrap(), b"");
        for round in 0..3 {
            let old = content.len() as u64;
            content.extend_from_slice(format!("round {round}").as_bytes());
            store.put("events", content.clone());
            assert_eq!(file.read(old, 100).unwrap(), &content[old as usize..], "{len} {round}");
            assert_eq!(file.read(0, 1 << 20).unwrap(), content, "{len} {round}");
            assert_eq!(file.read(content.len() as u64, 100).unwrap(), b"");
        }
    }
}

#[test]
fn any_other_change_is_an_error() {
    let store = store("growth-other", "0");
    for other in ["ever so different and longer", "short"] {
        store.put("events", "what was there");
        let file = host().new_random_access_file(store.uri("events")).unwrap();
        assert_eq!(file.read(0, 100).unwrap(), b"what was there");
        store.put("events", other);
        let error = file.read(14, 100).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    }
    // Deleted: it ends where it ended.
    store.put("events", "what was there");
    let file = host().new_random_access_file(store.uri("events")).unwrap();
    assert_eq!(file.read(0, 100).unwrap(), b"what was there");
    store.delete(store.bucket(), "events");
    assert_eq!(file.read(14, 100).unwrap(), b"");
}

#[test]
fn reading_to_the_end_once_asks_nothing_more() {
    let store = store("growth-once", "1000");
    store.put("file", "content");
    let (_, counts) = store.requests(|| {
        let file = host().new_random_access_file(store.uri("file")).unwrap();
        for _ in 0..5 {
            assert_eq!(file.read(0, 100).unwrap(), b"content");
            assert_eq!(file.read(7, 100).unwrap(), b"");
        }
    });
    assert_eq!(counts.values().sum::<usize>(), 1, "{counts:?}");
}

#[test]
fn what_was_remembered_of_an_object_is_not_held_against_it() {
    let store = store("growth-remembered", "3600000");
    for key in ["listed", "asked"] {
        store.put(key, "old");
    }
    host().get_children(store.uri("")).unwrap();
    host().stat(store.uri("asked")).unwrap();
    for key in ["listed", "asked"] {
        store.put(key, "new and longer");
        let file = host().new_random_access_file(store.uri(key)).unwrap();
        assert_eq!(file.read(0, 100).unwrap(), b"new and longer", "{key}");
        // From now on it is one version.
        store.put(key, "newer still, and longer again");
        let error = file.read(3, 100).map(|_| ());
        assert!(error.is_ok() || error.unwrap_err().code() == Code::FailedPrecondition);
    }
}

#[test]
fn what_is_appended_to_a_remembered_object_is_seen() {
    let ttl = Duration::from_millis(500);
    let store = store("growth-appended", "500");
    let mut content: Vec<u8> = (0..20_000).map(|i| (i % 251) as u8).collect();
    store.put("events", content.clone());
    host().stat(store.uri("events")).unwrap();
    let file = host().new_random_access_file(store.uri("events")).unwrap();
    // The first read of all is at the end.
    for _ in 0..3 {
        let end = content.len() as u64;
        assert_eq!(file.read(end, 100).unwrap(), b"");
        content.extend_from_slice(b"more");
        store.put("events", content.clone());
        std::thread::sleep(ttl);
        assert_eq!(file.read(end, 100).unwrap(), b"more");
    }
    assert_eq!(file.read(0, 1 << 20).unwrap(), content);
}
