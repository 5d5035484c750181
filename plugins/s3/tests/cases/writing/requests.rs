//! What writing a file costs, and that each byte is proved.

use super::{KIB, MIB, bytes_up, create};
use std::time::Duration;
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{Store, code, content, counts, eventually};

#[test]
fn a_small_file_is_one_put() {
    let store = Store::new("writing-small");
    for size in [1, 12, KIB, 16 * KIB, 16 * KIB + 1, 5 * MIB, 8 * MIB - 1, 8 * MIB] {
        let bytes = content(size, size as u64);
        let ((), requests) = store.requests(|| {
            let mut file = create(&store, "file");
            for piece in bytes.chunks(999_983) {
                file.append(piece).unwrap();
            }
            assert_eq!(file.tell().unwrap(), size as u64);
            file.close().unwrap();
        });
        assert_eq!(requests, counts([("PutObject", 1)]), "{size}");
        assert_eq!(store.get("file"), Some(bytes), "{size}");
    }
}

#[test]
fn an_empty_file_is_an_empty_object() {
    let store = Store::new("writing-empty");
    let ((), requests) = store.requests(|| {
        let mut file = create(&store, "empty");
        file.append(b"").unwrap();
        file.flush().unwrap();
        assert_eq!(store.get("empty"), None);
        file.close().unwrap();
    });
    assert_eq!(requests, counts([("PutObject", 1)]));
    assert_eq!(store.get("empty"), Some(Vec::new()));
}

#[test]
fn opening_asks_the_store_nothing() {
    let store = Store::new("writing-open");
    let (file, requests) = store.requests(|| create(&store, "file"));
    assert_eq!(requests, counts([]));
    drop(file);
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
fn sizes_around_parts_are_stored_exactly() {
    let store = Store::with("writing-sizes", &[("write_part_bytes", "5MiB")]);
    for size in [5 * MIB - 1, 5 * MIB, 5 * MIB + 1, 10 * MIB - 1, 10 * MIB, 10 * MIB + 1, 15 * MIB]
    {
        let bytes = content(size, size as u64);
        for piece in [size, 1_000_003] {
            let ((), requests) = store.requests(|| {
                let mut file = create(&store, "file");
                bytes.chunks(piece).for_each(|piece| file.append(piece).unwrap());
                file.close().unwrap();
            });
            let parts = size.div_ceil(5 * MIB);
            let expected = match parts {
                1 => counts([("PutObject", 1)]),
                _ => counts([
                    ("CreateMultipartUpload", 1),
                    ("UploadPart", parts),
                    ("CompleteMultipartUpload", 1),
                ]),
            };
            assert_eq!(requests, expected, "{size} in {piece}");
            assert_eq!(store.get("file").as_ref(), Some(&bytes), "{size} in {piece}");
        }
    }
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
fn closing_twice_and_flushing_after_costs_nothing() {
    let store = Store::new("writing-close");
    let mut file = create(&store, "file");
    file.append(b"bytes").unwrap();
    file.close().unwrap();
    let ((), requests) = store.requests(|| {
        file.flush().unwrap();
        file.sync().unwrap();
        file.close().unwrap();
        assert_eq!(code(file.append(b"more")), Code::FailedPrecondition);
        drop(file);
    });
    assert_eq!(requests, counts([]));
    assert_eq!(store.get("file"), Some(b"bytes".to_vec()));
}

#[test]
fn a_flush_right_before_the_close_costs_nothing() {
    let store = Store::new("writing-flush-close");
    for size in [KIB, 6 * MIB, 20 * MIB] {
        let bytes = content(size, 1);
        let ((), requests) = store.requests(|| {
            let mut file = create(&store, "file");
            file.append(&bytes).unwrap();
            file.flush().unwrap();
            assert_eq!(store.get("file").as_ref(), Some(&bytes));
            file.sync().unwrap();
            file.close().unwrap();
            file.flush().unwrap();
            file.close().unwrap();
        });
        let expected = match size.div_ceil(8 * MIB) {
            1 => counts([("PutObject", 1)]),
            parts => counts([
                ("CreateMultipartUpload", 1),
                ("UploadPart", parts),
                ("CompleteMultipartUpload", 1),
            ]),
        };
        assert_eq!(requests, expected, "{size}");
    }
}

#[test]
fn flushes_send_the_new_bytes_only() {
    let store = Store::new("writing-flushes");
    let bytes = content(16 * MIB, 1);
    let ((), requests) = store.requests(|| {
        let mut file = create(&store, "file");
        for (index, piece) in bytes.chunks(MIB).enumerate() {
            file.append(piece).unwrap();
            file.flush().unwrap();
            assert_eq!(store.get("file").unwrap(), &bytes[..(index + 1) * MIB]);
            // TensorFlow calls both.
            file.sync().unwrap();
        }
        file.close().unwrap();
    });
    let expected = [
        ("PutObject", 5),
        ("CreateMultipartUpload", 11),
        ("UploadPartCopy", 11),
        ("UploadPart", 11),
        ("CompleteMultipartUpload", 11),
    ];
    assert_eq!(requests, counts(expected));
    // 1 + 2 + 3 + 4 + 5 + 11 × 1 MiB.
    let up = bytes_up(&store);
    assert!((26 * MIB as u64..27 * MIB as u64).contains(&up), "{up}");
    assert_eq!(store.get("file"), Some(bytes));
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
fn a_flush_with_nothing_new_asks_nothing() {
    let store = Store::new("writing-nothing-new");
    let mut file = create(&store, "file");
    file.append(b"bytes").unwrap();
    file.flush().unwrap();
    let ((), requests) = store.requests(|| {
        file.flush().unwrap();
        file.append(b"").unwrap();
        file.sync().unwrap();
        file.close().unwrap();
    });
    assert_eq!(requests, counts([]));
}

#[test]
fn flushes_can_be_spaced_and_turned_off() {
    let store = Store::with("writing-spaced", &[("flush_interval_ms", "3600000")]);
    let mut file = create(&store, "file");
    let ((), requests) = store.requests(|| {
        for byte in b"abc" {
            file.append(&[*byte]).unwrap();
            file.flush().unwrap();
        }
    });
    assert_eq!(requests, counts([("PutObject", 1)]));
    assert_eq!(store.get("file"), Some(b"a".to_vec()));
    file.close().unwrap();
    assert_eq!(store.get("file"), Some(b"abc".to_vec()));

    let store = Store::with("writing-unflushed", &[("publish_on_flush", "0")]);
    let mut file = create(&store, "file");
    let ((), requests) = store.requests(|| {
        file.append(b"abc").unwrap();
        file.flush().unwrap();
        file.sync().unwrap();
    });
    assert_eq!(requests, counts([]));
    file.close().unwrap();
    assert_eq!(store.get("file"), Some(b"abc".to_vec()));
}
