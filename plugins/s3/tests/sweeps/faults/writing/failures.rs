//! Single failures of writing, each with what it leads to.

use super::{KEY, MIB, PATIENCE, create, new, old};
use s3_server::{Fault, Gate, Options, Reply, What, When};
use std::time::{Duration, Instant};
use tf_fs_plugin::{Code, Result};
use tf_plugin_s3_tests::{Store, eventually, host};

fn write_parts(store: &Store) -> Result<()> {
    create(store, &[&new(11 * MIB)], false)
}

fn impatient(topic: &str) -> Store {
    Store::with(topic, &PATIENCE)
}

#[test]
fn a_completion_that_was_done_but_not_acknowledged_is_done() {
    for fast in [true, false] {
        for checksums in ["when_supported", "when_required"] {
            if fast && checksums == "when_required" {
                // Neither a checksum nor an MD5: nothing to know one's own object by.
                continue;
            }
            let settings: Vec<_> =
                PATIENCE.iter().copied().chain([("checksums", checksums)]).collect();
            let store =
                Store::start("writing-ack", Options { fast, ..Options::default() }, &settings);
            let lost = [
                What::LoseAck,
                What::DoneThenStatus(Reply::new(500, "InternalError")),
                What::DoneThenStatus(Reply::new(404, "NoSuchUpload")),
            ];
            for what in lost {
                store.put(KEY, "old");
                let fault =
                    Fault::new(When::Nth(1), what.clone()).operation("CompleteMultipartUpload");
                let id = store.inject(fault);
                write_parts(&store)
                    .unwrap_or_else(|error| panic!("{what:?} {checksums}: {error:#}"));
                assert_eq!(store.met(id), 1);
                store.clear_faults();
                assert_eq!(store.get(KEY), Some(new(11 * MIB)));
                assert_eq!(store.open_uploads(), [""; 0]);
            }
        }
    }
}

#[test]
fn an_upload_that_vanished_is_an_error_and_the_old_object_stays() {
    let store = impatient("writing-vanished");
    // The same length as the new one, so that only its content tells.
    store.put(KEY, old(11 * MIB));
    let what = What::status(404, "NoSuchUpload");
    store.inject(Fault::new(When::All, what).operation("CompleteMultipartUpload"));
    let error = write_parts(&store).unwrap_err();
    assert!(error.to_string().contains("NoSuchUpload"), "{error}");
    store.clear_faults();
    assert_eq!(store.get(KEY), Some(old(11 * MIB)));
    assert_eq!(store.open_uploads(), [""; 0]);
}

#[test]
fn a_flush_whose_acknowledgement_was_lost_finds_its_own_object() {
    // The second attempt's condition does not hold: its own first attempt has replaced the object.
    let store = impatient("writing-own");
    for (size, operation) in [(1_000, "PutObject"), (6 * MIB, "CompleteMultipartUpload")] {
        let mut file = host().new_writable_file(store.uri(KEY)).unwrap();
        file.append(&new(size)).unwrap();
        file.flush().unwrap();
        file.append(b"more").unwrap();
        let id = store.inject(Fault::new(When::Nth(1), What::LoseAck).operation(operation));
        file.flush().unwrap();
        assert_eq!(store.met(id), 1);
        store.clear_faults();
        // And it goes on from there.
        file.append(b"and more").unwrap();
        file.close().unwrap();
        assert_eq!(store.get(KEY), Some([&new(size)[..], b"more", b"and more"].concat()));
    }
}

#[test]
fn a_failed_part_is_told_at_once_and_again() {
    let store = impatient("writing-part");
    store.put(KEY, "old");
    store.inject(Fault::new(When::All, What::status(403, "AccessDenied")).operation("UploadPart"));
    let mut file = host().new_writable_file(store.uri(KEY)).unwrap();
    // Told by an append soon after, however small.
    let mut error = file.append(&new(11 * MIB)).err();
    let end = Instant::now() + Duration::from_secs(20);
    while error.is_none() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
        error = file.append(b"x").err();
    }
    let error = error.expect("an append fails");
    assert_eq!(error.code(), Code::PermissionDenied);
    assert!(error.to_string().contains("UploadPart"), "{error}");
    // The upload is gone already, and nothing more is sent.
    assert_eq!(store.open_uploads(), [""; 0]);
    store.clear_faults();
    store.reset_log();
    for again in [file.append(b"x"), file.flush(), file.sync(), file.close(), file.close()] {
        let again = again.unwrap_err();
        assert_eq!(again.code(), Code::PermissionDenied);
        assert!(again.to_string().contains("UploadPart"), "{again}");
    }
    assert_eq!(file.tell().unwrap_err().code(), Code::PermissionDenied);
    drop(file);
    assert_eq!(store.log().len(), 0);
    assert_eq!(store.get(KEY), Some(b"old".to_vec()));
}

