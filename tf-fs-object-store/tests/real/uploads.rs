//! Uploads from the first byte to the last, in a store without parts.

use crate::publication::{killed, publishing, requests};
use crate::store::{Plugin, name, server};
use tf_fs_object_store::{ErrorKind, Publication, Writer};
use tf_fs_plugin::prelude::*;

const PART: usize = 1 << 20;
const MODES: [Publication; 3] = [Publication::Atomic, Publication::Rename, Publication::InPlace];

fn uploading(publication: Publication) -> Plugin {
    let plugin = publishing(publication);
    plugin.contents().has_upload = true;
    plugin
}

/// Returns bytes that differ from those at neighbouring positions.
fn content(len: usize) -> Vec<u8> {
    (0..251).collect::<Vec<u8>>().into_iter().cycle().take(len).collect()
}

fn append(writer: &mut Writer<Plugin>, bytes: &[u8]) -> Result<()> {
    bytes.chunks(100_000).try_for_each(|piece| writer.append(piece))
}

fn write(plugin: &Plugin, key: &str, bytes: &[u8]) -> Result<()> {
    let mut writer = Writer::create(plugin, name(key))?;
    append(&mut writer, bytes)?;
    writer.close()
}

#[test]
fn a_large_file_is_sent_in_order_while_it_is_written() {
    let plugin = uploading(Publication::Atomic);
    let bytes = content(2 * PART + 7);
    write(&plugin, "f", &bytes).unwrap();
    assert!(plugin.bytes("f").unwrap() == bytes);
    assert_eq!(
        plugin.take_log(),
        ["start f", "append 1048576", "append 1048576", "append 7", "commit f"]
    );
    // A small one is one request.
    write(&plugin, "f", &bytes[..PART]).unwrap();
    assert_eq!(plugin.take_log(), ["put f"]);
    // A flush shows a file while it is one request.
    let mut writer = Writer::create(&plugin, name("f")).unwrap();
    append(&mut writer, &bytes[..10]).unwrap();
    writer.flush().unwrap();
    assert_eq!(plugin.bytes("f").unwrap(), &bytes[..10]);
    append(&mut writer, &bytes[10..]).unwrap();
    writer.flush().unwrap();
    assert_eq!(plugin.bytes("f").unwrap(), &bytes[..10]);
    writer.close().unwrap();
    assert!(plugin.bytes("f").unwrap() == bytes);
    // An append reads what is there, and sends it again.
    let mut writer = Writer::append_to(&plugin, name("f")).unwrap();
    writer.append(b"more").unwrap();
    writer.close().unwrap();
    assert!(plugin.bytes("f").unwrap() == [&bytes[..], b"more"].concat());
    // By a temporary name.
    let plugin = uploading(Publication::Rename);
    write(&plugin, "f", &bytes[..PART + 1]).unwrap();
    let expected = ["start TEMP", "append 1048576", "append 1", "commit TEMP", "rename TEMP f"];
    assert_eq!(requests(&plugin), expected);
    assert_eq!(plugin.paths(), ["f"]);
}

#[test]
fn a_file_larger_than_the_memory_takes_three_parts_of_it() {
    let plugin = uploading(Publication::Atomic);
    let budget = &plugin.0.process.budget;
    let before = budget.used();
    let piece = content(PART / 2);
    let mut writer = Writer::create(&plugin, name("f")).unwrap();
    for _ in 0..200 {
        writer.append(&piece).unwrap();
        // Other tests write as well.
        assert!(budget.used() < before + 32 * PART, "{}", budget.used());
    }
    writer.close().unwrap();
    assert_eq!(plugin.bytes("f").unwrap().len(), 100 * PART);
    assert!(budget.limit() < 100 * PART);
}

