//! Deleting, and making and removing directories.

use s3_server::{Fault, Gate, Shape, What, When};
use std::time::Duration;
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{Store, code, counts, fs};

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
fn a_file_is_deleted_and_nothing_else() {
    let store = Store::new("deleting-file");
    for key in ["ckpt-1", "ckpt-10", "ckpt-1.index", "ckpt-1/x", "d/a"] {
        store.put(key, "x");
    }
    let (answer, requests) = store.requests(|| fs().delete_file(store.uri("ckpt-1")));
    answer.unwrap();
    assert_eq!(requests, counts([("DeleteObject", 1), ("ListObjectsV2", 1)]));
    assert_eq!(store.keys(), ["ckpt-1.index", "ckpt-1/x", "ckpt-10", "d/a"]);
    for (key, expected) in [
        ("ckpt-1", Code::FailedPrecondition),
        ("d", Code::FailedPrecondition),
        ("missing", Code::NotFound),
        ("d/missing", Code::NotFound),
        ("d/", Code::FailedPrecondition),
        ("", Code::FailedPrecondition),
    ] {
        let (answer, requests) = store.requests(|| fs().delete_file(store.uri(key)));
        assert_eq!(code(answer), expected, "{key}");
        assert!(!requests.contains_key("DeleteObject"), "{key}");
    }
    assert_eq!(store.keys().len(), 4);
}

#[test]
fn files_just_listed_are_deleted_with_one_request_each() {
    let store = Store::with("deleting-listed", &[("listing_ttl_ms", "60000")]);
    for n in 0..20 {
        store.put(&format!("d/{n}"), "x");
    }
    let ((), requests) = store.requests(|| {
        for name in fs().get_children(store.uri("d")).unwrap() {
            fs().delete_file(store.uri(&format!("d/{}", String::from_utf8_lossy(&name)))).unwrap();
        }
        assert_eq!(code(fs().delete_file(store.uri("d/none"))), Code::NotFound);
    });
    assert_eq!(requests, counts([("DeleteObject", 20), ("ListObjectsV2", 1)]));
    assert!(store.keys().is_empty());
}

#[test]
fn directories_are_made_once() {
    let store = Store::with("deleting-mkdir", &[("listing_ttl_ms", "0")]);
    store.put("file", "x");
    store.put("implied/x", "x");
    let (answer, requests) = store.requests(|| fs().create_dir(store.uri("new")));
    answer.unwrap();
    assert_eq!(requests, counts([("ListObjectsV2", 1), ("PutObject", 1)]));
    let marker = store.stat(store.bucket(), "new/").unwrap();
    assert_eq!((marker.len, marker.content_type.as_deref()), (0, Some("application/x-directory")));
    for key in ["new", "new/", "file", "implied", "file/"] {
        assert_eq!(code(fs().create_dir(store.uri(key))), Code::AlreadyExists, "{key}");
    }
    assert_eq!(code(fs().create_dir(store.uri(""))), Code::AlreadyExists);
    let (answer, requests) = store.requests(|| fs().recursively_create_dir(store.uri("p/q/r")));
    answer.unwrap();
    assert_eq!(requests, counts([("ListObjectsV2", 1), ("PutObject", 1)]));
    for dir in ["p", "p/q", "p/q/r"] {
        fs().is_directory(store.uri(dir)).unwrap();
    }
    for dir in ["p/q/r", "new/", "implied", ""] {
        let (answer, requests) = store.requests(|| fs().recursively_create_dir(store.uri(dir)));
        answer.unwrap();
        assert_eq!(requests, counts([("ListObjectsV2", 1)]), "{dir}");
    }
    assert_eq!(code(fs().recursively_create_dir(store.uri("file"))), Code::FailedPrecondition);
    assert_eq!(store.keys(), ["file", "implied/x", "new/", "p/q/r/"]);
}

#[test]
fn only_empty_directories_are_removed() {
    let store = Store::new("deleting-rmdir");
    for key in ["marked/", "full/", "full/x", "implied/x", "file", "both", "both/", "nested/sub/"] {
        store.put(key, "");
    }
    let (answer, requests) = store.requests(|| fs().delete_dir(store.uri("marked")));
    answer.unwrap();
    assert_eq!(requests, counts([("DeleteObject", 1), ("ListObjectsV2", 1)]));
    for (key, expected) in [
        ("full", Code::FailedPrecondition),
        ("implied", Code::FailedPrecondition),
        ("nested", Code::FailedPrecondition),
        ("file", Code::FailedPrecondition),
        ("missing", Code::NotFound),
        ("marked", Code::NotFound),
        ("", Code::FailedPrecondition),
    ] {
        assert_eq!(code(fs().delete_dir(store.uri(key))), expected, "{key}");
    }
    fs().delete_dir(store.uri("both/")).unwrap();
    assert_eq!(store.keys(), ["both", "file", "full/", "full/x", "implied/x", "nested/sub/"]);
}

