//! Files open for writing: what is stored, when it is visible, and what it costs.

mod appending;
mod files;
mod requests;

use tf_plugin_s3_tests::{Store, fs};
use tf_plugin_testing::filesystem::TestWritableFile;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn create(store: &Store, key: &str) -> TestWritableFile {
    fs().new_writable_file(store.uri(key)).unwrap()
}

/// Bytes sent by the plugin.
fn bytes_up(store: &Store) -> u64 {
    store.log().iter().map(|request| request.bytes_in).sum()
}

/// Bytes of bodies sent to the plugin.
fn bytes_down(store: &Store) -> u64 {
    store.log().iter().map(|request| request.bytes_out).sum()
}
