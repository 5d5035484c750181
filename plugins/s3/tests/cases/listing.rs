//! Listings: names as XML has them, pages, and the list of buckets.

use s3_server::{Fault, What, When};
use std::collections::BTreeMap;
use tf_plugin_s3_tests::{Store, child, fs, this_test};

fn list(count: usize) -> BTreeMap<String, usize> {
    [("ListObjectsV2".to_owned(), count)].into()
}

fn children(store: &Store, key: &str) -> Vec<String> {
    let names = fs().get_children(store.uri(key)).unwrap();
    names.into_iter().map(|name| String::from_utf8(name).unwrap()).collect()
}

/// Keys, without the bucket.
fn matches(store: &Store, pattern: &str) -> Vec<String> {
    let paths = fs().get_matching_paths(store.uri(pattern)).unwrap();
    let root = store.uri("");
    paths
        .into_iter()
        .map(|path| String::from_utf8(path).unwrap().strip_prefix(&root).unwrap().to_owned())
        .collect()
}

#[test]
fn entries_are_shown_once_and_markers_are_not() {
    let store = Store::new("listing-entries");
    for key in [
        "d/",
        "d/a",
        "d/a/x",
        "d/b/",
        "d/c/deep/x",
        "d/é",
        "d/new\nline",
        "d/a b+c%20",
        "d/😀",
        "d.x",
        "dd/y",
    ] {
        store.put(key, "x");
    }
    let names = ["a", "a b+c%20", "b", "c", "new\nline", "é", "😀"];
    for key in ["d", "d/"] {
        assert_eq!(children(&store, key), names, "{key}");
    }
    assert_eq!(children(&store, "d/b"), [""; 0]);
    assert_eq!(children(&store, "d/c"), ["deep"]);
    assert_eq!(children(&store, ""), ["d", "d.x", "dd"]);
}

#[test]
fn pages_have_a_thousand_names() {
    let store = Store::new("listing-pages");
    for n in 0..2500 {
        store.put(&format!("d/{n:05}"), "x");
        store.put(&format!("s/{n:05}/x"), "x");
    }
    let expected: Vec<String> = (0..2500).map(|n| format!("{n:05}")).collect();
    for dir in ["d", "s"] {
        let (names, requests) = store.requests(|| children(&store, dir));
        assert_eq!((&names, requests), (&expected, list(3)), "{dir}");
    }
    let (names, requests) = store.requests(|| matches(&store, "d/000*"));
    assert_eq!((names.len(), requests), (100, list(1)));
}

#[test]
fn pages_without_a_token_are_continued_after_their_last_name() {
    let store = Store::with("listing-no-token", &[("listing_ttl_ms", "0")]);
    for n in 0..1500 {
        store.put(&format!("d/{n:04}"), "x");
        store.put(&format!("t/{n:04}/x"), "x");
    }
    // The last page, too, says that there is more.
    for n in 0..1000 {
        store.put(&format!("whole/{n:04}"), "x");
    }
    let first = || {
        store.clear_faults();
        let truncated = Fault::new(When::Nth(1), What::TruncatedWithoutToken);
        store.inject(truncated.operation("ListObjectsV2"));
    };
    for (key, count) in [("d", 1500), ("t", 1500), ("whole", 1000)] {
        first();
        assert_eq!(children(&store, key).len(), count, "{key}");
    }
    first();
    assert_eq!(matches(&store, "t/*/*").len(), 1500);
}

#[test]
fn all_buckets() {
    // Whose they are is a matter of the default settings, which all tests share.
    child::alone(this_test!(), || {
        let store = Store::new("listing-buckets");
        store.create_bucket("listing-another");
        let settings = [
            ("endpoint_url", store.endpoint()),
            ("access_key_id", store.access_key().to_owned()),
            ("secret_access_key", store.secret_key().to_owned()),
            ("region", "us-east-1".into()),
            ("addressing_style", "path".into()),
        ];
        let options: Vec<_> = settings
            .into_iter()
            .map(|(key, value)| {
                let values = tf_fs_plugin::OptionValues::Buffer(vec![value.into_bytes()]);
                tf_fs_plugin::FilesystemOption::new(key, values)
            })
            .collect();
        fs().set_filesystem_configuration(&options).unwrap();
        let elsewhere = What::Status(s3_server::Reply::redirect(400, "eu-west-1"));
        store.inject(Fault::new(When::All, elsewhere).operation("ListBuckets").times(1));
        let (_, requests) = store.requests(|| fs().get_children("s3://").unwrap());
        assert_eq!(requests["ListBuckets"], 2, "{requests:?}");
        for uri in ["s3://", "s3:///"] {
            let mut names = fs().get_children(uri).unwrap();
            names.sort();
            assert_eq!(names, [b"listing-another".as_slice(), store.bucket().as_bytes()]);
            fs().is_directory(uri).unwrap();
        }
    });
}
