//! Reading: how many requests it takes, right bytes whatever happens, bounded memory.

use s3_server::{At, Fault, Gate, Options, Reply, Shape, Tls, What, When};
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::abi::{Ended, in_fork};
use tf_plugin_s3_tests::{IMPATIENT, Store, content, eventually, host};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn open(store: &Store, key: &str) -> tf_fs_plugin::testing::RandomAccessFile {
    host().new_random_access_file(store.uri(key)).unwrap_or_else(|error| panic!("{key}: {error:#}"))
}

/// All of a file, by reads of `n` bytes, as TensorFlow's buffered streams make them.
fn read_by(store: &Store, key: &str, n: usize) -> Vec<u8> {
    let file = open(store, key);
    let mut bytes = Vec::new();
    loop {
        let read = file.read(bytes.len() as u64, n).unwrap();
        bytes.extend_from_slice(&read);
        if read.len() < n {
            return bytes;
        }
    }
}

/// The requests, for messages.
fn summary(store: &Store) -> String {
    let mut text = String::new();
    for request in store.log() {
        let range = request.headers.get("range").map(String::as_str).unwrap_or_default();
        text += &format!(
            "\n{:?} {} {range} {} {} bytes, connection {}{}",
            request.at,
            request.operation,
            request.status,
            request.bytes_out,
            request.connection,
            if request.faulted { ", fault" } else { "" }
        );
    }
    text
}

fn gets(counts: &BTreeMap<String, usize>) -> usize {
    assert!(counts.keys().all(|operation| operation == "GetObject"), "{counts:?}");
    counts.get("GetObject").copied().unwrap_or(0)
}

#[test]
fn a_small_file_takes_one_request() {
    let store = Store::new("small");
    for len in [0, 1, 1_000, 70_000, MIB] {
        let body = content(len, len as u64);
        let key = format!("f-{len}");
        store.put(&key, body.clone());
        for n in [1_000.min(len.max(1)), len + 1, 4 * MIB] {
            let (read, counts) = store.requests(|| read_by(&store, &key, n));
            assert_eq!(read, body, "{len} bytes by {n}");
            assert_eq!(gets(&counts), 1, "{len} bytes by {n}");
        }
    }
}

#[test]
fn a_large_file_takes_few_requests() {
    let store = Store::new("large");
    let body = content(64 * MIB + 12_345, 3);
    store.put("f", body.clone());
    // 3 parts of 4 MiB, then parts of 8 MiB.
    for n in [100 * KIB, 512 * KIB, MIB, 3 * MIB] {
        let (read, counts) = store.requests(|| read_by(&store, "f", n));
        assert!(read == body, "by {n}");
        assert!(gets(&counts) <= 3 + 7, "by {n}: {counts:?}");
    }
    // One read of all: parts of 8 MiB, all at once, straight into the buffer.
    let (read, counts) = store.requests(|| read_by(&store, "f", body.len() + 1));
    assert!(read == body);
    assert!(gets(&counts) <= 9, "{counts:?}");
}

#[test]
fn parts_are_fetched_at_once() {
    let store = Store::new("parallel");
    let body = content(48 * MIB, 3);
    store.put("f", body.clone());
    store.shape(Shape::s3());
    for n in [512 * KIB, 48 * MIB] {
        store.reset_log();
        let read = read_by(&store, "f", n);
        assert!(read == body);
        store.quiet();
        let log = store.log();
        let at_once = |at: Duration| {
            let running = |request: &&s3_server::Request| {
                request.at <= at && request.duration.is_none_or(|took| request.at + took > at)
            };
            log.iter().filter(running).count()
        };
        let most = log.iter().map(|request| at_once(request.at)).max().unwrap();
        assert!(most >= 4, "at most {most} requests at a time by {n}");
    }
}

#[test]
fn random_access_takes_a_request_a_read() {
    let store = Store::new("random");
    let body = content(64 * MIB, 4);
    store.put("f", body.clone());
    let file = open(&store, "f");
    store.quiet();
    let places: Vec<usize> = (1..40).map(|i| MIB + i * 7_654_321 % (60 * MIB)).collect();
    // What TensorFlow's GFile makes of seek and read: a byte before the place, then 512 KiB.
    let ((), counts) = store.requests(|| {
        for &place in &places {
            assert_eq!(file.read(place as u64 - 1, 1).unwrap(), body[place - 1..place]);
            assert_eq!(file.read(place as u64, 512 * KIB).unwrap(), body[place..place + 512 * KIB]);
            // Asked twice.
            assert_eq!(file.read(place as u64, 512 * KIB).unwrap(), body[place..place + 512 * KIB]);
        }
    });
    assert_eq!(gets(&counts), places.len());
    let bytes: u64 = store.log().iter().map(|request| request.bytes_out).sum();
    assert_eq!(bytes as usize, places.len() * (512 * KIB + 1), "no more than what is asked for");
    // Backwards and in strides: exactly what is asked for.
    let strides: Vec<usize> = (0..20).rev().map(|i| 2 * MIB + i * 2 * MIB).collect();
    let ((), counts) = store.requests(|| {
        for &place in &strides {
            assert_eq!(file.read(place as u64, 50_000).unwrap(), body[place..place + 50_000]);
        }
    });
    assert_eq!(gets(&counts), strides.len(), "{:?}", store.log());
    let bytes: u64 = store.log().iter().map(|request| request.bytes_out).sum();
    assert_eq!(bytes as usize, strides.len() * 50_000);
}

