//! What a name is: the answers, the requests that they cost, and what is remembered.

use s3_server::{Fault, Options, Shape, What, When};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tf_fs_plugin::Code;
use tf_fs_plugin::testing::Host;
use tf_plugin_s3_tests::{Store, child, code, counts, eventually, fs, host};

/// One listing.
fn list(count: usize) -> BTreeMap<String, usize> {
    counts([("ListObjectsV2", count)])
}

#[test]
fn every_question_is_one_request() {
    let store = Store::with("names-one", &[("listing_ttl_ms", "0")]);
    store.put("d/file", "content");
    store.put("d/empty", "");
    store.put("marked/", "");
    let questions =
        [("d/file", Some(7)), ("d/empty", Some(0)), ("d", None), ("d/", None), ("marked", None)];
    for (key, length) in questions {
        let uri = store.uri(key);
        let (found, requests) = store.requests(|| fs().stat(&uri).unwrap());
        assert_eq!(
            (found.length, found.is_directory),
            (length.unwrap_or(0), length.is_none()),
            "{key}"
        );
        assert_eq!(requests, list(1), "stat of {key}");
        let ((), requests) = store.requests(|| fs().path_exists(&uri).unwrap());
        assert_eq!(requests, list(1), "path_exists of {key}");
        let (answer, requests) = store.requests(|| fs().is_directory(&uri));
        assert_eq!(
            answer.err().map(|error| error.code()),
            length.map(|_| Code::FailedPrecondition)
        );
        assert_eq!(requests, list(1), "is_directory of {key}");
        let (answer, requests) = store.requests(|| fs().get_file_size(&uri));
        assert_eq!(answer.ok(), length, "get_file_size of {key}");
        assert_eq!(requests, list(1), "get_file_size of {key}");
    }
    for key in ["missing", "d/missing", "d/file/x", "d/fil", "none/", "d/file/"] {
        let (answer, requests) = store.requests(|| fs().stat(store.uri(key)));
        assert_eq!(code(answer), Code::NotFound, "{key}");
        assert_eq!(requests, list(1), "{key}");
    }
}

#[test]
fn the_time_of_a_file_is_that_of_the_store() {
    let store = Store::new("names-time");
    store.put("file", "x");
    let modified = store.stat(store.bucket(), "file").unwrap().modified.unwrap();
    let found = fs().stat(store.uri("file")).unwrap().modified;
    let apart = found.duration_since(modified).unwrap_or_else(|early| early.duration());
    assert!(apart < Duration::from_secs(1), "{apart:?}");
}

#[test]
fn a_question_is_one_round_trip() {
    let store = Store::with("names-latency", &[("listing_ttl_ms", "0")]);
    store.put("d/file", "content");
    fs().stat(store.uri("d/file")).unwrap();
    // Long enough that it does not matter how busy the machine is.
    let latency = Duration::from_millis(300);
    store.shape(Shape { first_byte_latency: latency, ..Shape::default() });
    for key in ["d/file", "d", "d/missing"] {
        let start = Instant::now();
        let _ = fs().path_exists(store.uri(key));
        assert!((latency..2 * latency).contains(&start.elapsed()), "{key}: {:?}", start.elapsed());
    }
    let uris = ["d/file", "e/x", "f/x", "g/x"].map(|key| store.uri(key));
    let start = Instant::now();
    fs().paths_exist(&uris).unwrap();
    assert!(start.elapsed() < 2 * latency, "{:?}", start.elapsed());
}

#[test]
fn siblings_do_not_hide_a_directory() {
    let store = Store::with("names-siblings", &[("listing_ttl_ms", "0")]);
    for n in 0..250 {
        store.put(&format!("ckpt-{n:03}"), "x");
        store.put(&format!("ckpt.{n:03}/part"), "x");
    }
    store.put("ckpt/model", "x");
    let (found, requests) = store.requests(|| fs().stat(store.uri("ckpt")).unwrap());
    assert!(found.is_directory);
    assert_eq!(requests, list(2));
    assert_eq!(code(fs().stat(store.uri("ckpt-"))), Code::NotFound);
    let (found, requests) = store.requests(|| fs().stat(store.uri("ckpt-007")).unwrap());
    assert!(!found.is_directory);
    assert_eq!(requests, list(1));
    store.delete(store.bucket(), "ckpt/model");
    assert_eq!(code(fs().stat(store.uri("ckpt"))), Code::NotFound);
    store.put("ckpt", "whole");
    let (found, requests) = store.requests(|| fs().stat(store.uri("ckpt")).unwrap());
    assert_eq!((found.length, requests), (5, list(1)));
}

