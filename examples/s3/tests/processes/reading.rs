//! Files open for reading, and forks.

use super::one_at_a_time;
use std::time::Duration;
use tf_plugin_s3_tests::abi::{Ended, in_fork};
use tf_plugin_s3_tests::{Store, content, eventually, host};

const MIB: usize = 1 << 20;

fn open(store: &Store, key: &str) -> tf_plugin_testing::filesystem::TestRandomAccessFile {
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
