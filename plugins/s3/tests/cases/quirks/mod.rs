//! Stores that differ from Amazon's: what `s3://` promises holds, or the error names what the store does not do.

mod habits;
mod proofs;
mod stores;

use s3_server::{Options, Quirks};
use tf_plugin_s3_tests::{Store, fs};

const MIB: usize = 1 << 20;

/// A store of which the plugin knows nothing, with ETags as real ones make them.
fn store(topic: &str, quirks: Quirks) -> Store {
    let store = Store::unknown(topic, Options { threads: 1, ..Options::default() });
    store.set_quirks(quirks);
    store
}

/// What the report says of the store's bucket.
fn shown(store: &Store, what: &str) -> String {
    shown_of(store, store.bucket(), what)
}

/// What the report says of a bucket.
fn shown_of(store: &Store, bucket: &str, what: &str) -> String {
    // In one read: the report of many stores is longer than a size that was asked for a moment ago.
    let file = fs().new_random_access_file("s3:///stores.json").unwrap();
    let report = file.read(0, 1 << 24).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    report[store.endpoint()][bucket][what].as_str().unwrap().to_owned()
}