#[test]
fn a_file_beside_a_directory_of_its_name() {
    let store = Store::new("names-both");
    store.put("a", "file");
    store.put("a/b", "below");
    let found = fs().stat(store.uri("a")).unwrap();
    assert_eq!((found.length, found.is_directory), (4, false));
    assert_eq!(code(fs().is_directory(store.uri("a"))), Code::FailedPrecondition);
    fs().is_directory(store.uri("a/")).unwrap();
    assert_eq!(fs().get_children(store.uri("a/")).unwrap(), [b"b"]);
    assert_eq!(fs().get_children(store.uri("")).unwrap(), [b"a"]);
    assert_eq!(fs().stat(store.uri("a/b")).unwrap().length, 5);
    // The same when a listing answers.
    let (found, requests) = store.requests(|| fs().stat(store.uri("a")).unwrap());
    assert_eq!((found.length, requests.len()), (4, 0));
}

#[test]
fn buckets_are_directories() {
    let store = Store::new("names-bucket");
    let bucket = store.uri("");
    for uri in [bucket.as_str(), bucket.trim_end_matches('/')] {
        let (found, requests) = store.requests(|| fs().stat(uri).unwrap());
        assert!(found.is_directory);
        assert_eq!(requests, list(1));
        fs().is_directory(uri).unwrap();
        assert!(fs().get_children(uri).unwrap().is_empty());
    }
    let error = fs().stat("s3:///").unwrap();
    assert!(error.is_directory);
}

#[test]
fn a_missing_bucket_is_named() {
    let store = Store::new("names-nobucket");
    store.put("d/a", "x");
    // The server answers so for all it does not have; here for one that the settings lead to.
    store.inject(Fault::new(When::All, What::status(404, "NoSuchBucket")));
    for key in ["", "d", "d/a", "d/"] {
        for answer in [
            fs().stat(store.uri(key)).map(drop),
            fs().path_exists(store.uri(key)),
            fs().is_directory(store.uri(key)),
            fs().get_children(store.uri(key)).map(drop),
            fs().create_dir(store.uri(key)),
        ] {
            let error = answer.unwrap_err();
            assert_eq!(error.code(), Code::NotFound);
            assert!(error.message().contains(store.bucket()), "{error}");
        }
    }
}

#[test]
fn who_may_not_list_is_answered_by_head() {
    let store = Store::new("names-nolist");
    store.put("file", "content");
    let denied = || What::status(403, "AccessDenied");
    store.inject(Fault::new(When::All, denied()).operation("ListObjectsV2"));
    let (found, requests) = store.requests(|| fs().stat(store.uri("file")).unwrap());
    assert_eq!(found.length, 7);
    assert_eq!(requests, counts([("HeadObject", 1), ("ListObjectsV2", 1)]));
    fs().delete_file(store.uri("file")).unwrap();
    store.put("file", "content");
    // To whom may not list S3 says 403 for what does not exist, too.
    store.inject(Fault::new(When::All, denied()).operation("HeadObject"));
    let error = fs().stat(store.uri("missing")).unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied);
    assert!(error.message().contains("no permission, or no such object"), "{error}");
    assert!(error.message().contains("AccessDenied"), "{error}");
    assert_eq!(code(fs().path_exists(store.uri("missing"))), Code::PermissionDenied);
}

#[test]
fn errors_are_no_answers() {
    let store = Store::with("names-errors", &[("max_attempts", "1"), ("stall_timeout_ms", "300")]);
    store.put("file", "x");
    store.inject(Fault::new(When::All, What::status(403, "SignatureDoesNotMatch")));
    let (answer, requests) = store.requests(|| fs().path_exists(store.uri("file")));
    let error = answer.unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied);
    assert!(error.message().contains("SignatureDoesNotMatch"), "{error}");
    assert_eq!(requests, list(1));
    assert_eq!(code(fs().get_matching_paths(store.uri("*"))), Code::PermissionDenied);
    store.clear_faults();
    store.inject(Fault::new(When::All, What::status(503, "SlowDown")));
    assert_eq!(code(fs().stat(store.uri("file"))), Code::Unavailable);
    assert_eq!(code(fs().stat(store.uri("missing"))), Code::Unavailable);
    assert_eq!(code(fs().get_children(store.uri(""))), Code::Unavailable);
}

