//! What a response proves of a store, and what it does not.

use super::{MIB, shown, store};
use s3_server::{Conditions, Fault, Quirks, Reply, What, When};
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{Store, code, content, fs};

/// Before the `nth` request of this operation from now on, another process does this.
fn meanwhile(
    store: &Store,
    operation: &str,
    nth: usize,
    work: impl Fn(&s3_server::Handle, &str) + Send + Sync + 'static,
) {
    let bucket = store.bucket().to_owned();
    let work = What::run(move |server, _| work(server, &bucket));
    store.inject(Fault::new(When::Nth(nth), work).operation(operation));
}

/// A store that has shown that it checks conditions of PutObject.
fn checking(topic: &str) -> Store {
    let store = store(topic, Quirks::default());
    for old in [Some("old"), None] {
        if let Some(old) = old {
            store.put("known", old);
        }
        let mut file = fs().new_appendable_file(store.uri("known")).unwrap();
        file.append(b"1").unwrap();
        meanwhile(&store, "PutObject", 1, |server, bucket| {
            server.put(bucket, "known", "theirs");
        });
        assert_eq!(code(file.close()), Code::FailedPrecondition);
        store.clear_faults();
        assert!(server_has(&store, "known", b"theirs"));
        assert!(store.delete(store.bucket(), "known"));
    }
    for what in ["put_if_match", "put_if_none_match"] {
        assert_eq!(shown(&store, what), "checked");
    }
    store
}

fn server_has(store: &Store, key: &str, bytes: &[u8]) -> bool {
    store.get(key).is_some_and(|stored| stored == bytes)
}

/// What is refused for a reason that is gone when HeadObject looks says nothing of the store.
#[test]
fn a_race_switches_nothing_off() {
    let store = checking("quirks-race");
    // Created, and deleted again before anybody looks, and created once more.
    let mut file = fs().new_appendable_file(store.uri("new")).unwrap();
    file.append(b"mine").unwrap();
    for nth in [1, 2] {
        meanwhile(&store, "PutObject", nth, |server, bucket| {
            server.put(bucket, "new", "theirs");
        });
    }
    meanwhile(&store, "HeadObject", 1, |server, bucket| {
        server.delete(bucket, "new");
    });
    assert_eq!(code(file.close()), Code::FailedPrecondition);
    store.clear_faults();
    assert!(server_has(&store, "new", b"theirs"));
    assert_eq!(shown(&store, "put_if_none_match"), "checked");
    // Replaced, and put back.
    store.put("file", "old");
    let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
    file.append(b"1").unwrap();
    meanwhile(&store, "PutObject", 1, |server, bucket| {
        server.put(bucket, "file", "theirs");
    });
    meanwhile(&store, "HeadObject", 1, |server, bucket| {
        server.put(bucket, "file", "old");
    });
    file.close().unwrap();
    store.clear_faults();
    assert!(server_has(&store, "file", b"old1"));
    assert_eq!(shown(&store, "put_if_match"), "checked");
    // A store that refuses the write without its condition, too, has shown nothing.
    store.put("file", "old");
    let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
    file.append(b"1").unwrap();
    let refused = What::status(412, "PreconditionFailed");
    store.inject(Fault::new(When::All, refused).operation("PutObject"));
    let error = file.close().unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
    store.clear_faults();
    assert!(server_has(&store, "file", b"old"));
    assert_eq!(shown(&store, "put_if_match"), "checked");
    let sent = store.log();
    let writes: Vec<_> = sent.iter().filter(|request| request.operation == "PutObject").collect();
    let [conditional @ .., last] = &writes[..] else { panic!("{writes:?}") };
    assert!(conditional.len() > 6);
    for request in conditional {
        let etag = request.headers.get("if-match").or(request.headers.get("if-none-match"));
        assert!(etag.is_some_and(|etag| etag.contains('"') || etag == "*"), "{request:?}");
    }
    assert!(!last.headers.contains_key("if-match"), "{last:?}");
}

/// 501 is about a condition only if the same request without it is done.
#[test]
fn a_501_proves_nothing_alone() {
    let append = |store: &Store, key: &str| {
        let mut file = fs().new_appendable_file(store.uri(key)).unwrap();
        file.append(b"1").unwrap();
        let done = file.close();
        store.clear_faults();
        done
    };
    let refuse = |store: &Store| {
        let refused = What::status(501, "NotImplemented");
        store.inject(Fault::new(When::All, refused).operation("PutObject"));
    };
    let store = store("quirks-501", Quirks::default());
    store.put("file", "old");
    refuse(&store);
    assert_eq!(code(append(&store, "file")), Code::Unimplemented);
    assert_eq!(shown(&store, "put_if_match"), "not shown yet");
    let store = checking("quirks-501-checking");
    store.put("file", "old");
    refuse(&store);
    assert_eq!(code(append(&store, "file")), Code::Unimplemented);
    assert_eq!(shown(&store, "put_if_match"), "checked");
    assert!(server_has(&store, "file", b"old"));
}

