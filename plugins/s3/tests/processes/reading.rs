//! Files open for reading, and forks.

use super::one_at_a_time;
use std::time::Duration;
use tf_plugin_s3_tests::abi::{Ended, in_fork};
use tf_plugin_s3_tests::{Store, content, eventually, host};

const MIB: usize = 1 << 20;

fn open(store: &Store, key: &str) -> tf_plugin_testing::filesystem::TestRandomAccessFile {
    host().new_random_access_file(store.uri(key)).unwrap_or_else(|error| panic!("{key}: {error:#}"))
}

#[test]
fn the_disk_cache_goes_on_in_a_forked_child() {
    let _alone = one_at_a_time();
    let directory = tempfile::tempdir().unwrap();
    let cache = format!("{}:1GiB", directory.path().display());
    let store = Store::with("fork-disk", &[("disk_cache", &cache)]);
    let bodies = [content(24 * MIB, 6), content(24 * MIB, 7)];
    for (key, body) in ["f", "g"].into_iter().zip(&bodies) {
        store.put(key, body.clone());
    }
    assert!(read_by(&store, "f", MIB) == bodies[0]);
    let file = open(&store, "f");
    assert_eq!(file.read(0, MIB).unwrap(), bodies[0][..MIB]);
    for round in 0..8 {
        // Blocks of `g` are being written while the process forks.
        store.put("g", bodies[round % 2].clone());
        let writing = open(&store, "g");
        assert_eq!(writing.read(0, 9 * MIB).unwrap(), bodies[round % 2][..9 * MIB]);
        let (ended, took) = in_fork(Duration::from_secs(10), || {
            let open = file.read(MIB as u64, MIB).is_ok_and(|read| read == bodies[0][MIB..2 * MIB]);
            let [f, g] = [("f", 0), ("g", round % 2)]
                .map(|(key, body)| read_by(&store, key, 3 * MIB) == bodies[body]);
            format!("{open} {f} {g}")
        })
        .unwrap();
        assert_eq!(ended, Ended::Answered("true true true".into()));
        assert!(took < Duration::from_secs(5), "{took:?}");
        assert!(read_by(&store, "g", MIB) == bodies[round % 2]);
    }
    assert!(eventually(Duration::from_secs(2), || store.quiet()));
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

#[test]
fn a_file_goes_on_in_a_forked_child() {
    let _alone = one_at_a_time();
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
