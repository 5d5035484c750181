//! Files open for writing, on a store in memory: whole, in parts, flushed, appended to, contested and given up.

mod conditions;
mod faults;
mod model;
mod store;
mod visible;

use store::{Fault, MIB, Plugin, atomic, name, parts, store, with_settings};
use tf_fs_object_store::{Attributes, ErrorKind, PartLimits, Settings, Writer};
use tf_fs_plugin::prelude::*;

/// Returns bytes that differ from those at neighbouring positions.
pub(crate) fn content(len: usize) -> Vec<u8> {
    let mut bytes = (0..251).collect::<Vec<u8>>().repeat(len / 251 + 1);
    bytes.truncate(len);
    bytes
}

/// Appends in pieces of 100,000 bytes.
pub(crate) fn append(writer: &mut Writer<Plugin>, bytes: &[u8]) -> Result<()> {
    bytes.chunks(100_000).try_for_each(|piece| writer.append(piece))
}

/// Creates a store with a multipart upload.
pub(crate) fn in_parts() -> Plugin {
    store(atomic().with_parts(parts()))
}

#[test]
fn a_small_file_is_one_request_at_its_close() {
    let plugin = in_parts();
    let mut writer = plugin.create("a//b").unwrap();
    writer.append(b"one ").unwrap();
    writer.append(b"two").unwrap();
    assert_eq!(writer.tell().unwrap(), 7);
    assert_eq!(plugin.take_log(), [""; 0]);
    writer.close().unwrap();
    assert_eq!(plugin.take_log(), ["put a//b of 7"]);
    drop(writer);
    assert_eq!(plugin.bytes("a//b").unwrap(), &b"one two"[..]);
    // A file with no bytes is a file.
    plugin.create("empty").unwrap().close().unwrap();
    assert_eq!(plugin.bytes("empty").unwrap(), &b""[..]);
    assert_eq!(plugin.take_log(), ["put empty of 0"]);
}

#[test]
fn a_large_file_is_sent_while_it_is_written_and_visible_at_its_close() {
    let plugin = in_parts();
    let bytes = content(9 << 20);
    let mut writer = plugin.create("f").unwrap();
    append(&mut writer, &bytes[..8 << 20]).unwrap();
    let sent = plugin.take_log();
    assert!(sent.iter().filter(|line| line.starts_with("part")).count() >= 3, "{sent:?}");
    append(&mut writer, &bytes[8 << 20..]).unwrap();
    assert_eq!(plugin.bytes("f"), None);
    writer.close().unwrap();
    assert!(plugin.bytes("f").unwrap() == bytes);
    assert_eq!(plugin.take_log().last().unwrap(), "complete f of 9");
    assert!(plugin.contents().uploads.is_empty());
}

#[test]
fn parts_keep_the_limits_of_the_store() {
    let few = PartLimits { most: 20, copies: None, ..parts() };
    let plugin = store(atomic().with_parts(few));
    let mut writer = plugin.create("f").unwrap();
    append(&mut writer, &content(40 << 20)).unwrap();
    writer.close().unwrap();
    let log = plugin.take_log();
    for line in log.iter().filter(|line| line.starts_with("part")) {
        let len: u64 = line.split(' ').next_back().unwrap().parse().unwrap();
        assert!((MIB..=4 * MIB).contains(&len), "{line}");
    }
    assert_eq!(plugin.bytes("f").unwrap().len(), 40 << 20);
    // 2 of a MiB, 18 of 4 MiB.
    let mut writer = plugin.create("f").unwrap();
    let error = append(&mut writer, &content(80 << 20)).unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted, "{error:#}");
    assert_eq!(writer.close().unwrap_err().code(), Code::ResourceExhausted);
    drop(writer);
    assert_eq!(plugin.bytes("f").unwrap().len(), 40 << 20, "what was there stays");
    assert!(plugin.contents().uploads.is_empty());
}

#[test]
fn a_flush_publishes_new_bytes_by_a_copy_of_the_old() {
    let plugin = in_parts();
    let bytes = content(7 << 20);
    let mut writer = plugin.create("f").unwrap();
    writer.append(&bytes[..10]).unwrap();
    writer.flush().unwrap();
    assert_eq!(plugin.bytes("f").unwrap(), &bytes[..10]);
    append(&mut writer, &bytes[10..500_000]).unwrap();
    writer.flush().unwrap();
    writer.flush().unwrap();
    assert_eq!(plugin.take_log(), ["put f of 10", "put f of 500000"]);
    append(&mut writer, &bytes[500_000..6 << 20]).unwrap();
    writer.flush().unwrap();
    assert!(plugin.bytes("f").unwrap() == bytes[..6 << 20]);
    plugin.take_log();
    append(&mut writer, &bytes[6 << 20..]).unwrap();
    writer.close().unwrap();
    assert!(plugin.bytes("f").unwrap() == bytes);
    let mut log = plugin.take_log();
    log.sort();
    assert_eq!(
        log,
        [
            "complete f of 3",
            "copy 0-3145728",
            "copy 3145728-6291456",
            "create f",
            "part 3 of 1048576"
        ]
    );
}

