//! What files open for writing send to the store. How they behave is tested on the memory store of the engine.

use s3_server::{Fault, Request, What, When};
use std::time::Duration;
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{Store, code, content, counts, eventually, fs, host};
use tf_plugin_testing::filesystem::TestWritableFile;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn create(store: &Store, key: &str) -> TestWritableFile {
    fs().new_writable_file(store.uri(key)).unwrap()
}

/// Bytes sent by the plugin.
fn bytes_up(store: &Store) -> u64 {
    store.log().iter().map(|request| request.bytes_in).sum()
}

/// Bytes of bodies received by the plugin.
fn bytes_down(store: &Store) -> u64 {
    store.log().iter().map(|request| request.bytes_out).sum()
}

#[test]
fn a_large_file_goes_up_in_parts_while_it_is_written() {
    let store = Store::new("writing-parts");
    let bytes = content(20 * MIB + 7, 1);
    store.put("file", "old");
    let ((), requests) = store.requests(|| {
        let mut file = create(&store, "file");
        for piece in bytes.chunks(MIB) {
            file.append(piece).unwrap();
        }
        assert_eq!(file.tell().unwrap(), bytes.len() as u64);
        // Before the file is closed, the store has the full parts and no other process sees them.
        let has_parts =
            || store.uploads(store.bucket()).iter().any(|upload| upload.parts.len() == 2);
        assert!(eventually(Duration::from_secs(5), has_parts));
        assert_eq!(store.get("file"), Some(b"old".to_vec()));
        file.close().unwrap();
    });
    let expected =
        [("CreateMultipartUpload", 1), ("UploadPart", 3), ("CompleteMultipartUpload", 1)];
    assert_eq!(requests, counts(expected));
    assert_eq!(store.get("file"), Some(bytes));
    assert_eq!(store.open_uploads(), [""; 0]);
}

#[test]
fn every_byte_carries_a_checksum_and_no_body_is_signed() {
    let store = Store::new("writing-checksums");
    let mut file = create(&store, "small");
    file.append(b"123456789").unwrap();
    file.close().unwrap();
    let mut file = create(&store, "large");
    file.append(&content(9 * MIB, 1)).unwrap();
    file.close().unwrap();
    let log = store.log();
    let of = |operation| log.iter().filter(move |request| request.operation == operation);
    assert_eq!(of("PutObject").next().unwrap().headers["x-amz-checksum-crc32"], "y/Q5Jg==");
    assert_eq!(of("UploadPart").count(), 2);
    for request in of("PutObject").chain(of("UploadPart")) {
        assert!(request.headers.contains_key("x-amz-checksum-crc32"), "{request:?}");
        assert_eq!(request.headers["x-amz-content-sha256"], "UNSIGNED-PAYLOAD", "{request:?}");
        assert!(!request.headers.contains_key("x-amz-trailer"), "{request:?}");
    }
    let complete = of("CompleteMultipartUpload").next().unwrap();
    assert_eq!(complete.headers["x-amz-mp-object-size"], (9 * MIB).to_string());
}

#[test]
fn without_checksums_the_length_is_asked_for() {
    let store = Store::with("writing-plain", &[("checksums", "when_required")]);
    let ((), requests) = store.requests(|| {
        let mut file = create(&store, "small");
        file.append(b"123456789").unwrap();
        file.close().unwrap();
    });
    // The ETags of this server are not MD5 sums.
    assert_eq!(requests, counts([("PutObject", 1), ("HeadObject", 1)]));
    assert!(!store.log()[0].headers.contains_key("x-amz-checksum-crc32"));
    let ((), requests) = store.requests(|| {
        let mut file = create(&store, "large");
        file.append(&content(9 * MIB, 1)).unwrap();
        file.close().unwrap();
    });
    let expected = [
        ("CreateMultipartUpload", 1),
        ("UploadPart", 2),
        ("CompleteMultipartUpload", 1),
        ("HeadObject", 1),
    ];
    assert_eq!(requests, counts(expected));
    assert_eq!(store.get("large"), Some(content(9 * MIB, 1)));
}

#[test]
fn without_checksums_an_md5_proves_it_too() {
    let options = s3_server::Options { fast: false, ..s3_server::Options::default() };
    let store = Store::start("writing-md5", options, &[("checksums", "when_required")]);
    let ((), requests) = store.requests(|| {
        let mut file = create(&store, "small");
        file.append(b"123456789").unwrap();
        file.close().unwrap();
    });
    assert_eq!(requests, counts([("PutObject", 1)]));
}

