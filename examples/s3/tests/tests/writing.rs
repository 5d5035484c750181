//! Files open for writing: what is stored, when it is visible, and what it costs.

use s3_server::{Fault, What, When};
use std::time::Duration;
use tf_fs_plugin::Code;
use tf_fs_plugin::testing::WritableFile;
use tf_plugin_s3_tests::child::alone;
use tf_plugin_s3_tests::{Store, code, content, counts, eventually, fs, host, logs};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn create(store: &Store, key: &str) -> WritableFile {
    fs().new_writable_file(store.uri(key)).unwrap()
}

/// Bytes sent by the plugin.
fn bytes_up(store: &Store) -> u64 {
    store.log().iter().map(|request| request.bytes_in).sum()
}

/// Bytes of bodies sent to the plugin.
fn bytes_down(store: &Store) -> u64 {
    store.log().iter().map(|request| request.bytes_out).sum()
}

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
        // Before the file is closed, the store has the parts that are full and nobody sees them.
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
    // The ETags of this server are no MD5 sums.
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
            // TensorFlow asks for both.
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
    // Whole up to the first 5 MiB, which S3 wants of a part to copy: 27 × 28 ÷ 2 × 200 kB; then 23 × 200 kB.
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
fn appending_much_to_a_large_object_goes_up_in_parts() {
    let store = Store::new("writing-append-much");
    let (old, new) = (content(5 * MIB, 1), content(20 * MIB, 2));
    store.put("file", old.clone());
    let ((), requests) = store.requests(|| {
        let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
        new.chunks(300_000).for_each(|piece| file.append(piece).unwrap());
        file.close().unwrap();
    });
    assert_eq!((requests["UploadPartCopy"], requests["UploadPart"]), (1, 3));
    assert_eq!(store.get("file"), Some([old, new].concat()));
}

#[test]
fn appending_to_more_than_a_copy_may_have_copies_it_in_pieces() {
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
    assert_eq!((requests["UploadPartCopy"], requests["UploadPart"]), (2, 1));
    assert_eq!(store.stat(store.bucket(), "file").unwrap().len, len + 4);
    assert_eq!(store.read(store.bucket(), "file", len - 2..len + 4).unwrap(), &b"\0\0more"[..]);
}

#[test]
fn appending_to_a_small_object_sends_it_again() {
    let store = Store::new("writing-append-small");
    for (old, new) in [(100, 10), (0, 10), (5 * MIB - 1, 10), (5 * MIB - 1, 20 * MIB)] {
        let (old, new) = (content(old, 1), content(new, 2));
        store.put("file", old.clone());
        let ((), requests) = store.requests(|| {
            let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
            assert_eq!(file.tell().unwrap(), old.len() as u64);
            file.append(&new).unwrap();
            assert_eq!(file.tell().unwrap(), (old.len() + new.len()) as u64);
            file.close().unwrap();
        });
        assert_eq!(requests.get("UploadPartCopy"), None);
        assert_eq!(requests["GetObject"], 1);
        assert_eq!(store.get("file"), Some([old, new].concat()));
    }
}

#[test]
fn appending_to_nothing_creates() {
    let store = Store::new("writing-append-new");
    let ((), requests) = store.requests(|| {
        fs().new_appendable_file(store.uri("empty")).unwrap().close().unwrap();
    });
    assert_eq!(requests, counts([("HeadObject", 1), ("PutObject", 1)]));
    assert_eq!(store.get("empty"), Some(Vec::new()));
    let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
    assert_eq!(file.tell().unwrap(), 0);
    file.append(b"bytes").unwrap();
    file.close().unwrap();
    assert_eq!(store.get("file"), Some(b"bytes".to_vec()));
}

