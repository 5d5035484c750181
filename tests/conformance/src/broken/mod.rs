//! A filesystem around another that has one defect, to see which cases notice.

mod changes;
mod files;
mod listing;
mod names;
mod state;

use files::{BrokenReader, BrokenRegion, BrokenWriter};

use crate::defect::Defect::{self, *};
use state::{State, lock};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, SystemTime};
use tf_fs_plugin::prelude::*;

/// A name that [`Broken`] never accepts, defect or not.
pub const MALFORMED: &str = "mem://box/\u{1}";

/// Passes every operation to `F`, except for one defect. Without a defect it is a complete
/// filesystem, also where `F` leaves operations out.
pub struct Broken<F: Filesystem>(Arc<State<F>>);

impl<F: Filesystem> Broken<F> {
    /// `inner` with a defect.
    pub fn new(inner: F, defect: Defect) -> Self {
        Self(Arc::new(State::new(inner, defect)))
    }

    /// As [`new`](Self::new), of a filesystem that renames directories with all that is in them.
    pub fn moving_directories(inner: F, defect: Defect) -> Self {
        Self(Arc::new(State { moves_directories: true, ..State::new(inner, defect) }))
    }

    /// Runs an operation on the name that `uri` represents.
    fn at<T>(&self, uri: Uri<'_>, op: impl FnOnce(Uri<'_>) -> Result<T>) -> Result<T> {
        self.0.at(uri, op)
    }
}

#[filesystem]
impl<F: Filesystem> Filesystem for Broken<F> {
    type Reader = BrokenReader<F>;
    type Writer = BrokenWriter<F>;
    type Region = BrokenRegion;
    type Transaction = ();

    fn new(scheme: &str) -> Result<Self> {
        Ok(Self::new(F::new(scheme)?, Defect::of_environment()))
    }

    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<Self::Reader> {
        self.at(uri, |uri| State::open_reader(&self.0, uri))
    }

    fn new_writable_file(&self, uri: Uri<'_>) -> Result<Self::Writer> {
        self.at(uri, |uri| State::open(&self.0, uri, None))
    }

