//! A second read comes from the disk, and equals the store's current version.

use super::store::{Fault, Plugin};
use super::{GIB, MIB, blocks, content, directory, kept, open, process, range};
use std::time::Duration;
use tempfile::TempDir;
use tf_fs_object_store::{ErrorKind, metrics};
use tf_fs_plugin::prelude::*;

#[test]
fn a_second_process_makes_one_request_a_file() {
    let sizes = [1, 100_000, MIB, MIB + 1, 5 * MIB + 77, 20 * MIB, 45 * MIB + 3];
    for piece in [100_000, 7 * MIB + 13, 200 * MIB] {
        let directory = directory();
        let [first, second] = [0; 2].map(|_| process(&directory, GIB));
        for size in sizes {
            let (key, body) = (size.to_string(), content(size, 0));
            first.put(&key, body.clone());
            assert!(first.read(&key, piece).unwrap() == body, "{size} in {piece}");
        }
        kept(&directory, sizes.iter().map(|size| size.div_ceil(MIB)).sum());
        let hits = metrics::DISK_CACHE_HIT_BYTES.get();
        for size in sizes {
            let (key, body) = (size.to_string(), content(size, 0));
            second.put(&key, body.clone());
            assert!(second.read(&key, piece).unwrap() == body, "{size} in {piece}");
            let gets = second.requests(&format!("get {size} "));
            assert_eq!(gets.len(), 1, "{size} in {piece}: {gets:?}");
        }
        let read: usize = sizes.iter().sum();
        assert!(metrics::DISK_CACHE_HIT_BYTES.get() - hits >= read as u64);
    }
}

#[test]
fn small_and_random_reads_come_from_the_disk_too() {
    let (directory, body) = (directory(), content(6 * MIB + 5000, 0));
    let [first, second] = [0; 2].map(|_| process(&directory, GIB));
    for process in [&first, &second] {
        process.put("f", body.clone());
    }
    first.read("f", MIB).unwrap();
    kept(&directory, 7);
    let reader = open(&second, "f").unwrap();
    let mut position = 12_345;
    for len in [1, 16, 5000, 64 << 10, 100_000, 65_537, 3 * MIB] {
        for _ in 0..20 {
            position = (position * 31 + 7) % (body.len() - len);
            let read = range(&reader, position, len).unwrap();
            assert!(read == body[position..position + len], "{len} at {position}");
        }
    }
    assert!(range(&reader, body.len() - 10, 100).unwrap() == body[body.len() - 10..]);
    assert_eq!(second.requests("get").len(), 1);
}

#[test]
fn a_random_read_keeps_its_whole_block() {
    let (directory, body) = (directory(), content(40 * MIB, 0));
    let [first, second] = [0; 2].map(|_| process(&directory, GIB));
    for process in [&first, &second] {
        process.put("f", body.clone());
    }
    let reader = open(&first, "f").unwrap();
    let at = 20 * MIB + 300_000;
    assert!(range(&reader, at, 1000).unwrap() == body[at..at + 1000]);
    // The beginning, which is fetched when the file is opened, and the block.
    kept(&directory, 2);
    let reader = open(&second, "f").unwrap();
    assert!(range(&reader, at + 5000, 700_000).unwrap() == body[at + 5000..at + 705_000]);
    assert_eq!(second.requests("get").len(), 1);
}

#[test]
fn only_what_is_missing_is_fetched() {
    let (directory, body) = (directory(), content(30 * MIB, 0));
    let [first, second] = [0; 2].map(|_| process(&directory, GIB));
    for process in [&first, &second] {
        process.put("f", body.clone());
    }
    first.read("f", 4 * MIB).unwrap();
    kept(&directory, 30);
    let missing = ["-3", "-4", "-20"];
    for path in blocks(&directory) {
        let path = path.to_str().unwrap();
        if missing.iter().any(|end| path.ends_with(end)) {
            std::fs::remove_file(path).unwrap();
        }
    }
    for piece in [30 * MIB, 400_000] {
        let third = process(&directory, GIB);
        third.put("f", body.clone());
        assert!(third.read("f", piece).unwrap() == body, "{piece}");
        let at = |block: usize| format!("get f from {} attempt 1", block * MIB);
        let expected = match piece {
            // Put back by the first of the two.
            400_000 => vec![at(0)],
            _ => vec![at(0), at(3), at(20)],
        };
        assert_eq!(third.requests("get"), expected, "{piece}");
        kept(&directory, 30);
    }
}

