//! Stores of each kind, and what is learned of them.

use super::{MIB, shown, shown_of, store};
use s3_server::{Conditions, Fault, Quirks, Reply, What, When};
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{IMPATIENT, Store, code, content, counts, fs, guarantees, host, table};

#[test]
fn ceph() {
    let store = store("quirks-ceph", Quirks::CEPH);
    guarantees::all(&store.uri(""));
    assert_eq!(shown(&store, "put_if_match"), "checked without quotes");
    assert_eq!(shown(&store, "complete_if_match"), "not shown yet");
    assert_eq!(store.open_uploads(), [""; 0]);
}

#[test]
fn swift() {
    let store = store("quirks-swift", Quirks::SWIFT);
    guarantees::all(&store.uri(""));
    assert_eq!(shown(&store, "put_if_match"), "refused");
    assert_eq!(shown(&store, "complete_if_match"), "refused");
    assert_eq!(shown(&store, "copy_source_if_match"), "refused");
    assert_eq!(shown(&store, "part_checksums"), "refused");
    assert_eq!(store.open_uploads(), [""; 0]);
}

fn whatever_becomes_of(conditions: Conditions, topic: &str) {
    let same =
        Quirks { put: conditions, complete: conditions, copy: conditions, ..Quirks::default() };
    let store = store(topic, same);
    guarantees::flushes_publish(&store.uri(""));
    guarantees::appends_go_on(&store.uri(""));
    guarantees::theirs_stays(&store.uri(""));
    assert_eq!(store.open_uploads(), [""; 0], "{conditions:?}");
}

#[test]
fn conditions_are_checked() {
    whatever_becomes_of(Conditions::Checked, "quirks-checked");
}

#[test]
fn conditions_are_compared_literally() {
    whatever_becomes_of(Conditions::Literal, "quirks-literal");
}

#[test]
fn conditions_are_ignored() {
    whatever_becomes_of(Conditions::Ignored, "quirks-ignored");
}

#[test]
fn conditions_are_unknown() {
    whatever_becomes_of(Conditions::Unknown, "quirks-unknown");
}

#[test]
fn conditions_never_hold() {
    whatever_becomes_of(Conditions::NeverHold, "quirks-never");
}

/// Once an endpoint: the second write knows what the first one learned.
#[test]
fn what_was_learned_is_remembered() {
    let store = store("quirks-learned", Quirks { put: Conditions::Literal, ..Quirks::default() });
    let mut file = fs().new_writable_file(store.uri("file")).unwrap();
    let flush = |file: &mut tf_plugin_testing::filesystem::TestWritableFile| {
        store.requests(|| {
            file.append(b"more").unwrap();
            file.flush().unwrap();
        })
    };
    flush(&mut file);
    // It looks, is refused, looks again and finds the object unchanged, all that once more, and leaves the quotes off.
    let ((), first) = flush(&mut file);
    assert_eq!(first, counts([("HeadObject", 3), ("PutObject", 3)]));
    // That the one was refused and the other not proves that the store looks.
    let ((), second) = flush(&mut file);
    assert_eq!(second, counts([("PutObject", 1)]));
    let sent = store.log();
    let etag = sent.last().unwrap().headers["if-match"].clone();
    assert!(!etag.contains('"'), "{etag}");
}

/// Appends to a file of `bucket`, whose content is `old`, in one request or in parts.
fn append_to(store: &Store, bucket: &str, key: &str, in_parts: bool) -> tf_fs_plugin::Result<()> {
    let old = if in_parts { content(9 * MIB, 1) } else { b"old".to_vec() };
    (**store).put(bucket, key, old.clone());
    let uri = format!("s3://{bucket}/{key}");
    let mut file = fs().new_appendable_file(uri)?;
    file.append(b"more")?;
    file.close()?;
    assert!(
        (**store).get(bucket, key).unwrap().bytes.to_vec() == [old, b"more".to_vec()].concat(),
        "{bucket}"
    );
    Ok(())
}

/// Ceph compares `If-Match` in a bucket without versions, and rejects it in one with them.
#[test]
fn buckets_of_one_store_differ() {
    let store = store("quirks-buckets", Quirks::CEPH);
    guarantees::flushes_publish(&store.uri(""));
    assert_eq!(shown(&store, "put_if_match"), "checked without quotes");
    for (bucket, conditions) in [
        ("quirks-buckets-never", Conditions::NeverHold),
        ("quirks-buckets-unknown", Conditions::Unknown),
        ("quirks-buckets-checked", Conditions::Checked),
    ] {
        store.create_bucket(bucket);
        store.introduce_bucket(host(), bucket, &[]).unwrap();
        let same = Quirks { put: conditions, complete: conditions, ..Quirks::CEPH };
        store.set_bucket_quirks(bucket, same);
        for (key, in_parts) in [("small", false), ("large", true), ("small", false)] {
            append_to(&store, bucket, key, in_parts).unwrap();
        }
        let learned = shown_of(&store, bucket, "put_if_match");
        assert_eq!(learned == "refused", conditions != Conditions::Checked, "{learned}");
    }
    assert_eq!(shown(&store, "put_if_match"), "checked without quotes");
    assert_eq!(store.open_uploads(), [""; 0]);
}