#[test]
fn a_flush_without_copies_publishes_while_the_file_is_one_part() {
    let plugin = store(atomic().with_parts(PartLimits { copies: None, ..parts() }));
    let bytes = content(3 << 20);
    let mut writer = plugin.create("f").unwrap();
    writer.append(&bytes[..10]).unwrap();
    writer.flush().unwrap();
    assert_eq!(plugin.bytes("f").unwrap().len(), 10);
    append(&mut writer, &bytes[10..]).unwrap();
    writer.flush().unwrap();
    assert_eq!(plugin.bytes("f").unwrap().len(), 10);
    writer.close().unwrap();
    assert!(plugin.bytes("f").unwrap() == bytes);
    let whole = store(atomic());
    let mut writer = whole.create("f").unwrap();
    for end in [1 << 20, 2 << 20, 3 << 20] {
        append(&mut writer, &bytes[end - MIB as usize..end]).unwrap();
        writer.flush().unwrap();
        assert!(whole.bytes("f").unwrap() == bytes[..end]);
    }
    assert_eq!(whole.take_log().len(), 3);
}

#[test]
fn equal_parts_stay_equal_after_a_flush_and_an_append() {
    let settings = Settings::default().with(|settings| settings.write_parts_equal = true);
    let plugin = with_settings(atomic().with_parts(parts()), settings);
    let bytes = content(8_000_000);
    let mut writer = plugin.create("f").unwrap();
    let mut start = 0;
    for end in [500_000, 2_500_000, 5_500_000] {
        append(&mut writer, &bytes[start..end]).unwrap();
        writer.flush().unwrap();
        start = end;
    }
    assert_eq!(plugin.bytes("f").unwrap().len(), 500_000);
    writer.close().unwrap();
    let mut writer = plugin.append_to("f").unwrap();
    append(&mut writer, &bytes[start..]).unwrap();
    writer.flush().unwrap();
    writer.close().unwrap();
    assert!(plugin.bytes("f").unwrap() == bytes);
    let log = plugin.take_log();
    assert!(!log.iter().any(|line| line.starts_with("copy")), "{log:?}");
    let mut lens: Vec<_> = log.iter().filter_map(|line| line.strip_prefix("part ")).collect();
    lens.retain(|part| !part.ends_with(" of 1048576"));
    lens.sort_unstable();
    assert_eq!(lens, ["6 of 257120", "8 of 659968"]);
}

#[test]
fn an_object_is_appended_to_and_keeps_its_attributes() {
    let no_copies = PartLimits { copies: None, ..parts() };
    let ways = [atomic(), atomic().with_parts(parts()), atomic().with_parts(no_copies)];
    for limits in ways {
        for len in [0, 10, 3 << 20] {
            let (plugin, bytes) = (store(limits), content(len + 2_000_000));
            plugin.put("f", bytes[..len].to_vec());
            let kept = Attributes { content_type: Some("text/x".into()), ..Attributes::default() };
            plugin.contents().objects.get_mut("f").unwrap().attributes = kept.clone();
            let mut writer = plugin.append_to("f").unwrap();
            assert_eq!(writer.tell().unwrap(), len as u64);
            append(&mut writer, &bytes[len..]).unwrap();
            assert_eq!(plugin.bytes("f").unwrap().len(), len);
            writer.close().unwrap();
            assert!(plugin.bytes("f").unwrap() == bytes, "{limits:?} {len}");
            assert_eq!(plugin.contents().objects["f"].attributes, kept);
            let reads = plugin.take_log().iter().filter(|line| line.starts_with("get")).count();
            let copies = limits.parts.is_some_and(|parts| parts.copies.is_some()) && len > 10;
            assert_eq!(reads, usize::from(!copies && len > 0), "{limits:?} {len}");
            // Without a new byte nothing is sent.
            plugin.append_to("f").unwrap().close().unwrap();
            assert!(!plugin.take_log().iter().any(|line| line.starts_with("put")));
        }
    }
    let plugin = in_parts();
    let mut writer = plugin.append_to("new").unwrap();
    writer.append(b"1").unwrap();
    writer.close().unwrap();
    assert_eq!(plugin.bytes("new").unwrap(), &b"1"[..]);
}

