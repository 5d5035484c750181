//! Files of a store whose responses tell nothing but bytes.

use crate::store::{Plugin, name, server};
use bytes::Bytes;
use tf_fs_object_store::{Reader, Writer};
use tf_fs_plugin::prelude::*;

const PART: usize = 1 << 20;

fn headless(files: &[(&str, Vec<u8>)], has_no_etags: bool) -> Plugin {
    let plugin = server(&[]);
    {
        let mut contents = plugin.contents();
        contents.is_headless = true;
        contents.has_no_etags = has_no_etags;
        for (path, bytes) in files {
            contents.write(path, bytes.clone().into());
        }
    }
    plugin
}

/// Returns bytes that differ from those at neighbouring positions, and from those of another `seed`.
fn content(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8 ^ seed).collect()
}

fn read(reader: &Reader<Plugin>, offset: usize, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut buf = ReadBuf::from_slice(&mut bytes);
    reader.read_at(offset as u64, &mut buf)?;
    Ok(buf.filled().to_vec())
}

fn open(plugin: &Plugin, key: &str) -> Result<Reader<Plugin>> {
    Reader::open(plugin, name(key))
}

#[test]
fn the_version_is_asked_before_and_after() {
    for has_no_etags in [false, true] {
        let plugin = headless(&[("f", content(100, 0)), ("empty", Vec::new())], has_no_etags);
        let reader = open(&plugin, "f").unwrap();
        assert_eq!(read(&reader, 0, 200).unwrap(), content(100, 0));
        // The first response of the bucket shows it.
        assert_eq!(plugin.take_log(), ["get f", "head f", "get f", "head f"]);
        let reader = open(&plugin, "f").unwrap();
        assert_eq!(read(&reader, 90, 100).unwrap(), &content(100, 0)[90..]);
        assert_eq!(plugin.take_log(), ["head f", "get f", "head f"]);
        // Nothing to get.
        let reader = open(&plugin, "empty").unwrap();
        assert_eq!(read(&reader, 0, 10).unwrap(), [0; 0]);
        assert_eq!(plugin.take_log(), ["head empty"]);
        assert_eq!(open(&plugin, "none").unwrap_err().code(), Code::NotFound);
    }
}

#[test]
fn a_large_file_is_read_in_parts_that_are_whole() {
    let bytes = content(5 * PART + 77, 0);
    let plugin = headless(&[("f", bytes.clone())], false);
    for (step, random) in
        [(100_000, false), (3 * PART, false), (bytes.len(), false), (70_000, true)]
    {
        let reader = open(&plugin, "f").unwrap();
        for at in (0..bytes.len()).step_by(step) {
            let at = if random { bytes.len().saturating_sub(at + step) } else { at };
            let end = bytes.len().min(at + step);
            assert!(read(&reader, at, step).unwrap() == bytes[at..end], "{at} {step}");
        }
    }
    let log = plugin.take_log();
    assert!(log.iter().all(|line| line == "get f" || line == "head f"), "{log:?}");
    // What is appended to is read as a whole.
    let mut writer = Writer::append_to(&plugin, name("f")).unwrap();
    writer.append(b"more").unwrap();
    writer.close().unwrap();
    assert!(plugin.bytes("f").unwrap() == [&bytes[..], b"more"].concat());
}

#[test]
fn an_open_file_is_one_version_or_an_error() {
    for has_no_etags in [false, true] {
        for other in [content(3 * PART, 1), content(2 * PART, 1), content(4 * PART, 1)] {
            // Before the bytes are requested, or between them and the question after.
            for change in ["get", "head"] {
                let plugin = headless(&[("f", content(3 * PART, 0))], has_no_etags);
                let reader = open(&plugin, "f").unwrap();
                assert_eq!(read(&reader, 0, 10).unwrap(), &content(10, 0)[..]);
                plugin.contents().changes.push_back((change, Some(Bytes::from(other.clone()))));
                let error = read(&reader, 2 * PART, PART).unwrap_err();
                assert_eq!(error.code(), Code::FailedPrecondition, "{change}: {error:#}");
            }
        }
    }
}

#[test]
fn a_file_that_changes_while_it_is_opened_is_opened_again() {
    for has_no_etags in [false, true] {
        for (request, len) in [("get", 100), ("head", 100), ("get", 50), ("head", 200)] {
            let plugin = headless(&[("f", content(100, 0)), ("g", content(1, 0))], has_no_etags);
            // So that it is known what the responses are like.
            open(&plugin, "g").unwrap();
            let unchanged = ("head", Some(Bytes::from(content(100, 0))));
            let changed = (request, Some(Bytes::from(content(len, 1))));
            plugin.contents().changes.extend([unchanged, changed]);
            let reader = open(&plugin, "f").unwrap();
            assert_eq!(read(&reader, 0, 300).unwrap(), content(len, 1), "{request} {len}");
        }
        let plugin = headless(&[("f", content(100, 0)), ("g", content(1, 0))], has_no_etags);
        open(&plugin, "g").unwrap();
        plugin.contents().changes.push_back(("get", None));
        assert_eq!(open(&plugin, "f").unwrap_err().code(), Code::NotFound);
    }
}
