//! The state of a broken filesystem, which its operations share.

use crate::defect::Defect::{self, *};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};
use tf_fs_plugin::prelude::*;
use tf_fs_plugin::sync::{Mutex, MutexGuard};

pub(super) struct State<F> {
    pub(super) inner: F,
    pub(super) defect: Defect,
    /// Whether a rename of a directory takes all that is in it along.
    pub(super) moves_directories: bool,
    pub(super) calls: AtomicUsize,
    pub(super) contents: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    pub(super) regions: Mutex<BTreeMap<Vec<u8>, Arc<AlignedRegion>>>,
    pub(super) lengths: Mutex<BTreeMap<Vec<u8>, u64>>,
    /// When each file was modified.
    pub(super) times: Mutex<BTreeMap<Vec<u8>, SystemTime>>,
    pub(super) listings: Mutex<BTreeMap<Vec<u8>, Entries>>,
    pub(super) locked: Mutex<BTreeSet<Vec<u8>>>,
    pub(super) open: Mutex<BTreeSet<Vec<u8>>>,
    /// Whose file is at a name: a writer's whose file was deleted or replaced is no longer there.
    pub(super) owners: Mutex<BTreeMap<Vec<u8>, usize>>,
    pub(super) writers: AtomicUsize,
    pub(super) links: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    pub(super) shared: Mutex<Vec<u8>>,
    /// A lock as `std` has it.
    pub(super) plain: std::sync::Mutex<()>,
    pub(super) forgotten: AtomicUsize,
    pub(super) transactions: Mutex<BTreeMap<Vec<u8>, Arc<()>>>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn read_all(file: &impl RandomAccessFile, length: u64) -> Result<Vec<u8>> {
    let mut memory = vec![0; usize::try_from(length).unwrap_or_default()];
    let mut buf = ReadBuf::from_slice(&mut memory);
    file.read_at(0, &mut buf)?;
    let read = buf.filled().len();
    memory.truncate(read);
    Ok(memory)
}

/// One call, for the defect that allows no second one.
struct Call<'c>(&'c AtomicUsize);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<F: Filesystem> State<F> {
    pub(super) fn new(inner: F, defect: Defect) -> Self {
        Self {
            inner,
            defect,
            moves_directories: false,
            calls: AtomicUsize::new(0),
            contents: Mutex::default(),
            regions: Mutex::default(),
            lengths: Mutex::default(),
            times: Mutex::default(),
            listings: Mutex::default(),
            locked: Mutex::default(),
            open: Mutex::default(),
            owners: Mutex::default(),
            writers: AtomicUsize::new(0),
            links: Mutex::default(),
            shared: Mutex::default(),
            plain: std::sync::Mutex::default(),
            forgotten: AtomicUsize::new(0),
            transactions: Mutex::default(),
        }
    }

    pub(super) fn is(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    pub(super) fn at<T>(&self, uri: Uri<'_>, op: impl FnOnce(Uri<'_>) -> Result<T>) -> Result<T> {
        let others = self.calls.fetch_add(1, Ordering::SeqCst);
        let _call = Call(&self.calls);
        let _held = self.is(LockHangsInAFork).then(|| {
            let held = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
            thread::sleep(Duration::from_micros(50));
            held
        });
        if self.is(RefusesASecondCall) {
            thread::sleep(Duration::from_micros(50));
            ensure!(others == 0, Error::resource_exhausted("busy"));
        }
        let result = self.name(uri).and_then(|name| op(Uri::new(&name)));
        match result {
            Err(error) if self.is(UnknownCodes) && error.code() != Code::Unimplemented => {
                Err(error.with_code(Code::Unknown))
            }
            other => other,
        }
    }

    pub(super) fn length(&self, uri: Uri<'_>) -> u64 {
        self.inner.stat(uri).map_or(0, |found| found.length)
    }

    pub(super) fn is_dir(&self, uri: Uri<'_>) -> bool {
        self.inner.stat(uri).is_ok_and(|found| found.is_directory)
    }

    pub(super) fn is_file(&self, uri: Uri<'_>) -> bool {
        self.inner.stat(uri).is_ok_and(|found| !found.is_directory)
    }

    pub(super) fn is_missing(&self, uri: Uri<'_>) -> bool {
        self.inner.stat(uri).is_err_and(|error| error.code() == Code::NotFound)
    }

    pub(super) fn content(&self, uri: Uri<'_>) -> Result<Vec<u8>> {
        let length = self.length(uri);
        read_all(&self.inner.new_random_access_file(uri)?, length)
    }

    /// Notes that a file is modified now.
    pub(super) fn touch(&self, uri: Uri<'_>) {
        lock(&self.times).insert(uri.as_bytes().to_vec(), SystemTime::now());
    }

    pub(super) fn write(&self, uri: Uri<'_>, content: &[u8]) -> Result<()> {
        let mut writer = self.inner.new_writable_file(uri)?;
        writer.append(content)?;
        writer.close()
    }

    /// The names beside and including `uri` that begin with it.
    pub(super) fn with_prefix(&self, uri: Uri<'_>) -> Vec<Vec<u8>> {
        let Some(parent) = uri.parent() else { return Vec::new() };
        let names = self.inner.get_children(parent).unwrap_or_default();
        let paths = names.iter().map(|name| parent.join(name));
        paths.filter(|path| path.starts_with(uri.as_bytes())).collect()
    }

    pub(super) fn make_parent(&self, uri: Uri<'_>) {
        if let Some(parent) = uri.parent() {
            let _ = self.inner.recursively_create_dir(parent);
        }
    }
}
