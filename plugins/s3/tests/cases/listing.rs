//! Listings and patterns: what they show, and the requests that they cost.

use s3_server::{Fault, Shape, What, When};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tf_fs_plugin::{Code, glob};
use tf_plugin_s3_tests::child::alone;
use tf_plugin_s3_tests::this_test;
use tf_plugin_s3_tests::{Store, child, code, fs};

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

/// Of one response; long enough that it does not matter how busy the machine is.
const LATENCY: Duration = Duration::from_millis(300);

/// How many responses have to be waited for, one after the other.
fn trips(store: &Store, work: impl FnOnce()) -> u32 {
    fs().stat(store.uri("")).unwrap();
    store.shape(Shape { first_byte_latency: LATENCY, ..Shape::default() });
    let start = Instant::now();
    work();
    let trips = start.elapsed().as_nanos() / LATENCY.as_nanos();
    store.shape(Shape::default());
    u32::try_from(trips).unwrap()
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
    assert_eq!(code(fs().get_children(store.uri("missing"))), Code::NotFound);
    assert_eq!(code(fs().get_children(store.uri("d.x"))), Code::FailedPrecondition);
    assert_eq!(code(fs().get_children(store.uri("d/a/x"))), Code::FailedPrecondition);
}

#[test]
fn keys_that_no_path_can_be_put_together_of() {
    let store = Store::new("listing-odd");
    for key in ["d//x", "d/./y", "d/../z", "d/n\0/x", "d/ok", "e//", "/z", "./w", "u/\u{1}\u{7f}"] {
        store.put(key, "x");
    }
    // They are not shown, but can be reached.
    assert_eq!(children(&store, ""), ["d", "e", "u"]);
    assert_eq!(children(&store, "d"), ["ok"]);
    assert_eq!(children(&store, "e"), [""; 0]);
    assert_eq!(children(&store, "d//"), ["x"]);
    assert_eq!(children(&store, "d/.."), ["z"]);
    assert_eq!(children(&store, "/"), ["z"]);
    assert_eq!(children(&store, "u"), ["\u{1}\u{7f}"]);
    for key in ["d//x", "d/./y", "d/../z", "./w"] {
        assert_eq!(fs().read_file(store.uri(key)).unwrap(), b"x", "{key}");
    }
    fs().rename_file(store.uri("d"), store.uri("f")).unwrap();
    let moved = ["f/../z", "f/./y", "f//x", "f/n\0/x", "f/ok"];
    assert_eq!(store.keys(), [&["./w", "/z", "e//"][..], &moved, &["u/\u{1}\u{7f}"]].concat());
    fs().delete_recursively(store.uri("f")).unwrap();
    assert_eq!(store.keys(), ["./w", "/z", "e//", "u/\u{1}\u{7f}"]);
}

/// `os.path.join("s3://bucket/run", "./logs")` is such a key.
#[test]
fn what_this_process_writes_below_a_dot_hides_nothing() {
    let store = Store::new("listing-dot");
    let mut file = fs().new_writable_file(store.uri("run/./logs/events")).unwrap();
    assert_eq!(children(&store, "run"), [""; 0]);
    assert_eq!(children(&store, "run/./logs"), ["events"]);
    assert_eq!(matches(&store, "run/*"), [""; 0]);
    file.append(b"x").unwrap();
    file.close().unwrap();
    fs().create_dir(store.uri("run/..")).unwrap();
    fs().write_file(store.uri("run/model"), "x").unwrap();
    assert_eq!(children(&store, "run"), ["model"]);
    assert_eq!(matches(&store, "*/*/*"), [""; 0]);
    assert_eq!(matches(&store, "run/./*/*"), ["run/./logs/events"]);
    assert_eq!(children(&store, "run/./logs"), ["events"]);
}

#[test]
fn pages_have_a_thousand_names() {
    let store = Store::new("listing-pages");
    for n in 0..2500 {
        store.put(&format!("d/{n:05}"), "x");
        store.put(&format!("s/{n:05}/x"), "x");
    }
    for dir in ["d", "s"] {
        let (names, requests) = store.requests(|| children(&store, dir));
        let expected: Vec<String> = (0..2500).map(|n| format!("{n:05}")).collect();
        assert_eq!(names, expected);
        assert_eq!(requests, list(3), "{dir}");
    }
    let (names, requests) = store.requests(|| matches(&store, "d/*1"));
    assert_eq!((names.len(), requests), (250, list(3)));
    let (names, requests) = store.requests(|| matches(&store, "d/000*"));
    assert_eq!((names.len(), requests), (100, list(1)));
}

#[test]
fn five_thousand_names_are_five_requests() {
    let store = Store::with("listing-slow", &[("listing_ttl_ms", "0")]);
    for n in 0..5000 {
        store.put(&format!("d/part-{n:05}.tfrecord"), "x");
    }
    let (names, requests) = store.requests(|| children(&store, "d"));
    assert_eq!((names.len(), requests), (5000, list(5)));
    let (names, requests) = store.requests(|| matches(&store, "d/part-*.tfrecord"));
    assert_eq!((names.len(), requests), (5000, list(5)));
}

