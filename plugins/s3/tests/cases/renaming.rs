//! Copies: by one request or in parts, what goes with them, and what their responses prove.

use s3_server::{Fault, Options, Reply, What, When};
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{Store, code, counts, fs};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

#[test]
fn a_copy_is_two_requests_and_a_rename_three() {
    let store = Store::new("renaming-requests");
    for (len, name) in [(0, "empty"), (1, "small"), (100 * MIB + 1, "large")] {
        store.put_sparse(store.bucket(), name, len);
        let (answer, requests) =
            store.requests(|| fs().copy_file(store.uri(name), store.uri("d/copy")));
        answer.unwrap();
        assert_eq!(requests, counts([("CopyObject", 1), ("ListObjectsV2", 1)]), "{name}");
        assert_eq!(store.stat(store.bucket(), "d/copy").unwrap().len, len);
        assert_eq!(store.stat(store.bucket(), name).unwrap().len, len);
        let (answer, requests) =
            store.requests(|| fs().rename_file(store.uri(name), store.uri("d/moved")));
        answer.unwrap();
        assert_eq!(
            requests,
            counts([("CopyObject", 1), ("DeleteObject", 1), ("ListObjectsV2", 1)]),
            "{name}"
        );
        assert_eq!(store.keys(), ["d/copy", "d/moved"]);
        assert_eq!(store.stat(store.bucket(), "d/moved").unwrap().len, len);
    }
}

#[test]
fn what_is_remembered_of_a_source_is_not_said_of_another_one() {
    let store = Store::with("renaming-remembered", &[("listing_ttl_ms", "60000")]);
    store.put("a", "old");
    fs().stat(store.uri("a")).unwrap();
    store.put("a", "new and longer");
    let (answer, requests) = store.requests(|| fs().copy_file(store.uri("a"), store.uri("b")));
    answer.unwrap();
    // The store refuses to copy what it does not have.
    assert_eq!(requests, counts([("CopyObject", 2), ("ListObjectsV2", 1)]));
    assert_eq!(fs().stat(store.uri("b")).unwrap().length, 14);
    assert_eq!(store.get("b").unwrap(), b"new and longer");
}

#[test]
fn exactly_the_source_is_renamed() {
    let store = Store::new("renaming-exact");
    for key in ["ck-1", "ck-10", "ck-1.meta", "ck-1/x", "other"] {
        store.put(key, key);
    }
    fs().rename_file(store.uri("ck-1"), store.uri("other")).unwrap();
    assert_eq!(store.keys(), ["ck-1.meta", "ck-1/x", "ck-10", "other"]);
    assert_eq!(store.get("other").unwrap(), b"ck-1");
    for key in ["a b+c%20é", "new\nline", "x//y", "?q=1&#", "😀"] {
        store.put(key, key);
        fs().copy_file(store.uri(key), store.uri(&format!("copy/{key}"))).unwrap();
        assert_eq!(store.get(&format!("copy/{key}")).unwrap(), key.as_bytes());
        fs().rename_file(store.uri(key), store.uri(&format!("moved/{key}"))).unwrap();
        assert_eq!(store.get(&format!("moved/{key}")).unwrap(), key.as_bytes());
        assert_eq!(store.get(key), None);
    }
}

#[test]
fn what_is_known_of_an_object_is_copied_too() {
    let store = Store::with("renaming-metadata", &[("listing_ttl_ms", "60000")]);
    // Both ways: at once and in parts.
    for len in [10, 300 * MIB] {
        store.put_sparse(store.bucket(), "file", len);
        store.describe(store.bucket(), "file", |info| {
            info.metadata = [("epoch".to_owned(), "7".to_owned())].into();
            info.content_type = Some("application/x-tfrecord".into());
            info.content_encoding = Some("identity".into());
            info.cache_control = Some("no-store".into());
            info.content_disposition = Some("inline".into());
            info.content_language = Some("en".into());
        });
        fs().get_children(store.uri("")).unwrap();
        fs().copy_file(store.uri("file"), store.uri("copy")).unwrap();
        let [file, copy] = ["file", "copy"].map(|key| store.stat(store.bucket(), key).unwrap());
        assert_eq!((copy.len, &copy.metadata), (len, &file.metadata));
        assert_eq!(copy.content_type, file.content_type);
        assert_eq!(copy.content_encoding, file.content_encoding);
        assert_eq!(copy.cache_control, file.cache_control);
        assert_eq!(copy.content_disposition, file.content_disposition);
        assert_eq!(copy.content_language, file.content_language);
        assert_eq!(copy.parts.is_empty(), len == 10);
    }
    let copy = store.stat(store.bucket(), "copy").unwrap();
    assert_eq!(copy.parts, [64 * MIB, 64 * MIB, 64 * MIB, 64 * MIB, 44 * MIB]);
}

