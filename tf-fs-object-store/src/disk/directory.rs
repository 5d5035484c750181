//! The directory of the blocks: whether it is safe to use, new files, warnings.

use super::DiskCache;
use super::block_path::{BlockPath, NEW};
use super::space::Space;
use crate::metrics;
use arc_swap::ArcSwapOption;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tf_private_dir::{OtherUsers, PrivateDir};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The name below the directory of the setting, which may also hold other things. The number is that of the format.
const NAME: &str = "tf-disk-cache-1";
/// The most blocks that wait to be written. Further ones are not kept.
const WAITING: usize = 16;
/// How long arriving bytes wait for a slow disk, once.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long nothing is written after an error.
const PAUSE: Duration = Duration::from_secs(10);

/// A directory with blocks, as this process uses it.
#[derive(Debug)]
pub(super) struct Directory {
    /// The directory of the setting.
    parent: PathBuf,
    pub(super) space: Space,
    /// The open directory. `None` while it cannot be used.
    open: ArcSwapOption<PrivateDir>,
    waiting: Arc<Semaphore>,
    /// Whether the last wait for the disk timed out.
    is_slow: AtomicBool,
    /// The errors that a warning was about.
    warned: Mutex<HashSet<ErrorKind>>,
    paused: Mutex<Option<Instant>>,
}

impl Directory {
    pub(super) fn new(cache: &DiskCache) -> Self {
        let directory = Self {
            parent: cache.directory().to_owned(),
            space: Space::new(cache.limit()),
            open: ArcSwapOption::empty(),
            waiting: Arc::new(Semaphore::new(WAITING)),
            is_slow: AtomicBool::new(false),
            warned: Mutex::default(),
            paused: Mutex::new(None),
        };
        if let Err(error) = directory.open() {
            directory.failed(&error);
        }
        directory
    }

    /// Opens the directory, which is created if it is missing. Nobody else can read it or write to it.
    fn open(&self) -> io::Result<Arc<PrivateDir>> {
        let open = PrivateDir::open_in(&self.parent, NAME, OtherUsers::NoAccess).map(Arc::new);
        self.open.store(open.as_ref().ok().cloned());
        open
    }

    /// Opens the file of a block.
    ///
    /// # Errors
    /// `InvalidData` for what is not a file of this user alone, and those of the disk.
    pub(super) fn read(&self, place: &BlockPath) -> io::Result<File> {
        let open = self.open.load();
        let open = open.as_ref().ok_or(ErrorKind::NotFound)?;
        open.folder(&place.folder)?.read(&place.file)
    }

