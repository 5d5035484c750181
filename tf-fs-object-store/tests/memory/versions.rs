//! A file is of one version, also when a listing showed it; and objects that are appended to while they are open, as
//! TensorBoard reads event files.

use crate::reading::content;
use crate::store::{Fault, Plugin, name, plugin, range};
use std::time::Duration;
use tf_fs_object_store::Reader;
use tf_fs_plugin::prelude::*;

const MIB: usize = 1 << 20;

/// Returns a store that trusts its listings for so long.
fn with_ttl(ttl: Duration) -> Plugin {
    let plugin = plugin(&[]);
    plugin.contents().settings.listing_ttl = ttl;
    plugin
}

/// Opens a file of this content by what a listing showed of it: no GET yet.
fn open_listed(content: Vec<u8>) -> (Plugin, Reader<Plugin>) {
    let plugin = with_ttl(Duration::from_secs(60));
    plugin.put("f", content);
    plugin.0.stat(&name("f")).unwrap();
    let reader = plugin.open("f").unwrap();
    assert_eq!(plugin.take_ranges(), []);
    (plugin, reader)
}

/// Returns content that differs from [`content`].
fn other(len: usize) -> Vec<u8> {
    content(len + 1).split_off(1)
}

#[test]
fn a_file_that_is_replaced_while_it_is_read_is_not_mixed() {
    for piece in [100_000, 30 * MIB] {
        let plugin = plugin(&[]);
        plugin.contents().settings.read_part = MIB;
        plugin.put("f", content(20 * MIB));
        let reader = plugin.open("f").unwrap();
        let mut read = range(&reader, 0, piece.min(3 * MIB)).unwrap();
        plugin.put("f", other(20 * MIB));
        let error = loop {
            match range(&reader, read.len(), piece) {
                Ok(bytes) if bytes.is_empty() => panic!("{} bytes and no error", read.len()),
                Ok(bytes) => read.extend_from_slice(&bytes),
                Err(error) => break error,
            }
        };
        assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
        assert!(content(20 * MIB).starts_with(&read), "a mixture");
        assert!(plugin.read("f", piece).unwrap() == other(20 * MIB), "opened again");
    }
}

#[test]
fn a_listed_file_opens_without_a_request() {
    let (plugin, reader) = open_listed(content(100_000));
    assert!(range(&reader, 0, 200_000).unwrap() == content(100_000));
    assert_eq!(plugin.take_ranges().len(), 1);
    // It is replaced after the listing, and nobody has seen a byte of what it was.
    let (plugin, reader) = open_listed(content(100_000));
    plugin.put("f", other(90_000));
    assert!(range(&reader, 0, 200_000).unwrap() == other(90_000));
}

#[test]
fn a_listed_version_that_is_replaced_is_read_by_no_thread() {
    let (plugin, reader) = open_listed(content(8 * MIB));
    let new = other(8 * MIB);
    // The response to the first thread is of the version that was listed, and comes last.
    plugin.inject("get", [Fault::WaitsDone]);
    std::thread::scope(|threads| {
        let first = threads.spawn(|| range(&reader, 2 * MIB, 1000).unwrap());
        plugin.wait_for(1);
        plugin.put("f", new.clone());
        assert!(range(&reader, 4 * MIB, 1000).unwrap() == new[4 * MIB..][..1000]);
        plugin.contents().gate.0 = true;
        assert!(first.join().unwrap() == new[2 * MIB..][..1000]);
    });
}

#[test]
fn a_missing_object_is_removed_from_the_cache() {
    for offset in [0, 1000, 5000] {
        let (plugin, reader) = open_listed(content(1000));
        plugin.contents().objects.clear();
        assert_eq!(range(&reader, offset, 10).unwrap_err().code(), Code::NotFound, "{offset}");
        assert!(!plugin.0.path_exists(&name("f")).unwrap(), "{offset}");
    }
}

#[test]
fn the_end_of_a_listed_version_is_requested_once() {
    let (plugin, reader) = open_listed(content(1000));
    assert!(range(&reader, 1000, 0).unwrap().is_empty());
    assert_eq!(plugin.take_ranges().len(), 0, "nothing is wanted");
    for requests in [1, 0] {
        assert!(range(&reader, 1000, 10).unwrap().is_empty());
        assert_eq!(plugin.take_ranges().len(), requests);
    }
    // A file that is longer by now does not end there.
    let (plugin, reader) = open_listed(content(1000));
    plugin.put("f", other(2000));
    assert!(range(&reader, 1000, 3000).unwrap() == other(2000)[1000..]);
}

#[test]
fn odd_reads_are_answered() {
    let plugin = plugin(&[]);
    plugin.put("f", content(10_000));
    let reader = plugin.open("f").unwrap();
    let body = content(10_000);
    for (offset, len, expected) in [
        (0, 0, &body[..0]),
        (20_000, 0, &[]),
        (10_000, 5, &[]),
        (usize::MAX, 5, &[]),
        (usize::MAX - 2, 100, &[]),
        (9990, 100, &body[9990..]),
        (3, 5, &body[3..8]),
    ] {
        assert_eq!(range(&reader, offset, len).unwrap(), expected, "{len} at {offset}");
    }
}

#[test]
fn a_reader_at_the_end_sees_what_is_appended() {
    for len in [0, 1, 11, 5000, 300_000] {
        let plugin = plugin(&[]);
        let mut bytes = content(len);
        plugin.put("f", bytes.clone());
        let reader = plugin.open("f").unwrap();
        assert_eq!(range(&reader, 0, MIB).unwrap(), bytes);
        for round in 0..3 {
            let old = bytes.len();
            assert!(range(&reader, old, 100).unwrap().is_empty());
            bytes.extend_from_slice(format!("round {round}").as_bytes());
            plugin.put("f", bytes.clone());
            assert_eq!(range(&reader, old, 100).unwrap(), &bytes[old..], "{len} {round}");
            assert_eq!(range(&reader, 0, MIB).unwrap(), bytes, "{len} {round}");
        }
    }
    // The first read of all is at the end, of what a listing showed.
    let ttl = Duration::from_millis(200);
    let plugin = with_ttl(ttl);
    plugin.put("f", content(20_000));
    plugin.0.stat(&name("f")).unwrap();
    let reader = plugin.open("f").unwrap();
    assert!(range(&reader, 20_000, 100).unwrap().is_empty());
    plugin.put("f", content(20_004));
    std::thread::sleep(ttl);
    assert!(range(&reader, 20_000, 100).unwrap() == content(20_004)[20_000..]);
}

#[test]
fn any_other_change_than_growth_is_an_error() {
    for other in ["ever so different and longer", "short"] {
        let plugin = plugin(&[]);
        plugin.put("f", b"what was there".to_vec());
        let reader = plugin.open("f").unwrap();
        assert_eq!(range(&reader, 0, 100).unwrap(), b"what was there");
        plugin.put("f", other.into());
        let error = range(&reader, 14, 100).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
    }
    // A deleted file ends where it ended, and its known end causes no request within the time of a listing.
    for ttl in [0, 60] {
        let plugin = with_ttl(Duration::from_secs(ttl));
        plugin.put("f", b"what was there".to_vec());
        let reader = plugin.open("f").unwrap();
        for _ in 0..5 {
            assert_eq!(range(&reader, 0, 100).unwrap(), b"what was there");
            assert!(range(&reader, 14, 100).unwrap().is_empty());
        }
        assert_eq!(plugin.take_ranges().len() == 1, ttl > 0);
        plugin.contents().objects.clear();
        assert!(range(&reader, 14, 100).unwrap().is_empty());
    }
}