#[test]
fn a_small_file_that_could_not_be_stored_can_be_closed_again() {
    let store = impatient("writing-again");
    let id = store.inject(Fault::new(When::All, What::status(503, "SlowDown")));
    let mut file = host().new_writable_file(store.uri(KEY)).unwrap();
    file.append(b"bytes").unwrap();
    assert_eq!(file.close().unwrap_err().code(), Code::Unavailable);
    assert!(store.met(id) > 0);
    store.clear_faults();
    file.close().unwrap();
    assert_eq!(store.get(KEY), Some(b"bytes".to_vec()));
}

#[test]
fn bytes_that_change_on_their_way_are_refused_by_the_store() {
    // What the plugin proves with its checksums, proved with a wrong one.
    let store = impatient("writing-corrupt");
    let what = What::Header("x-amz-checksum-crc32".into(), "AAAAAA==".into());
    for (operation, size) in [("PutObject", 100), ("UploadPart", 11 * MIB)] {
        let id = store.inject(Fault::new(When::Nth(1), what.clone()).operation(operation));
        let error = create(&store, &[&new(size)], false).unwrap_err();
        assert_eq!(error.code(), Code::DataLoss, "{error}");
        assert_eq!(store.met(id), 1);
        store.clear_faults();
        assert_eq!(store.open_uploads(), [""; 0]);
    }
}

#[test]
fn dropping_never_waits_long() {
    let store = Store::with("writing-patience", &[("write_part_bytes", "5MiB")]);
    let gate = Gate::new();
    store
        .inject(Fault::new(When::All, What::Pause(gate.clone())).operation("AbortMultipartUpload"));
    let mut file = host().new_writable_file(store.uri(KEY)).unwrap();
    file.append(&new(11 * MIB)).unwrap();
    let start = Instant::now();
    drop(file);
    let took = start.elapsed();
    assert!(took < Duration::from_millis(1_800), "{took:?}");
    // It goes on in the background.
    assert_eq!(store.open_uploads(), [KEY]);
    gate.open();
    assert!(eventually(Duration::from_secs(5), || store.open_uploads().is_empty()));
}

#[test]
fn an_upload_whose_beginning_is_slow_is_aborted_too() {
    let store = Store::with("writing-slow-start", &[("write_part_bytes", "5MiB")]);
    let gate = Gate::new();
    store.inject(
        Fault::new(When::All, What::PauseDone(gate.clone())).operation("CreateMultipartUpload"),
    );
    let mut file = host().new_writable_file(store.uri(KEY)).unwrap();
    file.append(&new(11 * MIB)).unwrap();
    assert!(gate.wait_for(1, Duration::from_secs(5)));
    drop(file);
    gate.open();
    assert!(eventually(Duration::from_secs(5), || store.open_uploads().is_empty()));
}

#[test]
fn a_transfer_that_breaks_is_tried_again() {
    let store = impatient("writing-fetch");
    store.put(KEY, old(1_000));
    for what in [What::ResetBody(s3_server::At::Middle), What::StallBody(s3_server::At::Middle)] {
        let id = store.inject(Fault::new(When::Nth(1), what).operation("GetObject"));
        let mut file = host().new_appendable_file(store.uri(KEY)).unwrap();
        assert_eq!(store.met(id), 1);
        store.clear_faults();
        file.append(b"more").unwrap();
        file.close().unwrap();
        assert_eq!(store.get(KEY), Some([&old(1_000)[..], b"more"].concat()));
        store.put(KEY, old(1_000));
    }
}

#[test]
fn stores_without_conditions_are_written_without() {
    let store = impatient("writing-unconditional");
    store.set(&[("put_conditions", "auto"), ("complete_conditions", "auto")]);
    let what = What::status(501, "NotImplemented");
    for (size, operation) in [(100, "PutObject"), (6 * MIB, "CompleteMultipartUpload")] {
        let mut file = host().new_writable_file(store.uri(KEY)).unwrap();
        file.append(&new(size)).unwrap();
        file.flush().unwrap();
        file.append(b"more").unwrap();
        let id = store.inject(Fault::new(When::Nth(1), what.clone()).operation(operation));
        file.close().unwrap();
        assert_eq!(store.met(id), 1);
        store.clear_faults();
        assert_eq!(store.get(KEY), Some([&new(size)[..], b"more"].concat()));
    }
}

#[test]
fn whose_object_it_is_is_not_guessed() {
    let store = impatient("writing-whose");
    for (len, request) in [(500, "PutObject"), (6 * MIB, "CompleteMultipartUpload")] {
        let mut file = host().new_writable_file(store.uri(KEY)).unwrap();
        file.append(&new(len)).unwrap();
        file.flush().unwrap();
        file.append(b"more").unwrap();
        // Done, not confirmed, and it cannot be checked.
        store.inject(Fault::new(When::Nth(1), What::LoseAck).operation(request));
        store.inject(Fault::new(When::All, What::status(503, "SlowDown")).operation("HeadObject"));
        let error = file.close().unwrap_err();
        store.clear_faults();
        let text = format!("{error:#}");
        assert_eq!(error.code(), Code::Unavailable, "{request}: {text}");
        assert!(!text.contains("another process replaced"), "{request}: {text}");
        assert_eq!(store.get(KEY), Some([&new(len)[..], b"more"].concat()), "{request}");
    }
}
