//! What a file is when it is opened: known from a listing, missing, of an odd name.

use super::{gets, open, read_by};
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{Store, content, host};

#[test]
fn what_a_listing_showed_needs_no_request_to_open() {
    let store = Store::with("listed", &[("listing_ttl_ms", "60000")]);
    let body = content(100_000, 4);
    store.put("d/f", body.clone());
    store.put("d/empty", "");
    assert_eq!(host().get_children(store.uri("d")).unwrap().len(), 2);
    let (file, counts) = store.requests(|| open(&store, "d/f"));
    assert_eq!(gets(&counts), 0);
    let (read, counts) = store.requests(|| file.read(0, 200_000).unwrap());
    assert_eq!((read == body, gets(&counts)), (true, 1));
    // Empty, unless it has been filled since.
    let (read, counts) = store.requests(|| read_by(&store, "d/empty", 10));
    assert_eq!((read.len(), gets(&counts)), (0, 1));
    // It was replaced since the listing, and nobody has seen a byte of what it was.
    let new = content(90_000, 5);
    store.put("d/f", new.clone());
    assert_eq!(open(&store, "d/f").read(0, 200_000).unwrap(), new);
}

#[test]
fn what_cannot_be_opened_says_so() {
    let store = Store::new("missing");
    store.put("d/f", "x");
    let code = |key: &str| {
        let (opened, counts) = store.requests(|| host().new_random_access_file(store.uri(key)));
        (opened.expect_err(key).code(), counts.values().sum::<usize>())
    };
    assert_eq!(code("nothing"), (Code::NotFound, 2));
    assert_eq!(code("d"), (Code::FailedPrecondition, 2));
    assert_eq!(code("d/"), (Code::FailedPrecondition, 0));
    assert_eq!(code(""), (Code::FailedPrecondition, 0));
    let error = host().new_random_access_file("s3://no-such-bucket-here/f").expect_err("no bucket");
    assert_ne!(error.code(), Code::Internal, "{error:#}");
    let writing = host().new_writable_file(store.uri("w")).unwrap();
    let error = host().new_random_access_file(store.uri("w")).expect_err("not closed yet");
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(error.message().contains("close it first"), "{error:#}");
    drop(writing);
}

#[test]
fn keys_are_exact() {
    let store = Store::new("keys");
    for key in [
        "a//b",
        "./x",
        "d/../x",
        "ä +%2F?#&=.txt",
        "tab\tnew\nline",
        "~'()*!",
        "😀",
        "a b%20c",
        "[1]*?\\",
    ] {
        store.put(key, key.as_bytes());
        assert_eq!(read_by(&store, key, 100), key.as_bytes(), "{key}");
    }
}

#[test]
fn odd_reads_are_answered() {
    let store = Store::new("odd");
    let body = content(10_000, 1);
    store.put("f", body.clone());
    let file = open(&store, "f");
    for (offset, n, expected) in [
        (0, 0, &body[..0]),
        (20_000, 0, &[]),
        (10_000, 5, &[]),
        (u64::MAX, 5, &[]),
        (u64::MAX - 2, 100, &[]),
        (9_990, 100, &body[9_990..]),
        (3, 5, &body[3..8]),
    ] {
        assert_eq!(file.read(offset, n).unwrap(), expected, "{offset} {n}");
    }
    let (read, status) = file.read_with_status(9_990, 100);
    assert_eq!((read.len(), status.unwrap_err().code()), (10, Code::OutOfRange));
}
