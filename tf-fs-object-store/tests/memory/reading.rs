//! Files open for reading.

use crate::store::{Fault, name, plugin};
use tf_fs_object_store::Reader;
use tf_fs_plugin::prelude::*;

/// Returns bytes that differ from those at neighbouring positions.
pub(crate) fn content(len: usize) -> Vec<u8> {
    let mut bytes = (0..251).collect::<Vec<u8>>().repeat(len / 251 + 1);
    bytes.truncate(len);
    bytes
}

#[test]
fn keys_are_exact() {
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
fn an_etag_that_is_weak_at_first_is_of_the_same_version() {
    let (size, len) = (30 << 20, 10);
    for is_changed in [false, true] {
        let plugin = plugin(&[]);
        plugin.contents().weak_etags = true;
        plugin.put("f", content(size));
        let reader = Reader::open(&plugin, name("f")).unwrap();
        plugin.contents().weak_etags = false;
        if is_changed {
            plugin.put("f", content(size));
        }
        let mut bytes = vec![0; len];
        let outcome = reader.read_at((size - len) as u64, &mut ReadBuf::from_slice(&mut bytes));
        let expected = if is_changed { Err(Code::FailedPrecondition) } else { Ok(()) };
        assert_eq!(outcome.map_err(|error| error.code()), expected);
        assert!(is_changed || bytes == content(size)[size - len..]);
    }
}

#[test]
fn a_store_that_refuses_conditions_that_hold_gets_none_from_then_on() {
    let size = 30 << 20;
    let plugin = plugin(&[]);
    plugin.contents().refuses_conditions = true;
    plugin.put("f", content(size));
    assert!(plugin.read("f", 64 << 20).unwrap() == content(size));
    let requests = plugin.requests("get").len();
    plugin.contents().log.clear();
    assert!(plugin.read("f", 64 << 20).unwrap() == content(size));
    let later = plugin.requests("get").len();
    assert!(later < requests, "{requests} requests, then {later}");
    // The versions of responses are compared nevertheless.
    plugin.put("d/g", content(size));
    let reader = Reader::open(&plugin, name("d/g")).unwrap();
    plugin.put("d/g", content(size));
    let mut bytes = vec![0; 10];
    let mut buf = ReadBuf::from_slice(&mut bytes);
    let error = reader.read_at(size as u64 - 10, &mut buf).unwrap_err();
    assert_eq!((error.code(), buf.filled().len()), (Code::FailedPrecondition, 0));
}

#[test]
fn the_rest_of_a_short_response_is_requested() {
    let body = content(3 << 20);
    let read = |most| {
        let plugin = plugin(&[]);
        plugin.contents().most = Some(most);
        plugin.put("f", body.clone());
        (plugin.read("f", 3 << 20), plugin)
    };
    let (bytes, plugin) = read(64 << 10);
    assert!(bytes.unwrap() == body);
    let requests = plugin.requests("get");
    assert!(requests.iter().all(|request| request.ends_with("attempt 1")), "{requests:?}");
    assert_eq!(requests.len(), 48);
    // So little that it is a fault.
    let error = read(100).0.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error:#}");
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