#[test]
fn keys_are_exact() {
    let store = Store::new("names-exact");
    let long = "k".repeat(1024);
    let keys = [
        "/x",
        "a//b",
        "./x",
        "a/./b",
        "?a=b&c",
        "#x",
        "%20",
        "%2F",
        "a+b",
        "a b",
        "new\nline",
        "\ttab",
        "😀",
        "e\u{301}",
        "é",
        "[1]*?\\",
        " a ",
        "a=b",
        "a:b@c",
        "\u{1}",
        "'\"<&>",
        &long,
        "x;y,z",
        "~!$'()|`^{}",
    ];
    for key in keys {
        store.put(key, key);
    }
    for key in keys {
        let uri = store.uri(key);
        assert_eq!(fs().stat(&uri).unwrap().length, key.len() as u64, "{key:?}");
        assert_eq!(fs().read_file(&uri).unwrap(), key.as_bytes(), "{key:?}");
    }
    // None is another: what was not put is not there.
    for key in ["x", "a/b", "/x/", "%", "a%20b", "newline", "./", "e"] {
        let (answer, _) = store.requests(|| fs().stat(store.uri(key)));
        let is_directory = matches!(key, "./");
        assert_eq!(answer.is_ok(), is_directory, "{key:?}");
    }
    let before = store.keys().len();
    for key in keys {
        fs().delete_file(store.uri(key)).unwrap();
    }
    assert_eq!(store.keys().len(), before - keys.len());
}

#[test]
fn bad_names_are_refused_with_advice() {
    let store = Store::new("names-bad");
    let refused = |uri: &[u8], code: Code, text: &str| {
        let shown = uri.escape_ascii();
        for (op, answer) in [
            ("stat", fs().stat(uri).map(drop)),
            ("path_exists", fs().path_exists(uri)),
            ("open", fs().new_random_access_file(uri).map(drop)),
            ("create", fs().new_writable_file(uri).map(drop)),
            ("create_dir", fs().create_dir(uri)),
            ("delete_file", fs().delete_file(uri)),
            ("get_children", fs().get_children(uri).map(drop)),
            ("get_matching_paths", fs().get_matching_paths(uri).map(drop)),
            ("rename_file", fs().rename_file(uri, store.uri("x"))),
            ("copy_file", fs().copy_file(store.uri("x"), uri)),
            ("delete_recursively", fs().delete_recursively(uri).map_err(|left| left.error)),
        ] {
            // A pattern may be longer than a key.
            if op == "get_matching_paths" && uri.len() > 1024 {
                continue;
            }
            let error = answer.unwrap_err();
            assert_eq!(error.code(), code, "{op} of {shown}: {error}");
            assert!(error.message().contains(text), "{op} of {shown}: {error}");
            assert!(!error.to_string().contains("pw"), "{error}");
        }
    };
    let ((), requests) = store.requests(|| {
        refused(b"s3:///k", Code::InvalidArgument, "no bucket; write s3://bucket/key");
        refused(
            b"s3://user:pw@b/k",
            Code::InvalidArgument,
            "credentials do not belong into a name",
        );
        refused(
            b"s3://b:80/k",
            Code::InvalidArgument,
            "set AWS_ENDPOINT_URL, and write s3://bucket/key",
        );
        refused(b"s3://b c/k", Code::InvalidArgument, "no bucket has ' ' in its name");
        refused(b"s3://b\x01/k", Code::InvalidArgument, "no bucket has '\\u{1}' in its name");
        refused(
            b"s3://arn:aws:s3:::b/k",
            Code::InvalidArgument,
            "only those of access points name a bucket",
        );
        refused(b"s3://b/\xff\xfe", Code::InvalidArgument, "S3's keys are UTF-8");
        let long = format!("s3://b/{}", "k".repeat(1025));
        refused(long.as_bytes(), Code::InvalidArgument, "1025 bytes, but S3 allows 1024");
    });
    assert_eq!(requests, counts([]));
    let error = fs().get_matching_paths("s3://b*/k").unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(
        error.message(),
        "s3://b*: a wildcard cannot stand for a bucket; name the bucket and use wildcards after it"
    );
    for uri in [store.uri(""), store.uri("d/"), "s3://".into()] {
        assert_eq!(
            code(fs().new_random_access_file(&uri).map(drop)),
            Code::FailedPrecondition,
            "{uri}"
        );
        assert_eq!(code(fs().new_writable_file(&uri).map(drop)), Code::FailedPrecondition, "{uri}");
        assert_eq!(code(fs().delete_file(&uri)), Code::FailedPrecondition, "{uri}");
    }
}