#[test]
fn a_changed_object_is_never_stale() {
    for size in [1000, 3 * MIB] {
        let directory = directory();
        let store = process(&directory, GIB);
        for version in 0..4 {
            store.put("f", content(size, version));
            for other in [false, true] {
                let process = process(&directory, GIB);
                // The version that `store` has, whose number is its ETag.
                for version in 0..=version {
                    process.put("f", content(size, version));
                }
                let reader = if other { &process } else { &store };
                let read = reader.read("f", 700_000).unwrap();
                assert!(read == content(size, version), "{size}, version {version}, {other}");
            }
            kept(&directory, size.div_ceil(MIB));
        }
    }
}

#[test]
fn an_open_file_stays_its_version_and_never_mixes() {
    let directory = directory();
    let [first, second] = [0; 2].map(|_| process(&directory, GIB));
    for process in [&first, &second] {
        process.put("f", content(8 * MIB, 0));
    }
    first.read("f", MIB).unwrap();
    kept(&directory, 8);
    let reader = open(&second, "f").unwrap();
    // All of it is on the disk: the version stays readable.
    second.put("f", content(8 * MIB, 1));
    assert!(range(&reader, 5 * MIB, 1000).unwrap() == content(8 * MIB, 0)[5 * MIB..][..1000]);
    // A new version replaces blocks. What is left of the old one is right, the rest is an error.
    let third = process(&directory, GIB);
    third.put("f", content(8 * MIB, 0));
    third.put("f", content(8 * MIB, 1));
    third.read("f", MIB).unwrap();
    eventually_replaced(&third);
    for block in 0..8 {
        match range(&reader, block * MIB, MIB) {
            Ok(bytes) => assert!(bytes == content(8 * MIB, 0)[block * MIB..][..MIB], "{block}"),
            Err(error) => assert_eq!(error.code(), Code::FailedPrecondition, "{block}"),
        }
    }
    assert!(second.read("f", 8 * MIB).unwrap() == content(8 * MIB, 1));
}

/// Waits until all blocks are those of the store's version.
fn eventually_replaced(process: &super::Plugin) {
    super::eventually("blocks are replaced", || {
        process.contents().log.clear();
        process.read("f", MIB).unwrap();
        process.requests("get").len() == 1
    });
}

#[test]
fn a_listed_version_is_confirmed_before_the_disk_is_read() {
    let directory = directory();
    let process = process(&directory, GIB);
    process.contents().settings.listing_ttl = Duration::from_secs(1000);
    process.put("d/f", content(3 * MIB, 0));
    process.read("d/f", MIB).unwrap();
    kept(&directory, 3);
    process.children("d").unwrap();
    process.contents().log.clear();
    assert!(process.read("d/f", MIB).unwrap() == content(3 * MIB, 0));
    assert_eq!(process.requests("get"), ["get d/f from 0 attempt 1"]);
    // Somebody else changes it, but the listing is believed.
    process.put("d/f", content(3 * MIB, 1));
    assert!(process.read("d/f", MIB).unwrap() == content(3 * MIB, 1));
}

#[test]
fn an_object_without_a_strong_etag_is_not_kept() {
    let directory = directory();
    let process = process(&directory, GIB);
    process.contents().weak_etags = true;
    process.put("f", content(3 * MIB, 0));
    for _ in 0..2 {
        assert!(process.read("f", MIB).unwrap() == content(3 * MIB, 0));
    }
    assert!(process.requests("get").len() >= 2);
    assert!(blocks(&directory).is_empty());
}

#[test]
fn bytes_of_a_response_with_a_weak_etag_are_not_kept() {
    let directory = directory();
    let process = process(&directory, GIB);
    process.put("f", content(30 * MIB, 0));
    let reader = open(&process, "f").unwrap();
    kept(&directory, 1);
    process.contents().weak_etags = true;
    assert!(range(&reader, 20 * MIB, 3 * MIB).unwrap() == content(30 * MIB, 0)[20 * MIB..23 * MIB]);
    assert_eq!(blocks(&directory).len(), 1);
}

