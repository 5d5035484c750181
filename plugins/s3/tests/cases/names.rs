//! Names: which keys there can be, and what cannot be a name.

use std::time::Duration;
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{Store, code, counts, fs};

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
        " ",
        " \t",
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
    // Written, copied and renamed.
    for key in keys {
        fs().write_file(store.uri(key), b"content").unwrap();
        fs().copy_file(store.uri(key), store.uri("copy")).unwrap();
        fs().rename_file(store.uri(key), store.uri("renamed")).unwrap();
        assert_eq!(store.keys(), ["copy", "renamed"], "{key:?}");
    }
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

#[test]
fn other_schemes_are_served_too() {
    let store = Store::new("names-schemes");
    store.put("d/a", "x");
    for scheme in ["s3a", "s3n"] {
        let uri = format!("{scheme}://{}/d/a", store.bucket());
        assert_eq!(fs().stat(&uri).unwrap().length, 1);
        let pattern = format!("{scheme}://{}/*/*", store.bucket());
        assert_eq!(fs().get_matching_paths(pattern).unwrap(), [uri.as_bytes()]);
    }
}
