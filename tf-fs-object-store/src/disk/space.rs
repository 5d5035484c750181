//! How much of the directory is used, by all processes together, and what is deleted to make room.
//!
//! The sum is in a file, which is locked while it changes. A process that is killed leaves it too large, never too
//! small; when it reaches the limit the files are counted again, and the ones used the longest ago are deleted.

use super::block_path::{BlockPath, NEW};
use crate::metrics;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tf_private_dir::PrivateDir;

/// The file that holds the sum, and that is locked.
const SUM: &str = "sum";
/// The smallest unit of space on a disk.
const PAGE: u64 = 4096;
/// A deletion frees the limit divided by this.
const FREED: u64 = 8;
/// A file that is being written for longer than this was left by a killed process.
const ABANDONED: Duration = Duration::from_secs(600);
/// How long a process waits for the others.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// The space of a directory.
#[derive(Debug)]
pub(super) struct Space {
    limit: u64,
    /// Threads of this process queue here, not at the file.
    turn: Mutex<()>,
}

/// The locked file with the sum.
struct Sum<'d> {
    file: File,
    directory: &'d PrivateDir,
}

/// Returns the bytes that a file of this length takes on the disk.
fn charge(len: u64) -> u64 {
    len.next_multiple_of(PAGE)
}

impl Space {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, turn: Mutex::default() }
    }

    /// Returns the limit on the bytes of all blocks.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Creates the file `name` with `len` bytes in the folder `new`, and counts it; `None` if there is no room for it.
    ///
    /// # Errors
    /// Those of the disk.
    pub(super) fn create(
        &self,
        directory: &PrivateDir,
        new: &PrivateDir,
        name: &str,
        len: u64,
    ) -> io::Result<Option<File>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = Sum::lock(directory)?;
        let charge = charge(len);
        let mut used = match sum.read() {
            Some(used) => used,
            None => sum.count(u64::MAX)?,
        };
        if used.saturating_add(charge) > self.limit {
            used = sum.count(self.limit.saturating_sub(self.limit / FREED + charge))?;
        }
        let used = used.saturating_add(charge);
        if used > self.limit {
            return Ok(None);
        }
        sum.write(used)?;
        // It has its length at once, so that others count it while it is being written.
        let file = new.create(name)?;
        match file.set_len(len) {
            Ok(()) => Ok(Some(file)),
            Err(error) => {
                let _ = new.remove(name);
                Err(error)
            }
        }
    }
}

impl<'d> Sum<'d> {
    fn lock(directory: &'d PrivateDir) -> io::Result<Self> {
        let file = directory.update(SUM)?;
        let began = Instant::now();
        // Not for ever: a process may be stopped while it holds the lock.
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { file, directory }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if began.elapsed() < LOCK_TIME => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the sum; `None` if the files have to be counted.
    fn read(&self) -> Option<u64> {
        let mut bytes = [0; 16];
        self.file.read_exact_at(&mut bytes, 0).ok()?;
        let (sum, check) = bytes.split_at(8);
        let sum = u64::from_le_bytes(sum.try_into().ok()?);
        (check == (!sum).to_le_bytes()).then_some(sum)
    }

    fn write(&self, sum: u64) -> io::Result<()> {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&sum.to_le_bytes());
        bytes[8..].copy_from_slice(&(!sum).to_le_bytes());
        self.file.write_all_at(&bytes, 0)
    }

    /// Counts the bytes in use, and deletes the least recently used blocks until there are at most `most`.
    fn count(&self, most: u64) -> io::Result<u64> {
        let mut used = 0;
        let now = SystemTime::now();
        // First, and by inode: meanwhile other processes rename them to blocks.
        let mut new = HashSet::new();
        let folder = self.directory.folder(NEW)?;
        for file in folder.entries()?.into_iter().filter(|file| file.is_file) {
            let is_abandoned = now.duration_since(file.modified).is_ok_and(|age| age > ABANDONED);
            if !is_abandoned || folder.remove(&file.name).is_err() {
                used += charge(file.len);
                new.insert(file.inode);
            }
        }
        let mut blocks = Vec::new();
        for folder in self.directory.entries()? {
            let Some(name) = folder.name.to_str().filter(|name| BlockPath::is_folder(name)) else {
                continue;
            };
            // Another process may have deleted it.
            let Ok(files) = self.directory.folder(name).and_then(|folder| folder.entries()) else {
                continue;
            };
            for file in files {
                let Some(block) = file.name.to_str().filter(|name| BlockPath::is_file(name)) else {
                    continue;
                };
                let len = charge(file.len);
                blocks.push((file.modified, len, name.to_owned(), block.to_owned()));
                used += if new.contains(&file.inode) { 0 } else { len };
            }
        }
        if used > most {
            blocks.sort_unstable_by_key(|(used, ..)| *used);
            for (_, len, folder, block) in blocks {
                match self.directory.folder(&folder).and_then(|folder| folder.remove(&block)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => continue,
                    _ => {}
                }
                metrics::DISK_CACHE_EVICTIONS.add(1);
                used -= len;
                if used <= most {
                    break;
                }
            }
        }
        Ok(used)
    }
}

impl Drop for Sum<'_> {
    fn drop(&mut self) {
        // A child forked meanwhile has the file too: closing it here would not be enough.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}