#[test]
fn a_listing_answers_what_follows_it() {
    let store = Store::with("names-cache", &[("listing_ttl_ms", "60000")]);
    for n in 0..20 {
        store.put(&format!("d/part-{n:02}"), "x");
    }
    store.put("d/sub/file", "x");
    let (children, requests) = store.requests(|| fs().get_children(store.uri("d")).unwrap());
    assert_eq!((children.len(), requests), (21, list(1)));
    let ((), requests) = store.requests(|| {
        for n in 0..20 {
            let uri = store.uri(&format!("d/part-{n:02}"));
            assert_eq!(fs().stat(&uri).unwrap().length, 1);
            fs().path_exists(&uri).unwrap();
            assert_eq!(code(fs().is_directory(&uri)), Code::FailedPrecondition);
        }
        fs().is_directory(store.uri("d/sub")).unwrap();
        assert_eq!(code(fs().stat(store.uri("d/missing"))), Code::NotFound);
        assert_eq!(code(fs().stat(store.uri("d/none/missing"))), Code::NotFound);
    });
    assert_eq!(requests, counts([]));
    // A listing is always made anew.
    store.put("d/other", "x");
    assert_eq!(fs().get_children(store.uri("d")).unwrap().len(), 22);
}

#[test]
fn everything_can_be_forgotten() {
    // The other tests' listings would be, too.
    child::alone("everything_can_be_forgotten", || {
        let store = Store::with("names-flush", &[("listing_ttl_ms", "60000")]);
        store.put("d/a", "x");
        fs().get_children(store.uri("d")).unwrap();
        store.put("d/a", "longer");
        assert_eq!(fs().stat(store.uri("d/a")).unwrap().length, 1);
        fs().flush_caches();
        assert_eq!(fs().stat(store.uri("d/a")).unwrap().length, 6);
    });
}

#[test]
fn what_others_do_is_seen_within_the_time_set() {
    let store = Store::with("names-ttl", &[("listing_ttl_ms", "150")]);
    store.put("d/a", "x");
    fs().get_children(store.uri("d")).unwrap();
    store.put("d/a", "other");
    store.put("d/b", "new");
    let start = Instant::now();
    assert!(eventually(Duration::from_secs(5), || fs().stat(store.uri("d/a")).unwrap().length == 5));
    assert!(start.elapsed() < Duration::from_millis(400), "{:?}", start.elapsed());
    fs().stat(store.uri("d/b")).unwrap();

    let store = Store::with("names-no-ttl", &[("listing_ttl_ms", "0")]);
    store.put("d/a", "x");
    for length in 1..4 {
        store.put("d/a", vec![b'x'; length]);
        fs().get_children(store.uri("d")).unwrap();
        store.put("d/a", vec![b'x'; length + 1]);
        assert_eq!(fs().stat(store.uri("d/a")).unwrap().length, length as u64 + 1);
    }
}