#[test]
fn fifty_flushes_of_an_event_file() {
    let store = Store::new("writing-events");
    let bytes = content(50 * 200_000, 1);
    let ((), requests) = store.requests(|| {
        let mut file = create(&store, "events");
        for piece in bytes.chunks(200_000) {
            for record in piece.chunks(70_000) {
                file.append(record).unwrap();
            }
            file.flush().unwrap();
            file.sync().unwrap();
        }
        file.close().unwrap();
    });
    let total: usize = requests.values().sum();
    assert!(total <= 125, "{total}: {requests:?}");
    // Whole up to the first 5 MiB, which S3 requires of a part to copy: 27 × 28 ÷ 2 × 200 kB; then 23 × 200 kB.
    let up = bytes_up(&store);
    assert!((80_200_000..80_300_000).contains(&up), "{up}");
    assert_eq!(store.get("events"), Some(bytes));
}

#[test]
fn appending_to_a_large_object_downloads_nothing() {
    let store = Store::new("writing-append");
    let old = content(8 * MIB, 1);
    store.put("file", old.clone());
    let ((), requests) = store.requests(|| {
        let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
        assert_eq!(file.tell().unwrap(), old.len() as u64);
        file.append(&[7; KIB]).unwrap();
        file.close().unwrap();
    });
    let expected = [
        ("HeadObject", 1),
        ("CreateMultipartUpload", 1),
        ("UploadPartCopy", 1),
        ("UploadPart", 1),
        ("CompleteMultipartUpload", 1),
    ];
    assert_eq!(requests, counts(expected));
    assert!(bytes_down(&store) < 10 * KIB as u64);
    assert!(bytes_up(&store) < 10 * KIB as u64);
    assert_eq!(store.get("file"), Some([old, vec![7; KIB]].concat()));
}

#[test]
fn appending_to_a_huge_object_copies_it_in_parts_that_take_little_time() {
    // The checksums of so many bytes would take the server longer than all the rest.
    let store = Store::with("writing-append-huge", &[("checksums", "when_required")]);
    let len = 5 * (1 << 30) + 1;
    store.put_sparse(store.bucket(), "file", len);
    let ((), requests) = store.requests(|| {
        let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
        assert_eq!(file.tell().unwrap(), len);
        file.append(b"more").unwrap();
        file.close().unwrap();
    });
    assert_eq!((requests["UploadPartCopy"], requests["UploadPart"]), (81, 1));
    assert_eq!(store.stat(store.bucket(), "file").unwrap().len, len + 4);
    assert_eq!(store.read(store.bucket(), "file", len - 2..len + 4).unwrap(), &b"\0\0more"[..]);
}

#[test]
fn an_etag_that_is_weak_at_first_is_of_the_same_version() {
    let store = Store::new("writing-append-weak");
    for is_changed in [false, true] {
        store.put("file", "old");
        let weak = format!("W/\"{}\"", store.stat(store.bucket(), "file").unwrap().etag);
        store.clear_faults();
        store.inject(
            Fault::new(When::Nth(1), What::Header("etag".into(), weak)).operation("HeadObject"),
        );
        let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
        file.append(b" and new").unwrap();
        if is_changed {
            store.put("file", "ab!");
        }
        let (closed, requests) = store.requests(|| file.close());
        if is_changed {
            assert_eq!(closed.unwrap_err().code(), Code::FailedPrecondition);
            assert!(!requests.contains_key("PutObject"), "{requests:?}");
        } else {
            closed.unwrap();
            assert_eq!(store.get("file").unwrap(), b"old and new");
            // No condition holds with a weak one.
            assert!(store.log().iter().all(|request| !request.headers.contains_key("if-match")));
        }
    }
}

#[test]
fn settings_go_with_every_object() {
    let settings = [
        ("server_side_encryption", "aws:kms"),
        ("sse_kms_key_id", "a-key"),
        ("storage_class", "STANDARD_IA"),
        ("requester_pays", "1"),
        ("content_type", "application/x-tfrecord"),
        ("acl", "bucket-owner-full-control"),
    ];
    let store = Store::with("writing-attributes", &settings);
    let mut file = create(&store, "file");
    file.append(&content(100, 1)).unwrap();
    file.flush().unwrap();
    file.append(&content(20 * MIB, 1)).unwrap();
    file.flush().unwrap();
    file.append(b"more").unwrap();
    file.close().unwrap();
    assert_makes(&store.log(), 3, Some("application/x-tfrecord"), Some("STANDARD_IA"));
    // Copies: with one request, by a rename, and in parts.
    store.reset_log();
    fs().copy_file(store.uri("file"), store.uri("copy")).unwrap();
    fs().rename_file(store.uri("copy"), store.uri("moved")).unwrap();
    assert_makes(&store.log(), 2, None, Some("STANDARD_IA"));
    store.put_sparse(store.bucket(), "d/large", 256 << 20);
    fs().get_children(store.uri("d")).unwrap();
    store.reset_log();
    fs().copy_file(store.uri("d/large"), store.uri("copy")).unwrap();
    assert_makes(&store.log(), 1, None, Some("STANDARD_IA"));
    // An empty marker has no storage class: some charge for more bytes than there are.
    store.reset_log();
    fs().create_dir(store.uri("new")).unwrap();
    assert_makes(&store.log(), 1, Some("application/x-directory"), None);
}

