//! Nobody else's object is replaced unnoticed, whatever becomes of the responses.

use crate::store::{Fault, MIB, Plugin, Versions, atomic, parts, store};
use crate::{append, content, in_parts};
use tf_fs_object_store::{CopyLimits, ErrorKind, PartLimits, Writer};
use tf_fs_plugin::prelude::*;

const THEIRS: &[u8] = b"theirs";

/// Returns a store that checks conditions, and one that does not.
fn stores() -> [Plugin; 2] {
    let limits = atomic().with_parts(parts());
    [store(limits), store(limits.without_conditions())]
}

/// Opens a file that continues after an object, in one request or in parts.
fn appended(plugin: &Plugin, is_large: bool) -> (Writer<Plugin>, Vec<u8>) {
    let bytes = content(if is_large { 3 << 20 } else { 100 });
    let half = bytes.len() / 2;
    plugin.put("f", bytes[..half].to_vec());
    let mut writer = plugin.append_to("f").unwrap();
    append(&mut writer, &bytes[half..]).unwrap();
    (writer, bytes)
}

/// Returns the name of the request that makes the object visible.
fn last(is_large: bool) -> &'static str {
    if is_large { "complete" } else { "put" }
}

#[test]
fn another_writers_object_stays() {
    for plugin in stores() {
        for is_large in [false, true] {
            let (mut writer, _) = appended(&plugin, is_large);
            plugin.put("f", THEIRS);
            let error = writer.close().unwrap_err();
            assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
            assert!(format!("{error:#}").contains("another process"), "{error:#}");
            drop(writer);
            assert_eq!(plugin.bytes("f").unwrap(), THEIRS, "{is_large}");
            assert!(plugin.contents().uploads.is_empty());
        }
        // A file that was not there when it was opened to be appended to.
        let mut writer = plugin.append_to("new").unwrap();
        writer.append(b"ours").unwrap();
        plugin.put("new", THEIRS);
        assert_eq!(writer.close().unwrap_err().code(), Code::FailedPrecondition);
        assert_eq!(plugin.bytes("new").unwrap(), THEIRS);
        // One that was flushed before.
        let mut writer = plugin.create("flushed").unwrap();
        writer.append(b"ours").unwrap();
        writer.flush().unwrap();
        writer.append(b"ours").unwrap();
        plugin.contents().objects.remove("flushed");
        assert_eq!(writer.close().unwrap_err().code(), Code::FailedPrecondition);
        assert_eq!(plugin.bytes("flushed"), None);
    }
}

#[test]
fn a_new_file_replaces_what_is_there() {
    for plugin in stores() {
        plugin.put("f", THEIRS);
        let mut writer = plugin.create("f").unwrap();
        writer.append(b"ours").unwrap();
        writer.close().unwrap();
        assert_eq!(plugin.bytes("f").unwrap(), &b"ours"[..]);
        assert_eq!(plugin.take_log(), ["put f of 4"], "nothing is looked for");
    }
}

#[test]
fn a_write_whose_response_is_lost_is_found() {
    for plugin in stores() {
        for is_large in [false, true] {
            let (mut writer, bytes) = appended(&plugin, is_large);
            plugin.fails(last(is_large), Fault::Lost);
            writer.close().unwrap();
            assert!(plugin.bytes("f").unwrap() == bytes, "{is_large}");
        }
        // Lost repeatedly: it is there nevertheless.
        for is_large in [false, true] {
            let bytes = content(if is_large { 3 << 20 } else { 100 });
            for _ in 0..3 {
                plugin.fails(last(is_large), Fault::Lost);
            }
            let mut writer = plugin.create("new").unwrap();
            append(&mut writer, &bytes).unwrap();
            writer.close().unwrap();
            assert!(plugin.bytes("new").unwrap() == bytes);
            plugin.contents().faults.clear();
        }
    }
}

#[test]
fn an_error_says_that_the_store_cannot_tell_whose_object_it_is() {
    for plugin in stores() {
        plugin.contents().has_checksums = false;
        for is_large in [false, true] {
            let (mut writer, bytes) = appended(&plugin, is_large);
            plugin.fails(last(is_large), Fault::Lost);
            let error = writer.close().unwrap_err();
            assert!(format!("{error:#}").contains("it is unknown whether"), "{error:#}");
            drop(writer);
            assert!(plugin.bytes("f").unwrap() == bytes);
        }
    }
}

#[test]
fn an_object_that_replaced_a_write_with_a_lost_response_stays() {
    for plugin in stores() {
        for is_large in [false, true] {
            let (mut writer, _) = appended(&plugin, is_large);
            plugin.fails(last(is_large), Fault::LostAndReplaced(THEIRS));
            let error = writer.close().unwrap_err();
            assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
            drop(writer);
            assert_eq!(plugin.bytes("f").unwrap(), THEIRS);
        }
    }
}