#[test]
fn names_of_files_tell_nothing_and_nobody_else_reads_them() {
    use std::os::unix::fs::PermissionsExt;

    let directory = directory();
    let process = process(&directory, GIB);
    process.put("secret-name", content(1000, 0));
    process.read("secret-name", 1000).unwrap();
    kept(&directory, 1);
    let block = &blocks(&directory)[0];
    let name = block.file_name().unwrap().to_str().unwrap();
    assert!(name.ends_with("-0") && name.len() == 34, "{name}");
    let bytes = std::fs::read(block).unwrap();
    assert!(!bytes.windows(11).any(|bytes| bytes == b"secret-name"));
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(block) & 0o777, 0o600);
    assert_eq!(mode(&directory.path().join("tf-disk-cache-1")) & 0o777, 0o700);
}

#[test]
fn keys_and_buckets_do_not_meet() {
    let directory = directory();
    let process = process(&directory, GIB);
    let keys = ["a", "b", "a/b", "ab", "a//b"];
    for (version, key) in keys.iter().enumerate() {
        process.put(key, content(5000, version as u8));
    }
    for _ in 0..2 {
        for (version, key) in keys.iter().enumerate() {
            assert!(process.read(key, 5000).unwrap() == content(5000, version as u8), "{key}");
        }
        kept(&directory, keys.len());
    }
}

/// Returns a process whose file `f`, of four blocks, another one has read to the disk.
fn beside_a_reader(directory: &TempDir, size: usize) -> Plugin {
    let [first, second] = [0; 2].map(|_| process(directory, GIB));
    for process in [&first, &second] {
        process.put("f", content(size, 0));
    }
    first.read("f", MIB).unwrap();
    kept(directory, 4);
    second
}

#[test]
fn an_append_is_seen_if_the_end_came_from_the_disk() {
    let size = 3 * MIB + 5;
    // The last read ends where the file does, or after it, or there is none.
    for last in [Some(100), Some(101), None] {
        let directory = directory();
        let second = beside_a_reader(&directory, size);
        let reader = open(&second, "f").unwrap();
        if let Some(len) = last {
            assert!(range(&reader, size - 100, len).unwrap() == content(size, 0)[size - 100..]);
        }
        if last != Some(101) {
            assert!(range(&reader, size, 100).unwrap().is_empty());
        }
        assert_eq!(second.requests("get").len(), 1, "the end is on the disk");
        second.put("f", content(size + 50, 0));
        assert!(range(&reader, size, 100).unwrap() == content(size + 50, 0)[size..]);
        assert!(range(&reader, 0, 100).unwrap() == content(100, 0));
    }
}

#[test]
fn a_longer_object_with_the_same_last_byte_is_another_one() {
    let size = 3 * MIB + 5;
    for len in [1, 2] {
        let directory = directory();
        let second = beside_a_reader(&directory, size);
        let reader = open(&second, "f").unwrap();
        assert!(range(&reader, size - 1, len).unwrap() == content(size, 0)[size - 1..]);
        assert!(range(&reader, size, 100).unwrap().is_empty());
        let mut other = content(size + 50, 1);
        other[size - 1] = content(size, 0)[size - 1];
        second.put("f", other);
        let error = range(&reader, size, 100).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
    }
}

#[test]
fn the_end_is_requested_once_while_the_store_is_down() {
    for ttl in [Duration::ZERO, Duration::from_secs(1000)] {
        let directory = directory();
        let [first, second] = [0; 2].map(|_| process(&directory, GIB));
        second.contents().settings.listing_ttl = ttl;
        for process in [&first, &second] {
            process.put("f", content(2 * MIB, 0));
        }
        first.read("f", MIB).unwrap();
        kept(&directory, 2);
        let reader = open(&second, "f").unwrap();
        blocks(&directory).iter().for_each(|block| std::fs::remove_file(block).unwrap());
        second.inject("get", [Fault::Fails(ErrorKind::Transient); 3]);
        assert!(range(&reader, 2 * MIB, 100).unwrap().is_empty());
        assert!(range(&reader, 2 * MIB, 100).unwrap().is_empty());
        // The first is of the opening, and then there are three attempts.
        let requests = second.requests("get").len();
        if !ttl.is_zero() {
            assert_eq!(requests, 4);
            continue;
        }
        // The store is up again: one request says so, and another one is for the end.
        assert_eq!(requests, 6);
        second.put("f", content(2 * MIB + 50, 0));
        assert!(range(&reader, 2 * MIB, 100).unwrap() == content(2 * MIB + 50, 0)[2 * MIB..]);
    }
}
