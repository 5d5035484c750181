//! Reading: how many requests it takes, right bytes whatever happens, bounded memory.

mod disk;
mod failures;
mod opening;
mod random;
mod requests;
mod threads;
mod versions;

use std::collections::BTreeMap;
use tf_plugin_s3_tests::{Store, host};

const KIB: usize = 1 << 10;
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