/// That the source of a copy is gone does not show that the store looks at its ETag.
#[test]
fn a_source_that_is_gone_proves_nothing() {
    let ignores = Quirks { copy: Conditions::Ignored, ..Quirks::default() };
    let store = store("quirks-gone", ignores);
    store.put_sparse(store.bucket(), "file", 256 << 20);
    fs().stat(store.uri("file")).unwrap();
    meanwhile(&store, "UploadPartCopy", 3, |server, bucket| {
        server.delete(bucket, "file");
    });
    assert!(fs().copy_file(store.uri("file"), store.uri("copy")).is_err());
    assert_eq!(store.get("copy").map(|_| ()), None);
    assert_eq!(shown(&store, "copy_source_if_match"), "not shown yet");
}

/// Where the plugin looks itself, it looks before each attempt, and knows what it made.
#[test]
fn each_attempt_is_looked_before() {
    for (topic, size) in [("quirks-each", 100), ("quirks-each-parts", 9 * MIB)] {
        let ignored = Conditions::Ignored;
        let quirks = Quirks { put: ignored, complete: ignored, ..Quirks::default() };
        let store = store(topic, quirks);
        let operation = if size < MIB { "PutObject" } else { "CompleteMultipartUpload" };
        let mut bytes = content(size, 1);
        store.put("file", "old");
        let append = |what: Option<What>, theirs: bool| {
            let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
            file.append(&bytes).unwrap();
            if let Some(what) = what {
                store.inject(Fault::new(When::Nth(1), what).operation(operation));
            }
            if theirs {
                // The first HeadObject is the look before the first attempt.
                meanwhile(&store, "HeadObject", 2, |server, bucket| {
                    server.put(bucket, "file", "theirs");
                });
            }
            let (done, requests) = store.requests(|| file.close());
            store.clear_faults();
            (done, requests)
        };
        let (done, requests) = append(Some(What::status(503, "SlowDown")), false);
        done.unwrap();
        assert_eq!((requests[operation], requests["HeadObject"]), (2, 3), "{topic}");
        // Done, though nobody said so.
        let lost = || What::DoneThenStatus(Reply::new(503, "SlowDown"));
        store.put("file", "old");
        let (done, requests) = append(Some(lost()), false);
        done.unwrap();
        assert_eq!((requests[operation], requests["HeadObject"]), (1, 2), "{topic}");
        // And replaced since.
        store.put("file", "old");
        let (done, requests) = append(Some(lost()), true);
        assert_eq!(code(done), Code::FailedPrecondition, "{topic}");
        assert_eq!(requests[operation], 1, "{topic}");
        assert!(server_has(&store, "file", b"theirs"), "{topic}");
        store.put("file", "old");
        let (done, _) = append(None, false);
        done.unwrap();
        bytes.splice(0..0, *b"old");
        assert!(server_has(&store, "file", &bytes), "{topic}");
    }
}

/// Whoever may not look is told what to set.
#[test]
fn who_may_not_look_is_told_what_to_set() {
    let store = store("quirks-blind", Quirks::default());
    store.put("file", "old");
    let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
    file.append(b"1").unwrap();
    store.inject(Fault::new(When::All, What::status(403, "AccessDenied")).operation("HeadObject"));
    let error = file.close().unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied);
    assert!(error.to_string().contains("set put_conditions=quoted"), "{error:#}");
}

/// Also when the part does not arrive.
#[test]
fn probe_leaves_no_upload_behind() {
    let store = store("quirks-probe-part", Quirks::default());
    let refused = What::status(403, "AccessDenied");
    store.inject(Fault::new(When::All, refused).operation("UploadPart"));
    assert!(s3::probe(&store.uri("below")).is_err());
    assert_eq!(store.open_uploads(), [""; 0]);
}

/// Before anything was sent, the same content is another process's.
#[test]
fn the_same_content_is_not_ours() {
    let store = store("quirks-same", Quirks { put: Conditions::Ignored, ..Quirks::default() });
    let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
    file.append(b"same").unwrap();
    store.put("file", "same");
    assert_eq!(code(file.close()), Code::FailedPrecondition);
}