/// A bucket gets versions, or a gateway another release. What was learned before does not make writes fail.
#[test]
fn a_store_that_has_checked_conditions_may_refuse_them() {
    for (topic, later) in [
        ("quirks-later-never", Conditions::NeverHold),
        ("quirks-later-unknown", Conditions::Unknown),
    ] {
        let store = store(topic, Quirks::default());
        // A twelfth is how long they have to.
        store.set(&[("retry_timeout_ms", "6000")]);
        let bucket = store.bucket().to_owned();
        for (operation, in_parts, what) in [
            ("PutObject", false, "put_if_match"),
            ("CompleteMultipartUpload", true, "complete_if_match"),
        ] {
            store.set_quirks(Quirks::default());
            append_to(&store, &bucket, "file", in_parts).unwrap();
            let (server, name) = ((*store).clone(), bucket.clone());
            let theirs = What::run(move |_, _| {
                server.put(&name, "file", "theirs");
            });
            store.inject(Fault::new(When::Nth(1), theirs).operation(operation));
            assert_eq!(
                append_to(&store, &bucket, "file", in_parts).unwrap_err().code(),
                Code::FailedPrecondition
            );
            store.clear_faults();
            assert_eq!(shown(&store, what), "checked");
            store.set_quirks(Quirks { put: later, complete: later, ..Quirks::default() });
            for n in 0..3 {
                append_to(&store, &bucket, &format!("file{n}"), in_parts).unwrap();
            }
            // What another process has written is kept, as in a store that never checks.
            store.put("file", "old");
            let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
            file.append(b"mine").unwrap();
            store.put("file", "theirs");
            assert_eq!(code(file.close()), Code::FailedPrecondition, "{topic}");
            assert_eq!(store.get("file").unwrap(), b"theirs");
        }
        if later == Conditions::NeverHold {
            assert_eq!(shown(&store, "put_if_match"), "refused");
        }
        assert_eq!(store.open_uploads(), [""; 0]);
    }
}

/// HeadObject may be behind what the condition is compared with, and a proxy may respond with 501. No write is sent without
/// its condition for that.
#[test]
fn a_store_that_has_checked_conditions_is_not_doubted_soon() {
    let store = store("quirks-soon", Quirks::default());
    store.set(&[("retry_timeout_ms", "12000")]);
    let bucket = store.bucket().to_owned();
    append_to(&store, &bucket, "file", false).unwrap();
    let (server, name) = ((*store).clone(), bucket.clone());
    let theirs = What::run(move |_, _| {
        server.put(&name, "file", "theirs");
    });
    store.inject(Fault::new(When::Nth(1), theirs).operation("PutObject"));
    assert_eq!(
        append_to(&store, &bucket, "file", false).unwrap_err().code(),
        Code::FailedPrecondition
    );
    assert_eq!(shown(&store, "put_if_match"), "checked");
    store.clear_faults();
    let begin = store.log().len();
    let refused = What::Status(Reply::new(412, "PreconditionFailed"));
    store.inject(Fault::new(When::All, refused).operation("PutObject").times(4));
    append_to(&store, &bucket, "file", false).unwrap();
    store.clear_faults();
    let between = What::Status(Reply::new(501, "").no_body());
    store.inject(Fault::new(When::All, between).operation("PutObject").times(1));
    let error = append_to(&store, &bucket, "file", false).unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented, "{error:#}");
    let log = store.log();
    let mut puts = log[begin..].iter().filter(|request| request.operation == "PutObject");
    assert!(puts.all(|put| put.headers.contains_key("if-match")), "{log:?}");
}

