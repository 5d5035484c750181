//! Uploads in parts: responses that are lost, uploads that vanish, bytes that change, and uploads that are given up.

use s3_server::{Fault, Gate, Options, Reply, What, When};
use std::time::{Duration, Instant};
use tf_fs_plugin::{Code, Result};
use tf_plugin_s3_tests::{Store, content, eventually, host};

const MIB: usize = 1 << 20;
const KEY: &str = "file";

/// Faults are met within milliseconds, hanging requests given up soon, but not before a busy machine has taken a part.
const PATIENCE: [(&str, &str); 5] = [
    ("max_attempts", "3"),
    ("connect_timeout_ms", "2500"),
    ("stall_timeout_ms", "2500"),
    ("listing_ttl_ms", "0"),
    ("write_part_bytes", "5MiB"),
];

fn write(store: &Store, len: usize) -> Result<()> {
    let mut file = host().new_writable_file(store.uri(KEY))?;
    file.append(&content(len, 1))?;
    file.close()
}

fn write_parts(store: &Store) -> Result<()> {
    write(store, 11 * MIB)
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
                assert_eq!(store.get(KEY), Some(content(11 * MIB, 1)));
                assert_eq!(store.open_uploads(), [""; 0]);
            }
        }
    }
}

#[test]
fn an_upload_that_vanished_is_an_error_and_the_old_object_stays() {
    let store = impatient("writing-vanished");
    // The same length as the new one, so that only its content tells.
    store.put(KEY, content(11 * MIB, 99));
    let what = What::status(404, "NoSuchUpload");
    store.inject(Fault::new(When::All, what).operation("CompleteMultipartUpload"));
    let error = write_parts(&store).unwrap_err();
    assert!(error.to_string().contains("NoSuchUpload"), "{error}");
    store.clear_faults();
    assert_eq!(store.get(KEY), Some(content(11 * MIB, 99)));
    assert_eq!(store.open_uploads(), [""; 0]);
}

#[test]
fn bytes_that_change_on_their_way_are_refused_by_the_store() {
    // What the plugin proves with its checksums, proved with a wrong one.
    let store = impatient("writing-corrupt");
    let what = What::Header("x-amz-checksum-crc32".into(), "AAAAAA==".into());
    for (operation, size) in [("PutObject", 100), ("UploadPart", 11 * MIB)] {
        let id = store.inject(Fault::new(When::Nth(1), what.clone()).operation(operation));
        let error = write(&store, size).unwrap_err();
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
    file.append(&content(11 * MIB, 1)).unwrap();
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
    file.append(&content(11 * MIB, 1)).unwrap();
    assert!(gate.wait_for(1, Duration::from_secs(5)));
    drop(file);
    gate.open();
    assert!(eventually(Duration::from_secs(5), || store.open_uploads().is_empty()));
}