#[test]
fn a_write_that_failed_is_tried_again_at_the_next_close() {
    let plugin = in_parts();
    let mut writer = plugin.append_to("f").unwrap();
    writer.append(b"ours").unwrap();
    plugin.fails("put", Fault::Lost);
    // Neither the next attempts nor the look tell what became of it.
    for kind in ["put", "put", "head", "head", "head"] {
        plugin.fails(kind, Fault::Fails(ErrorKind::Transient));
    }
    assert_eq!(writer.close().unwrap_err().code(), Code::Unavailable);
    plugin.contents().faults.clear();
    writer.close().unwrap();
    assert_eq!(plugin.bytes("f").unwrap(), &b"ours"[..]);
}

/// Appends `bytes` and flushes, which succeeds without a response.
fn flush_unnoticed(plugin: &Plugin, writer: &mut Writer<Plugin>, bytes: &[u8]) {
    append(writer, bytes).unwrap();
    if !plugin.0.client.checks() {
        plugin.fails("head", Fault::Succeeds);
    }
    plugin.fails("put", Fault::Lost);
    for kind in ["put", "put", "head", "head", "head", "head", "head", "head"] {
        plugin.fails(kind, Fault::Fails(ErrorKind::Transient));
    }
    assert_eq!(writer.flush().unwrap_err().code(), Code::Unavailable);
    plugin.contents().faults.clear();
}

#[test]
fn bytes_after_a_flush_that_was_done_unnoticed_are_added_to_it() {
    for plugin in stores() {
        for is_large in [false, true] {
            for times in [1, 2] {
                plugin.contents().objects.clear();
                let mut writer = plugin.append_to("f").unwrap();
                flush_unnoticed(&plugin, &mut writer, b"one ");
                if times == 2 {
                    // This look finds the first.
                    plugin.fails("head", Fault::Succeeds);
                    flush_unnoticed(&plugin, &mut writer, b"two ");
                }
                let rest = content(if is_large { 3 << 20 } else { 100 });
                append(&mut writer, &rest).unwrap();
                writer.close().unwrap_or_else(|error| panic!("{is_large} {times}: {error:#}"));
                let before: &[u8] = if times == 2 { b"one two " } else { b"one " };
                assert!(plugin.bytes("f").unwrap() == [before, &rest].concat(), "{is_large}");
            }
        }
    }
}

#[test]
fn an_object_that_replaced_a_flush_with_a_lost_response_stays() {
    for plugin in stores() {
        for (theirs, has_checksums) in [(&b"1234"[..], true), (b"12345", true), (b"one ", false)] {
            plugin.contents().objects.clear();
            let mut writer = plugin.append_to("f").unwrap();
            flush_unnoticed(&plugin, &mut writer, b"one ");
            plugin.put("f", theirs);
            plugin.contents().has_checksums = has_checksums;
            writer.append(b"more").unwrap();
            let error = writer.close().unwrap_err();
            assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
            let is_unknown = format!("{error:#}").contains("it is unknown whether");
            assert_eq!(is_unknown, !has_checksums, "{error:#}");
            drop(writer);
            assert_eq!(plugin.bytes("f").unwrap(), theirs);
            plugin.contents().has_checksums = true;
        }
    }
}

#[test]
fn a_write_with_an_error_to_retry_immediately_is_retried_whatever_its_kind() {
    for is_large in [false, true] {
        for kind in [
            ErrorKind::Precondition,
            ErrorKind::NotFound,
            ErrorKind::Permanent,
            ErrorKind::Transient,
        ] {
            let plugin = in_parts();
            let (mut writer, bytes) = appended(&plugin, is_large);
            (0..20).for_each(|_| plugin.fails(last(is_large), Fault::RetryNow(kind)));
            writer.close().unwrap_or_else(|error| panic!("{is_large} {kind:?}: {error:#}"));
            assert!(plugin.bytes("f").unwrap() == bytes, "{kind:?}");
        }
    }
}

#[test]
fn errors_are_retried_by_their_kind() {
    for (kind, attempts) in
        [(ErrorKind::Transient, 3), (ErrorKind::InvalidResponse, 3), (ErrorKind::Permanent, 1)]
    {
        let plugin = in_parts();
        for _ in 0..9 {
            plugin.fails("put", Fault::Fails(kind));
        }
        let mut writer = plugin.create("f").unwrap();
        writer.append(b"1").unwrap();
        assert!(writer.close().is_err(), "{kind:?}");
        let puts = plugin.take_log();
        let puts = puts.iter().filter(|line| line.starts_with("put")).count();
        assert_eq!(puts, attempts, "{kind:?}");
    }
}

#[test]
fn a_race_that_the_store_does_not_check_is_noticed_after_it() {
    let limits = atomic().with_parts(parts());
    let checking = store(limits);
    let (mut writer, _) = appended(&checking, false);
    checking.fails("put", Fault::Raced(THEIRS));
    assert_eq!(writer.close().unwrap_err().code(), Code::FailedPrecondition);
    assert_eq!(checking.bytes("f").unwrap(), THEIRS);
    // Somebody writes right after the write of a store that checks nothing.
    let plugin = store(limits.without_conditions());
    let (mut writer, _) = appended(&plugin, false);
    plugin.take_log();
    plugin.fails("put", Fault::Replaced(THEIRS));
    let error = writer.close().unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
    assert!(format!("{error:#}").contains("at the same time"), "{error:#}");
    assert_eq!(plugin.take_log(), ["head f", "put f of 100", "head f"]);
}

