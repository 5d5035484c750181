//! How files become visible, and what a writer leaves that is killed.

use crate::store::{Plugin, name, server};
use std::sync::Mutex;
use tf_fs_object_store::{Publication, Writer};
use tf_fs_plugin::prelude::*;

const OLD: &[u8] = b"old bytes";
const NEW: &[u8] = b"new bytes, and more of them";

pub(crate) fn publishing(publication: Publication) -> Plugin {
    let plugin = server(&[]);
    plugin.contents().publication = Some(publication);
    plugin
}

fn write(plugin: &Plugin, key: &str, bytes: &[u8]) -> Result<()> {
    let mut writer = Writer::create(plugin, name(key))?;
    writer.append(bytes)?;
    writer.close()
}

/// Returns the requests since the last call, with `TEMP` in place of temporary names.
pub(crate) fn requests(plugin: &Plugin) -> Vec<String> {
    let is_temporary = |word: &str| word.contains(".tf-");
    let shown = |line: String| {
        let words = line.split(' ').map(|word| if is_temporary(word) { "TEMP" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    plugin.take_log().into_iter().map(shown).collect()
}

#[test]
fn a_file_is_written_under_a_temporary_name_and_renamed() {
    let plugin = publishing(Publication::Rename);
    write(&plugin, "f", OLD).unwrap();
    assert_eq!(requests(&plugin), ["put TEMP", "rename TEMP f"]);
    assert_eq!(plugin.paths(), ["f"]);
    // A flush, and more.
    let mut writer = Writer::create(&plugin, name("f")).unwrap();
    writer.append(&NEW[..3]).unwrap();
    writer.flush().unwrap();
    assert_eq!(plugin.bytes("f").unwrap(), &NEW[..3]);
    writer.append(&NEW[3..]).unwrap();
    writer.close().unwrap();
    assert_eq!(plugin.bytes("f").unwrap(), NEW);
    let expected = ["put TEMP", "rename TEMP f", "put TEMP", "get f", "rename TEMP f"];
    assert_eq!(requests(&plugin), expected);
    // Where the response does not tell what the file is.
    plugin.contents().is_silent = true;
    write(&plugin, "f", OLD).unwrap();
    assert_eq!(requests(&plugin), ["put TEMP", "rename TEMP f", "get f"]);
    // The temporary name is in the same directory.
    plugin.0.create_dir(&name("d")).unwrap();
    write(&plugin, "d/f", NEW).unwrap();
    assert!(plugin.take_log().iter().any(|line| line.starts_with("put d/.tf-")));
    assert_eq!(plugin.paths(), ["d/", "d/f", "f"]);
    let error = write(&plugin, "none/f", NEW).unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "{error:#}");
    assert!(format!("{error:#}").contains("mem://b/none/f"), "{error:#}");
}

#[test]
fn a_rename_replaces_nobody_elses_file() {
    // One that was not there.
    let plugin = publishing(Publication::Rename);
    let mut writer = Writer::append_to(&plugin, name("f")).unwrap();
    writer.append(NEW).unwrap();
    plugin.contents().fill(&["f"]);
    assert_eq!(writer.close().unwrap_err().code(), Code::FailedPrecondition);
    assert_eq!(plugin.bytes("f").unwrap(), &b"f"[..]);
    assert_eq!(plugin.paths(), ["f"], "the temporary name is deleted");
    // One that was another.
    let mut writer = Writer::append_to(&plugin, name("f")).unwrap();
    writer.append(NEW).unwrap();
    plugin.contents().fill(&["f"]);
    assert_eq!(writer.close().unwrap_err().code(), Code::FailedPrecondition);
    assert_eq!(plugin.bytes("f").unwrap(), &b"f"[..]);
    assert_eq!(plugin.paths(), ["f"]);
    // A response that is lost is not somebody else's file.
    for lost in ["rename", "put"] {
        plugin.contents().loses = Some(lost);
        let mut writer = Writer::append_to(&plugin, name("g")).unwrap();
        writer.append(OLD).unwrap();
        writer.close().unwrap();
        assert_eq!(plugin.bytes("g").unwrap(), OLD);
        plugin.0.delete_file(&name("g")).unwrap();
    }
    assert_eq!(plugin.paths(), ["f"]);
}

/// Writes over a file, and kills the writer at each request, while it is made or before. Returns what was lost.
pub(crate) fn killed(publication: Publication, has_upload: bool, new: &[u8]) -> Vec<(usize, bool)> {
    let mut lost = Vec::new();
    for at in 1.. {
        for half in [true, false] {
            let plugin = publishing(publication);
            plugin.contents().has_upload = has_upload;
            write(&plugin, "f", OLD).unwrap();
            plugin.contents().requests = 0;
            plugin.contents().dies_at = Some((at, half));
            let outcome = write(&plugin, "f", new);
            let was_killed = plugin.contents().requests >= at;
            plugin.contents().dies_at = None;
            let bytes = plugin.bytes("f").unwrap();
            if bytes != OLD && bytes != new {
                lost.push((at, half));
            }
            assert!(outcome.is_err() || bytes == new);
            // What is left of it is not shown, and the next writer is not disturbed.
            assert_eq!(plugin.children("").unwrap(), ["f"]);
            assert_eq!(plugin.0.get_matching_paths(Uri::new(b"mem://b/*")).unwrap().len(), 1);
            write(&plugin, "f", new).unwrap();
            assert!(plugin.bytes("f").unwrap() == new);
            if !was_killed {
                return lost;
            }
        }
    }
    lost
}

#[test]
fn a_killed_writer_leaves_the_old_file_or_the_new_one() {
    assert_eq!(killed(Publication::Atomic, false, NEW), []);
    assert_eq!(killed(Publication::Rename, false, NEW), []);
    // Only the request that was on its way is half a file.
    assert_eq!(killed(Publication::InPlace, false, NEW), [(1, true)]);
}

#[test]
fn what_a_killed_writer_leaves_is_deleted_with_its_directory() {
    let plugin = publishing(Publication::Rename);
    plugin.contents().fill(&["d/f"]);
    plugin.contents().dies_at = Some((1, true));
    assert!(write(&plugin, "d/f", NEW).is_err());
    plugin.contents().dies_at = None;
    assert_eq!(plugin.paths().len(), 3);
    assert_eq!(plugin.children("d").unwrap(), ["f"]);
    plugin.0.delete_recursively(&name("d")).map_err(|left| left.error).unwrap();
    assert!(plugin.paths().is_empty());
}

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Lines;

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        LINES.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

#[test]
fn the_log_warns_once_of_writes_in_place() {
    log::set_logger(&Lines).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let bucket = |bucket: &str| tf_fs_object_store::Name::new("mem", bucket, "f");
    let count =
        |what: &str| LINES.lock().unwrap().iter().filter(|line| line.contains(what)).count();
    for publication in [Publication::Atomic, Publication::Rename] {
        Writer::create(&publishing(publication), bucket("safe")).unwrap();
    }
    assert_eq!(count("mem://safe/: "), 0);
    let plugin = publishing(Publication::InPlace);
    for _ in 0..2 {
        Writer::create(&plugin, bucket("risky")).unwrap();
    }
    assert_eq!(count("mem://risky/: the store writes files in place"), 1);
}