#[test]
fn a_store_that_goes_round_in_circles_is_not_followed() {
    let store = Store::new("listing-circles");
    for n in 0..1500 {
        store.put(&format!("d/{n:04}"), "x");
        store.put(&format!("t/{n:04}/x"), "x");
    }
    store.inject(Fault::new(When::All, What::EndlessListing).operation("ListObjectsV2"));
    store.reset_log();
    for answer in [
        fs().get_children(store.uri("d")).map(drop),
        fs().get_matching_paths(store.uri("d/*")).map(drop),
        fs().get_matching_paths(store.uri("*/*/*")).map(drop),
        fs().rename_file(store.uri("d"), store.uri("e")),
    ] {
        assert_eq!(code(answer), Code::DataLoss);
    }
    assert!(store.log().len() < 20);
    assert_eq!(store.keys().len(), 3000);
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

#[test]
fn patterns() {
    let store = Store::new("listing-patterns");
    for key in [
        "a/part-0",
        "a/part-1",
        "a/part-x",
        "a/sub/part-0",
        "b/part-0",
        "b/.hidden",
        "m/",
        "n/o/p/q",
        "[1]*?\\",
        "x//y",
        "é/ü",
    ] {
        store.put(key, "x");
    }
    for (pattern, expected) in [
        ("a/part-*", &["a/part-0", "a/part-1", "a/part-x"][..]),
        ("a/part-?", &["a/part-0", "a/part-1", "a/part-x"]),
        ("a/part-[01]", &["a/part-0", "a/part-1"]),
        ("a/part-[^0]", &["a/part-1", "a/part-x"]),
        ("*/part-0", &["a/part-0", "b/part-0"]),
        ("*/*/part-0", &["a/sub/part-0"]),
        ("*", &["[1]*?\\", "a", "b", "m", "n", "x", "é"]),
        ("*/", &["a/", "b/", "m/", "n/", "x/", "é/"]),
        ("*/*/", &["a/sub/", "n/o/"]),
        ("b/*", &["b/.hidden", "b/part-0"]),
        ("n/*/p", &["n/o/p"]),
        ("n/*/p/q", &["n/o/p/q"]),
        ("n/*/*/q", &["n/o/p/q"]),
        ("n/*/p/none", &[]),
        ("a", &["a"]),
        ("a/", &["a/"]),
        ("m", &["m"]),
        ("a/part-0", &["a/part-0"]),
        ("none", &[]),
        ("none/*", &[]),
        ("a/part-0/*", &[]),
        ("m/*", &[]),
        (r"\[1\]\*\?\\", &["[1]*?\\"]),
        (r"[[]1*", &["[1]*?\\"]),
        (r"a/part-\x", &["a/part-x"]),
        ("é/?", &["é/ü"]),
        ("x//*", &["x//y"]),
        ("x/*/y", &[]),
    ] {
        assert_eq!(matches(&store, pattern), expected, "{pattern}");
    }
    let bucket = format!("s3://{}", store.bucket());
    assert_eq!(fs().get_matching_paths(&bucket).unwrap(), [bucket.as_bytes()]);
    assert!(fs().get_matching_paths("").unwrap().is_empty());
}

/// What the pattern language says of all keys and the directories that they are in.
fn expected(keys: &[String], pattern: &str) -> Vec<String> {
    let wanted: Vec<&str> = pattern.split('/').collect();
    let mut found: Vec<String> = keys
        .iter()
        .filter_map(|key| {
            let parts: Vec<&str> = key.split('/').collect();
            let matches = parts.len() >= wanted.len()
                && wanted
                    .iter()
                    .zip(&parts)
                    .all(|(pattern, part)| glob::matches(pattern.as_bytes(), part.as_bytes()));
            matches.then(|| parts[..wanted.len()].join("/"))
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn a_tree_needs_one_request() {
    let store = Store::with("listing-tree", &[("listing_ttl_ms", "0")]);
    for n in 0..500 {
        store.put(&format!("tree/{}/{}/file-{n}", n % 20, n / 20 % 6), "x");
    }
    let (found, requests) = store.requests(|| matches(&store, "tree/*/*/*"));
    assert_eq!((found, requests), (expected(&store.keys(), "tree/*/*/*"), list(1)));
}

#[test]
fn the_way_with_few_requests_is_taken() {
    // Many small directories: a flat listing.
    let store = Store::with("listing-flat", &[("listing_ttl_ms", "0")]);
    for dir in 0..300 {
        for n in 0..10 {
            store.put(&format!("runs/{dir:03}/part-{n}"), "x");
        }
    }
    let (found, requests) = store.requests(|| matches(&store, "runs/*/part-[35]"));
    assert_eq!(found, expected(&store.keys(), "runs/*/part-[35]"));
    assert!(requests["ListObjectsV2"] <= 5, "{requests:?}");
    // Few large ones, of which one matches: one by one.
    let store = Store::with("listing-level", &[("listing_ttl_ms", "0")]);
    for dir in 0..4 {
        for n in 0..5000 {
            store.put(&format!("runs/{dir}/deep/part-{n}"), "x");
        }
    }
    for (pattern, most) in
        [("runs/2/*/part-77", 3), ("runs/*/*", 8), ("runs/*/deep/part-4999", 8), ("runs/3/*/*", 7)]
    {
        let (found, requests) = store.requests(|| matches(&store, pattern));
        assert_eq!(found, expected(&store.keys(), pattern), "{pattern}");
        assert!(requests["ListObjectsV2"] <= most, "{pattern}: {requests:?}");
    }
    // Directories are listed side by side.
    assert!(trips(&store, || drop(matches(&store, "runs/*/deep/part-4999"))) <= 5);
    // One large directory after many small ones: the flat listing is given up.
    let store = Store::with("listing-mixed", &[("listing_ttl_ms", "0")]);
    for dir in 0..200 {
        store.put(&format!("{dir:03}/x"), "x");
    }
    for n in 0..30_000 {
        store.put(&format!("150/y{n}"), "x");
    }
    let (found, requests) = store.requests(|| matches(&store, "*/x"));
    assert_eq!(found.len(), 200);
    assert!(requests["ListObjectsV2"] <= 2 * 200, "{requests:?}");
}

#[test]
fn a_pattern_answers_what_follows_it() {
    let store = Store::with("listing-follow", &[("listing_ttl_ms", "60000")]);
    for n in 0..200 {
        store.put(&format!("d/part-{n:03}"), "x");
        store.put(&format!("t/{}/{n:03}", n % 7), "x");
    }
    let (found, requests) = store.requests(|| {
        let found = [matches(&store, "d/part-*"), matches(&store, "t/*/*")].concat();
        for key in &found {
            assert_eq!(fs().stat(store.uri(key)).unwrap().length, 1);
        }
        fs().is_directory(store.uri("t/3")).unwrap();
        assert_eq!(code(fs().stat(store.uri("d/part-999"))), Code::NotFound);
        found
    });
    assert_eq!((found.len(), requests), (400, list(2)));
}

/// As Python's `gfile.walk` asks: files found.
fn walk(store: &Store, key: &str) -> usize {
    fs().is_directory(store.uri(key)).unwrap();
    let names = children(store, key);
    let path = |name: &String| if key.is_empty() { name.clone() } else { format!("{key}/{name}") };
    let (dirs, files): (Vec<_>, Vec<_>) =
        names.iter().map(path).partition(|path| fs().is_directory(store.uri(path)).is_ok());
    files.len() + dirs.iter().map(|dir| walk(store, dir)).sum::<usize>()
}

/// In a process of its own: the tests of a process share what the plugin remembers.
#[test]
fn a_walk_needs_few_requests() {
    alone(this_test!(), || {
        let store = Store::with("listing-walk", &[("listing_ttl_ms", "60000")]);
        for n in 0..500 {
            store.put(&format!("tree/{}/{}/file-{n}", n % 20, n / 20 % 6), "x");
        }
        store.put("tree/empty/", "");
        // Whether `tree` is a directory, its listing, and one that is read ahead.
        let (files, requests) = store.requests(|| walk(&store, "tree"));
        assert_eq!((files, requests), (500, list(3)));
        // With thousands of files a request shows a thousand of them.
        let store = Store::with("listing-walk-large", &[("listing_ttl_ms", "60000")]);
        for n in 0..4000 {
            store.put(&format!("t/{:03}/{n}", n % 400), "x");
        }
        let (files, requests) = store.requests(|| walk(&store, "t"));
        assert_eq!(files, 4000);
        assert!(requests["ListObjectsV2"] <= 8, "{requests:?}");
        // A directory too large for a page is shown whole.
        let store = Store::with("listing-walk-deep", &[("listing_ttl_ms", "60000")]);
        for n in 0..3500 {
            store.put(&format!("t/a/{}/{n}", n % 3), "x");
            store.put(&format!("t/b/{n}"), "x");
        }
        let (files, requests) = store.requests(|| walk(&store, "t"));
        assert_eq!(files, 7000);
        assert!(requests["ListObjectsV2"] <= 24, "{requests:?}");
    });
}

#[test]
fn a_walk_sees_what_this_process_does_on_its_way() {
    let store = Store::with("listing-walk-own", &[("listing_ttl_ms", "60000")]);
    for key in ["t/a/1", "t/b/1", "t/c/1"] {
        store.put(key, "x");
    }
    assert_eq!(children(&store, "t"), ["a", "b", "c"]);
    assert_eq!(children(&store, "t/a"), ["1"]);
    fs().write_file(store.uri("t/b/2"), "x").unwrap();
    fs().delete_file(store.uri("t/c/1")).unwrap();
    assert_eq!(children(&store, "t/b"), ["1", "2"]);
    assert_eq!(code(fs().get_children(store.uri("t/c"))), Code::NotFound);
    // Who lists again wants to see what is new.
    store.put("t/a/other", "x");
    assert_eq!(children(&store, "t/a"), ["1", "other"]);
}