#[test]
fn a_killed_writer_of_a_large_file_leaves_the_old_file_or_the_new_one() {
    let bytes = content(2 * PART + 7);
    assert_eq!(killed(Publication::Atomic, true, &bytes), []);
    assert_eq!(killed(Publication::Rename, true, &bytes), []);
    // From the moment that it is begun, until the last byte has arrived.
    let lost = killed(Publication::InPlace, true, &bytes);
    assert_eq!(lost.first(), Some(&(1, true)), "{lost:?}");
    assert!(lost.iter().all(|(at, _)| *at <= 5), "{lost:?}");
}

#[test]
fn a_request_that_fails_fails_the_file_and_keeps_the_old_one() {
    let bytes = content(3 * PART);
    for publication in [Publication::Atomic, Publication::Rename] {
        for request in ["append", "commit", "start"] {
            for kind in [ErrorKind::Permanent, ErrorKind::Transient] {
                let plugin = uploading(publication);
                write(&plugin, "f", b"old").unwrap();
                plugin.take_log();
                plugin.contents().fails = Some((request, kind));
                let written = write(&plugin, "f", &bytes);
                // The beginning of an upload can be repeated, and all bytes under a temporary name are the file.
                let is_found = request == "commit" && publication == Publication::Rename;
                let is_done = kind == ErrorKind::Transient && (request == "start" || is_found);
                assert_eq!(written.is_ok(), is_done, "{request} {kind:?}: {written:?}");
                if let Err(error) = written {
                    // Not with the temporary name alone, which the user has never seen.
                    assert!(error.message().starts_with("mem://b/f: "), "{request}: {error}");
                }
                let expected = if is_done { &bytes[..] } else { b"old" };
                assert!(plugin.bytes("f").unwrap() == expected, "{request} {kind:?}");
                let log = requests(&plugin);
                let aborts = log.iter().filter(|line| line.starts_with("abort")).count();
                assert_eq!(aborts, usize::from(!is_done && request != "start"), "{log:?}");
                assert_eq!(plugin.paths(), ["f"], "{request} {kind:?}");
            }
        }
    }
}

#[test]
fn a_commit_whose_response_is_lost_is_found_where_the_name_is_the_writers_alone() {
    let bytes = content(2 * PART);
    for publication in MODES {
        let plugin = uploading(publication);
        plugin.contents().loses = Some("commit");
        let written = write(&plugin, "f", &bytes);
        match publication {
            Publication::Rename => written.unwrap(),
            _ => {
                let error = written.unwrap_err();
                assert!(format!("{error:#}").contains("it is unknown whether"), "{error:#}");
            }
        }
        assert!(plugin.bytes("f").unwrap() == bytes);
    }
}

#[test]
fn a_large_file_replaces_nobody_elses() {
    let bytes = content(2 * PART);
    for publication in [Publication::Atomic, Publication::Rename] {
        for before in [&[][..], &["f"]] {
            let plugin = uploading(publication);
            plugin.contents().fill(before);
            let mut writer = Writer::append_to(&plugin, name("f")).unwrap();
            append(&mut writer, &bytes).unwrap();
            plugin.contents().fill(&["f"]);
            let error = writer.close().unwrap_err();
            assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
            drop(writer);
            assert_eq!(plugin.bytes("f").unwrap(), &b"f"[..]);
            assert_eq!(plugin.paths(), ["f"]);
        }
    }
}

#[test]
fn a_file_that_is_dropped_open_is_aborted() {
    let plugin = uploading(Publication::Rename);
    write(&plugin, "f", b"old").unwrap();
    let mut writer = Writer::create(&plugin, name("f")).unwrap();
    append(&mut writer, &content(3 * PART)).unwrap();
    drop(writer);
    assert_eq!(plugin.paths(), ["f"]);
    assert!(requests(&plugin).iter().any(|line| line == "abort TEMP"));
}

#[test]
fn a_store_without_uploads_keeps_a_file_in_memory() {
    let plugin = server(&[]);
    let bytes = content(3 * PART);
    write(&plugin, "f", &bytes).unwrap();
    assert_eq!(plugin.take_log(), ["put f"]);
}
