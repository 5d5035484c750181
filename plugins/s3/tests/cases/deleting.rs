//! Deletions of trees: keys in XML, and stores that differ.

use s3_server::{Fault, What, When};
use tf_plugin_s3_tests::{Store, counts, fs};

/// Stores that confirm no deletion of several keys: each key is deleted alone.
#[test]
fn what_is_not_confirmed_is_deleted_alone() {
    let store = Store::new("deleting-quiet");
    store.set_quirks(s3_server::Quirks { quiet_deletions: true, ..Default::default() });
    for n in 0..5 {
        store.put(&format!("d/{n}"), "x");
    }
    let (done, requests) = store.requests(|| fs().delete_recursively(store.uri("d")));
    done.unwrap();
    assert_eq!(store.keys(), [""; 0]);
    assert_eq!(requests, counts([("ListObjectsV2", 1), ("DeleteObjects", 1), ("DeleteObject", 5)]));
}

#[test]
fn a_large_tree_is_deleted_page_by_page() {
    let store = Store::new("deleting-large");
    for n in 0..3500 {
        store.put(&format!("d/{n}"), "x");
    }
    let odd = ["d/\u{1}", "d/new\nline", "d/ blank ", "d/<&>\"'", "d/😀", "d//x"];
    for key in odd {
        store.put(key, "x");
    }
    let (answer, requests) = store.requests(|| fs().delete_recursively(store.uri("d")));
    answer.unwrap();
    assert!(store.keys().is_empty());
    // Keys that XML cannot carry go one by one.
    assert_eq!(requests, counts([("DeleteObject", 3), ("DeleteObjects", 4), ("ListObjectsV2", 4)]));
}

#[test]
fn a_store_that_cannot_delete_many_at_a_time() {
    for (status, error) in
        [(501, "NotImplemented"), (405, "MethodNotAllowed"), (400, "MissingContentMD5")]
    {
        let store = Store::with("deleting-single", &[("max_attempts", "1")]);
        for n in 0..30 {
            store.put(&format!("d/{n}"), "x");
        }
        store.inject(Fault::new(When::All, What::status(status, error)).operation("DeleteObjects"));
        let (answer, requests) = store.requests(|| fs().delete_recursively(store.uri("d")));
        answer.unwrap();
        assert!(store.keys().is_empty());
        assert_eq!(requests["DeleteObject"], 30);
    }
}