    /// Deletes the file of a block.
    pub(super) fn remove(&self, place: &BlockPath) {
        if let Some(open) = &*self.open.load() {
            let _ = open.folder(&place.folder).and_then(|folder| folder.remove(&place.file));
        }
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
        place: &BlockPath,
        len: u64,
        write: impl Fn(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        // Somebody may have renamed it, or deleted all of it.
        let open = match self.open.load_full().filter(|open| open.is_in_place()) {
            Some(open) => open,
            None => self.open()?,
        };
        match self.try_write(&open, place, len, &write) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.try_write(&*self.open()?, place, len, &write)
            }
            outcome => outcome,
        }
    }

    fn try_write(
        &self,
        open: &PrivateDir,
        place: &BlockPath,
        len: u64,
        write: impl Fn(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let new = open.create_folder(NEW)?;
        let name = tf_private_dir::unique_name();
        let Some(mut file) = self.space.create(open, &new, &name, len)? else { return Ok(()) };
        let outcome = write(&mut file)
            .and_then(|()| open.create_folder(&place.folder))
            .and_then(|folder| new.rename(&name, &folder, &place.file));
        match &outcome {
            Ok(()) => metrics::DISK_CACHE_STORED_BYTES.add(len),
            Err(_) => {
                let _ = new.remove(&name);
            }
        }
        outcome
    }

    fn is_paused(&self) -> bool {
        let paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        paused.is_some_and(|since| since.elapsed() < PAUSE)
    }

    /// Records a failure of the disk, and pauses writing. The first one of each kind logs a warning.
    #[cold]
    pub(super) fn failed(&self, error: &io::Error) {
        *self.paused.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.insert(error.kind()) {
            log::warn!(
                "disk cache {}: {error}; files are read without it meanwhile",
                self.parent.join(NAME).display()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    const LIMIT: u64 = 1 << 30;

    fn block() -> BlockPath {
        BlockPath::new(&"ab".repeat(16), 7)
    }

    fn put(directory: &Directory, bytes: &[u8]) -> io::Result<()> {
        directory.write(&block(), bytes.len() as u64, |file| io::Write::write_all(file, bytes))
    }

    fn get(directory: &Directory) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut directory.read(&block())?, &mut bytes)?;
        Ok(bytes)
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn nothing_is_done_in_a_directory_that_others_can_write_to() {
        let parent = tempfile::tempdir().unwrap();
        let own = parent.path().join(NAME);
        fs::create_dir(&own).unwrap();
        mode(&own, 0o755);
        let directory = Directory::new(&DiskCache::new(parent.path(), LIMIT));
        // Also when the pause after the error is over.
        let error = put(&directory, b"there").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
        mode(&own, 0o700);
        put(&directory, b"there").unwrap();
        assert_eq!(get(&directory).unwrap(), b"there");
    }

    #[test]
    fn nothing_is_done_below_a_directory_in_which_others_can_rename_it() {
        let scratch = tempfile::tempdir().unwrap();
        let parent = scratch.path().join("shared");
        fs::create_dir(&parent).unwrap();
        mode(&parent, 0o777);
        let directory = Directory::new(&DiskCache::new(&parent, LIMIT));
        let error = put(&directory, b"there").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("mode 777"), "{error}");
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
        // As `/tmp` is.
        mode(&parent, 0o1777);
        put(&directory, b"there").unwrap();
        assert_eq!(get(&directory).unwrap(), b"there");
    }

    #[test]
    fn blocks_that_somebody_puts_where_the_directory_was_are_not_read() {
        let parent = tempfile::tempdir().unwrap();
        let directory = Directory::new(&DiskCache::new(parent.path(), LIMIT));
        put(&directory, b"mine").unwrap();
        // Only for this test the other directory is this user's too.
        let (own, gone) = (parent.path().join(NAME), parent.path().join("gone"));
        fs::rename(&own, &gone).unwrap();
        let other = Directory::new(&DiskCache::new(parent.path(), LIMIT));
        put(&other, b"theirs").unwrap();
        assert_eq!(get(&directory).unwrap(), b"mine");
        mode(&own, 0o755);
        let error = put(&directory, b"mine again").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(get(&directory).is_err());
        // A user's own new directory is used.
        mode(&own, 0o700);
        put(&directory, b"mine again").unwrap();
        assert_eq!(get(&other).unwrap(), b"mine again");
    }

    #[test]
    fn a_block_that_others_can_write_to_is_not_read() {
        let parent = tempfile::tempdir().unwrap();
        let directory = Directory::new(&DiskCache::new(parent.path(), LIMIT));
        put(&directory, b"there").unwrap();
        let path = parent.path().join(NAME).join(block().to_string());
        mode(&path, 0o666);
        assert_eq!(get(&directory).unwrap_err().kind(), ErrorKind::InvalidData);
        directory.remove(&block());
        assert!(!path.exists());
        put(&directory, b"again").unwrap();
        assert_eq!(get(&directory).unwrap(), b"again");
    }

    #[test]
    fn a_directory_without_permission_to_write_is_read() {
        let parent = tempfile::tempdir().unwrap();
        put(&Directory::new(&DiskCache::new(parent.path(), LIMIT)), b"there").unwrap();
        let own = parent.path().join(NAME);
        fs::remove_dir(own.join(NEW)).unwrap();
        mode(&own, 0o500);
        let directory = Directory::new(&DiskCache::new(parent.path(), LIMIT));
        assert_eq!(get(&directory).unwrap(), b"there");
        assert!(!directory.is_paused());
        mode(&own, 0o700);
    }

    #[test]
    fn a_block_that_does_not_fit_on_the_disk_leaves_nothing_and_is_retried_later() {
        let parent = tempfile::tempdir().unwrap();
        let directory = Directory::new(&DiskCache::new(parent.path(), LIMIT));
        let full = |_: &mut File| Err(io::Error::from(ErrorKind::StorageFull));
        let error = directory.write(&block(), 1000, full).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!(get(&directory).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(fs::read_dir(parent.path().join(NAME).join(NEW)).unwrap().count(), 0);

        assert!(!directory.is_paused());
        directory.failed(&error);
        assert!(directory.is_paused());
        *directory.paused.lock().unwrap() = Instant::now().checked_sub(PAUSE);
        assert!(!directory.is_paused());
        put(&directory, b"there").unwrap();
        assert_eq!(get(&directory).unwrap(), b"there");
    }
}