#[test]
fn versions_without_a_strong_etag_are_compared_by_the_engine() {
    for versions in [Versions::Weak, Versions::Times] {
        for plugin in stores() {
            plugin.contents().versions = versions;
            for is_large in [false, true] {
                let (mut writer, bytes) = appended(&plugin, is_large);
                writer.close().unwrap();
                assert!(plugin.bytes("f").unwrap() == bytes, "{versions:?}");
                // Another process writes as many bytes as were there.
                let (mut writer, bytes) = appended(&plugin, is_large);
                let theirs = vec![7; bytes.len() / 2];
                plugin.put("f", theirs.clone());
                let error = writer.close().unwrap_err();
                assert_eq!(error.code(), Code::FailedPrecondition, "{versions:?}: {error:#}");
                drop(writer);
                assert!(plugin.bytes("f").unwrap() == theirs, "{versions:?}");
            }
        }
    }
}

#[test]
fn an_etag_that_is_weak_at_first_is_of_the_same_version() {
    for (before, after) in [(Versions::Weak, Versions::Strong), (Versions::Strong, Versions::Weak)]
    {
        // A store that checks conditions does not find a weak one equal to any.
        let plugin = &stores()[usize::from(before == Versions::Strong)];
        let start = |is_large| {
            plugin.contents().versions = before;
            let started = appended(plugin, is_large);
            plugin.contents().versions = after;
            started
        };
        for is_large in [false, true] {
            let (mut writer, bytes) = start(is_large);
            writer.close().unwrap();
            assert!(plugin.bytes("f").unwrap() == bytes, "{before:?}");
            let (mut writer, bytes) = start(is_large);
            let theirs = vec![7; bytes.len() / 2];
            plugin.put("f", theirs.clone());
            let error = writer.close().unwrap_err();
            assert_eq!(error.code(), Code::FailedPrecondition, "{before:?}: {error:#}");
            drop(writer);
            assert!(plugin.bytes("f").unwrap() == theirs, "{before:?}");
        }
    }
}

#[test]
fn a_store_that_has_fewer_bytes_than_were_written_is_an_error() {
    let plugin = in_parts();
    for is_large in [false, true] {
        let (mut writer, _) = appended(&plugin, is_large);
        plugin.fails(last(is_large), Fault::Empty);
        let error = writer.close().unwrap_err();
        assert_eq!(error.code(), Code::DataLoss, "{error:#}");
    }
}

#[test]
fn a_file_too_small_to_be_copied_is_published_by_the_close() {
    let copies = Some(CopyLimits { smallest: 4 * MIB, largest: 8 * MIB, usual: 8 * MIB });
    let limits = atomic().with_parts(PartLimits { copies, ..parts() });
    let plugin = store(limits);
    let bytes = content(3 << 20);
    let mut writer = plugin.create("f").unwrap();
    for piece in bytes.chunks(1 << 20) {
        append(&mut writer, piece).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    assert!(plugin.bytes("f").unwrap() == bytes);
    assert!(!plugin.take_log().iter().any(|line| line.starts_with("copy")), "nothing is copied");
}

#[test]
fn a_store_may_check_one_kind_of_condition() {
    // No object of this name: the engine looks before and after.
    let plugin = store(atomic().without_create_check());
    let mut writer = plugin.append_to("new").unwrap();
    writer.append(b"1").unwrap();
    writer.close().unwrap();
    assert_eq!(plugin.take_log(), ["head new", "head new", "put new of 1", "head new"]);
    // This object: the store checks, and keeps what somebody else wrote.
    let mut writer = plugin.append_to("new").unwrap();
    writer.append(b"2").unwrap();
    writer.close().unwrap();
    assert_eq!(plugin.take_log(), ["head new", "get new from 0", "put new of 2"]);
    let mut writer = plugin.append_to("new").unwrap();
    writer.append(b"3").unwrap();
    plugin.put("new", THEIRS);
    assert_eq!(writer.close().unwrap_err().code(), Code::FailedPrecondition);
    assert_eq!(plugin.bytes("new").unwrap(), THEIRS);
    // The other way round.
    let plugin = store(atomic().without_update_check());
    let mut writer = plugin.append_to("new").unwrap();
    writer.append(b"1").unwrap();
    writer.close().unwrap();
    assert_eq!(plugin.take_log(), ["head new", "put new of 1"]);
    let mut writer = plugin.append_to("new").unwrap();
    writer.append(b"2").unwrap();
    writer.close().unwrap();
    let requests = ["head new", "get new from 0", "head new", "put new of 2", "head new"];
    assert_eq!(plugin.take_log(), requests);
}
