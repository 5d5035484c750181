//! Blocks of objects on a local disk, for the next time that they are read. Any number of processes share a directory.
//!
//! A block is a file with the bytes, checksums, and a digest of store, key and version, without which nothing of it is
//! used. It is written under another name and renamed, so a killed process leaves no half of one. Nothing here fails a
//! read: a disk that is full, broken or gone causes a warning, and the bytes come from the store.
//!
//! | Module | Job |
//! |---|---|
//! | `setting` | where, and how much |
//! | `directory` | the directory: whether it is safe to use, new files, warnings |
//! | `space` | how much of it is used, by all processes; what is deleted |
//! | `block_path` | the names in it: where a block is |
//! | `block` | the file of one block: its format, its checksums |
//! | `cached` | the blocks of one version of an object |

mod block;
mod block_path;
mod cached;
mod directory;
#[cfg(test)]
mod fuzz;
mod setting;
mod space;

pub(crate) use block::BLOCK;
pub(crate) use cached::{CachedObject, CachedVersion};
pub use setting::DiskCache;

use directory::Directory;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The directories that a process uses.
#[derive(Debug, Default)]
pub(crate) struct Disks(Mutex<HashMap<DiskCache, Arc<Directory>>>);

impl Disks {
    /// Returns the directory of this setting.
    fn directory(&self, cache: &DiskCache) -> Arc<Directory> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = all.get(cache) {
            return Arc::clone(directory);
        }
        let new = Arc::new(Directory::new(cache));
        Arc::clone(all.entry(cache.clone()).or_insert(new))
    }

    /// Returns the object of this identity, which tells it from all other objects of all stores.
    pub(crate) fn object(&self, cache: &DiskCache, identity: &[&str]) -> CachedObject {
        CachedObject::new(self.directory(cache), identity)
    }
}
