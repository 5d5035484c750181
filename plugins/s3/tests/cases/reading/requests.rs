//! How many requests reading takes.

use super::{KIB, MIB, gets, open, read_by};
use s3_server::Shape;
use std::time::Duration;
use tf_plugin_s3_tests::{Store, content, eventually, host};

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
    let most = |n| {
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
        log.iter().map(|request| at_once(request.at)).max().unwrap()
    };
    for n in [512 * KIB, 48 * MIB] {
        // On a busy machine the reader may be slower than the store, but not each time.
        let tried: Vec<_> = (0..3).map(|_| most(n)).collect();
        assert!(tried.iter().any(|&most| most >= 4), "at most {tried:?} requests at a time by {n}");
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
    // Backwards and in strides: exactly the requested bytes.
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
fn shards_of_a_data_set_take_eight_requests_each() {
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
    assert!(gets(&counts) <= 128, "{counts:?}");
    // The later ones are requested all at once: each takes one round trip, not two.
    let latency = Duration::from_secs(1);
    store.shape(Shape { first_byte_latency: latency, ..Shape::default() });
    store.reset_log();
    assert!(read_by(&store, "data/00005", 127 * MIB) == shards[5]);
    let at: Vec<_> = store.log().iter().map(|request| request.at).collect();
    assert_eq!(at.len(), 8);
    assert!(*at.iter().max().unwrap() - *at.iter().min().unwrap() < latency, "{at:?}");
}

#[test]
fn a_neighbour_of_another_length_wastes_two_requests_at_most() {
    let store = Store::new("neighbours");
    store.put("d/a", content(16 * MIB, 1));
    for (key, len, most) in [("d/b", 12 * MIB, 8), ("d/c", 17 * MIB, 9), ("d/e", 13 * MIB, 8)] {
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
    // Parts of the read-ahead are requested while the caller continues.
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
    for (len, most) in [(5 * MIB, 1), (8 * MIB, 2), (13 * MIB, 7)] {
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
