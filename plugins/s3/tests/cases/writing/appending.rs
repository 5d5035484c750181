//! Files that are appended to, and what another process writes meanwhile.

use super::{KIB, MIB, bytes_down, bytes_up, create};
use s3_server::{Fault, What, When};
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{Store, code, content, counts, fs};

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
        // Of an object without bytes there is nothing to get.
        let gets = requests.get("GetObject").copied().unwrap_or_default();
        assert_eq!(gets, usize::from(!old.is_empty()));
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
        assert!(error.to_string().contains("another process"), "{error}");
        assert!(error.to_string().contains(&store.uri("file")), "{error}");
        drop(file);
        assert_eq!(store.get("file"), Some(b"theirs".to_vec()), "{size}");
        assert_eq!(store.open_uploads(), [""; 0]);

        // Opened for appending, deleted by another process, closed.
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
