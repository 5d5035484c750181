//! How many requests reading takes, and which bytes they ask for.

use crate::reading::content;
use crate::store::{Fault, Plugin, name, plugin, range};
use std::time::{Duration, Instant};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// What TensorFlow reads at once of a file that is not on a local disk.
const LARGE: usize = 127 * MIB;

/// Returns a store with these files.
fn with_files(files: &[(&str, usize)]) -> Plugin {
    let plugin = plugin(&[]);
    files.iter().for_each(|(key, len)| plugin.put(key, content(*len)));
    plugin
}

/// Reads a file by reads of `piece` bytes, and returns how many requests it takes.
#[track_caller]
fn requests(plugin: &Plugin, key: &str, piece: usize) -> usize {
    plugin.take_ranges();
    let body = plugin.read(key, piece).unwrap();
    assert!(body == content(body.len()), "{key} by {piece}");
    plugin.take_ranges().len()
}

#[test]
fn a_small_file_takes_one_request_and_a_large_file_few() {
    for len in [0, 1, 1000, 70_000, MIB] {
        for piece in [1000.min(len.max(1)), len + 1, 4 * MIB] {
            let plugin = with_files(&[("f", len)]);
            assert_eq!(requests(&plugin, "f", piece), 1, "{len} bytes by {piece}");
        }
    }
    // Parts of 4 MiB, then of 8 MiB, or one read of all. Tried again where a busy machine makes the reader wait.
    for (piece, most) in [(100 * KIB, 10), (512 * KIB, 10), (3 * MIB, 10), (65 * MIB, 9)] {
        let plugin = with_files(&[("f", 64 * MIB + 12_345)]);
        assert!((0..3).any(|_| requests(&plugin, "f", piece) <= most + 3), "by {piece}");
    }
}

#[test]
fn random_access_requests_exactly_the_bytes_that_are_read() {
    let plugin = with_files(&[("f", 64 * MIB)]);
    let body = content(64 * MIB);
    let reader = plugin.open("f").unwrap();
    let read = |at: usize, len: usize| {
        assert!(range(&reader, at, len).unwrap() == body[at..at + len], "{len} at {at}");
    };
    // Tried again, for other tests use the memory of this process too: what is kept for a moment may have to go.
    let is_exact = |count: usize, len: usize, read_all: &dyn Fn()| {
        (0..3).any(|_| {
            plugin.take_ranges();
            read_all();
            let ranges = plugin.take_ranges();
            let bytes = ranges.iter().map(|(start, end)| end - start).sum::<u64>();
            (ranges.len(), bytes) == (count, (count * len) as u64)
        })
    };
    assert!(is_exact(39, 512 * KIB + 1, &|| {
        for n in 1..40 {
            let place = MIB + n * 7_654_321 % (60 * MIB);
            // What TensorFlow's `GFile` makes of seek and read: a byte before the place, then 512 KiB. Read twice.
            read(place - 1, 1);
            read(place, 512 * KIB);
            read(place, 512 * KIB);
        }
    }));
    // Backwards and in strides.
    assert!(is_exact(20, 50_000, &|| (0..20)
        .rev()
        .for_each(|n| read(2 * MIB + n * 2 * MIB, 50_000))));
}

#[test]
fn a_file_like_its_neighbours_is_requested_in_eight_parts_at_once() {
    let shards: Vec<_> = (0..6).map(|n| (format!("d/{n}"), 16 * MIB - n * 1000)).collect();
    let files: Vec<_> = shards.iter().map(|(key, len)| (&**key, *len)).collect();
    let plugin = with_files(&files);
    for (key, _) in &files {
        let count = requests(&plugin, key, LARGE);
        assert!(count <= 8, "{key}: {count}");
    }
    plugin.inject("get", [Fault::Waits; 8]);
    std::thread::scope(|threads| {
        let reading = threads.spawn(|| requests(&plugin, "d/5", LARGE));
        plugin.wait_for(8);
        plugin.contents().gate.0 = true;
        assert_eq!(reading.join().unwrap(), 8);
    });
    // One of another length wastes two requests at most.
    for (key, len, most) in [("d/b", 12 * MIB, 8), ("d/c", 17 * MIB, 9), ("d/e", 13 * MIB, 8)] {
        requests(&plugin, "d/0", LARGE);
        plugin.put(key, content(len));
        let count = requests(&plugin, key, LARGE);
        assert!(count <= most, "{key}: {count}");
    }
}

#[test]
fn the_end_of_a_file_is_fetched_at_once() {
    let (size, body) = (40 * MIB, content(40 * MIB));
    let plugin = with_files(&[("f.index", size)]);
    let reader = plugin.open("f.index").unwrap();
    // As TensorFlow reads the index of a checkpoint: the footer, then blocks before it.
    for (back, len) in [(48, 48), (400, 300), (90_000, 4000), (5000, 4000)] {
        let read = range(&reader, size - back, len).unwrap();
        assert!(read == body[size - back..size - back + len]);
    }
    assert_eq!(plugin.take_ranges().len(), 2);
}

#[test]
fn data_of_a_checkpoint_is_not_read_from_its_beginning_unasked() {
    let keys = ["ckpt-1.data-00000-of-00001", "ckpt-1.data-0-of-1"];
    for (key, first) in keys.into_iter().zip([64 * KIB, 4 * MIB]) {
        let plugin = with_files(&[(key, 40 * MIB)]);
        let reader = plugin.open(key).unwrap();
        range(&reader, 39 * MIB, 900).unwrap();
        let ranges = plugin.take_ranges();
        assert_eq!((ranges.len(), ranges[0]), (2, (0, first as u64)), "{key}");
        requests(&plugin, key, MIB);
    }
    // A large read has no tiny last request.
    let plugin = with_files(&[(keys[0], 40 * MIB)]);
    let reader = plugin.open(keys[0]).unwrap();
    plugin.take_ranges();
    for (len, count) in [(5 * MIB, 1), (8 * MIB, 2), (13 * MIB, 7)] {
        range(&reader, 20 * MIB, len).unwrap();
        assert_eq!(plugin.take_ranges().len(), count, "{len}");
    }
}