/// All requests have the settings of all, and those that make an object, of which there are so many, those of objects.
fn assert_makes(log: &[Request], count: usize, content_type: Option<&str>, class: Option<&str>) {
    for request in log {
        assert_eq!(request.headers["x-amz-request-payer"], "requester", "{request:?}");
    }
    let makes =
        |operation| matches!(operation, "PutObject" | "CopyObject" | "CreateMultipartUpload");
    let made: Vec<_> = log.iter().filter(|request| makes(request.operation)).collect();
    assert_eq!(made.len(), count, "{made:?}");
    for request in made {
        let header = |name: &str| request.headers.get(name).map(String::as_str);
        assert_eq!(header("x-amz-server-side-encryption"), Some("aws:kms"));
        assert_eq!(header("x-amz-server-side-encryption-aws-kms-key-id"), Some("a-key"));
        assert_eq!(header("x-amz-storage-class"), class);
        assert_eq!(header("x-amz-acl"), Some("bucket-owner-full-control"));
        if content_type.is_some() {
            assert_eq!(header("content-type"), content_type);
        }
    }
}

#[test]
fn a_conflict_with_another_request_passes_except_for_an_upload() {
    let store = Store::new("writing-conflict");
    for name in ["ConditionalRequestConflict", "OperationAborted"] {
        let conflict = |operation| {
            store.clear_faults();
            let fault = Fault::new(When::Nth(1), What::status(409, name)).operation(operation);
            store.inject(fault)
        };
        let put = conflict("PutObject");
        host().write_file(store.uri("small"), name.as_bytes()).unwrap();
        assert_eq!(store.met(put), 1);
        assert_eq!(store.get("small").unwrap(), name.as_bytes());
        conflict("CompleteMultipartUpload");
        let mut file = create(&store, "large");
        file.append(&content(20 * MIB, 1)).unwrap();
        assert_eq!(code(file.close()), Code::Aborted, "{name}");
        drop(file);
        assert_eq!(store.keys(), ["small"]);
    }
}

#[test]
fn keys_are_written_as_they_are() {
    let store = Store::new("writing-keys");
    let keys = ["a//b", "a/../b", "./a", "a b+c%20d", "ü/🦀", "a=b&c?d#e", "[1]*\\", "a\tb"];
    for key in keys {
        let mut file = create(&store, key);
        file.append(&content(6 * MIB, 1)).unwrap();
        file.flush().unwrap();
        // By a copy of itself.
        file.append(b"more").unwrap();
        file.close().unwrap();
    }
    let mut expected = keys.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(store.keys(), expected);
    for key in keys {
        assert_eq!(store.get(key), Some([content(6 * MIB, 1), b"more".to_vec()].concat()), "{key}");
    }
}

#[test]
fn what_is_stored_compressed_is_given_as_it_is() {
    let store = Store::with("writing-gzip", &[("read_part_bytes", "65536")]);
    for len in [3_000, 300_000] {
        // Bytes that no decoder would like.
        let body = content(len, 7);
        store.put("file.gz", body.clone());
        store.describe(store.bucket(), "file.gz", |info| {
            info.content_encoding = Some("gzip".into());
        });
        assert!(host().read_file(store.uri("file.gz")).unwrap() == body);
        let file = fs().new_random_access_file(store.uri("file.gz")).unwrap();
        assert!(file.read(1_000, 1_500).unwrap() == body[1_000..2_500]);
        assert_eq!(fs().stat(store.uri("file.gz")).unwrap().length, len as u64);
        fs().copy_file(store.uri("file.gz"), store.uri("copy.gz")).unwrap();
        let mut file = fs().new_appendable_file(store.uri("copy.gz")).unwrap();
        file.append(b"more").unwrap();
        file.close().unwrap();
        assert!(store.get("copy.gz").unwrap() == [&body, &b"more"[..]].concat());
        let kept = store.stat(store.bucket(), "copy.gz").unwrap().content_encoding;
        assert_eq!(kept.as_deref(), Some("gzip"));
    }
    // A proxy that compresses on the way is not believed.
    store.set(&[("max_attempts", "2"), ("retry_backoff_ms", "1")]);
    store.inject(Fault::new(When::All, What::Gzip).operation("GetObject"));
    assert_eq!(code(host().read_file(store.uri("file.gz"))), Code::Unavailable);
}
