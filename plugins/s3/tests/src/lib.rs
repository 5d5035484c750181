//! What the tests of `s3://` share: a store of their own for each, the host, child processes.
//!
//! All tests of one program share one plugin, as all users of a process do. A [`Store`] is a server of its own with a
//! bucket of its own, made known to the plugin by the settings of that bucket.

#[expect(unsafe_code, reason = "`fork`")]
pub mod abi;
pub mod child;
pub mod fake;
pub mod faults;
pub mod guarantees;
pub mod logs;
pub mod probe;
mod store;
pub mod table;

pub use store::{IMPATIENT, Store, host};

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tf_fs_plugin::Code;
use tf_plugin_testing::filesystem::TestFilesystem;

/// The plugin, as the host sees it.
#[must_use]
pub fn fs() -> TestFilesystem {
    host().filesystem("s3").expect("the plugin registers `s3`")
}

/// Numbers of requests, to compare with those that a [`Store`] counted.
#[must_use]
pub fn counts<const N: usize>(expected: [(&str, usize); N]) -> BTreeMap<String, usize> {
    expected.map(|(operation, count)| (operation.to_owned(), count)).into()
}

/// The code of what has to be an error.
#[track_caller]
pub fn code<T: std::fmt::Debug>(result: tf_fs_plugin::Result<T>) -> Code {
    result.unwrap_err().code()
}

/// Bytes in which no two neighbouring pieces are alike: position and `seed` tell each.
#[must_use]
pub fn content(len: usize, seed: u64) -> Vec<u8> {
    /// What was made, by its seed: it takes long where nothing is optimised.
    static MADE: Mutex<BTreeMap<u64, Vec<u8>>> = Mutex::new(BTreeMap::new());
    // In a fork another thread may have had the lock.
    let Ok(mut made) = MADE.try_lock() else { return new_content(len, seed) };
    if made.values().map(Vec::len).sum::<usize>() > 64 << 20 {
        made.clear();
    }
    let known = made.entry(seed).or_default();
    if known.len() < len {
        *known = new_content(len, seed);
    }
    known[..len].to_vec()
}

fn new_content(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        // xorshift64*: no period that a wrong offset could hide in.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        bytes.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Asks until `done` says yes, or `within` has passed.
pub fn eventually(within: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + within;
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