#[test]
fn what_this_process_does_is_seen_at_once() {
    let store = Store::with("names-own", &[("listing_ttl_ms", "60000")]);
    for key in ["d/a", "d/b", "d/c", "d/s/x", "e/x"] {
        store.put(key, "x");
    }
    let list = || {
        for dir in ["", "d", "d/s", "e"] {
            fs().get_children(store.uri(dir)).unwrap();
        }
    };
    list();
    fs().delete_file(store.uri("d/a")).unwrap();
    assert_eq!(code(fs().stat(store.uri("d/a"))), Code::NotFound);
    fs().write_file(store.uri("d/b"), "longer").unwrap();
    assert_eq!(fs().stat(store.uri("d/b")).unwrap().length, 6);
    fs().write_file(store.uri("new/deep/file"), "x").unwrap();
    fs().is_directory(store.uri("new")).unwrap();
    fs().stat(store.uri("new/deep/file")).unwrap();
    list();
    fs().rename_file(store.uri("d/c"), store.uri("e/c")).unwrap();
    assert_eq!(code(fs().stat(store.uri("d/c"))), Code::NotFound);
    fs().stat(store.uri("e/c")).unwrap();
    list();
    fs().copy_file(store.uri("e/c"), store.uri("d/copy")).unwrap();
    fs().stat(store.uri("d/copy")).unwrap();
    list();
    fs().delete_recursively(store.uri("d")).unwrap();
    for key in ["d", "d/s", "d/s/x", "d/copy"] {
        assert_eq!(code(fs().stat(store.uri(key))), Code::NotFound, "{key}");
    }
    list_root(&store, &["e", "new"]);
    fs().create_dir(store.uri("made")).unwrap();
    fs().is_directory(store.uri("made")).unwrap();
    list_root(&store, &["e", "made", "new"]);
    fs().delete_dir(store.uri("made")).unwrap();
    assert_eq!(code(fs().stat(store.uri("made"))), Code::NotFound);
    fs().rename_file(store.uri("e"), store.uri("f")).unwrap();
    assert_eq!(code(fs().stat(store.uri("e/c"))), Code::NotFound);
    fs().stat(store.uri("f/c")).unwrap();
    list_root(&store, &["f", "new"]);
}

#[test]
fn what_this_process_wrote_needs_no_question() {
    // With ETags by which a copy is known.
    let options = Options { fast: false, threads: 1, ..Options::default() };
    let store = Store::start("names-wrote", options, &[("listing_ttl_ms", "60000")]);
    let (answer, requests) = store.requests(|| fs().recursively_create_dir(store.uri("d/new")));
    answer.unwrap();
    assert_eq!(requests, counts([("ListObjectsV2", 1), ("PutObject", 1)]));
    let ((), requests) = store.requests(|| {
        fs().is_directory(store.uri("d/new")).unwrap();
        fs().is_directory(store.uri("d/new/")).unwrap();
        fs().recursively_create_dir(store.uri("d/new")).unwrap();
        // Nothing was there a moment ago, so nothing is in it.
        assert_eq!(code(fs().stat(store.uri("d/new/a"))), Code::NotFound);
        assert_eq!(code(fs().path_exists(store.uri("d/new/a/b"))), Code::NotFound);
    });
    assert_eq!(requests, counts([]));
    assert_eq!(code(fs().is_directory(store.uri("d/new//"))), Code::NotFound);

    fs().write_file(store.uri("d/new/a"), "content").unwrap();
    let ((), requests) = store.requests(|| {
        let found = fs().stat(store.uri("d/new/a")).unwrap();
        assert_eq!((found.length, found.is_directory), (7, false));
        assert!(found.modified.elapsed().unwrap() < Duration::from_secs(60));
        fs().path_exists(store.uri("d/new/a")).unwrap();
        fs().is_directory(store.uri("d/new")).unwrap();
        assert_eq!(code(fs().is_directory(store.uri("d/new/a"))), Code::FailedPrecondition);
        assert_eq!(code(fs().stat(store.uri("d/new/b"))), Code::NotFound);
    });
    assert_eq!(requests, counts([]));
    let (content, requests) = store.requests(|| fs().read_file(store.uri("d/new/a")).unwrap());
    assert_eq!((&*content, requests), (&b"content"[..], counts([("GetObject", 1)])));

    let (answer, requests) =
        store.requests(|| fs().rename_file(store.uri("d/new/a"), store.uri("d/new/b")));
    answer.unwrap();
    assert_eq!(requests, counts([("CopyObject", 1), ("DeleteObject", 1)]));
    let (found, requests) = store.requests(|| fs().stat(store.uri("d/new/b")).unwrap());
    assert_eq!((found.length, requests), (7, counts([])));
    let time = store.stat(store.bucket(), "d/new/b").unwrap().modified.unwrap();
    let apart = found.modified.duration_since(time).unwrap_or_else(|early| early.duration());
    assert!(apart < Duration::from_secs(1), "{apart:?}");
    assert_eq!(code(fs().stat(store.uri("d/new/a"))), Code::NotFound);
    let (answer, requests) = store.requests(|| fs().delete_file(store.uri("d/new/b")));
    answer.unwrap();
    assert_eq!(requests, counts([("DeleteObject", 1)]));
    assert_eq!(code(fs().stat(store.uri("d/new/b"))), Code::NotFound);
    fs().is_directory(store.uri("d/new")).unwrap();
}