/// A store that has once refused what did not hold checks what it is told: nobody looks any more.
#[test]
fn a_store_that_checks_is_trusted_once_it_has_shown_it() {
    let store = store("quirks-shown", Quirks::default());
    let uri = store.uri("file");
    let append = |more: &[u8]| {
        store.requests(|| {
            let mut file = fs().new_appendable_file(&uri).unwrap();
            file.append(more).unwrap();
            file.close()
        })
    };
    store.put("file", "old");
    let (done, requests) = append(b"1");
    done.unwrap();
    // To open it, before the write, after it.
    assert_eq!(requests, counts([("HeadObject", 3), ("GetObject", 1), ("PutObject", 1)]));
    // Replaced after the look: only the store can tell.
    let (server, bucket) = ((*store).clone(), store.bucket().to_owned());
    store.inject(
        Fault::new(
            When::All,
            What::run(move |_, _| {
                server.put(&bucket, "file", "theirs");
            }),
        )
        .operation("PutObject")
        .times(1),
    );
    assert_eq!(code(append(b"2").0), Code::FailedPrecondition);
    assert_eq!(store.get("file").unwrap(), b"theirs");
    assert_eq!(shown(&store, "put_if_match"), "checked");
    let (done, requests) = append(b"3");
    done.unwrap();
    assert_eq!(requests, counts([("HeadObject", 1), ("GetObject", 1), ("PutObject", 1)]));
    assert_eq!(store.get("file").unwrap(), b"theirs3");
}

/// The window of a store that checks nothing: what is written between the look and the write is replaced, and what is
/// written between the write and the look after it is noticed.
#[test]
fn the_window_is_as_documented() {
    let ignores = Quirks { put: Conditions::Ignored, ..Quirks::default() };
    let store = store("quirks-window", ignores);
    store.put("file", "old");
    let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
    file.append(b"1").unwrap();
    // The HEAD after the write: 2, as the first one is the look before it.
    let (server, bucket) = ((*store).clone(), store.bucket().to_owned());
    store.inject(
        Fault::new(
            When::Nth(2),
            What::run(move |_, _| {
                server.put(&bucket, "file", "theirs");
            }),
        )
        .operation("HeadObject"),
    );
    let error = file.close().unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
    for part in ["at the same time", "has not shown that it checks If-Match of PutObject"] {
        assert!(error.to_string().contains(part), "{error:#}");
    }
    assert_eq!(store.get("file").unwrap(), b"theirs");
}

/// Whose answers were all lost, so that the second attempt finds its own object.
#[test]
fn a_write_that_was_done_and_failed_can_be_repeated() {
    for (topic, conditions) in [
        ("quirks-again-ignored", Conditions::Ignored),
        ("quirks-again-unknown", Conditions::Unknown),
    ] {
        let store = store(topic, Quirks { put: conditions, ..Quirks::default() });
        store.set(IMPATIENT);
        store.put("file", "old");
        let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
        file.append(b"more").unwrap();
        let lost = What::DoneThenStatus(Reply::new(500, "InternalError"));
        store.inject(Fault::new(When::All, lost).operation("PutObject"));
        // After the look before the write.
        let down = What::status(503, "SlowDown");
        store.inject(Fault::new(When::From(2), down).operation("HeadObject"));
        assert_eq!(code(file.close()), Code::Unavailable, "{topic}");
        store.clear_faults();
        file.close().unwrap();
        assert_eq!(store.get("file").unwrap(), b"oldmore", "{topic}");
    }
}

/// Requests without a body say so: there are stores that require `Content-Length: 0`.
#[test]
fn requests_without_a_body_have_a_length() {
    let store = store("quirks-length", Quirks { length_required: true, ..Quirks::default() });
    let bytes = content(9 * MIB, 1);
    store.put("file", bytes.clone());
    let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
    file.append(b"more").unwrap();
    file.close().unwrap();
    assert_eq!(store.get("file").unwrap(), [bytes, b"more".to_vec()].concat());
    fs().copy_file(store.uri("file"), store.uri("copy")).unwrap();
    fs().create_dir(store.uri("directory")).unwrap();
    fs().new_writable_file(store.uri("empty")).unwrap().close().unwrap();
    let log = store.log();
    let bodies = log.iter().filter(|request| matches!(&*request.method, "PUT" | "POST"));
    for request in bodies {
        assert!(request.headers.contains_key("content-length"), "{request:?}");
    }
}

/// Checksums of parts are left out once a store has refused them, and only there.
#[test]
fn checksums_of_parts_are_sent_unless_they_are_refused() {
    let refuses = Quirks { no_checksums_of_parts: true, ..Quirks::default() };
    for (topic, quirks, first, second, says) in [
        ("quirks-sums", Quirks::default(), 1, 1, "taken"),
        ("quirks-no-sums", refuses, 2, 1, "refused"),
    ] {
        let store = store(topic, quirks);
        for expected in [first, second] {
            let bytes = content(9 * MIB, 1);
            let ((), requests) = store.requests(|| {
                let mut file = fs().new_writable_file(store.uri("file")).unwrap();
                file.append(&bytes).unwrap();
                file.close().unwrap();
            });
            assert_eq!(requests["CompleteMultipartUpload"], expected, "{topic}");
            assert!(store.get("file").unwrap() == bytes);
        }
        assert_eq!(shown(&store, "part_checksums"), says);
    }
}

