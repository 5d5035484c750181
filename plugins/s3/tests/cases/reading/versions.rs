//! A file is of one version, also when it was remembered.

use super::{KIB, MIB, gets, open, read_by, summary};
use s3_server::{Fault, Gate, Shape, What, When};
use std::time::Duration;
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{Store, content, eventually, host};

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
fn open_remembered(
    store: &Store,
    body: &[u8],
) -> tf_plugin_testing::filesystem::TestRandomAccessFile {
    store.put("f", body);
    assert_eq!(host().stat(store.uri("f")).unwrap().length, body.len() as u64);
    let (file, counts) = store.requests(|| open(store, "f"));
    assert_eq!(gets(&counts), 0, "no listing is remembered");
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
    // The response to the first thread is of the version that was remembered, and comes last.
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
