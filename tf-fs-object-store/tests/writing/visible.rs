//! Files open for writing as this process and others see them, and what ends them.

use crate::store::{Fault, Plugin, atomic, name, parts, store, with_settings};
use crate::{append, content, in_parts};
use std::sync::Mutex;
use std::time::Duration;
use tf_fs_object_store::{ErrorKind, Reader, Settings};
use tf_fs_plugin::prelude::*;

fn code<T>(outcome: Result<T>) -> Option<Code> {
    outcome.err().map(|error| error.code())
}

fn children(plugin: &Plugin, key: &str) -> Vec<String> {
    let names = plugin.0.get_children(&name(key)).unwrap();
    names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

#[test]
fn for_this_process_a_file_exists_from_when_it_is_opened() {
    let plugin = in_parts();
    let connection = &plugin.0;
    let mut writer = plugin.create("d/new").unwrap();
    writer.append(b"12345").unwrap();
    assert_eq!(connection.stat(&name("d/new")).unwrap().length, 5);
    assert!(connection.is_directory(&name("d")).unwrap());
    assert_eq!(
        (children(&plugin, "d"), children(&plugin, "")),
        (vec!["new".into()], vec!["d".into()])
    );
    let found = connection.get_matching_paths(Uri::new(b"mem://b/*/n*")).unwrap();
    assert!(found.iter().eq([&b"mem://b/d/new"[..]]));
    assert_eq!(code(connection.create_dir(&name("d/new"))), Some(Code::AlreadyExists));
    assert_eq!(code(connection.delete_dir(&name("d"))), Some(Code::FailedPrecondition));
    for (error, part) in [
        (connection.copy_file(&name("d/new"), &name("x")).unwrap_err(), "is still being written"),
        (connection.rename_file(&name("d/new"), &name("x")).unwrap_err(), "is still being written"),
        (connection.rename_file(&name("d"), &name("e")).unwrap_err(), "is still being written"),
        (Reader::open(&plugin, name("d/new")).unwrap_err(), "close it first"),
    ] {
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert!(error.message().contains(part), "{error}");
    }
    assert!(plugin.objects().is_empty());
    writer.close().unwrap();
    connection.rename_file(&name("d/new"), &name("d/final")).unwrap();
    drop(writer);
    assert!(plugin.objects().keys().eq(["d/final"]));
    // `os.path.join("s3://bucket/run", "./logs")` hides nothing.
    let mut writer = plugin.create("run/./logs/events").unwrap();
    assert_eq!(
        (children(&plugin, "run"), children(&plugin, "run/./logs")),
        (vec![], vec!["events".into()])
    );
    writer.close().unwrap();
    plugin.create("run/model").unwrap().close().unwrap();
    assert_eq!(children(&plugin, "run"), ["model"]);
}

#[test]
fn a_file_that_this_process_wrote_needs_no_lookup() {
    let settings =
        Settings::default().with(|settings| settings.listing_ttl = Duration::from_secs(60));
    let plugin = with_settings(atomic(), settings);
    let connection = &plugin.0;
    let asked = |expected: &[&str]| assert_eq!(plugin.take_log(), expected);
    connection.recursively_create_dir(&name("d/new")).unwrap();
    asked(&["list d/new", "marker d/new/"]);
    assert!(connection.is_directory(&name("d/new")).unwrap());
    connection.recursively_create_dir(&name("d/new")).unwrap();
    // Nothing was there a moment ago, so nothing is in it.
    assert_eq!(code(connection.stat(&name("d/new/a"))), Some(Code::NotFound));
    asked(&[]);
    let mut writer = plugin.create("d/new/a").unwrap();
    writer.append(b"content").unwrap();
    writer.close().unwrap();
    asked(&["put d/new/a of 7"]);
    assert_eq!(connection.stat(&name("d/new/a")).unwrap().length, 7);
    assert!(!connection.is_directory(&name("d/new/a")).unwrap());
    assert_eq!(code(connection.stat(&name("d/new/b"))), Some(Code::NotFound));
    asked(&[]);
    connection.rename_file(&name("d/new/a"), &name("d/new/b")).unwrap();
    asked(&["copy d/new/a", "delete d/new/a"]);
    assert_eq!(connection.stat(&name("d/new/b")).unwrap().length, 7);
    asked(&[]);
    connection.delete_file(&name("d/new/b")).unwrap();
    asked(&["delete d/new/b"]);
}

#[test]
fn a_file_that_is_dropped_keeps_what_was_flushed() {
    for len in [100, 2 << 20] {
        let plugin = in_parts();
        let mut writer = plugin.create("f").unwrap();
        append(&mut writer, &content(len)).unwrap();
        writer.flush().unwrap();
        append(&mut writer, &content(5 << 20)).unwrap();
        drop(writer);
        assert!(plugin.bytes("f").unwrap() == content(len));
        assert!(plugin.contents().uploads.is_empty());
    }
}

#[test]
fn each_of_two_writers_of_a_name_publishes_a_whole_file() {
    let plugin = in_parts();
    let (mut one, mut two) = (plugin.create("f").unwrap(), plugin.create("f").unwrap());
    append(&mut one, &content(3 << 20)).unwrap();
    append(&mut two, &content(4 << 20)).unwrap();
    for (mut writer, len) in [(one, 3 << 20), (two, 4 << 20)] {
        writer.close().unwrap();
        assert!(plugin.bytes("f").unwrap() == content(len));
    }
    assert!(plugin.contents().uploads.is_empty());
}

#[test]
fn a_file_deleted_while_it_is_written_stays_deleted() {
    let deletions: [fn(&Plugin) -> Result<()>; 2] = [
        |plugin| plugin.0.delete_file(&name("d/f")),
        |plugin| plugin.0.delete_recursively(&name("d")).map_err(|left| left.error),
    ];
    for (n, delete) in deletions.into_iter().enumerate() {
        for (len, flushes) in [(100, false), (5 << 20, false), (100, n == 0), (2 << 20, n == 0)] {
            let plugin = in_parts();
            plugin.put("d/other", &b"x"[..]);
            let mut writer = plugin.create("d/f").unwrap();
            append(&mut writer, &content(len)).unwrap();
            if flushes {
                writer.flush().unwrap();
            }
            delete(&plugin).unwrap();
            writer.append(b"more").unwrap();
            writer.flush().unwrap();
            writer.close().unwrap();
            drop(writer);
            assert_eq!(plugin.bytes("d/f"), None, "{len}");
            assert!(plugin.contents().uploads.is_empty());
        }
    }
    // Deleted once after it was given up, as `Dataset.cache` deletes its lock file.
    let plugin = in_parts();
    drop(plugin.create("cache.lockfile").unwrap());
    plugin.0.delete_file(&name("cache.lockfile")).unwrap();
    assert_eq!(code(plugin.0.delete_file(&name("cache.lockfile"))), Some(Code::NotFound));
}

#[test]
fn sizes_around_parts_are_stored_exactly_and_a_close_after_a_flush_costs_nothing() {
    const MIB: usize = 1 << 20;
    for len in [MIB - 1, MIB, MIB + 1, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 3 * MIB] {
        for piece in [len, 1_000_003] {
            let plugin = in_parts();
            let bytes = content(len);
            let mut writer = plugin.create("f").unwrap();
            bytes.chunks(piece).for_each(|piece| writer.append(piece).unwrap());
            assert_eq!(writer.tell().unwrap(), len as u64);
            writer.flush().unwrap();
            assert!(plugin.bytes("f").unwrap() == bytes, "{len} in {piece}");
            let parts = len.div_ceil(MIB);
            let requests = if parts == 1 { 1 } else { parts + 2 };
            assert_eq!(plugin.take_log().len(), requests, "{len} in {piece}");
            writer.flush().unwrap();
            writer.close().unwrap();
            writer.flush().unwrap();
            writer.close().unwrap();
            assert_eq!(plugin.take_log(), [""; 0]);
        }
    }
}

#[test]
fn a_failed_part_is_told_at_once_and_again() {
    let plugin = in_parts();
    plugin.put("f", &b"old"[..]);
    plugin.fails("part", Fault::Fails(ErrorKind::Denied));
    let mut writer = plugin.create("f").unwrap();
    // By an append soon after, however small.
    let mut error = append(&mut writer, &content(3 << 20)).err();
    while error.is_none() {
        std::thread::sleep(Duration::from_millis(1));
        error = writer.append(b"x").err();
    }
    assert_eq!(error.map(|error| error.code()), Some(Code::PermissionDenied));
    assert!(plugin.contents().uploads.is_empty(), "the upload is gone already");
    plugin.take_log();
    for again in [writer.append(b"x"), writer.flush(), writer.close(), writer.close()] {
        assert_eq!(code(again), Some(Code::PermissionDenied));
    }
    drop(writer);
    assert_eq!(plugin.take_log(), [""; 0], "nothing more is sent");
    assert_eq!(plugin.bytes("f").unwrap(), &b"old"[..]);
}

/// Warnings of files whose bytes are lost.
static LOST: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Warnings;

impl log::Log for Warnings {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        LOST.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

#[test]
fn losses_cause_a_warning() {
    let _ = log::set_logger(&Warnings);
    log::set_max_level(log::LevelFilter::Warn);
    let lost = |key: &str| {
        let lines = LOST.lock().unwrap();
        lines
            .iter()
            .filter(|line| line.contains(&format!("mem://b/{key}:")))
            .cloned()
            .collect::<Vec<_>>()
    };
    let plugin = store(atomic().with_parts(parts()));
    // As `Dataset.cache` does.
    let mut writer = plugin.create("a.lockfile").unwrap();
    writer.append(b"Created at: 1").unwrap();
    drop(writer);
    plugin.0.delete_file(&name("a.lockfile")).unwrap();
    // Whose close failed is known already.
    plugin.fails("put", Fault::Fails(ErrorKind::Permanent));
    let mut writer = plugin.create("failed").unwrap();
    writer.append(b"four").unwrap();
    assert!(writer.close().is_err());
    drop(writer);
    assert_eq!([lost("a.lockfile"), lost("failed")].concat(), [""; 0]);
    let mut writer = plugin.create("lost").unwrap();
    writer.append(b"four").unwrap();
    drop(writer);
    // Bytes that were appended after a repaired failure are new.
    plugin.fails("put", Fault::Fails(ErrorKind::Permanent));
    let mut writer = plugin.create("again").unwrap();
    writer.append(b"four").unwrap();
    assert!(writer.flush().is_err());
    writer.flush().unwrap();
    writer.append(b"three").unwrap();
    drop(writer);
    for (key, part) in [("lost", "4 bytes are lost"), ("again", "5 bytes are lost")] {
        let lines = lost(key);
        assert!(lines.len() == 1 && lines[0].contains(part), "{key}: {lines:?}");
    }
}
