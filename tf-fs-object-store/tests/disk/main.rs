//! Files of which blocks are kept on a disk.

mod broken;
mod failing;
mod reading;
mod sharing;
#[allow(dead_code, reason = "the store of `memory`, which does more with it")]
#[path = "../memory/store.rs"]
mod store;

use rustix::fs::{FlockOperation, flock};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use store::{Plugin, name, plugin, range};
use tempfile::TempDir;
use tf_fs_object_store::{DiskCache, Reader};
use tf_fs_plugin::prelude::*;

const MIB: usize = 1 << 20;
const GIB: u64 = 1 << 30;

/// Returns bytes that differ from those at neighbouring positions, in other blocks and in other versions.
fn content(len: usize, version: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len.next_multiple_of(MIB));
    while bytes.len() < len {
        let block = (bytes.len() / MIB) as u8;
        let shift = block.wrapping_mul(3).wrapping_add(version);
        let page: Vec<u8> =
            (0..4096).map(|at| ((at + at / 256) as u8).wrapping_add(shift)).collect();
        (0..MIB / page.len()).for_each(|_| bytes.extend_from_slice(&page));
    }
    bytes.truncate(len);
    bytes
}

/// Creates a directory that lasts as long as a test.
fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Returns a process that uses this directory: all that it knows comes from the disk and the store.
fn process(directory: impl AsRef<Path>, limit: u64) -> Plugin {
    let plugin = plugin(&[]);
    plugin.contents().settings.disk_cache = Some(DiskCache::new(directory.as_ref(), limit));
    plugin
}

/// Returns the files of the blocks.
fn blocks(directory: impl AsRef<Path>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in folders(&directory.as_ref().join("tf-disk-cache-1")) {
        let Ok(files) = std::fs::read_dir(folder) else { continue };
        found.extend(files.flatten().map(|file| file.path()));
    }
    found.sort();
    found
}

/// Returns the bytes of all files in the directory, at a moment when nobody creates or deletes one.
fn used(directory: impl AsRef<Path>) -> u64 {
    let own = directory.as_ref().join("tf-disk-cache-1");
    let lock = std::fs::File::open(own.join("sum"));
    if let Ok(lock) = &lock {
        flock(lock, FlockOperation::LockExclusive).unwrap();
    }
    // By inode: one may be renamed now.
    let mut lens = HashMap::new();
    for folder in std::iter::once(own.join("new")).chain(folders(&own)) {
        let Ok(files) = std::fs::read_dir(folder) else { continue };
        for found in files.flatten().filter_map(|file| file.metadata().ok()) {
            lens.insert(found.ino(), found.len());
        }
    }
    lens.values().sum()
}

/// Returns the folders with blocks.
fn folders(own: &Path) -> Vec<PathBuf> {
    let Ok(folders) = std::fs::read_dir(own) else { return Vec::new() };
    let is_one = |folder: &std::fs::DirEntry| {
        folder.file_name() != "new" && folder.file_type().is_ok_and(|kind| kind.is_dir())
    };
    folders.flatten().filter(is_one).map(|folder| folder.path()).collect()
}

fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until there are so many blocks: they are written after they were read.
fn kept(directory: impl AsRef<Path>, count: usize) {
    let directory = directory.as_ref();
    eventually(&format!("{count} blocks"), || blocks(directory).len() == count);
}

fn open(plugin: &Plugin, key: &str) -> Result<Reader<Plugin>> {
    Reader::open(plugin, name(key))
}

const ROLE: &str = "TF_DISK_CACHE_TEST_ROLE";

/// Returns what a child process is to do; `None` in the test itself.
fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Returns the command that runs this test again, with a role.
fn again(test: &str, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).stdin(Stdio::null()).stdout(Stdio::null());
    command
}