#[test]
fn appending_to_nothing_leaves_what_somebody_else_wrote_meanwhile() {
    let store = Store::new("writing-append-late");
    for size in [100, 20 * MIB] {
        let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
        file.append(&content(size, 1)).unwrap();
        store.put("file", "theirs");
        assert_eq!(code(file.close()), Code::FailedPrecondition);
        drop(file);
        assert_eq!(store.get("file"), Some(b"theirs".to_vec()));
        assert_eq!(store.open_uploads(), [""; 0]);
        store.delete(store.bucket(), "file");
    }
}

#[test]
fn appending_nothing_changes_nothing() {
    let store = Store::new("writing-append-nothing");
    store.put("file", content(6 * MIB, 1));
    let ((), requests) = store.requests(|| {
        let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
        file.append(b"").unwrap();
        file.flush().unwrap();
        file.close().unwrap();
    });
    assert_eq!(requests, counts([("HeadObject", 1)]));
}

#[test]
fn what_somebody_else_wrote_meanwhile_stays() {
    let store = Store::new("writing-replaced");
    for size in [100, 6 * MIB] {
        // Flushed, replaced, flushed again.
        let mut file = create(&store, "file");
        file.append(&content(size, 1)).unwrap();
        file.flush().unwrap();
        store.put("file", "theirs");
        file.append(b"more").unwrap();
        assert_eq!(code(file.flush()), Code::FailedPrecondition, "{size}");
        assert_eq!(code(file.close()), Code::FailedPrecondition, "{size}");
        drop(file);
        assert_eq!(store.get("file"), Some(b"theirs".to_vec()), "{size}");

        // Opened for appending, replaced, closed.
        store.put("file", content(size, 1));
        let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
        file.append(b"more").unwrap();
        store.put("file", "theirs");
        let error = file.close().unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{size}");
        assert!(error.to_string().contains("somebody else"), "{error}");
        assert!(error.to_string().contains(&store.uri("file")), "{error}");
        drop(file);
        assert_eq!(store.get("file"), Some(b"theirs".to_vec()), "{size}");
        assert_eq!(store.open_uploads(), [""; 0]);

        // Opened for appending, deleted by somebody else, closed.
        store.put("file", content(size, 1));
        let mut file = fs().new_appendable_file(store.uri("file")).unwrap();
        file.append(b"more").unwrap();
        store.delete(store.bucket(), "file");
        assert_eq!(code(file.close()), Code::FailedPrecondition, "{size}");
        drop(file);
        assert_eq!(store.get("file"), None, "{size}");
        assert_eq!(store.open_uploads(), [""; 0]);
    }
}

#[test]
fn what_was_there_before_a_new_file_is_replaced_whatever_it_is() {
    let store = Store::new("writing-overwrite");
    for size in [100, 20 * MIB] {
        store.put("file", "old");
        let mut file = create(&store, "file");
        file.append(&content(size, 1)).unwrap();
        store.put("file", "changed meanwhile");
        file.close().unwrap();
        assert_eq!(store.get("file"), Some(content(size, 1)));
    }
}

#[test]
fn a_file_that_is_dropped_leaves_nothing_behind() {
    let store = Store::new("writing-dropped");
    store.put("file", "old");
    for size in [0, 100, 20 * MIB, 100 * MIB] {
        let mut file = create(&store, "file");
        file.append(&content(size, 1)).unwrap();
        drop(file);
        // Before `drop` returned.
        assert_eq!(store.open_uploads(), [""; 0], "{size}");
        assert_eq!(store.get("file"), Some(b"old".to_vec()), "{size}");
        assert_eq!(store.keys(), ["file"]);
    }
}