#[test]
fn a_directory_that_this_process_emptied_can_be_removed_once() {
    let store = Store::new("deleting-emptied");
    store.put("tmp/a", "x");
    store.put("tmp/b", "x");
    fs().delete_file(store.uri("tmp/a")).unwrap();
    fs().rename_file(store.uri("tmp/b"), store.uri("final")).unwrap();
    assert_eq!(code(fs().stat(store.uri("tmp"))), Code::NotFound);
    fs().delete_dir(store.uri("tmp")).unwrap();
    assert_eq!(code(fs().delete_dir(store.uri("tmp"))), Code::NotFound);
    assert_eq!(store.keys(), ["final"]);
}

#[test]
fn a_tree_is_deleted_with_one_request_a_thousand() {
    let store = Store::new("deleting-tree");
    for n in 0..500 {
        store.put(&format!("d/{}/{n}", n % 9), "x");
    }
    for key in ["d/", "d-1", "d.x/y", "d", "dd/x"] {
        store.put(key, "x");
    }
    let (answer, requests) = store.requests(|| fs().delete_recursively(store.uri("d/")));
    answer.unwrap();
    assert_eq!(requests, counts([("DeleteObjects", 1), ("ListObjectsV2", 1)]));
    assert_eq!(store.keys(), ["d", "d-1", "d.x/y", "dd/x"]);
    let (answer, requests) = store.requests(|| fs().delete_recursively(store.uri("d")));
    answer.unwrap();
    assert_eq!(requests, counts([("DeleteObject", 1), ("ListObjectsV2", 2)]));
    assert_eq!(store.keys(), ["d-1", "d.x/y", "dd/x"]);
    let left = fs().delete_recursively(store.uri("d")).unwrap_err();
    assert_eq!((left.error.code(), left.files, left.dirs), (Code::NotFound, 0, 1));
    let left = fs().delete_recursively(store.uri("")).unwrap_err();
    assert_eq!(left.error.code(), Code::FailedPrecondition);
    assert!(left.error.message().contains("this would empty the bucket"), "{}", left.error);
    assert_eq!(store.keys().len(), 3);
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
fn what_cannot_be_deleted_is_counted() {
    let store = Store::with("deleting-left", &[("max_attempts", "1")]);
    for key in ["d/a", "d/s/b", "d/s/t/c"] {
        store.put(key, "x");
    }
    store.inject(
        Fault::new(When::All, What::status(403, "AccessDenied")).operation("DeleteObjects"),
    );
    let left = fs().delete_recursively(store.uri("d")).unwrap_err();
    assert_eq!((left.error.code(), left.files, left.dirs), (Code::PermissionDenied, 3, 3));
    assert_eq!(store.keys().len(), 3);
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

#[test]
fn a_tree_is_listed_and_deleted_at_the_same_time() {
    let store = Store::new("deleting-slow");
    for n in 0..4000 {
        store.put(&format!("d/{n}"), "x");
    }
    fs().stat(store.uri("d")).unwrap();
    // Long enough that it does not matter how busy the machine is.
    let latency = Duration::from_millis(500);
    store.shape(Shape { first_byte_latency: latency, ..Shape::default() });
    store.reset_log();
    fs().delete_recursively(store.uri("d")).unwrap();
    // A page is listed while the names of the one before it are deleted.
    assert!(store.counters().peak_in_flight > 1);
    assert!(store.keys().is_empty());
}

#[test]
fn a_tree_that_cannot_be_listed_to_the_end_waits_for_the_deletions_under_way() {
    let store = Store::with("deleting-listing", &[("max_attempts", "1")]);
    for n in 0..1500 {
        store.put(&format!("d/{n:04}"), "x");
    }
    let slow = Gate::new();
    store.inject(Fault::new(When::All, What::Pause(slow.clone())).operation("DeleteObjects"));
    // The second page is refused while the deletion of the first is on its way, which takes a while longer.
    let later = slow.clone();
    let refused = What::run(move |_, _| {
        let later = later.clone();
        assert!(later.wait_for(1, Duration::from_secs(30)));
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            later.open();
        });
    });
    store.inject(Fault::new(When::Nth(2), refused).operation("ListObjectsV2"));
    store.inject(
        Fault::new(When::Nth(2), What::status(403, "AccessDenied")).operation("ListObjectsV2"),
    );
    let left = fs().delete_recursively(store.uri("d")).unwrap_err();
    assert_eq!(left.error.code(), Code::PermissionDenied);
    assert_eq!((store.keys().len(), left.dirs), (500, 1));
}

#[test]
fn files_that_are_being_written_go_with_the_tree() {
    let store = Store::new("deleting-pending");
    store.put("d/a", "x");
    let mut writer = fs().new_writable_file(store.uri("d/b")).unwrap();
    writer.append(b"x").unwrap();
    fs().delete_recursively(store.uri("d")).unwrap();
    writer.close().unwrap();
    drop(writer);
    assert!(store.keys().is_empty());
    assert_eq!(code(fs().stat(store.uri("d/b"))), Code::NotFound);
}