    fn new_appendable_file(&self, uri: Uri<'_>) -> Result<Self::Writer> {
        self.at(uri, |uri| State::open_at_end(&self.0, uri))
    }

    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<Self::Region> {
        self.at(uri, |uri| self.0.map(uri))
    }

    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        let state = &self.0;
        self.at(uri, |uri| match state.defect {
            CreateDirIsRecursive => {
                state.make_parent(uri);
                state.inner.create_dir(uri)
            }
            CreateDirTwice if state.is_dir(uri) => Ok(()),
            CreateDirEmpties if state.is_dir(uri) => {
                for name in state.inner.get_children(uri)?.iter() {
                    let _ = state.delete_tree(Uri::new(&uri.join(name)), 0);
                }
                Err(Error::already_exists(uri))
            }
            CreateDirRaces => {
                let found = state.inner.stat(uri);
                thread::sleep(Duration::from_millis(1));
                match found {
                    Ok(_) => Err(Error::already_exists(uri)),
                    Err(_) if state.is_dir(uri) => Ok(()),
                    Err(_) => state.inner.create_dir(uri),
                }
            }
            _ => state.inner.create_dir(uri),
        })
    }

    fn recursively_create_dir(&self, uri: Uri<'_>) -> Result<()> {
        let state = &self.0;
        self.at(uri, |uri| match state.defect {
            MakeTreeFailsIfThere if state.is_dir(uri) => Err(Error::already_exists(uri)),
            MakeTreeNeedsParent if !state.is_dir(uri) => state.inner.create_dir(uri),
            MakeTreeOverFiles if state.is_file(uri) => Ok(()),
            MakeTreeOfRootFails if uri.parent().is_none_or(|parent| parent.is_root()) => {
                Err(Error::not_found(uri))
            }
            MakeTreeRaces if !state.is_dir(uri) => {
                // Busy CPUs start the other threads late.
                thread::sleep(Duration::from_millis(100));
                ensure!(!state.is_dir(uri), Error::already_exists(uri));
                state.inner.recursively_create_dir(uri)
            }
            _ => state.inner.recursively_create_dir(uri),
        })
    }

    fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
        self.at(uri, |uri| self.0.delete_file(uri))
    }

    fn delete_dir(&self, uri: Uri<'_>) -> Result<()> {
        let state = &self.0;
        self.at(uri, |uri| match state.defect {
            DeleteDirIsRecursive if state.is_dir(uri) => state.delete_tree(uri, 0),
            DeleteDirOverlooksDirs if state.is_dir(uri) => {
                let children = state.inner.get_children(uri)?;
                let is_dir = |name: &[u8]| state.is_dir(Uri::new(&uri.join(name)));
                if children.iter().all(is_dir) {
                    return state.delete_tree(uri, 0);
                }
                state.inner.delete_dir(uri)
            }
            DeleteDirTakesFiles if state.is_file(uri) => state.inner.delete_file(uri),
            DeleteDirLeavesIt if state.is_dir(uri) => {
                let empty = state.inner.get_children(uri)?.is_empty();
                ensure!(empty, Error::expected_empty_directory(uri));
                Ok(())
            }
            _ => state.inner.delete_dir(uri),
        })
    }

    fn delete_recursively(&self, uri: Uri<'_>) -> Result<(), DeleteRecursivelyError> {
        let state = &self.0;
        let deleted = self.at(uri, |uri| {
            if let Err(error) = state.inner.stat(uri) {
                if state.is(DeleteTreeMissingIsOk) && error.code() == Code::NotFound {
                    return Ok(());
                }
                return Err(error);
            }
            ensure!(
                !(state.is(DeleteTreeRefusesFiles) && state.is_file(uri)),
                Error::expected_directory(uri)
            );
            ensure!(!state.is(DeleteTreeFails), Error::permission_denied("not here"));
            if state.is(DeleteTreeByPrefix) {
                for other in state.with_prefix(uri) {
                    state.delete_tree(Uri::new(&other), 0)?;
                }
                return Ok(());
            }
            state.delete_tree(uri, 0)
        });
        deleted.map_err(|error| {
            if state.is(DeleteTreeCounts) || state.is(DeleteTreeFails) {
                DeleteRecursivelyError { error, files: 1, dirs: 0 }
            } else {
                error.into()
            }
        })
    }

    fn rename_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        self.at(src, |src| {
            let dst = self.0.target(src, dst, RenameForgetsHost)?;
            self.0.rename(src, Uri::new(&dst))
        })
    }

    fn copy_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        self.at(src, |src| {
            let dst = self.0.target(src, dst, CopyForgetsHost)?;
            self.0.copy(src, Uri::new(&dst))
        })
    }

    fn path_exists(&self, uri: Uri<'_>) -> Result<bool> {
        let state = &self.0;
        self.at(uri, |uri| match state.defect {
            ExistsByPrefix => {
                Ok(!state.with_prefix(uri).is_empty() || state.inner.path_exists(uri)?)
            }
            ExistsAlways => Ok(true),
            ExistsFilesOnly if state.is_dir(uri) => Ok(false),
            ExistsDirsOnly if state.is_file(uri) => Ok(false),
            BelowFileIsMissing => Ok(state.inner.path_exists(uri).unwrap_or(false)),
            _ => state.inner.path_exists(uri),
        })
    }

    fn paths_exist(&self, uris: &[Uri<'_>]) -> Vec<Result<bool>> {
        let mut answers: Vec<_> = uris.iter().map(|uri| self.path_exists(*uri)).collect();
        match self.0.defect {
            PathsExistReversed => answers.reverse(),
            PathsExistFirstOnly => {
                if let Some(Ok(first)) = answers.first() {
                    let first = *first;
                    answers = uris.iter().map(|_| Ok(first)).collect();
                }
            }
            PathsExistAtMost100 => {
                for answer in answers.iter_mut().skip(100) {
                    *answer = Ok(true);
                }
            }
            _ => {}
        }
        answers
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        let state = &self.0;
        self.at(uri, |uri| {
            let found = state.inner.stat(uri);
            match state.defect {
                StatMissingIsEmpty if found.as_ref().is_err_and(|e| e.code() == Code::NotFound) => {
                    return Ok(FileStatistics::file(0));
                }
                BelowFileIsMissing if found.is_err() => return Err(Error::not_found(uri)),
                _ => {}
            }
            let mut found = found?;
            if let Some(modified) = lock(&state.times).get(uri.as_bytes())
                && !found.is_directory
            {
                let now = state.is(ModifiedIsNow).then(SystemTime::now);
                found = found.with_modified(now.unwrap_or(*modified));
            }
            match state.defect {
                StatOffByOne if !found.is_directory => found.length += 1,
                StatOfDirsIsFile => found.is_directory = false,
                StatIsCached if !found.is_directory => {
                    let mut lengths = lock(&state.lengths);
                    found.length = *lengths.entry(uri.as_bytes().to_vec()).or_insert(found.length);
                }
                _ => {}
            }
            Ok(found)
        })
    }

    fn is_directory(&self, uri: Uri<'_>) -> Result<bool> {
        let state = &self.0;
        self.at(uri, |uri| match state.inner.stat(uri) {
            Ok(_) if state.is(IsDirectoryOfFiles) => Ok(true),
            Ok(found) if found.is_directory => {
                let empty = state.inner.get_children(uri)?.is_empty();
                Ok(!state.is(if empty { IsDirectoryIfFull } else { IsDirectoryNever }))
            }
            Ok(_) => Ok(false),
            Err(error) if state.is(IsDirectoryOfNothing) && error.code() == Code::NotFound => {
                Ok(true)
            }
            Err(_) if state.is(BelowFileIsMissing) => Err(Error::not_found(uri)),
            Err(error) => Err(error),
        })
    }

    fn get_file_size(&self, uri: Uri<'_>) -> Result<u64> {
        let state = &self.0;
        self.at(uri, |uri| match state.inner.stat(uri) {
            Ok(_) if state.is(SizeIsStale) && lock(&state.open).contains(uri.as_bytes()) => Ok(0),
            Ok(found) if found.is_directory && !state.is(SizeOfDirs) => {
                Err(Error::expected_file(uri))
            }
            Ok(found) => Ok(found.length + u64::from(state.is(SizeOffByOne))),
            Err(error) if state.is(SizeMissingIsZero) && error.code() == Code::NotFound => Ok(0),
            Err(_) if state.is(BelowFileIsMissing) => Err(Error::not_found(uri)),
            Err(error) => Err(error),
        })
    }

    fn translate_name(&self, uri: &[u8]) -> Vec<u8> {
        let clean = match self.0.defect {
            TranslateKeepsDots => return uri.to_vec(),
            TranslateRootWhole => return Uri::canonical(uri).into_owned(),
            TrailingSlashIsAName if uri.ends_with(b"/") => return uri.to_vec(),
            _ => self.0.inner.translate_name(uri),
        };
        match self.0.defect {
            TranslateDropsHost => Uri::new(&clean).path().to_vec(),
            TranslateEncodes => String::from_utf8_lossy(&clean).replace('%', "%25").into_bytes(),
            _ => clean,
        }
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        self.at(uri, |uri| match self.0.get_children(uri) {
            Err(_) if self.0.is(BelowFileIsMissing) && self.0.inner.stat(uri).is_err() => {
                Err(Error::not_found(uri))
            }
            other => other,
        })
    }

    fn get_matching_paths(&self, pattern: Uri<'_>) -> Result<Entries> {
        self.0.get_matching_paths(pattern)
    }

    fn flush_caches(&self) {
        if self.0.is(FlushCachesLoses) {
            self.0.forgotten.store(1, Ordering::SeqCst);
        }
        self.0.inner.flush_caches();
    }

    fn start_transaction(&self) -> Result<Arc<()>> {
        Ok(Arc::new(()))
    }

    fn end_transaction(&self, transaction: Arc<()>) -> Result<()> {
        if !self.0.is(TransactionsNeverEnd) {
            lock(&self.0.transactions).retain(|_, other| !Arc::ptr_eq(other, &transaction));
        }
        Ok(())
    }

    fn add_to_transaction(&self, uri: Uri<'_>, transaction: &Arc<()>) -> Result<()> {
        if !self.0.is(TransactionsForget) {
            lock(&self.0.transactions).insert(uri.as_bytes().to_vec(), Arc::clone(transaction));
        }
        Ok(())
    }

    fn get_transaction_for_path(&self, uri: Uri<'_>) -> Result<Option<Arc<()>>> {
        Ok(lock(&self.0.transactions).get(uri.as_bytes()).cloned())
    }

    fn get_filesystem_configuration(&self) -> Result<Vec<FilesystemOption>> {
        Ok(vec![FilesystemOption::new("level", OptionValues::Int(vec![3]))])
    }

    fn get_filesystem_configuration_option(&self, key: &str) -> Result<FilesystemOption> {
        match key {
            "level" => Ok(FilesystemOption::new("level", OptionValues::Int(vec![3]))),
            key if self.0.is(UnknownOptionIsOk) => {
                Ok(FilesystemOption::new(key, OptionValues::Int(vec![0])))
            }
            key => Err(Error::not_found(key)),
        }
    }

    fn get_filesystem_configuration_keys(&self) -> Result<Vec<String>> {
        let key = if self.0.is(KeysDiffer) { "LEVEL" } else { "level" };
        Ok(vec![key.to_owned()])
    }
}
