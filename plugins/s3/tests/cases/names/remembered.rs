//! What is remembered of names, and for how long.

use super::list;
use s3_server::{Fault, Options, What, When};
use std::time::{Duration, Instant};
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::this_test;
use tf_plugin_s3_tests::{Store, child, code, counts, eventually, fs, host};
use tf_plugin_testing::filesystem::Host;

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
    // A listing is never cached.
    store.put("d/other", "x");
    assert_eq!(fs().get_children(store.uri("d")).unwrap().len(), 22);
}

#[test]
fn everything_can_be_forgotten() {
    // The other tests' listings would be, too.
    child::alone(this_test!(), || {
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
    assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
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
    assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
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
    // A few questions are not a walk: each is a request of its own.
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