/// A setting counts before what the store shows, and an error says where it is wrong.
#[test]
fn settings_count_before_what_a_store_shows() {
    let store = store("quirks-settings", Quirks::CEPH);
    let uri = store.uri("file");
    let append = || {
        store.put("file", "old");
        store.requests(|| {
            let mut file = fs().new_appendable_file(&uri).unwrap();
            file.append(b"more").unwrap();
            file.close()
        })
    };
    store.set(&[("put_conditions", "unquoted")]);
    let (done, requests) = append();
    done.unwrap();
    assert_eq!(requests, counts([("HeadObject", 1), ("GetObject", 1), ("PutObject", 1)]));
    store.set(&[("put_conditions", "quoted")]);
    let error = append().0.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    for part in ["If-Match of PutObject", "although HeadObject shows", "set put_conditions to auto"]
    {
        assert!(error.to_string().contains(part), "{error:#}");
    }
    store.set(&[("put_conditions", "none")]);
    let (done, requests) = append();
    done.unwrap();
    assert_eq!(requests, counts([("HeadObject", 3), ("GetObject", 1), ("PutObject", 1)]));
    assert!(!store.log().iter().any(|request| {
        request.operation == "PutObject" && request.headers.contains_key("if-match")
    }));
    assert_eq!(shown(&store, "put_if_match"), "not shown yet");
}

/// A large copy is of one version of the source, also where the store does not look.
#[test]
fn a_copy_in_parts_is_of_one_version() {
    let ignores = Quirks { copy: Conditions::Ignored, ..Quirks::default() };
    let store = store("quirks-versions", ignores);
    store.put_sparse(store.bucket(), "file", 256 << 20);
    let (server, bucket) = ((*store).clone(), store.bucket().to_owned());
    store.inject(
        Fault::new(
            When::Nth(3),
            What::run(move |_, _| {
                server.put_sparse(&bucket, "file", 256 << 20);
            }),
        )
        .operation("UploadPartCopy"),
    );
    let copied = |to: &str| {
        // What it is in parts for is known from the question.
        fs().stat(store.uri("file")).unwrap();
        fs().copy_file(store.uri("file"), store.uri(to))
    };
    let error = copied("mixed").unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
    assert!(error.to_string().contains("x-amz-copy-source-if-match"), "{error:#}");
    assert_eq!(store.get("mixed").map(|_| ()), None);
    copied("whole").unwrap();
    assert_eq!(store.stat(store.bucket(), "whole").unwrap().len, 256 << 20);
    assert_eq!(store.open_uploads(), [""; 0]);
}

/// The program `probe`, on stores whose responses are known.
#[test]
fn probe_tells_what_a_store_can_do() {
    use s3::Observed::{Checked, CheckedUnquoted, Ignored, Refused};
    let probed = |topic: &str, quirks| {
        let store = store(topic, quirks);
        store.put("file", "stays");
        let probed = s3::probe(&store.uri("below")).unwrap();
        assert_eq!(store.keys(), ["file"], "{topic}");
        assert_eq!(store.open_uploads(), [""; 0], "{topic}");
        probed
    };
    let plain = probed("quirks-probe", Quirks::default());
    table::check("the project's server", &plain);
    assert!(plain.rows().into_iter().all(|(_, observed)| observed == Checked), "{plain:?}");
    assert!(plain.guarantees().into_iter().all(|(_, guarantee)| guarantee == "kept"), "{plain:?}");
    let ceph = probed("quirks-probe-ceph", Quirks::CEPH);
    assert_eq!(
        (ceph.put_if_match, ceph.put_if_none_match, ceph.complete_if_match, ceph.copy_if_match),
        (CheckedUnquoted, Checked, Ignored, Ignored)
    );
    assert_eq!(
        ceph.settings(),
        [
            ("put_conditions", "unquoted"),
            ("complete_conditions", "none"),
            ("copy_conditions", "none"),
            ("part_checksums", "send"),
        ]
    );
    let swift = probed("quirks-probe-swift", Quirks::SWIFT);
    assert_eq!(
        (swift.put_if_match, swift.complete_if_match, swift.part_checksum),
        (Refused(501), Refused(412), Refused(400))
    );
    assert_eq!(swift.guarantees()[0].1, "looked for");
}
