//! Files open for reading.

use crate::store::{Fault, name, plugin};
use tf_fs_object_store::Reader;
use tf_fs_plugin::prelude::*;

/// Returns bytes that differ from those at neighbouring positions.
fn content(len: usize) -> Vec<u8> {
    (0..len).map(|position| (position % 251) as u8).collect()
}

#[test]
fn what_is_read_is_what_is_stored_in_few_requests() {
    let body = content(20 << 20);
    for piece in [100 << 10, 3 << 20, 64 << 20] {
        let plugin = plugin(&[]);
        plugin.put("f", body.clone());
        assert!(plugin.read("f", piece).unwrap() == body, "{piece}");
        let gets = plugin.requests("get").len();
        // The beginning tells the length; a large read takes the rest in eight parts.
        assert!(gets <= 9, "{gets} GETs of 20 MiB in pieces of {piece}");
    }
    let plugin = plugin(&["a//b", "./c"]);
    for key in ["a//b", "./c"] {
        assert_eq!(plugin.read(key, 100).unwrap(), key.as_bytes());
    }
    assert_eq!(plugin.read("missing", 1).unwrap_err().code(), Code::NotFound);
}

#[test]
fn a_response_that_breaks_off_is_resumed_at_its_byte() {
    let (plugin, body) = (plugin(&[]), content(50_000));
    plugin.put("f", body.clone());
    plugin.inject("get", [Fault::BreaksOff]);
    assert!(plugin.read("f", 50_000).unwrap() == body);
    assert_eq!(plugin.requests("get"), ["get f from 0 attempt 1", "get f from 49000 attempt 2"]);
}

#[test]
fn an_open_file_is_one_version() {
    let (plugin, size) = (plugin(&[]), 30 << 20);
    plugin.put("f", content(size));
    let reader = Reader::open(&plugin, name("f")).unwrap();
    plugin.put("f", content(size));
    let mut bytes = vec![0; 10];
    let mut buf = ReadBuf::from_slice(&mut bytes);
    let error = reader.read_at(size as u64 - 10, &mut buf).unwrap_err();
    assert_eq!((error.code(), buf.filled().len()), (Code::FailedPrecondition, 0));
}

#[test]
fn a_weak_etag_binds_no_request_and_the_version_is_compared_all_the_same() {
    let size = 30 << 20;
    let weak = || {
        let plugin = plugin(&[]);
        plugin.contents().weak_etags = true;
        plugin.put("f", content(size));
        plugin
    };
    assert!(weak().read("f", 64 << 20).unwrap() == content(size));
    let plugin = weak();
    let reader = Reader::open(&plugin, name("f")).unwrap();
    plugin.put("f", content(size));
    let mut bytes = vec![0; 10];
    let mut buf = ReadBuf::from_slice(&mut bytes);
    let error = reader.read_at(size as u64 - 10, &mut buf).unwrap_err();
    assert_eq!((error.code(), buf.filled().len()), (Code::FailedPrecondition, 0));
}

#[test]
fn a_panic_of_the_store_is_an_error_and_does_not_hang() {
    let (plugin, body) = (plugin(&[]), content(5_000_000));
    plugin.put("f", body.clone());
    plugin.inject("get", [Fault::Panics]);
    let (done, outcome) = std::sync::mpsc::channel();
    let other = plugin.clone();
    std::thread::spawn(move || done.send(other.read("f", 100_000)));
    let outcome = outcome.recv_timeout(std::time::Duration::from_secs(20));
    match outcome.expect("it waits for ever") {
        // A reader after the panic makes its own request.
        Ok(bytes) => assert!(bytes == body),
        Err(error) => {
            assert_eq!(error.code(), Code::Internal, "{error:#}");
            assert!(error.message().contains("look for a panic"), "{error:#}");
        }
    }
    assert!(plugin.read("f", 100_000).unwrap() == body);
}