#[test]
fn a_file_that_is_dropped_keeps_what_was_flushed() {
    let store = Store::new("writing-dropped-flushed");
    for size in [100, 6 * MIB] {
        let mut file = create(&store, "file");
        file.append(&content(size, 1)).unwrap();
        file.flush().unwrap();
        file.append(&content(20 * MIB, 2)).unwrap();
        drop(file);
        assert_eq!(store.open_uploads(), [""; 0]);
        assert_eq!(store.get("file"), Some(content(size, 1)));
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
    let log = store.log();
    for request in &log {
        assert_eq!(request.headers["x-amz-request-payer"], "requester", "{request:?}");
    }
    let makes = |operation| matches!(operation, "PutObject" | "CreateMultipartUpload");
    let made: Vec<_> = log.iter().filter(|request| makes(request.operation)).collect();
    assert_eq!(made.len(), 3);
    for request in made {
        let header = |name: &str| request.headers[name].as_str();
        assert_eq!(header("x-amz-server-side-encryption"), "aws:kms");
        assert_eq!(header("x-amz-server-side-encryption-aws-kms-key-id"), "a-key");
        assert_eq!(header("x-amz-storage-class"), "STANDARD_IA");
        assert_eq!(header("content-type"), "application/x-tfrecord");
        assert_eq!(header("x-amz-acl"), "bucket-owner-full-control");
    }
}

#[test]
fn many_files_share_little_memory_and_none_waits_for_another() {
    // One thread writes to all of them in turn: were one to wait for another, it would wait for ever.
    let store = Store::with("writing-many", &[("write_part_bytes", "5MiB")]);
    let bytes = content(11 * MIB, 1);
    let mut files: Vec<_> = (0..64).map(|index| create(&store, &format!("file-{index}"))).collect();
    let budget = |bytes: &str| {
        use tf_fs_plugin::{FilesystemOption, OptionValues};
        let values = OptionValues::Buffer(vec![bytes.as_bytes().to_vec()]);
        let option = FilesystemOption::new("memory_budget_bytes", values);
        fs().set_filesystem_configuration(&[option]).unwrap();
        // Takes effect with the next use.
        let _ = fs().path_exists(store.uri("nothing"));
    };
    budget("16MiB");
    for piece in bytes.chunks(MIB) {
        for file in &mut files {
            file.append(piece).unwrap();
        }
    }
    for file in &mut files {
        file.close().unwrap();
    }
    budget("256MiB");
    for index in 0..64 {
        assert_eq!(store.get(&format!("file-{index}")).as_ref(), Some(&bytes), "{index}");
    }
}

#[test]
fn threads_write_files_of_their_own() {
    let store = Store::new("writing-threads");
    std::thread::scope(|scope| {
        for index in 0..16 {
            let uri = store.uri(&format!("file-{index}"));
            scope.spawn(move || {
                let bytes = content(9 * MIB + index, index as u64);
                let mut file = fs().new_writable_file(uri).unwrap();
                bytes.chunks(77_777).for_each(|piece| file.append(piece).unwrap());
                file.close().unwrap();
            });
        }
    });
    for index in 0..16 {
        let bytes = content(9 * MIB + index, index as u64);
        assert_eq!(store.get(&format!("file-{index}")), Some(bytes), "{index}");
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
fn two_writers_of_one_name_are_both_whole() {
    let store = Store::new("writing-two");
    let (mut one, mut two) = (create(&store, "file"), create(&store, "file"));
    one.append(&content(20 * MIB, 1)).unwrap();
    two.append(&content(20 * MIB, 2)).unwrap();
    one.close().unwrap();
    assert_eq!(store.get("file"), Some(content(20 * MIB, 1)));
    two.close().unwrap();
    assert_eq!(store.get("file"), Some(content(20 * MIB, 2)));
    assert_eq!(store.open_uploads(), [""; 0]);
}

#[test]
fn for_this_process_a_file_exists_from_when_it_is_opened() {
    let store = Store::new("writing-exists");
    let mut file = create(&store, "dir/file");
    file.append(b"bytes").unwrap();
    fs().path_exists(store.uri("dir/file")).unwrap();
    assert_eq!(fs().get_file_size(store.uri("dir/file")).unwrap(), 5);
    assert_eq!(fs().get_children(store.uri("dir")).unwrap(), [b"file"]);
    assert_eq!(store.keys(), [""; 0]);
    file.close().unwrap();
    assert_eq!(fs().get_file_size(store.uri("dir/file")).unwrap(), 5);
    assert_eq!(store.keys(), ["dir/file"]);
}

#[test]
fn the_lock_file_of_a_cache_can_be_deleted_once() {
    // `Dataset.cache`: opened, written, dropped without being closed, then deleted.
    let store = Store::new("writing-lock");
    let mut file = create(&store, "cache_0.lockfile");
    file.append(b"Created at: 0").unwrap();
    drop(file);
    fs().delete_file(store.uri("cache_0.lockfile")).unwrap();
    assert_eq!(code(fs().delete_file(store.uri("cache_0.lockfile"))), Code::NotFound);
    assert_eq!(store.keys(), [""; 0]);
}

#[test]
fn what_is_deleted_while_it_is_written_stays_deleted() {
    let store = Store::new("writing-unlinked");
    for (size, flush) in [(100, false), (100, true), (6 * MIB, true), (20 * MIB, false)] {
        let mut file = create(&store, "file");
        file.append(&content(size, 1)).unwrap();
        if flush {
            file.flush().unwrap();
        }
        fs().delete_file(store.uri("file")).unwrap();
        file.append(b"more").unwrap();
        file.flush().unwrap();
        file.close().unwrap();
        drop(file);
        assert_eq!(store.keys(), [""; 0], "{size}");
        assert_eq!(store.open_uploads(), [""; 0], "{size}");
    }
}

#[test]
fn own_writes_are_seen_at_once() {
    let store = Store::with("writing-seen", &[("listing_ttl_ms", "3600000")]);
    store.put("dir/old", "1");
    assert_eq!(fs().get_children(store.uri("dir")).unwrap(), [b"old"]);
    assert_eq!(fs().get_file_size(store.uri("dir/old")).unwrap(), 1);
    for (key, size) in [("dir/new", 10), ("dir/old", 20), ("dir/new", 9 * MIB)] {
        let mut file = create(&store, key);
        file.append(&content(size, 1)).unwrap();
        file.close().unwrap();
        assert_eq!(fs().get_file_size(store.uri(key)).unwrap(), size as u64);
    }
    let mut file = create(&store, "dir/new");
    file.append(b"bytes").unwrap();
    file.flush().unwrap();
    assert_eq!(fs().get_file_size(store.uri("dir/new")).unwrap(), 5);
    let mut children = fs().get_children(store.uri("dir")).unwrap();
    children.sort();
    assert_eq!(children, [&b"new"[..], b"old"]);
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

#[test]
fn what_is_lost_is_warned_of() {
    alone("what_is_lost_is_warned_of", || {
        logs::keep();
        let store = Store::with("writing-lost", &[("max_attempts", "1")]);
        let lost = || {
            let lines = logs::lines();
            let is_warning = |line: &&String| line.starts_with("WARN") || line.starts_with("ERROR");
            lines.iter().filter(is_warning).cloned().collect::<Vec<_>>()
        };
        // As `Dataset.cache` does.
        let mut file = create(&store, "cache_0.lockfile");
        file.append(b"Created at: 1").unwrap();
        drop(file);
        fs().delete_file(store.uri("cache_0.lockfile")).unwrap();
        // Whose close failed is known already.
        store.inject(Fault::new(When::All, What::status(500, "InternalError")));
        let mut file = create(&store, "failed");
        file.append(b"four").unwrap();
        assert!(file.close().is_err());
        drop(file);
        assert_eq!(lost(), [""; 0]);
        let mut file = create(&store, "lost");
        file.append(b"four").unwrap();
        drop(file);
        let warnings = lost();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("4 bytes are lost"), "{warnings:?}");
        // What was appended after a failure that was made good is news.
        let mut file = create(&store, "again");
        file.append(b"four").unwrap();
        assert!(file.flush().is_err());
        store.clear_faults();
        file.append(&[1; 10 << 20]).unwrap();
        file.flush().unwrap();
        file.append(b"three").unwrap();
        drop(file);
        assert_eq!(lost().len(), 2, "{:?}", lost());
    });
}
