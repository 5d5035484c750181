//! What is asked of the store about a name, and what its answers mean.

use super::list;
use s3_server::{Fault, Shape, What, When};
use std::time::Duration;
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{Store, code, counts, fs};

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
fn questions_about_several_names_are_asked_at_once() {
    let store = Store::with("names-latency", &[("listing_ttl_ms", "0")]);
    store.put("d/file", "content");
    // Long enough that all are under way before the first is answered.
    let latency = Duration::from_secs(1);
    store.shape(Shape { first_byte_latency: latency, ..Shape::default() });
    store.reset_log();
    let uris = ["d/file", "e/x", "f/x", "g/x"].map(|key| store.uri(key));
    fs().paths_exist(&uris).unwrap();
    let counters = store.counters();
    assert_eq!((counters.operations, counters.peak_in_flight), (list(4), 4));
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
        "s3://b*: wildcards are not supported in a bucket's name; name the bucket and use wildcards after it"
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