#[test]
fn large_objects_are_copied_in_parts() {
    let store = Store::with("renaming-parts", &[("listing_ttl_ms", "60000")]);
    let len = 6 * GIB + 1;
    store.put_sparse(store.bucket(), "d/huge", len);
    // Nothing is known of it: the store refuses to copy it at once.
    let (answer, requests) =
        store.requests(|| fs().copy_file(store.uri("d/huge"), store.uri("copy")));
    answer.unwrap();
    assert_eq!(store.stat(store.bucket(), "copy").unwrap().len, len);
    let parts = 97;
    let expected = [
        ("CompleteMultipartUpload", 1),
        ("CopyObject", 1),
        ("CreateMultipartUpload", 1),
        ("HeadObject", 1),
        ("ListObjectsV2", 1),
        ("UploadPartCopy", parts),
    ];
    assert_eq!(requests, counts(expected));
    // A listing told its length.
    fs().get_children(store.uri("d")).unwrap();
    let (answer, requests) =
        store.requests(|| fs().rename_file(store.uri("d/huge"), store.uri("moved")));
    answer.unwrap();
    assert_eq!(store.stat(store.bucket(), "moved").unwrap().len, len);
    assert!(!requests.contains_key("CopyObject"), "{requests:?}");
    assert_eq!(store.keys(), ["copy", "moved"]);
    assert!(store.open_uploads().is_empty());
}

#[test]
fn a_source_that_changes_is_not_mixed() {
    let store =
        Store::with("renaming-changes", &[("listing_ttl_ms", "60000"), ("max_attempts", "1")]);
    store.put_sparse(store.bucket(), "d/file", 300 * MIB);
    store.put("dst", "old");
    fs().get_children(store.uri("d")).unwrap();
    let bucket = store.bucket().to_owned();
    let replace = What::run(move |server, _| drop(server.put_sparse(&bucket, "d/file", 300 * MIB)));
    store.inject(Fault::new(When::Nth(3), replace).operation("UploadPartCopy"));
    let error = fs().copy_file(store.uri("d/file"), store.uri("dst")).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert_eq!(store.get("dst").unwrap(), b"old");
    assert!(store.open_uploads().is_empty());
}

#[test]
fn an_error_under_a_status_of_success_is_no_success() {
    let store = Store::with("renaming-200", &[("max_attempts", "2")]);
    store.put("file", "new");
    store.put("dst", "old");
    store.inject(
        Fault::new(When::All, What::ErrorIn200("InternalError".into())).operation("CopyObject"),
    );
    assert!(matches!(
        code(fs().rename_file(store.uri("file"), store.uri("dst"))),
        Code::Unavailable | Code::Internal
    ));
    assert_eq!(
        (store.get("file").unwrap(), store.get("dst").unwrap()),
        (b"new".to_vec(), b"old".to_vec())
    );
    store.clear_faults();
    store.inject(
        Fault::new(When::Nth(1), What::ErrorIn200("SlowDown".into())).operation("CopyObject"),
    );
    fs().rename_file(store.uri("file"), store.uri("dst")).unwrap();
    assert_eq!(store.get("dst").unwrap(), b"new");
    assert_eq!(store.keys(), ["dst"]);
}

