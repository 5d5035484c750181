//! Copies and renames.

use s3_server::{Fault, Options, Reply, Shape, What, When};
use std::time::{Duration, Instant};
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
fn names_that_begin_alike_are_looked_for_together() {
    // With ETags by which a copy is known.
    let options = Options { fast: false, threads: 1, ..Options::default() };
    let store = Store::start("renaming-alike", options, &[("listing_ttl_ms", "60000")]);
    let names = ["ckpt.part.data", "ckpt.part.index", "ckpt.data"];
    for name in names {
        store.put(&format!("d/{name}.tmp"), "x");
    }
    store.put("d/ckpt.taken/x", "x");
    let rename = |from: &str, to: &str| fs().rename_file(store.uri(from), store.uri(to));
    let ((), requests) = store.requests(|| {
        for name in names {
            rename(&format!("d/{name}.tmp"), &format!("d/{name}")).unwrap();
        }
        assert_eq!(code(rename("d/ckpt.data", "d/ckpt.taken")), Code::FailedPrecondition);
    });
    // The last one requests the source.
    let expected = [("CopyObject", 3), ("DeleteObject", 3), ("ListObjectsV2", 1)];
    assert_eq!(requests, counts(expected));

    // More of them than one request shows, which is found out once.
    for n in 0..1200 {
        store.put(&format!("many/part.{n:04}"), "x");
    }
    store.put("many/part.9999/x", "x");
    let (answer, requests) = store.requests(|| rename("many/part.0000", "many/part.8000"));
    answer.unwrap();
    assert_eq!(requests["ListObjectsV2"], 2);
    // Nobody wants to have all of their names for each of them.
    let listed: u64 = store.log().iter().map(|request| request.bytes_out).sum();
    assert!(listed < 64 << 10, "{listed} bytes");
    let (answer, requests) = store.requests(|| rename("many/part.0001", "many/part.8001"));
    answer.unwrap();
    assert_eq!(requests["ListObjectsV2"], 1);
    assert_eq!(code(rename("many/part.0002", "many/part.9999")), Code::FailedPrecondition);
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
fn no_request_waits_for_more_than_it_needs() {
    let store = Store::new("renaming-slow");
    store.put_sparse(store.bucket(), "file", 100 * MIB);
    (0..80).for_each(|n| store.put(&format!("d{}/{n}", n % 5), "x"));
    let latency = Duration::from_millis(500);
    store.shape(Shape { first_byte_latency: latency, ..Shape::default() });
    // A busy machine makes one of five take longer, but not each.
    let trips = |most: u128, prepare: &dyn Fn(usize), work: &dyn Fn(usize)| {
        let trip = |n| {
            prepare(n);
            let start = Instant::now();
            work(n);
            start.elapsed().as_nanos() / latency.as_nanos()
        };
        (0..5).map(trip).find(|taken| *taken <= most)
    };
    let uri = |name: &str, n: usize| store.uri(&format!("{name}{n}"));
    let copy = |n| fs().copy_file(store.uri("file"), uri("copy", n)).unwrap();
    let rename = |n| fs().rename_file(uri("copy", n), uri("moved", n)).unwrap();
    assert_eq!(trips(2, &|_| _ = fs().stat(store.uri("file")).unwrap(), &copy), Some(2));
    assert_eq!(trips(3, &copy, &rename), Some(3));
    // What it is not, what is there, all copies at once, and the deletion.
    assert!(trips(6, &|_| (), &|n| fs().rename_file(uri("d", n), uri("e", n)).unwrap()).is_some());
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
fn wrong_sources_and_destinations() {
    let store = Store::new("renaming-wrong");
    for key in ["file", "dir/x", "marked/"] {
        store.put(key, key);
    }
    let before = store.keys();
    for op in ["copy", "rename"] {
        let call = |src: &str, dst: &str| {
            let (src, dst) = (store.uri(src), store.uri(dst));
            if op == "copy" { fs().copy_file(src, dst) } else { fs().rename_file(src, dst) }
        };
        for (src, dst, expected) in [
            ("missing", "new", Code::NotFound),
            ("missing", "file", Code::NotFound),
            ("none/", "new", Code::NotFound),
            ("missing", "missing", Code::NotFound),
            ("file", "dir", Code::FailedPrecondition),
            ("file", "marked", Code::FailedPrecondition),
            ("file", "dir/", Code::FailedPrecondition),
            ("file", "new/", Code::FailedPrecondition),
            ("file", "", Code::FailedPrecondition),
            ("", "new", Code::FailedPrecondition),
        ] {
            assert_eq!(code(call(src, dst)), expected, "{op} {src} {dst}");
        }
        call("file", "file").unwrap();
        assert_eq!(store.keys(), before, "{op}");
        assert_eq!(store.get("file").unwrap(), b"file");
    }
    for (src, dst) in [("dir", "new"), ("dir/", "new"), ("marked", "new"), ("dir", "dir")] {
        assert_eq!(
            code(fs().copy_file(store.uri(src), store.uri(dst))),
            Code::FailedPrecondition,
            "{src}"
        );
    }
    assert_eq!(store.keys(), before);
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
fn a_rename_that_fails_leaves_both_as_they_were() {
    let store = Store::with("renaming-fails", &[("max_attempts", "1")]);
    store.put("file", "new");
    store.put("dst", "old");
    store.inject(Fault::new(When::All, What::status(403, "AccessDenied")).operation("CopyObject"));
    assert_eq!(code(fs().rename_file(store.uri("file"), store.uri("dst"))), Code::PermissionDenied);
    assert_eq!(
        (store.get("file").unwrap(), store.get("dst").unwrap()),
        (b"new".to_vec(), b"old".to_vec())
    );
    store.clear_faults();
    // Once the copy is made only the source can be left over.
    store
        .inject(Fault::new(When::All, What::status(403, "AccessDenied")).operation("DeleteObject"));
    let error = fs().rename_file(store.uri("file"), store.uri("dst")).unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied);
    assert!(error.message().contains("the source could not be deleted"), "{error}");
    assert_eq!(
        (store.get("file").unwrap(), store.get("dst").unwrap()),
        (b"new".to_vec(), b"new".to_vec())
    );
}

#[test]
fn directories_are_renamed() {
    let store = Store::new("renaming-directory");
    for key in ["d/", "d/a", "d/s/b", "d-1", "d.x/c", "dd/e", "d//odd"] {
        store.put(key, key);
    }
    fs().rename_file(store.uri("d"), store.uri("new/place")).unwrap();
    assert_eq!(
        store.keys(),
        ["d-1", "d.x/c", "dd/e", "new/place/", "new/place//odd", "new/place/a", "new/place/s/b"]
    );
    assert_eq!(store.get("new/place/s/b").unwrap(), b"d/s/b");
    assert_eq!(code(fs().stat(store.uri("d"))), Code::NotFound);
    for (src, dst) in [("new", "new/x"), ("new/place", "new"), ("new", "d-1"), ("new", "")] {
        assert_eq!(
            code(fs().rename_file(store.uri(src), store.uri(dst))),
            Code::FailedPrecondition,
            "{src} {dst}"
        );
    }
    // A file stands for another: neither is lost.
    store.put("dd/a", "D/A");
    assert_eq!(
        code(fs().rename_file(store.uri("new/place"), store.uri("dd"))),
        Code::FailedPrecondition
    );
    assert_eq!(store.get("dd/a").unwrap(), b"D/A");
    assert_eq!(store.get("new/place/a").unwrap(), b"d/a");
    assert_eq!(store.keys().len(), 8);
}

#[test]
fn the_rename_of_a_directory_is_all_or_nothing_until_all_is_copied_and_goes_on_afterwards() {
    // With ETags that tell what is the same.
    let options = Options { fast: false, threads: 1, ..Options::default() };
    let store = Store::start("renaming-resume", options, &[("max_attempts", "1")]);
    for n in 0..40 {
        store.put(&format!("d/{n:02}"), format!("{n}"));
    }
    let before = store.keys();
    store.inject(
        Fault::new(When::From(21), What::status(403, "AccessDenied")).operation("CopyObject"),
    );
    assert_eq!(code(fs().rename_file(store.uri("d"), store.uri("e"))), Code::PermissionDenied);
    store.clear_faults();
    store.quiet();
    let leftover = store.keys().iter().filter(|key| key.starts_with("e/")).count();
    assert!(leftover <= 16, "those that were on their way: {leftover}");
    assert!(before.iter().all(|key| store.get(key).is_some()));
    // Not all could be deleted: all are there, and the second time does the rest.
    store.inject(
        Fault::new(When::All, What::status(403, "AccessDenied")).operation("DeleteObjects"),
    );
    let error = fs().rename_file(store.uri("d"), store.uri("e")).unwrap_err();
    assert!(error.message().contains("rename it again"), "{error}");
    store.clear_faults();
    store.delete(store.bucket(), "d/00");
    fs().rename_file(store.uri("d"), store.uri("e")).unwrap();
    let expected: Vec<String> = (0..40).map(|n| format!("e/{n:02}")).collect();
    assert_eq!(store.keys(), expected);
    assert_eq!(store.get("e/07").unwrap(), b"7");
}

#[test]
fn copies_that_a_failed_rename_took_back_are_not_believed_to_be_there() {
    // With ETags that tell what is the same: then it is known what the copies are.
    let options = Options { fast: false, threads: 1, ..Options::default() };
    let settings = [("listing_ttl_ms", "60000"), ("max_attempts", "1")];
    let store = Store::start("renaming-back", options, &settings);
    for key in ["a", "b", "c"] {
        store.put(&format!("d/{key}"), key);
    }
    fs().get_children(store.uri("d")).unwrap();
    // Refused when the other two are made.
    let refused = What::run(|server, request| {
        let bucket = request.bucket.clone().unwrap_or_default();
        let start = Instant::now();
        while ["e/a", "e/b"].iter().any(|key| server.stat(&bucket, key).is_none()) {
            assert!(start.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    for what in [refused, What::status(403, "AccessDenied")] {
        store.inject(Fault::new(When::All, what).operation("CopyObject").key("e/c"));
    }
    let rename = fs().rename_file(store.uri("d"), store.uri("e"));
    assert_eq!(code(rename), Code::PermissionDenied);
    assert_eq!(store.keys(), ["d/a", "d/b", "d/c"]);
    for key in ["e/a", "e/b", "e/c", "e"] {
        assert_eq!(code(fs().stat(store.uri(key))), Code::NotFound, "{key}");
    }
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