#[test]
fn what_this_process_wrote_is_believed_no_longer_than_what_it_was_told() {
    let store = Store::with("names-wrote-ttl", &[("listing_ttl_ms", "150")]);
    fs().write_file(store.uri("d/a"), "own").unwrap();
    store.put("d/a", "another's");
    let start = Instant::now();
    assert!(eventually(Duration::from_secs(5), || fs().stat(store.uri("d/a")).unwrap().length == 9));
    assert!(start.elapsed() < Duration::from_millis(400), "{:?}", start.elapsed());
    assert_eq!(code(fs().path_exists(store.uri("e"))), Code::NotFound);
    store.put("e/a", "another's");
    assert!(eventually(Duration::from_secs(5), || fs().stat(store.uri("e/a")).is_ok()));

    let store = Store::with("names-wrote-no-ttl", &[("listing_ttl_ms", "0")]);
    fs().write_file(store.uri("d/a"), "own").unwrap();
    let (found, requests) = store.requests(|| fs().stat(store.uri("d/a")).unwrap());
    assert_eq!((found.length, requests), (3, list(1)));
}

#[test]
fn where_no_listing_says_so_nothing_is_known_of_what_is_below() {
    let store = Store::with("names-head-below", &[("listing_ttl_ms", "60000")]);
    store.put("d/x", "content");
    let unknown = What::status(501, "NotImplemented");
    store.inject(Fault::new(When::All, unknown).operation("ListObjectsV2"));
    assert_eq!(code(fs().stat(store.uri("d"))), Code::NotFound);
    assert_eq!(fs().stat(store.uri("d/x")).unwrap().length, 7);
}

#[track_caller]
fn list_root(store: &Store, expected: &[&str]) {
    let names = fs().get_children(store.uri("")).unwrap();
    let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
    assert_eq!(names, expected);
}

#[test]
fn questions_about_all_names_of_a_large_directory_go_on_page_by_page() {
    let store = Store::with("names-scan", &[("listing_ttl_ms", "600000")]);
    for n in 0..2500 {
        store.put(&format!("d/{n:04}"), "x");
    }
    // A listing of the first thousand.
    assert_eq!(fs().get_matching_paths(store.uri("d/0*")).unwrap().len(), 1000);
    let ((), requests) = store.requests(|| {
        for n in 900..2500 {
            let uri = store.uri(&format!("d/{n:04}"));
            assert_eq!(fs().stat(&uri).unwrap().length, 1);
            assert_eq!(code(fs().is_directory(&uri)), Code::FailedPrecondition);
        }
        assert_eq!(code(fs().stat(store.uri("d/2500"))), Code::NotFound);
    });
    assert!(requests["ListObjectsV2"] <= 4, "{requests:?}");
    // Few questions are no walk: each is answered for itself.
    for n in 0..2500 {
        store.put(&format!("e/{n:04}"), "x");
    }
    fs().get_matching_paths(store.uri("e/0*")).unwrap();
    let ((), requests) = store.requests(|| {
        for n in [0, 1, 1500, 1501] {
            fs().stat(store.uri(&format!("e/{n:04}"))).unwrap();
        }
    });
    assert_eq!(requests, list(2));
}