#[test]
fn shards_of_a_data_set_take_four_requests_each() {
    let store = Store::new("shards");
    let shards: Vec<_> = (0..16).map(|i| content(16 * MIB - i * 1_000, i as u64)).collect();
    for (i, shard) in shards.iter().enumerate() {
        store.put(&format!("data/{i:05}"), shard.clone());
    }
    // TensorFlow reads 127 MiB at a time from names that begin with s3://.
    let ((), counts) = store.requests(|| {
        for (i, shard) in shards.iter().enumerate() {
            assert!(read_by(&store, &format!("data/{i:05}"), 127 * MIB) == *shard, "{i}");
        }
    });
    assert!(gets(&counts) <= 64, "{counts:?}");
    // The later ones are asked for all at once: each takes one round trip, not two.
    let latency = Duration::from_secs(1);
    store.shape(Shape { first_byte_latency: latency, ..Shape::default() });
    store.reset_log();
    assert!(read_by(&store, "data/00005", 127 * MIB) == shards[5]);
    let at: Vec<_> = store.log().iter().map(|request| request.at).collect();
    assert_eq!(at.len(), 4);
    assert!(*at.iter().max().unwrap() - *at.iter().min().unwrap() < latency, "{at:?}");
}

#[test]
fn a_neighbour_of_another_length_wastes_one_request_at_most() {
    let store = Store::new("neighbours");
    store.put("d/a", content(16 * MIB, 1));
    for (key, len, most) in [("d/b", 12 * MIB, 4), ("d/c", 17 * MIB, 5), ("d/e", 14 * MIB, 4)] {
        assert_eq!(read_by(&store, "d/a", 127 * MIB).len(), 16 * MIB);
        let body = content(len, 7);
        store.put(key, body.clone());
        let (read, counts) = store.requests(|| read_by(&store, key, 127 * MIB));
        assert!(read == body, "{key}");
        assert!(gets(&counts) <= most, "{key}: {counts:?}");
    }
}

#[test]
fn the_end_of_a_file_is_fetched_at_once() {
    let store = Store::new("tail");
    let body = content(40 * MIB, 4);
    store.put("f.index", body.clone());
    let (_, counts) = store.requests(|| {
        let file = open(&store, "f.index");
        let len = body.len();
        // As TensorFlow reads the index of a checkpoint: the footer, then blocks before it.
        for (back, n) in [(48, 48), (400, 300), (90_000, 4_000), (5_000, 4_000)] {
            assert_eq!(
                file.read((len - back) as u64, n).unwrap(),
                body[len - back..len - back + n]
            );
        }
    });
    assert_eq!(gets(&counts), 2);
}