#[test]
fn a_lost_answer_is_settled() {
    let store = Store::with("renaming-lost", &[("listing_ttl_ms", "60000")]);
    for (operation, len) in [
        ("CopyObject", 5),
        ("DeleteObject", 5),
        ("UploadPartCopy", 300 * MIB),
        ("CompleteMultipartUpload", 300 * MIB),
    ] {
        for what in [What::LoseAck, What::DoneThenStatus(Reply::new(500, "InternalError"))] {
            store.put_sparse(store.bucket(), "file", len);
            let fault = store.inject(Fault::new(When::Nth(1), what.clone()).operation(operation));
            fs().get_children(store.uri("")).unwrap();
            fs().rename_file(store.uri("file"), store.uri("dst")).unwrap();
            assert_eq!(store.met(fault), 1, "{operation}");
            assert_eq!(store.keys(), ["dst"], "{operation} {what:?}");
            assert_eq!(store.stat(store.bucket(), "dst").unwrap().len, len);
            assert!(store.open_uploads().is_empty());
            store.clear_faults();
        }
    }
}

#[test]
fn the_copy_before_is_not_taken_for_one_that_failed() {
    let store =
        Store::with("renaming-again", &[("listing_ttl_ms", "60000"), ("max_attempts", "1")]);
    let rename = || fs().rename_file(store.uri("file"), store.uri("dst"));
    let replace = || {
        // Of the same length and the same number of parts each time.
        store.put_sparse(store.bucket(), "file", 300 * MIB);
        fs().get_children(store.uri("")).unwrap();
    };
    replace();
    rename().unwrap();
    let etag = || store.stat(store.bucket(), "dst").unwrap().etag;
    let old = etag();
    for answer in [Reply::new(500, "InternalError"), Reply::new(404, "NoSuchUpload")] {
        replace();
        let fault = store.inject(
            Fault::new(When::All, What::Status(answer.clone()))
                .operation("CompleteMultipartUpload"),
        );
        assert!(rename().is_err(), "{answer:?}");
        assert_eq!(store.met(fault), 1);
        assert_eq!(store.keys(), ["dst", "file"], "{answer:?}");
        assert_eq!(etag(), old);
        assert!(store.open_uploads().is_empty());
        store.clear_faults();
    }
    // But what was done is taken for what it is, whatever was there.
    store.inject(Fault::new(When::All, What::LoseAck).operation("CompleteMultipartUpload"));
    rename().unwrap();
    assert_eq!(store.keys(), ["dst"]);
    assert_ne!(etag(), old);
}

#[test]
fn files_at_the_destination_are_not_taken_for_copies_without_proof() {
    let settings = [("listing_ttl_ms", "60000"), ("max_attempts", "1")];
    let store = Store::with("renaming-proof", &settings);
    let rename = || fs().rename_file(store.uri("d"), store.uri("e"));
    // All without ETags are not all the same.
    store.put("d/a", "new");
    store.put("e/a", "old");
    store.inject(Fault::new(When::All, What::NoEtag).operation("ListObjectsV2"));
    let error = rename().unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert!(error.message().contains("delete one of them"), "{error}");
    assert_eq!(store.get("d/a").unwrap(), b"new");
    assert_eq!(store.get("e/a").unwrap(), b"old");
    store.clear_faults();
    // Nor are all of the same length that were made of parts.
    for key in ["d/a", "other"] {
        store.put_sparse(store.bucket(), key, 300 * MIB);
    }
    fs().get_children(store.uri("")).unwrap();
    fs().copy_file(store.uri("other"), store.uri("e/a")).unwrap();
    let etag = || store.stat(store.bucket(), "e/a").unwrap().etag;
    let old = etag();
    assert!(old.contains('-'), "{old}");
    assert_eq!(code(rename()), Code::FailedPrecondition);
    assert_eq!(etag(), old);
    assert_eq!(store.keys(), ["d/a", "e/a", "other"]);
}

#[test]
fn a_copy_of_other_bytes_is_not_taken_for_one_of_those_that_are_known() {
    let options = Options { fast: false, threads: 1, ..Options::default() };
    let store = Store::start("renaming-other", options, &[("listing_ttl_ms", "60000")]);
    store.put("a", "x");
    fs().get_children(store.uri("")).unwrap();
    let copy = |key: &str| {
        fs().copy_file(store.uri("a"), store.uri(key)).unwrap();
        store.requests(|| fs().stat(store.uri(key)).unwrap()).1
    };
    assert_eq!(copy("b"), counts([]));
    // As a store would that does not look at the condition of the copy.
    store.inject(Fault::new(When::All, What::ChangedEtag).operation("CopyObject"));
    assert_eq!(copy("c"), counts([("ListObjectsV2", 1)]));
}