#[test]
fn bytes_that_are_read_to_be_resent_match_the_checksum() {
    let plugin = in_parts();
    plugin.put("f", &b"before"[..]);
    // The version is the same, its bytes are not: a disk or a proxy is broken.
    plugin.contents().claimed = Some("1".into());
    let error = plugin.append_to("f").unwrap_err();
    assert_eq!(error.code(), Code::DataLoss, "{error:#}");
}

#[test]
fn a_store_that_only_reads_says_so_at_once() {
    let plugin = store(atomic().with_max_put(0));
    for opened in [plugin.create("f"), plugin.append_to("f")] {
        assert_eq!(opened.unwrap_err().code(), Code::Unimplemented);
    }
    assert_eq!(plugin.take_log(), [""; 0]);
}

#[test]
fn a_file_larger_than_any_request_is_refused_before_it_is_lost() {
    let plugin = store(atomic().with_max_put(1000));
    let mut writer = plugin.create("f").unwrap();
    writer.append(&[1; 1000]).unwrap();
    assert_eq!(writer.append(&[1]).unwrap_err().code(), Code::ResourceExhausted);
    assert_eq!(writer.close().unwrap_err().code(), Code::ResourceExhausted);
    drop(writer);
    assert_eq!(plugin.take_log(), [""; 0]);
}

#[test]
fn a_file_larger_than_one_request_is_sent_in_parts() {
    let parts = PartLimits { smallest: 1, ..parts() };
    let plugin = store(atomic().with_max_put(500_000).with_parts(parts));
    let bytes = content(600_000);
    let mut writer = plugin.create("f").unwrap();
    append(&mut writer, &bytes).unwrap();
    writer.close().unwrap();
    assert!(plugin.bytes("f").unwrap() == bytes);
    assert!(!plugin.take_log().iter().any(|line| line.starts_with("put")));
}

#[test]
fn a_file_that_is_dropped_open_is_given_up() {
    for len in [10, 5 << 20] {
        let plugin = in_parts();
        plugin.put("f", &b"before"[..]);
        let mut writer = plugin.create("f").unwrap();
        append(&mut writer, &content(len)).unwrap();
        drop(writer);
        assert_eq!(plugin.bytes("f").unwrap(), &b"before"[..]);
        assert!(plugin.contents().uploads.is_empty());
        let log = plugin.take_log();
        assert_eq!(log.iter().any(|line| line == "abort"), len > 10, "{log:?}");
        assert!(!log.iter().any(|line| line.starts_with("complete")));
    }
}

#[test]
fn a_part_is_sent_again_and_a_part_that_is_lost_for_good_fails_the_file() {
    let bytes = content(4 << 20);
    for (kind, ends) in [(ErrorKind::Transient, true), (ErrorKind::Permanent, false)] {
        let plugin = in_parts();
        plugin.put("f", &b"before"[..]);
        plugin.fails("part", Fault::Fails(kind));
        let mut writer = plugin.create("f").unwrap();
        let written = append(&mut writer, &bytes).and_then(|()| writer.close());
        assert_eq!(written.is_ok(), ends, "{kind:?}: {written:?}");
        let expected = if ends { &bytes[..] } else { b"before" };
        assert!(plugin.bytes("f").unwrap() == expected);
        drop(writer);
        assert!(plugin.contents().uploads.is_empty());
    }
}

#[test]
fn a_file_that_this_process_deleted_is_not_published() {
    let plugin = in_parts();
    let mut writer = plugin.create("f").unwrap();
    writer.append(b"1").unwrap();
    plugin.0.delete_file(&name("f")).unwrap();
    writer.append(b"2").unwrap();
    writer.close().unwrap();
    assert_eq!(plugin.bytes("f"), None);
}

#[test]
fn flushes_follow_the_settings() {
    let limits = atomic();
    for settings in [
        Settings::default().with(|settings| settings.publish_on_flush = false),
        Settings::default()
            .with(|settings| settings.flush_interval = std::time::Duration::from_secs(3600)),
    ] {
        let first = settings.publish_on_flush;
        let plugin = with_settings(limits, settings);
        let mut writer = plugin.create("f").unwrap();
        writer.append(b"1").unwrap();
        writer.flush().unwrap();
        assert_eq!(plugin.bytes("f").is_some(), first);
        writer.append(b"2").unwrap();
        writer.flush().unwrap();
        writer.close().unwrap();
        assert_eq!(plugin.take_log().len(), 1 + usize::from(first));
        assert_eq!(plugin.bytes("f").unwrap(), &b"12"[..]);
    }
}