#[test]
fn many_names_are_asked_for_together() {
    let store = Store::with("names-many", &[("listing_ttl_ms", "0")]);
    for n in 0..40 {
        store.put(&format!("d/part-{n:02}"), "x");
    }
    store.put("e/x/file", "x");
    store.put("e/y", "x");
    let mut uris: Vec<String> = (0..50).map(|n| store.uri(&format!("d/part-{n:02}"))).collect();
    uris.extend(["e/x", "e/y", "e/z", "", "lone/a"].map(|key| store.uri(key)));
    let (answers, requests) = store.requests(|| fs().paths_exist(&uris).unwrap());
    for (n, answer) in answers.iter().enumerate() {
        let exists = n < 40 || (50..52).contains(&n) || n == 53;
        assert_eq!(answer.is_ok(), exists, "{}", uris[n]);
    }
    // One for `d`, one for `e`, and one each for the bucket and the lone name.
    assert_eq!(requests, list(4));
    let mixed =
        [store.uri("e/y").into_bytes(), b"s3://b:80/k".to_vec(), store.uri("e/z").into_bytes()];
    let answers = fs().paths_exist(&mixed).unwrap();
    let codes: Vec<_> =
        answers.iter().map(|answer| answer.as_ref().err().map(|error| error.code())).collect();
    assert_eq!(codes, [None, Some(Code::InvalidArgument), Some(Code::NotFound)]);
}

#[test]
fn a_file_that_is_being_written_exists_for_this_process() {
    let store = Store::new("names-pending");
    let uri = store.uri("d/new");
    let mut writer = fs().new_writable_file(&uri).unwrap();
    writer.append(b"12345").unwrap();
    let found = fs().stat(&uri).unwrap();
    assert_eq!((found.length, found.is_directory), (5, false));
    assert!(found.modified.elapsed().unwrap() < Duration::from_secs(60));
    fs().path_exists(&uri).unwrap();
    fs().is_directory(store.uri("d")).unwrap();
    assert_eq!(fs().get_children(store.uri("d")).unwrap(), [b"new"]);
    assert_eq!(fs().get_children(store.uri("")).unwrap(), [b"d"]);
    assert_eq!(fs().get_matching_paths(store.uri("*/n*")).unwrap(), [uri.as_bytes()]);
    assert_eq!(code(fs().create_dir(&uri)), Code::AlreadyExists);
    assert_eq!(code(fs().delete_dir(store.uri("d"))), Code::FailedPrecondition);
    for error in [
        fs().copy_file(&uri, store.uri("x")).unwrap_err(),
        fs().rename_file(&uri, store.uri("x")).unwrap_err(),
        fs().rename_file(store.uri("d"), store.uri("e")).unwrap_err(),
    ] {
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert!(error.message().contains("is still being written by this process"), "{error}");
    }
    assert!(store.keys().is_empty());
    writer.close().unwrap();
    assert_eq!(fs().stat(&uri).unwrap().length, 5);
    fs().rename_file(&uri, store.uri("d/final")).unwrap();
    assert_eq!(store.keys(), ["d/final"]);
    drop(writer);
    assert_eq!(store.keys(), ["d/final"]);
}

#[test]
fn a_name_given_up_can_be_deleted_once() {
    let store = Store::new("names-given-up");
    let uri = store.uri("cache.lockfile");
    drop(fs().new_writable_file(&uri).unwrap());
    fs().delete_file(&uri).unwrap();
    assert_eq!(code(fs().delete_file(&uri)), Code::NotFound);
    // Deleted while it is open: nothing comes of it.
    let mut writer = fs().new_writable_file(&uri).unwrap();
    writer.append(b"x").unwrap();
    fs().delete_file(&uri).unwrap();
    assert_eq!(code(fs().stat(&uri)), Code::NotFound);
    writer.close().unwrap();
    drop(writer);
    assert!(store.keys().is_empty());
    assert_eq!(code(fs().delete_file(&uri)), Code::NotFound);
}

#[test]
fn other_schemes_are_served_too() {
    let store = Store::new("names-schemes");
    store.put("d/a", "x");
    for scheme in ["s3a", "s3n"] {
        let host: &Host = host();
        let uri = format!("{scheme}://{}/d/a", store.bucket());
        assert_eq!(host.stat(&uri).unwrap().length, 1);
        let pattern = format!("{scheme}://{}/*/*", store.bucket());
        assert_eq!(host.get_matching_paths(pattern).unwrap(), [uri.as_bytes()]);
    }
}