#[test]
fn a_file_that_was_read_at_random_is_not_expected_to_be_read_whole() {
    let plugin = with_files(&[("d/f", 32 * MIB)]);
    let is_read_ahead = || {
        plugin.take_ranges();
        let _reader = plugin.open("d/f").unwrap();
        let began = Instant::now();
        while plugin.contents().ranges.len() < 2 && began.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_millis(1));
        }
        plugin.take_ranges().len() > 1
    };
    let read_whole = || _ = requests(&plugin, "d/f", MIB);
    let read_at_random = || _ = range(&plugin.open("d/f").unwrap(), 20_000_000, 1000).unwrap();
    read_whole();
    assert!(is_read_ahead(), "as the last time");
    read_at_random();
    read_at_random();
    assert!(!is_read_ahead());
    read_whole();
    assert!(!is_read_ahead(), "one time tells nothing");
    read_whole();
    read_whole();
    assert!(is_read_ahead());
}

#[test]
fn an_open_file_tells_its_length() {
    for (ttl, seen) in [(60, 7), (0, 14)] {
        let plugin = plugin(&[]);
        plugin.contents().settings.listing_ttl = Duration::from_secs(ttl);
        plugin.put("f", b"content".to_vec());
        // As `GFile.read()` does.
        let reader = plugin.open("f").unwrap();
        plugin.put("f", b"longer content".to_vec());
        assert_eq!(plugin.0.stat(&name("f")).unwrap().length, seen);
        assert_eq!(range(&reader, 0, 7).unwrap(), b"content");
        assert_eq!(plugin.requests("").len(), if ttl > 0 { 1 } else { 2 });
    }
}

#[test]
fn threads_that_read_the_same_share_a_request() {
    let plugin = with_files(&[("f", 32 * MIB)]);
    let body = content(32 * MIB);
    let reader = plugin.open("f").unwrap();
    plugin.take_ranges();
    plugin.inject("get", [Fault::Waits; 8]);
    std::thread::scope(|threads| {
        let read = |start: usize| {
            let (reader, body) = (&reader, &body);
            threads.spawn(move || {
                assert!(range(reader, start, 100_000).unwrap() == body[start..start + 100_000]);
            });
        };
        // The first is on its way before the others request the same part, or one that overlaps it.
        read(20 * MIB);
        plugin.wait_for(1);
        (0..6).for_each(|_| read(20 * MIB));
        read(20 * MIB + 60_000);
        std::thread::sleep(Duration::from_millis(200));
        plugin.contents().gate.0 = true;
    });
    let start = 20 * MIB as u64;
    let ranges = plugin.take_ranges();
    assert_eq!(ranges, [(start, start + 100_000), (start + 100_000, start + 160_000)]);
}

#[test]
fn many_threads_read_one_file() {
    let plugin = plugin(&[]);
    plugin.contents().settings.read_part = 256 << 10;
    let body = content(16 * MIB);
    plugin.put("f", body.clone());
    let reader = plugin.open("f").unwrap();
    std::thread::scope(|threads| {
        for thread in 0..16 {
            let (reader, body) = (&reader, &body);
            threads.spawn(move || {
                // Some in sequence, each from another place, some at random.
                let mut place = thread * MIB;
                for n in 0..40 {
                    let len = 1 + (thread * 7919 + n * 104_729) % 60_000;
                    if thread % 2 == 0 {
                        place = (place * 31 + 777_777) % body.len();
                    }
                    let end = body.len().min(place + len);
                    assert!(
                        range(reader, place, len).unwrap() == body[place..end],
                        "{place} {len}"
                    );
                    place = if end == body.len() { 0 } else { end };
                }
            });
        }
    });
}

/// With responses that break off and requests that fail, at every third request.
#[test]
fn random_reads_return_right_bytes() {
    let mut state = 1_u64;
    let mut next = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % most
    };
    for (round, part) in [64 * KIB, MIB, 8 * MIB].repeat(6).into_iter().enumerate() {
        let len = if round % 2 == 0 { next(300_000) } else { MIB + next(8 * MIB) };
        let plugin = plugin(&[]);
        plugin.contents().settings.read_part = part;
        plugin.contents().settings.max_attempts = 20;
        let body = content(len);
        plugin.put("f", body.clone());
        let faults = [Fault::BreaksOff, Fault::Fails(tf_fs_object_store::ErrorKind::Transient)];
        let faults = (0..900).map(|n| (n % 3 == 0).then_some(faults[n / 3 % 2]));
        plugin.contents().faults.insert("get", faults.collect());
        let reader = plugin.open("f").unwrap();
        let mut place = 0;
        for _ in 0..40 {
            let len = [1, 100, 20_000, 65_536, 1 << 19, 3_000_000][next(6)];
            place = match next(6) {
                0 => next(body.len() + 100),
                1 => place.saturating_sub(next(200_000)),
                _ => place,
            };
            let wanted = body.get(place..body.len().min(place + len)).unwrap_or_default();
            assert!(range(&reader, place, len).unwrap() == wanted, "{round}: {len} at {place}");
            place = body.len().min(place + len);
        }
    }
}
