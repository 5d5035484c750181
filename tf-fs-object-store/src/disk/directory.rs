//! The directory of the blocks: whether it is safe to use, new files, warnings.

use super::DiskCache;
use super::space::Space;
use crate::metrics;
use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The name below the directory of the setting, which may also hold other things. The number is that of the format.
const NAME: &str = "tf-disk-cache-1";
/// Files that are being written. Only a rename moves them to where they are read.
pub(super) const NEW: &str = "new";
/// The most blocks that wait to be written. Further ones are not kept.
const WAITING: usize = 16;
/// How long arriving bytes wait for a slow disk, once.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long nothing is written after an error.
const PAUSE: Duration = Duration::from_secs(10);

/// A directory with blocks, as this process uses it.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    pub(super) space: Space,
    /// Whether it was seen to belong to this user alone.
    is_ours: AtomicBool,
    waiting: Arc<Semaphore>,
    /// Whether the last wait for the disk timed out.
    is_slow: AtomicBool,
    warned: AtomicBool,
    paused: Mutex<Option<Instant>>,
    /// Tells its files from those of other processes, also in other containers.
    random: u64,
    files: AtomicU64,
}

impl Directory {
    pub(super) fn new(cache: &DiskCache) -> Self {
        let path = cache.directory().join(NAME);
        let directory = Self {
            space: Space::new(&path, cache.limit()),
            path,
            is_ours: AtomicBool::new(false),
            waiting: Arc::new(Semaphore::new(WAITING)),
            is_slow: AtomicBool::new(false),
            warned: AtomicBool::new(false),
            paused: Mutex::new(None),
            random: RandomState::new().hash_one(std::process::id()),
            files: AtomicU64::new(0),
        };
        if let Err(error) = directory.prepare() {
            directory.failed(&error);
        }
        directory
    }

    /// Returns whether its contents may be used.
    pub(super) fn is_ours(&self) -> bool {
        self.is_ours.load(Ordering::Relaxed)
    }

    /// Returns the path of the block of this name.
    pub(super) fn place(&self, name: &str, index: u64) -> PathBuf {
        // Spread over 256 directories, also the blocks of one object.
        let first = u8::from_str_radix(&name[..2], 16).unwrap_or_default();
        let folder = first.wrapping_add(index as u8);
        self.path.join(format!("{folder:02x}/{name}-{index}"))
    }

    /// Creates the directory if it is missing, and makes sure that nobody else can write to it.
    fn prepare(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.path)?;
        let found = fs::symlink_metadata(&self.path)?;
        let me = rustix::process::geteuid().as_raw();
        if !found.is_dir() || found.uid() != me || found.mode() & 0o077 != 0 {
            self.is_ours.store(false, Ordering::Relaxed);
            return Err(io::Error::new(
                ErrorKind::PermissionDenied,
                format!(
                    "{} has to be a directory of user {me} with mode 0700",
                    self.path.display()
                ),
            ));
        }
        // Only now: the directory could have been somebody else's.
        builder.create(self.path.join(NEW))?;
        self.is_ours.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns a permit to write one more block. `None` if the disk has failed or is slow: reads hardly wait for it.
    pub(super) async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        if self.is_paused() {
            return None;
        }
        let waiting = Arc::clone(&self.waiting);
        if let Ok(permit) = Arc::clone(&waiting).try_acquire_owned() {
            self.is_slow.store(false, Ordering::Relaxed);
            return Some(permit);
        }
        if self.is_slow.load(Ordering::Relaxed) {
            return None;
        }
        let permit = tokio::time::timeout(PATIENCE, waiting.acquire_owned()).await;
        self.is_slow.store(permit.is_err(), Ordering::Relaxed);
        permit.ok()?.ok()
    }

    /// Writes a file of `len` bytes, if there is room for it.
    ///
    /// # Errors
    /// Those of the disk. Then there is no such file.
    pub(super) fn write(
        &self,
        place: &Path,
        len: u64,
        write: impl Fn(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        if !self.is_ours() {
            self.prepare()?;
        }
        match self.try_write(place, len, &write) {
            // Somebody may have deleted all of it.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.prepare()?;
                self.try_write(place, len, &write)
            }
            outcome => outcome,
        }
    }

    fn try_write(
        &self,
        place: &Path,
        len: u64,
        write: impl Fn(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let new = self.path.join(format!("{NEW}/{:016x}-{number}", self.random));
        let Some(mut file) = self.space.create(&new, len)? else { return Ok(()) };
        let folder = place.parent().unwrap_or(&self.path);
        let outcome = write(&mut file).and_then(|()| match fs::rename(&new, place) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match DirBuilder::new().mode(0o700).create(folder) {
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
                    _ => fs::rename(&new, place),
                }
            }
            outcome => outcome,
        });
        match &outcome {
            Ok(()) => metrics::DISK_CACHE_STORED_BYTES.add(len),
            Err(_) => {
                let _ = fs::remove_file(&new);
            }
        }
        outcome
    }

    fn is_paused(&self) -> bool {
        let paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        paused.is_some_and(|since| since.elapsed() < PAUSE)
    }

    /// Records a failure of the disk, and pauses writing. The first one logs a warning.
    #[cold]
    pub(super) fn failed(&self, error: &io::Error) {
        *self.paused.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        if !self.warned.swap(true, Ordering::Relaxed) {
            log::warn!(
                "disk cache {}: {error}; files are read without it meanwhile",
                self.path.display()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn nothing_is_done_in_a_directory_that_others_can_write_to() {
        let parent = tempfile::tempdir().unwrap();
        let own = parent.path().join(NAME);
        fs::create_dir(&own).unwrap();
        fs::set_permissions(&own, PermissionsExt::from_mode(0o755)).unwrap();
        let directory = Directory::new(&DiskCache::new(parent.path(), 1 << 30));
        let place = directory.place(&"ab".repeat(16), 7);
        // Also when the pause after the error is over.
        let error = directory.write(&place, 5, |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
        fs::set_permissions(&own, PermissionsExt::from_mode(0o700)).unwrap();
        directory.write(&place, 5, |file| io::Write::write_all(file, b"there")).unwrap();
        assert!(place.exists());
    }

    #[test]
    fn what_does_not_fit_on_the_disk_leaves_nothing_and_is_tried_again_later() {
        let parent = tempfile::tempdir().unwrap();
        let directory = Directory::new(&DiskCache::new(parent.path(), 1 << 30));
        let place = directory.place(&"ab".repeat(16), 7);
        let full = |_: &mut File| Err(io::Error::from(ErrorKind::StorageFull));
        let error = directory.write(&place, 1000, full).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert!(!place.exists());
        assert_eq!(fs::read_dir(directory.path.join(NEW)).unwrap().count(), 0);

        assert!(!directory.is_paused());
        directory.failed(&error);
        assert!(directory.is_paused());
        *directory.paused.lock().unwrap() = Instant::now().checked_sub(PAUSE);
        assert!(!directory.is_paused());
        directory.write(&place, 1000, |file| io::Write::write_all(file, b"there")).unwrap();
        assert!(place.exists());
    }
}
