//! Files as this process and others see them.

use super::{MIB, create};
use s3_server::{Fault, Request, What, When};
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::child::alone;
use tf_plugin_s3_tests::this_test;
use tf_plugin_s3_tests::{Store, code, content, fs, host, logs};

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
fn many_files_share_little_memory_and_none_waits_for_another() {
    // The budget is that of the process.
    alone(this_test!(), write_many_files);
}

fn write_many_files() {
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
    alone(this_test!(), || {
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