#[test]
fn data_of_a_checkpoint_is_not_read_from_its_beginning_unasked() {
    let store = Store::new("checkpoint-data");
    let body = content(40 * MIB, 4);
    let (key, other) = ("ckpt-1.data-00000-of-00001", "ckpt-1.data-0-of-1");
    store.put(key, body.clone());
    store.put(other, body.clone());
    let read = |key: &str| {
        let (_, counts) = store.requests(|| {
            let file = open(&store, key);
            assert_eq!(
                file.read((body.len() - 900) as u64, 900).unwrap(),
                body[body.len() - 900..]
            );
        });
        assert_eq!(gets(&counts), 2, "{key}");
        store.log().iter().map(|request| request.headers["range"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(read(key)[0], "bytes=0-65535");
    assert_eq!(read(other)[0], "bytes=0-4194303");
    assert!(read_by(&store, key, MIB) == body);
}

#[test]
fn a_file_that_was_read_at_random_is_not_expected_to_be_read_whole() {
    let store = Store::with("habits", &[("listing_ttl_ms", "0")]);
    let body = content(32 * MIB, 4);
    store.put("d/f", body.clone());
    // Parts that are fetched ahead are asked for beside the caller.
    let fetches_ahead = || {
        let (_file, _) = store.requests(|| open(&store, "d/f"));
        eventually(Duration::from_secs(10), || gets(&store.counts()) > 1)
    };
    let read_whole = || assert!(read_by(&store, "d/f", MIB) == body);
    let read_at_random = || {
        // What was given up of the file before may still be on its way.
        let mut seen = 0;
        eventually(Duration::from_secs(10), || {
            std::thread::sleep(Duration::from_millis(100));
            store.quiet() && std::mem::replace(&mut seen, store.log().len()) == store.log().len()
        });
        let (file, counts) = store.requests(|| open(&store, "d/f"));
        assert_eq!(file.read(20_000_000, 1_000).unwrap(), body[20_000_000..20_001_000]);
        gets(&counts)
    };
    read_whole();
    assert!(fetches_ahead(), "as the last time");
    read_at_random();
    assert_eq!(read_at_random(), 1);
    read_whole();
    assert_eq!(read_at_random(), 1, "one time tells nothing");
    read_whole();
    read_whole();
    assert!(fetches_ahead());
}

#[test]
fn a_large_read_has_no_tiny_last_request() {
    let store = Store::new("last-piece");
    let body = content(40 * MIB, 4);
    store.put("f.data-00000-of-00001", body.clone());
    let file = open(&store, "f.data-00000-of-00001");
    let start = 20 * MIB;
    for (len, most) in [(5 * MIB, 1), (9 * MIB, 2)] {
        let (read, counts) = store.requests(|| file.read(start as u64, len).unwrap());
        assert!(read == body[start..start + len]);
        assert_eq!(gets(&counts), most, "{len}");
    }
}

#[test]
fn an_open_file_tells_its_length() {
    let store = Store::with("open-stat", &[("listing_ttl_ms", "60000")]);
    store.put("f", "content");
    // As `GFile.read()` does.
    let (found, counts) = store.requests(|| {
        let file = open(&store, "f");
        let found = host().stat(store.uri("f")).unwrap();
        assert_eq!(file.read(0, 7).unwrap(), b"content");
        found
    });
    assert_eq!((found.length, found.is_directory, gets(&counts)), (7, false, 1));
    let time = store.stat(store.bucket(), "f").unwrap().modified.unwrap();
    let apart = found.modified.duration_since(time).unwrap_or_else(|early| early.duration());
    assert!(apart < Duration::from_secs(1), "{apart:?}");

    let store = Store::with("open-stat-no-ttl", &[("listing_ttl_ms", "0")]);
    store.put("f", "content");
    let file = open(&store, "f");
    store.put("f", "longer content");
    assert_eq!(host().stat(store.uri("f")).unwrap().length, 14);
    drop(file);

    // A region is as long as the object that is read, not as the one that is remembered.
    let store = Store::with("open-region", &[("listing_ttl_ms", "60000")]);
    for (key, other) in [("longer", "longer content"), ("shorter", "short")] {
        store.put(key, "content");
        host().stat(store.uri(key)).unwrap();
        store.put(key, other);
        let region = host().new_read_only_memory_region_from_file(store.uri(key)).unwrap();
        assert_eq!(region.to_vec(), other.as_bytes(), "{key}");
    }
}

#[test]
fn what_a_listing_showed_needs_no_request_to_open() {
    let store = Store::with("listed", &[("listing_ttl_ms", "60000")]);
    let body = content(100_000, 4);
    store.put("d/f", body.clone());
    store.put("d/empty", "");
    assert_eq!(host().get_children(store.uri("d")).unwrap().len(), 2);
    let (file, counts) = store.requests(|| open(&store, "d/f"));
    assert_eq!(gets(&counts), 0);
    let (read, counts) = store.requests(|| file.read(0, 200_000).unwrap());
    assert_eq!((read == body, gets(&counts)), (true, 1));
    // Empty, unless it has been filled since.
    let (read, counts) = store.requests(|| read_by(&store, "d/empty", 10));
    assert_eq!((read.len(), gets(&counts)), (0, 1));
    // It was replaced since the listing, and nobody has seen a byte of what it was.
    let new = content(90_000, 5);
    store.put("d/f", new.clone());
    assert_eq!(open(&store, "d/f").read(0, 200_000).unwrap(), new);
}

#[test]
fn what_cannot_be_opened_says_so() {
    let store = Store::new("missing");
    store.put("d/f", "x");
    let code = |key: &str| {
        let (opened, counts) = store.requests(|| host().new_random_access_file(store.uri(key)));
        (opened.expect_err(key).code(), counts.values().sum::<usize>())
    };
    assert_eq!(code("nothing"), (Code::NotFound, 2));
    assert_eq!(code("d"), (Code::FailedPrecondition, 2));
    assert_eq!(code("d/"), (Code::FailedPrecondition, 0));
    assert_eq!(code(""), (Code::FailedPrecondition, 0));
    let error = host().new_random_access_file("s3://no-such-bucket-here/f").expect_err("no bucket");
    assert_ne!(error.code(), Code::Internal, "{error:#}");
    let writing = host().new_writable_file(store.uri("w")).unwrap();
    let error = host().new_random_access_file(store.uri("w")).expect_err("not closed yet");
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(error.message().contains("close it first"), "{error:#}");
    drop(writing);
}

#[test]
fn keys_are_exact() {
    let store = Store::new("keys");
    for key in [
        "a//b",
        "./x",
        "d/../x",
        "ä +%2F?#&=.txt",
        "tab\tnew\nline",
        "~'()*!",
        "😀",
        "a b%20c",
        "[1]*?\\",
    ] {
        store.put(key, key.as_bytes());
        assert_eq!(read_by(&store, key, 100), key.as_bytes(), "{key}");
    }
}

#[test]
fn odd_reads_are_answered() {
    let store = Store::new("odd");
    let body = content(10_000, 1);
    store.put("f", body.clone());
    let file = open(&store, "f");
    for (offset, n, expected) in [
        (0, 0, &body[..0]),
        (20_000, 0, &[]),
        (10_000, 5, &[]),
        (u64::MAX, 5, &[]),
        (u64::MAX - 2, 100, &[]),
        (9_990, 100, &body[9_990..]),
        (3, 5, &body[3..8]),
    ] {
        assert_eq!(file.read(offset, n).unwrap(), expected, "{offset} {n}");
    }
    let (read, status) = file.read_with_status(9_990, 100);
    assert_eq!((read.len(), status.unwrap_err().code()), (10, Code::OutOfRange));
}

#[test]
fn one_version_is_read() {
    for n in [100 * KIB, 30 * MIB] {
        let store = Store::with("changed", &[("read_part_bytes", "1048576")]);
        let (old, new) = (content(20 * MIB, 1), content(20 * MIB, 2));
        store.put("f", old.clone());
        let replaced = new.clone();
        // Overwritten in the middle of the reads.
        store.inject(
            Fault::new(
                When::Nth(6),
                What::run(move |server, request| {
                    server.put(request.bucket.as_deref().unwrap(), "f", replaced.clone());
                }),
            )
            .operation("GetObject"),
        );
        let file = open(&store, "f");
        let mut read = Vec::new();
        let error = loop {
            match file.read(read.len() as u64, n) {
                Ok(bytes) if bytes.is_empty() => panic!("{} bytes and no error", read.len()),
                Ok(bytes) => read.extend_from_slice(&bytes),
                Err(error) => break error,
            }
        };
        assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
        assert!(old.starts_with(&read), "a mixture");
        // Opened again it is the new one.
        assert!(read_by(&store, "f", n) == new);
    }
}

/// A file of this content, opened with what was remembered of it: no request yet.
fn open_remembered(store: &Store, body: &[u8]) -> tf_fs_plugin::testing::RandomAccessFile {
    store.put("f", body);
    assert_eq!(host().stat(store.uri("f")).unwrap().length, body.len() as u64);
    let (file, counts) = store.requests(|| open(store, "f"));
    assert_eq!(gets(&counts), 0);
    file
}

#[test]
fn a_remembered_version_is_kept_once_the_store_has_begun_to_send_it() {
    let store = Store::with("remembered-begun", &[("listing_ttl_ms", "60000")]);
    let (old, new) = (content(16 * MIB, 1), content(16 * MIB, 2));
    let file = open_remembered(&store, &old);
    store.shape(Shape { bytes_per_second_per_connection: Some(2_000_000), ..Shape::default() });
    std::thread::scope(|threads| {
        let long = threads.spawn(|| file.read(4 * MIB as u64, MIB));
        let begun = || store.log().iter().any(|request| request.bytes_out > 400_000);
        assert!(eventually(Duration::from_secs(5), begun));
        store.put("f", new.clone());
        // The other thread has yet to see its first byte, but the file has been begun.
        let read = file.read(12 * MIB as u64, 1_000).map(|read| read == new[12 * MIB..][..1_000]);
        assert_eq!(read.map_err(|error| error.code()), Err(Code::FailedPrecondition));
        assert!(long.join().unwrap().unwrap() == old[4 * MIB..5 * MIB]);
    });
    store.shape(Shape::default());
    assert!(read_by(&store, "f", MIB) == new, "opened again");
}

#[test]
fn a_remembered_version_that_is_past_is_read_by_no_thread() {
    let store = Store::with("remembered-past", &[("listing_ttl_ms", "60000")]);
    let (old, new) = (content(8 * MIB, 1), content(8 * MIB, 2));
    let file = open_remembered(&store, &old);
    let read = |start: usize| (file.read(start as u64, 1_000), &new[start..][..1_000]);
    // The answer to the first thread is of the version that was remembered, and comes last.
    let gate = Gate::new();
    store.inject(Fault::new(When::Nth(1), What::PauseDone(gate.clone())).operation("GetObject"));
    std::thread::scope(|threads| {
        let first = threads.spawn(|| read(2 * MIB));
        assert!(gate.wait_for(1, Duration::from_secs(5)));
        store.put("f", new.clone());
        let (second, right) = read(4 * MIB);
        assert_eq!(second.unwrap(), right);
        gate.open();
        let (first, right) = first.join().unwrap();
        assert_eq!(first.unwrap(), right);
    });
    let (later, right) = read(2 * MIB + 500);
    assert_eq!(later.unwrap(), right);
}

#[test]
fn threads_that_find_a_remembered_version_past_read_one_other() {
    let store = Store::with("remembered-both", &[("listing_ttl_ms", "60000")]);
    let versions: Vec<_> = (1..4).map(|seed| content(MIB, seed)).collect();
    let file = open_remembered(&store, &versions[0]);
    store.put("f", versions[1].clone());
    let gate = Gate::new();
    let get = |when, what| Fault::new(when, what).operation("GetObject");
    store.inject(get(When::Nth(1), What::Pause(gate.clone())));
    store.inject(get(When::Nth(2), What::Pause(gate.clone())));
    // It is replaced again between the two openings, if there are two.
    let third = versions[2].clone();
    let replace = What::run(move |server, request| {
        server.put(request.bucket.as_deref().unwrap(), "f", third.clone());
    });
    store.inject(get(When::Nth(4), replace));
    let read = std::thread::scope(|threads| {
        let threads = [200_000, 600_000].map(|start| {
            let file = &file;
            threads.spawn(move || (start, file.read(start as u64, 1_000).unwrap()))
        });
        assert!(gate.wait_for(2, Duration::from_secs(5)));
        gate.open();
        threads.map(|thread| thread.join().unwrap())
    });
    let is_of =
        |version: &Vec<u8>| read.iter().all(|(start, read)| *read == version[*start..][..1_000]);
    assert!(versions[1..].iter().any(is_of), "two versions: {}", summary(&store));
}

#[test]
fn what_turns_out_to_be_gone_is_not_remembered() {
    for offset in [0, 1_000, 5_000] {
        let store = Store::with("remembered-gone", &[("listing_ttl_ms", "60000")]);
        let file = open_remembered(&store, &content(1_000, 1));
        store.delete(store.bucket(), "f");
        assert_eq!(file.read(offset, 10).unwrap_err().code(), Code::NotFound, "{offset}");
        assert!(host().path_exists(store.uri("f")).is_err(), "{offset}");
    }
}

#[test]
fn the_end_of_a_remembered_version_is_asked_for_once() {
    let store = Store::with("remembered-end", &[("listing_ttl_ms", "60000")]);
    let body = content(1_000, 1);
    let file = open_remembered(&store, &body);
    let read_at_end = || store.requests(|| file.read(1_000, 10).unwrap());
    assert_eq!(store.requests(|| file.read(1_000, 0).unwrap()).1.len(), 0, "nothing is wanted");
    let (read, counts) = read_at_end();
    assert_eq!((read.len(), gets(&counts)), (0, 1));
    let (read, counts) = read_at_end();
    assert_eq!((read.len(), gets(&counts)), (0, 0));
    // What is longer by now, or no longer empty, does not end there.
    let longer = content(2_000, 2);
    let file = open_remembered(&store, &body);
    store.put("f", longer.clone());
    assert!(file.read(1_000, 3_000).unwrap() == longer[1_000..]);
    for key in ["file", "region"] {
        store.put(key, "");
        assert_eq!(host().stat(store.uri(key)).unwrap().length, 0);
        store.put(key, longer.clone());
    }
    assert!(read_by(&store, "file", 3_000) == longer);
    let region = host().new_read_only_memory_region_from_file(store.uri("region")).unwrap();
    assert!(region.to_vec() == longer);
}

#[test]
fn what_broke_off_is_resumed() {
    let store =
        Store::with("resumed", &[("stall_timeout_ms", "2000"), ("read_part_bytes", "1048576")]);
    let body = content(5 * MIB, 9);
    store.put("f", body.clone());
    for (what, more) in [
        (What::ResetBody(At::Byte(0)), 1),
        (What::CutBody(At::Middle), 1),
        (What::CutBody(At::Last), 1),
        (What::StallBody(At::Middle), 1),
        (What::TrickleBody(At::Middle, Duration::from_millis(100)), 1),
        (What::Reset, 1),
        (What::status(503, "SlowDown"), 1),
        (What::WrongContentRange, 1),
        (What::ContentLength(7), 1),
        (What::Gzip, 1),
        (What::CloseIdle, 0),
        (What::NoEtag, 0),
        (What::SlowHead(Duration::from_millis(1)), 0),
        (What::Header("x-long".into(), "x".repeat(9_000)), 0),
    ] {
        let slow = matches!(what, What::StallBody(_) | What::TrickleBody(..));
        for k in if slow { 2..=3 } else { 1..=5 } {
            store.clear_faults();
            store.inject(Fault::new(When::Nth(k), what.clone()).operation("GetObject"));
            let (read, counts) = store.requests(|| read_by(&store, "f", 100 * KIB));
            assert!(read == body, "{what:?} at {k}");
            assert_eq!(gets(&counts), 5 + more, "{what:?} at {k}: {}", summary(&store));
        }
    }
}

#[test]
fn only_what_is_missing_is_asked_for_again() {
    let store = Store::new("rest");
    let body = content(MIB, 9);
    store.put("f", body.clone());
    store.inject(Fault::new(When::Nth(1), What::CutBody(At::Byte(300_000))));
    assert!(read_by(&store, "f", 2 * MIB) == body);
    let again = &store.log()[1];
    assert!(again.headers["range"].starts_with("bytes=300000-"), "{again:?}");
    let etag = store.stat(store.bucket(), "f").unwrap().etag;
    assert_eq!(again.headers["if-match"], format!("\"{etag}\""));
}

#[test]
fn answers_that_lie_give_no_wrong_byte() {
    let store = Store::with("lies", IMPATIENT);
    let body = content(3 * MIB, 9);
    store.put("f", body.clone());
    store.set(&[("read_part_bytes", "1048576")]);
    for what in [
        What::WholeFor206,
        What::WrongContentRange,
        What::ContentLength(7),
        What::ContentLength(-7),
        What::Gzip,
        What::NoEtag,
        What::ChangedEtag,
        What::Header("content-length".into(), "x".into()),
        What::Header("x-long".into(), "x".repeat(60_000)),
    ] {
        store.clear_faults();
        store.inject(Fault::new(When::All, what.clone()).operation("GetObject"));
        let Ok(file) = host().new_random_access_file(store.uri("f")) else { continue };
        for (offset, n) in [(0, 1_000), (1_500_000, 100), (2 * MIB, 2 * MIB), (0, 4 * MIB)] {
            if let Ok(read) = file.read(offset as u64, n) {
                assert!(read == body[offset..body.len().min(offset + n)], "{what:?} {offset} {n}");
            }
        }
    }
}

#[test]
fn failures_end_in_bounded_time() {
    let store = Store::with("bounded", IMPATIENT);
    store.put("f", content(8 * MIB, 9));
    for (what, codes) in [
        (What::Stall, &[Code::DeadlineExceeded][..]),
        (What::StallBody(At::Byte(100_000)), &[Code::DeadlineExceeded]),
        (What::Reset, &[Code::Unavailable]),
        (What::status(500, "InternalError"), &[Code::Unavailable]),
        (What::status(403, "AccessDenied"), &[Code::PermissionDenied]),
    ] {
        let file = open(&store, "f");
        store.quiet();
        store.inject(Fault::new(When::All, what.clone()));
        let start = Instant::now();
        let read = file.read(5 * MIB as u64, 2 * MIB);
        let took = start.elapsed();
        let outcome = read.map(|read| read.len());
        store.clear_faults();
        match outcome {
            Ok(len) => assert!(
                len == 2 * MIB && matches!(what, What::StallBody(_)),
                "{what:?}: {len} bytes"
            ),
            Err(error) => assert!(codes.contains(&error.code()), "{what:?}: {error:#}"),
        }
        assert!(took < Duration::from_secs(4), "{what:?}: {took:?}");
        // The file is not broken for ever.
        assert_eq!(file.read(5 * MIB as u64, 2 * MIB).unwrap().len(), 2 * MIB, "{what:?}");
    }
}

#[test]
fn threads_that_ask_for_the_same_share_a_request() {
    let store = Store::new("shared");
    let body = content(32 * MIB, 9);
    store.put("f", body.clone());
    let file = open(&store, "f");
    store.quiet();
    let gate = Gate::new();
    store.inject(Fault::new(When::All, What::Pause(gate.clone())).operation("GetObject"));
    let barrier = Barrier::new(8);
    let ((), counts) = store.requests(|| {
        std::thread::scope(|threads| {
            for i in 0..8 {
                let (file, body, barrier) = (&file, &body, &barrier);
                threads.spawn(move || {
                    let start = 20 * MIB + if i == 7 { 60_000 } else { 0 };
                    if i > 0 {
                        barrier.wait();
                    }
                    let read = file.read(start as u64, 100_000).unwrap();
                    assert_eq!(read, body[start..start + 100_000]);
                });
            }
            // The first is on its way before the others ask for what overlaps it.
            assert!(gate.wait_for(1, Duration::from_secs(5)));
            barrier.wait();
            barrier_passed(&gate);
        });
    });
    // Six asked for the same, and one for what overlaps it: only the rest of that is fetched.
    let bytes: u64 = store.log().iter().map(|request| request.bytes_out).sum();
    assert_eq!((gets(&counts), bytes), (2, 160_000));

    /// Lets all requests go once some more had time to come.
    fn barrier_passed(gate: &Gate) {
        std::thread::sleep(Duration::from_millis(200));
        gate.open();
    }
}

#[test]
fn many_threads_read_one_file() {
    let store = Store::with("threads", &[("read_part_bytes", "262144")]);
    let body = content(16 * MIB, 2);
    store.put("f", body.clone());
    let file = open(&store, "f");
    std::thread::scope(|threads| {
        for thread in 0..16 {
            let (file, body) = (&file, &body);
            threads.spawn(move || {
                // Some in sequence, each from a place of its own, some at random.
                let mut place = thread * MIB;
                for i in 0..40 {
                    let n = 1 + (thread * 7_919 + i * 104_729) % 60_000;
                    if thread % 2 == 0 {
                        place = (place * 31 + 777_777) % body.len();
                    }
                    let end = body.len().min(place + n);
                    assert!(file.read(place as u64, n).unwrap() == body[place..end], "{place} {n}");
                    place = if end == body.len() { 0 } else { end };
                }
            });
        }
    });
}

#[test]
fn connections_are_used_again() {
    let store = Store::new("kept");
    store.put("f", content(1_000, 1));
    for _ in 0..20 {
        read_by(&store, "f", 2_000);
    }
    let log = store.log();
    let connections: std::collections::BTreeSet<_> =
        log.iter().map(|request| request.connection).collect();
    assert!(connections.len() <= 2, "{connections:?}");
    // All of them closed by the store: no read notices.
    store.reset_connections();
    store.inject(Fault::new(When::Nth(3), What::ResetOnReuse));
    for _ in 0..5 {
        assert_eq!(read_by(&store, "f", 2_000).len(), 1_000);
    }
}

#[test]
fn a_file_that_is_closed_stops_its_requests() {
    let store = Store::new("closed");
    store.put("f", content(64 * MIB, 1));
    store.shape(Shape { bytes_per_second_per_connection: Some(20_000_000), ..Shape::default() });
    let file = open(&store, "f");
    file.read(0, 2 * MIB).unwrap();
    drop(file);
    let start = Instant::now();
    assert!(store.quiet(), "requests go on after the file was closed");
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn a_wrong_region_is_corrected() {
    let store = Store::new("region");
    let body = content(100_000, 1);
    store.put("f", body.clone());
    store.inject(Fault::new(When::Nth(1), What::Status(Reply::redirect(301, "eu-west-1"))));
    assert!(read_by(&store, "f", MIB) == body);
    assert_eq!(store.log().len(), 2);
}

#[test]
fn tls_is_spoken() {
    let options =
        Options { tls: Some(Tls::default()), fast: true, threads: 1, ..Options::default() };
    let store = Store::start("tls", options, &[]);
    let body = content(20 * MIB, 1);
    store.put("f", body.clone());
    // Not trusted.
    let error = host().new_random_access_file(store.uri("f")).expect_err("an unknown issuer");
    assert_eq!(error.code(), Code::Unavailable, "{error:#}");
    let file = std::env::temp_dir().join(format!("s3-tests-reading-{}.pem", std::process::id()));
    std::fs::write(&file, store.ca_pem().unwrap()).unwrap();
    store.set(&[("ca_file", file.to_str().unwrap())]);
    let (read, counts) = store.requests(|| read_by(&store, "f", 512 * KIB));
    assert!(read == body);
    assert!(gets(&counts) <= 5, "{counts:?}");
    assert!(read_by(&store, "f", 32 * MIB) == body);
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_public_bucket_needs_no_signature() {
    let store = Store::with("public", &[("anonymous", "true")]);
    store.put("f", "public");
    let error = host().new_random_access_file(store.uri("f")).expect_err("not public yet");
    assert_eq!(error.code(), Code::PermissionDenied, "{error:#}");
    store.set_public(store.bucket(), true);
    store.reset_log();
    assert_eq!(read_by(&store, "f", 100), b"public");
    assert!(store.log().iter().all(|request| !request.signed));
}

#[test]
fn a_file_goes_on_in_a_forked_child() {
    let store = Store::new("fork");
    let body = content(24 * MIB, 6);
    store.put("f", body.clone());
    let file = open(&store, "f");
    assert_eq!(file.read(0, MIB).unwrap(), body[..MIB]);
    // Parts are on their way while the process forks.
    let (ended, took) = in_fork(Duration::from_secs(10), || {
        let right = |offset: usize, n: usize| {
            file.read(offset as u64, n).is_ok_and(|read| read == body[offset..offset + n])
        };
        format!("{} {} {}", right(0, 100), right(MIB, MIB), right(9 * MIB, 12 * MIB))
    })
    .unwrap();
    assert_eq!(ended, Ended::Answered("true true true".into()));
    assert!(took < Duration::from_secs(5), "{took:?}");
    // And in the parent, whose connections the child left alone.
    assert!(read_by(&store, "f", MIB) == body);
    assert_eq!(file.read(MIB as u64, MIB).unwrap(), body[MIB..2 * MIB]);
    // A child that only drops it ends.
    let mut file = Some(file);
    let (ended, _) = in_fork(Duration::from_secs(10), || {
        drop(file.take());
        "dropped".into()
    })
    .unwrap();
    assert_eq!(ended, Ended::Answered("dropped".into()));
    assert!(eventually(Duration::from_secs(2), || store.quiet()));
}

mod random_reads {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        /// Of a place in thousandths of the file.
        At(u32, usize),
        /// After the last one.
        Next(usize),
        /// So many bytes before the last one.
        Back(usize, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let n = prop_oneof![
            Just(1_usize),
            1..100_usize,
            1..20_000_usize,
            Just(65_536),
            Just(1 << 19),
            1..3_000_000_usize
        ];
        prop_oneof![
            1 => (0..1_005_u32, n.clone()).prop_map(|(place, n)| Step::At(place, n)),
            4 => n.clone().prop_map(Step::Next),
            1 => (1..200_000_usize, n).prop_map(|(back, n)| Step::Back(back, n)),
        ]
    }

    fn fault() -> impl Strategy<Value = Option<What>> {
        let faults = [
            What::ResetBody(At::Middle),
            What::CutBody(At::Byte(1)),
            What::Reset,
            What::status(503, "SlowDown"),
            What::WrongContentRange,
            What::ContentLength(-3),
            What::WholeFor206,
            What::CloseIdle,
            What::NoEtag,
        ];
        prop::option::weighted(0.7, prop::sample::select(faults.to_vec()))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn give_right_bytes_or_an_error(
            len in prop_oneof![0..300_000_usize, 1_000_000..9_000_000_usize],
            part in prop_oneof![Just("65536"), Just("1048576"), Just("8388608")],
            every in 2..6_usize,
            fault in fault(),
            steps in prop::collection::vec(step(), 1..30),
        ) {
            let store = Store::with("model", IMPATIENT);
            store.set(&[("read_part_bytes", part)]);
            let body = content(len, 11);
            store.put("f", body.clone());
            let harmless = fault.is_none();
            if let Some(what) = fault {
                store.inject(Fault::new(When::Every(every), what).operation("GetObject"));
            }
            let file = match host().new_random_access_file(store.uri("f")) {
                Ok(file) => file,
                Err(error) => {
                    prop_assert!(!harmless, "{error:#}");
                    return Ok(());
                }
            };
            let mut place = 0;
            for step in steps {
                let (at, n) = match step {
                    Step::At(thousandths, n) => (len * thousandths as usize / 1_000, n),
                    Step::Next(n) => (place, n),
                    Step::Back(back, n) => (place.saturating_sub(back), n),
                };
                match file.read(at as u64, n) {
                    Ok(read) => {
                        let expected = body.get(at..len.min(at + n)).unwrap_or_default();
                        prop_assert!(read == expected, "{at} {n}: {} bytes of {}", read.len(), expected.len());
                    }
                    Err(error) => prop_assert!(!harmless, "{error:#}"),
                }
                place = len.min(at + n);
            }
        }
    }
}
