//! A filesystem around another that has one defect, to see which cases notice.

use crate::defect::Defect;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, SystemTime};
use tf_fs_plugin::glob;
use tf_fs_plugin::prelude::*;
use tf_fs_plugin::sync::{Mutex, MutexGuard};

/// A name that [`Broken`] never accepts, defect or not.
pub const MALFORMED: &str = "mem://box/\u{1}";

/// What `F` does, in every operation of its own, except for one defect. Without a defect it is a complete
/// filesystem, also where `F` leaves operations out.
pub struct Broken<F: Filesystem>(Arc<State<F>>);

struct State<F> {
    inner: F,
    defect: Defect,
    calls: AtomicUsize,
    contents: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    regions: Mutex<BTreeMap<Vec<u8>, Arc<AlignedRegion>>>,
    lengths: Mutex<BTreeMap<Vec<u8>, u64>>,
    /// When each file was modified.
    times: Mutex<BTreeMap<Vec<u8>, SystemTime>>,
    listings: Mutex<BTreeMap<Vec<u8>, Entries>>,
    locked: Mutex<BTreeSet<Vec<u8>>>,
    open: Mutex<BTreeSet<Vec<u8>>>,
    /// Whose file is at a name: a writer's whose file was deleted or replaced is no longer there.
    owners: Mutex<BTreeMap<Vec<u8>, usize>>,
    writers: AtomicUsize,
    links: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    shared: Mutex<Vec<u8>>,
    /// A lock as `std` has it.
    plain: std::sync::Mutex<()>,
    forgotten: AtomicUsize,
    transactions: Mutex<BTreeMap<Vec<u8>, Arc<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_all(file: &impl RandomAccessFile, length: u64) -> Result<Vec<u8>> {
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

impl<F: Filesystem> Broken<F> {
    /// `inner` with a defect.
    pub fn new(inner: F, defect: Defect) -> Self {
        Self(Arc::new(State {
            inner,
            defect,
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
        }))
    }

    /// Runs an operation on the name that `uri` represents.
    fn at<T>(&self, uri: Uri<'_>, op: impl FnOnce(Uri<'_>) -> Result<T>) -> Result<T> {
        self.0.at(uri, op)
    }
}

impl<F: Filesystem> State<F> {
    fn is(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    fn at<T>(&self, uri: Uri<'_>, op: impl FnOnce(Uri<'_>) -> Result<T>) -> Result<T> {
        let others = self.calls.fetch_add(1, Ordering::SeqCst);
        let _call = Call(&self.calls);
        let _held = self.is(Defect::LockHangsInAFork).then(|| {
            let held = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
            thread::sleep(Duration::from_micros(50));
            held
        });
        if self.is(Defect::RefusesASecondCall) {
            thread::sleep(Duration::from_micros(50));
            ensure!(others == 0, Error::resource_exhausted("busy"));
        }
        let result = self.name(uri).and_then(|name| op(Uri::new(&name)));
        match result {
            Err(error) if self.is(Defect::UnknownCodes) && error.code() != Code::Unimplemented => {
                Err(error.with_code(Code::Unknown))
            }
            other => other,
        }
    }

    /// The name that `inner` gets.
    fn name(&self, uri: Uri<'_>) -> Result<Vec<u8>> {
        use Defect::*;
        let bytes = uri.as_bytes();
        if bytes.contains(&1) {
            let code =
                if self.is(MalformedIsMissing) { Code::NotFound } else { Code::FailedPrecondition };
            return Err(Error::new(code, "malformed"));
        }
        let mut name = if bytes == b"/" { b"mem:///".to_vec() } else { bytes.to_vec() };
        if !name.starts_with(b"mem://") {
            name = [b"mem://", &name[..]].concat();
        }
        let has_slash = name.ends_with(b"/");
        if !self.is(TranslateKeepsDots) {
            name = Uri::canonical(&name).into_owned();
        }
        if has_slash && self.is(TrailingSlashIsAName) && !Uri::new(&name).is_root() {
            name.push(b'\x02');
        }
        let (head, path) = name.split_at(Uri::new(&name).split());
        let head = head.to_vec();
        let text = String::from_utf8_lossy(path).into_owned();
        let refuses = |what: bool| -> Result<()> {
            ensure!(!what, Error::invalid_argument("the name has something in it"));
            Ok(())
        };
        let replaced = match self.defect {
            DecodesPercent => text.replace("%25", "%").replace("%20", " "),
            CutsAtHash => text.split('#').next().unwrap_or_default().to_owned(),
            CutsAtQuestionMark => text.split('?').next().unwrap_or_default().to_owned(),
            IgnoresCase => text.to_lowercase(),
            Composes => text.replace("e\u{301}", "\u{e9}"),
            PlusIsSpace => text.replace('+', " "),
            BackslashIsSlash => text.replace('\\', "/"),
            TrimsSpaces => text.split('/').map(str::trim).collect::<Vec<_>>().join("/"),
            TrimsDots => {
                let parts: Vec<_> =
                    text.split('/').map(|part| part.trim_end_matches('.')).collect();
                parts.join("/")
            }
            KeysAreLastComponents if text.ends_with("/empty_file") && text.contains("/full/") => {
                text.replace("/full/empty_file", "/empty_file")
            }
            _ => text,
        };
        let part_is = |test: fn(&str) -> bool| replaced.split('/').any(test);
        match self.defect {
            ShortNames => refuses(part_is(|part| part.len() > 128))?,
            ShallowNames => refuses(replaced.split('/').count() > 17)?,
            RefusesColons => refuses(replaced.contains(':'))?,
            RefusesControls => refuses(part_is(|part| part.contains(char::is_control)))?,
            RefusesQuotes => refuses(replaced.contains('\''))?,
            RefusesStars => refuses(replaced.contains('*'))?,
            RefusesBrackets => refuses(replaced.contains('['))?,
            RefusesDashes => refuses(part_is(|part| part.starts_with('-')))?,
            RefusesTildes => refuses(part_is(|part| part == "~"))?,
            RefusesCommas => refuses(replaced.contains(','))?,
            RefusesEquals => refuses(replaced.contains('='))?,
            RootIsMissing if replaced == "/" => return Err(Error::not_found(uri)),
            _ => {}
        }
        Ok([head, replaced.into_bytes()].concat())
    }

    /// The name that `inner` gets as the target of a transfer from `src`.
    fn target(&self, src: Uri<'_>, dst: Uri<'_>, forgets: Defect) -> Result<Vec<u8>> {
        let name = self.name(dst)?;
        let dst = Uri::new(&name);
        if self.is(forgets) {
            return Ok([&src.as_bytes()[..src.split()], dst.path()].concat());
        }
        Ok(name)
    }

    fn length(&self, uri: Uri<'_>) -> u64 {
        self.inner.stat(uri).map_or(0, |found| found.length)
    }

    fn is_dir(&self, uri: Uri<'_>) -> bool {
        self.inner.stat(uri).is_ok_and(|found| found.is_directory)
    }

    fn is_file(&self, uri: Uri<'_>) -> bool {
        self.inner.stat(uri).is_ok_and(|found| !found.is_directory)
    }

    fn content(&self, uri: Uri<'_>) -> Result<Vec<u8>> {
        let length = self.length(uri);
        read_all(&self.inner.new_random_access_file(uri)?, length)
    }

    /// Notes that a file is modified now.
    fn touch(&self, uri: Uri<'_>) {
        lock(&self.times).insert(uri.as_bytes().to_vec(), SystemTime::now());
    }

    fn write(&self, uri: Uri<'_>, content: &[u8]) -> Result<()> {
        let mut writer = self.inner.new_writable_file(uri)?;
        writer.append(content)?;
        writer.close()
    }

    /// The names beside and including `uri` that begin with it.
    fn with_prefix(&self, uri: Uri<'_>) -> Vec<Vec<u8>> {
        let Some(parent) = uri.parent() else { return Vec::new() };
        let names = self.inner.get_children(parent).unwrap_or_default();
        let paths = names.iter().map(|name| parent.join(name));
        paths.filter(|path| path.starts_with(uri.as_bytes())).collect()
    }

    fn make_parent(&self, uri: Uri<'_>) {
        if let Some(parent) = uri.parent() {
            let _ = self.inner.recursively_create_dir(parent);
        }
    }

    /// Deletes what is at and below a path.
    fn delete_tree(&self, uri: Uri<'_>, depth: usize) -> Result<()> {
        lock(&self.owners).remove(uri.as_bytes());
        if !self.is_dir(uri) {
            return self.inner.delete_file(uri);
        }
        for name in self.inner.get_children(uri)?.iter() {
            if self.is(Defect::DeleteTreeLeavesDeep) && depth == 2 {
                return Ok(());
            }
            self.delete_tree(Uri::new(&uri.join(name)), depth + 1)?;
        }
        if depth == 0 && self.is(Defect::DeleteTreeLeavesTop) {
            return Ok(());
        }
        match self.inner.delete_dir(uri) {
            Err(_) if self.is(Defect::DeleteTreeLeavesDeep) => Ok(()),
            other => other,
        }
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        use Defect::*;
        match self.defect {
            RootListsNothing if uri.is_root() => return Ok(Entries::new()),
            ListsFiles if self.is_file(uri) => return Ok(Entries::new()),
            ListsMissing if self.inner.stat(uri).is_err_and(|e| e.code() == Code::NotFound) => {
                return Ok(Entries::new());
            }
            ListingIsCached => {
                if let Some(found) = lock(&self.listings).get(uri.as_bytes()) {
                    return Ok(found.clone());
                }
            }
            _ => {}
        }
        let entries = self.inner.get_children(uri)?;
        let at = |name: &[u8]| uri.join(name);
        let dir = |name: &[u8]| self.is_dir(Uri::new(&at(name)));
        let listed: Entries = match self.defect {
            ListsItself if entries.is_empty() => [uri.file_name()].into_iter().collect(),
            ListsAtMost100 => entries.iter().take(100).collect(),
            ListsTwice => {
                let files = entries.iter().filter(|name| !dir(name));
                entries.iter().chain(files).collect()
            }
            ListsNoDirectories => entries.iter().filter(|name| !dir(name)).collect(),
            ListsHiddenNot => entries.iter().filter(|name| !name.starts_with(b".")).collect(),
            RefusesTempstate => {
                let shown = |name: &&[u8]| !name.windows(10).any(|part| part == b".tempstate");
                entries.iter().filter(shown).collect()
            }
            ListsOpenNot => {
                let open = lock(&self.open);
                entries.iter().filter(|name| !open.contains(&at(name))).collect()
            }
            ListsAllLevels => {
                let mut all = entries.clone();
                for name in entries.iter().filter(|name| dir(name)) {
                    for below in self.inner.get_children(Uri::new(&at(name)))?.iter() {
                        if !all.iter().any(|other| other == below) {
                            all.push(below);
                        }
                    }
                }
                all
            }
            ListsByPrefix => {
                let mut all = entries.clone();
                for path in self.with_prefix(uri) {
                    if path != uri.as_bytes()
                        && let Ok(more) = self.inner.get_children(Uri::new(&path))
                    {
                        all.extend(more.iter());
                    }
                }
                all
            }
            _ => entries,
        };
        if self.is(ListingIsCached) {
            lock(&self.listings).insert(uri.as_bytes().to_vec(), listed.clone());
        }
        Ok(listed)
    }

    fn copy(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        use Defect::*;
        if self.is(CopyEmptiesTarget) && src != dst && self.is_file(dst) {
            self.write(dst, b"")?;
        }
        if self.is(CopyToItselfLoses) && src == dst && self.is_file(src) {
            return self.write(dst, b"");
        }
        if self.is(CopyMissingIsOk)
            && self.inner.stat(src).is_err_and(|error| error.code() == Code::NotFound)
        {
            return Ok(());
        }
        if self.is(CopyTakesDirs) && self.is_dir(src) {
            return Ok(());
        }
        if self.is(CopyMakesParents) {
            self.make_parent(dst);
        }
        if self.is(CopyIntoDirectory) && self.is_dir(dst) && self.is_file(src) {
            let into = dst.join(src.file_name());
            return self.inner.copy_file(src, Uri::new(&into));
        }
        let old = if self.is(CopyKeepsTail) && src != dst {
            self.content(dst).unwrap_or_default()
        } else {
            Vec::new()
        };
        self.inner.copy_file(src, dst)?;
        if src != dst {
            lock(&self.owners).remove(dst.as_bytes());
            self.touch(dst);
        }
        if self.is(CopyLosesLastChunk) || self.is(CopyKeepsTail) {
            let mut content = self.content(dst)?;
            if self.is(CopyLosesLastChunk) && content.len() > 128 << 10 {
                content.truncate(content.len() / (128 << 10) * (128 << 10));
            }
            if let Some(tail) = old.get(content.len()..) {
                content.extend_from_slice(tail);
            }
            self.write(dst, &content)?;
        }
        if self.is(CopyIsALink) && src != dst {
            lock(&self.links).insert(dst.as_bytes().to_vec(), src.as_bytes().to_vec());
        }
        if self.is(CopyDeletesSource) && src != dst {
            self.inner.delete_file(src)?;
        }
        Ok(())
    }

    fn rename(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        use Defect::*;
        if self.is(RenameMissingIsOk)
            && self.inner.stat(src).is_err_and(|error| error.code() == Code::NotFound)
        {
            return Ok(());
        }
        if self.is(RenameTakesDirs) && self.is_dir(src) {
            return Ok(());
        }
        if self.is(RenameRefusesExisting) && src != dst && self.is_file(dst) {
            return Err(Error::already_exists(dst));
        }
        if self.is(RenameToItselfLoses) && src == dst {
            return self.inner.delete_file(src);
        }
        if self.is(RenameMakesParents) {
            self.make_parent(dst);
        }
        if self.is(RenameKeepsSource) {
            return self.inner.copy_file(src, dst);
        }
        let others = if self.is(RenameByPrefix) { self.with_prefix(src) } else { Vec::new() };
        self.inner.rename_file(src, dst)?;
        if src != dst {
            lock(&self.owners).remove(src.as_bytes());
            lock(&self.owners).remove(dst.as_bytes());
            self.touch(dst);
        }
        for other in others.iter().filter(|other| *other != src.as_bytes()) {
            let to = [dst.as_bytes(), &other[src.as_bytes().len()..]].concat();
            let _ = self.inner.rename_file(Uri::new(other), Uri::new(&to));
        }
        Ok(())
    }

    fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
        use Defect::*;
        ensure!(!lock(&self.locked).contains(uri.as_bytes()), Error::unavailable("locked"));
        match self.defect {
            DeleteMissingIsOk
                if self.inner.stat(uri).is_err_and(|error| error.code() == Code::NotFound) =>
            {
                return Ok(());
            }
            DeleteFileTakesDirs if self.is_dir(uri) => return self.inner.delete_dir(uri),
            DeleteLeavesFile if self.is_file(uri) => return Ok(()),
            DeleteByPrefix if self.is_file(uri) => {
                for other in self.with_prefix(uri) {
                    let _ = self.inner.delete_file(Uri::new(&other));
                }
                return Ok(());
            }
            _ => {}
        }
        self.inner.delete_file(uri)?;
        lock(&self.owners).remove(uri.as_bytes());
        if self.is(DeleteTakesParent)
            && let Some(parent) = uri.parent()
        {
            let _ = self.inner.delete_dir(parent);
        }
        Ok(())
    }

    /// Opens for writing, at the end of `before`.
    fn open(this: &Arc<Self>, uri: Uri<'_>, before: Option<Vec<u8>>) -> Result<BrokenWriter<F>> {
        use Defect::*;
        let state = &**this;
        ensure!(!lock(&state.locked).contains(uri.as_bytes()), Error::unavailable("locked"));
        if state.is(CreatesParents) {
            state.make_parent(uri);
        }
        if state.is(ReplacesDirectories) && state.is_dir(uri) {
            let _ = state.inner.delete_dir(uri);
        }
        let existed = state.is_file(uri);
        let old = if existed { state.content(uri)? } else { Vec::new() };
        // Also for what it says about the name.
        let mut inner = match &before {
            Some(_) => state.inner.new_appendable_file(uri)?,
            None => state.inner.new_writable_file(uri)?,
        };
        if state.is(VisibleAtClose) && !existed {
            state.inner.delete_file(uri)?;
        }
        inner.flush()?;
        drop(inner);
        if before.is_none() && !(existed && state.is(ModifiedStaysOnOverwrite)) {
            state.touch(uri);
        }
        state.forgotten.store(0, Ordering::SeqCst);
        lock(&state.open).insert(uri.as_bytes().to_vec());
        let id = state.writers.fetch_add(1, Ordering::SeqCst);
        lock(&state.owners).insert(uri.as_bytes().to_vec(), id);
        lock(&state.shared).clear();
        let content = before.clone().unwrap_or_default();
        Ok(BrokenWriter {
            state: Arc::clone(this),
            name: uri.as_bytes().to_vec(),
            id,
            flushed: content.len(),
            written: content.len(),
            content,
            start: before.map_or(0, |before| before.len()),
            old,
            thread: thread::current().id(),
            closed: false,
            touched: false,
        })
    }
}

/// Where the path of a name begins.
trait Split {
    fn split(&self) -> usize;
}

impl Split for Uri<'_> {
    fn split(&self) -> usize {
        self.as_bytes().len() - self.path().len()
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
        use Defect::*;
        let state = &self.0;
        self.at(uri, |uri| {
            ensure!(
                !(state.is(OpenFails) && state.is_file(uri)),
                Error::permission_denied("not for reading")
            );
            if state.is(OpenCreates) && state.inner.stat(uri).is_err() {
                let _ = state.inner.new_writable_file(uri);
            }
            let link = lock(&state.links).get(uri.as_bytes()).cloned();
            let name = match &link {
                Some(link) if state.is_file(Uri::new(link)) => Uri::new(link),
                _ => uri,
            };
            let inner = match state.inner.new_random_access_file(name) {
                Err(_) if state.is(OpensDirectories) && state.is_dir(name) => None,
                opened => Some(opened?),
            };
            let cached = if state.is(ReadIsCached) && inner.is_some() {
                let content = state.content(name)?;
                let mut contents = lock(&state.contents);
                let content = contents.entry(uri.as_bytes().to_vec()).or_insert(content);
                Some(content.clone())
            } else {
                None
            };
            Ok(BrokenReader {
                state: Arc::clone(state),
                inner,
                cached,
                name: name.as_bytes().to_vec(),
                position: AtomicU64::new(0),
            })
        })
    }

    fn new_writable_file(&self, uri: Uri<'_>) -> Result<Self::Writer> {
        self.at(uri, |uri| State::open(&self.0, uri, None))
    }

    fn new_appendable_file(&self, uri: Uri<'_>) -> Result<Self::Writer> {
        use Defect::*;
        let state = &self.0;
        self.at(uri, |uri| {
            ensure!(
                !(state.is(LocksOpenFiles) && lock(&state.open).contains(uri.as_bytes())),
                Error::unavailable("another writer has it")
            );
            if state.is(AppendNeedsFile) {
                state.inner.stat(uri)?;
            }
            let before = if state.is_file(uri) { state.content(uri)? } else { Vec::new() };
            match state.defect {
                AppendTruncates => State::open(&self.0, uri, None),
                AppendStartsOver => {
                    let mut writer = State::open(&self.0, uri, Some(before))?;
                    writer.start = 0;
                    Ok(writer)
                }
                _ => State::open(&self.0, uri, Some(before)),
            }
        })
    }

    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<Self::Region> {
        use Defect::*;
        let state = &self.0;
        self.at(uri, |uri| {
            if state.is(RegionOfDirs) && state.is_dir(uri) {
                let region = Arc::new(AlignedRegion::read(&Bytes(b"x".to_vec()), 1)?);
                return Ok(BrokenRegion(region));
            }
            let reader = state.inner.new_random_access_file(uri)?;
            let mut length = state.length(uri);
            if state.is(RegionIsCut) {
                length = length.min(64 << 10);
            }
            let mut region = Arc::new(if state.is(RegionLacksFirst) {
                let content = state.content(uri)?;
                let content = content.get(1..).unwrap_or_default().to_vec();
                let length = content.len() as u64;
                AlignedRegion::read(&Bytes(content), length)?
            } else {
                AlignedRegion::read(&reader, length)?
            });
            let name = uri.as_bytes().to_vec();
            if state.is(RegionIsCached) {
                region = Arc::clone(lock(&state.regions).entry(name).or_insert(region));
                return Ok(BrokenRegion(region));
            }
            Ok(BrokenRegion(region))
        })
    }

    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        use Defect::*;
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
        use Defect::*;
        let state = &self.0;
        self.at(uri, |uri| match state.defect {
            MakeTreeFailsIfThere if state.is_dir(uri) => Err(Error::already_exists(uri)),
            MakeTreeNeedsParent if !state.is_dir(uri) => state.inner.create_dir(uri),
            MakeTreeOverFiles if state.is_file(uri) => Ok(()),
            MakeTreeOfRootFails if uri.parent().is_none_or(|parent| parent.is_root()) => {
                Err(Error::not_found(uri))
            }
            MakeTreeRaces if !state.is_dir(uri) => {
                thread::sleep(Duration::from_millis(1));
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
        use Defect::*;
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

    fn delete_recursively(&self, uri: Uri<'_>) -> Result<(), Undeleted> {
        use Defect::*;
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
                Undeleted { error, files: 1, dirs: 0 }
            } else {
                error.into()
            }
        })
    }

    fn rename_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        self.at(src, |src| {
            let dst = self.0.target(src, dst, Defect::RenameForgetsHost)?;
            self.0.rename(src, Uri::new(&dst))
        })
    }

    fn copy_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        self.at(src, |src| {
            let dst = self.0.target(src, dst, Defect::CopyForgetsHost)?;
            self.0.copy(src, Uri::new(&dst))
        })
    }

    fn path_exists(&self, uri: Uri<'_>) -> Result<bool> {
        use Defect::*;
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
        use Defect::*;
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
        use Defect::*;
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
        use Defect::*;
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
        use Defect::*;
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
        use Defect::*;
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
            Err(_) if self.0.is(Defect::BelowFileIsMissing) && self.0.inner.stat(uri).is_err() => {
                Err(Error::not_found(uri))
            }
            other => other,
        })
    }

    fn get_matching_paths(&self, pattern: Uri<'_>) -> Result<Entries> {
        use Defect::*;
        let state = &self.0;
        let text = String::from_utf8_lossy(pattern.as_bytes()).into_owned();
        let list = |pattern: &str| state.inner.get_matching_paths(Uri::new(pattern.as_bytes()));
        if text.is_empty() && state.is(GlobEmptyIsAll) {
            return list("mem://box/*");
        }
        let found = match state.defect {
            GlobKnowsNoEscape => list(&text.replace('\\', "\\\\"))?,
            GlobKnowsNoNegation => list(&text.replace("[^", "["))?,
            GlobKnowsNoQuestionMark => list(&text.replace('?', "\\?"))?,
            GlobKnowsNoList => list(&text.replace('[', "\\[").replace("\\\\[", "\\["))?,
            GlobDecodes => list(&text.replace("%20", " "))?,
            GlobByPrefix if !text.is_empty() => list(&format!("{text}*"))?,
            GlobKnowsAscii if !text.is_ascii() => Entries::new(),
            GlobOfOneDirectory => {
                let (dir, last) = text.rsplit_once('/').unwrap_or_default();
                let literal: String = dir
                    .chars()
                    .flat_map(|c| if "*?[\\".contains(c) { vec!['\\', c] } else { vec![c] })
                    .collect();
                list(&if dir.is_empty() { text.clone() } else { format!("{literal}/{last}") })?
            }
            _ => list(&text)?,
        };
        let at = |path: &[u8]| state.is_dir(Uri::new(path));
        Ok(match state.defect {
            GlobGivesNames => {
                found.iter().map(|path| Uri::new(path).file_name().to_vec()).collect()
            }
            GlobSkipsDirs => found.iter().filter(|path| !at(path)).collect(),
            GlobOfNothingFails if found.is_empty() => return Err(Error::not_found(pattern)),
            GlobStarTakesSlash if text.contains('*') => {
                let mut all = found.clone();
                // One level more below what the part before the last wildcard's slash says.
                let (dir, last) = text.rsplit_once('/').unwrap_or_default();
                for path in list(&format!("{dir}/*/*"))?.iter() {
                    let below = path.get(dir.len() + 1..).unwrap_or_default();
                    let flat: Vec<u8> =
                        below.iter().map(|&byte| if byte == b'/' { b'_' } else { byte }).collect();
                    if glob::matches(last.as_bytes(), &flat) {
                        all.push(path);
                    }
                }
                all
            }
            _ => found,
        })
    }

    fn flush_caches(&self) {
        if self.0.is(Defect::FlushCachesLoses) {
            self.0.forgotten.store(1, Ordering::SeqCst);
        }
        self.0.inner.flush_caches();
    }

    fn start_transaction(&self) -> Result<Arc<()>> {
        Ok(Arc::new(()))
    }

    fn end_transaction(&self, transaction: Arc<()>) -> Result<()> {
        if !self.0.is(Defect::TransactionsNeverEnd) {
            lock(&self.0.transactions).retain(|_, other| !Arc::ptr_eq(other, &transaction));
        }
        Ok(())
    }

    fn add_to_transaction(&self, uri: Uri<'_>, transaction: &Arc<()>) -> Result<()> {
        if !self.0.is(Defect::TransactionsForget) {
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
            key if self.0.is(Defect::UnknownOptionIsOk) => {
                Ok(FilesystemOption::new(key, OptionValues::Int(vec![0])))
            }
            key => Err(Error::not_found(key)),
        }
    }

    fn get_filesystem_configuration_keys(&self) -> Result<Vec<String>> {
        let key = if self.0.is(Defect::KeysDiffer) { "LEVEL" } else { "level" };
        Ok(vec![key.to_owned()])
    }
}

/// Bytes as a file.
struct Bytes(Vec<u8>);

impl RandomAccessFile for Bytes {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        buf.fill_from(&self.0, offset);
        Ok(())
    }
}

/// A file of a [`Broken`] that is open for reading.
pub struct BrokenReader<F: Filesystem> {
    state: Arc<State<F>>,
    /// `None` for a directory that was opened.
    inner: Option<F::Reader>,
    cached: Option<Vec<u8>>,
    name: Vec<u8>,
    position: AtomicU64,
}

impl<F: Filesystem> RandomAccessFile for BrokenReader<F> {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        use Defect::*;
        let state = &self.state;
        let Some(inner) = &self.inner else {
            buf.end_of_file();
            return Ok(());
        };
        if state.is(FlushCachesLoses) && state.forgotten.load(Ordering::SeqCst) == 1 {
            buf.end_of_file();
            return Ok(());
        }
        if let Some(content) = &self.cached {
            buf.fill_from(content, offset);
            return Ok(());
        }
        let of = |content: &[u8], buf: &mut ReadBuf<'_>| buf.fill_from(content, offset);
        let content = || -> Result<Vec<u8>> { read_all(inner, state.length(Uri::new(&self.name))) };
        match state.defect {
            ReadIgnoresOffset => inner.read_at(0, buf),
            ReadCutsOffset => inner.read_at(offset & 0xffff_ffff, buf),
            ReadEndsAt64KiB => {
                let n = buf.remaining().min(64 << 10);
                let mut memory = vec![0; n];
                let mut less = ReadBuf::from_slice(&mut memory);
                inner.read_at(offset, &mut less)?;
                let read = less.filled().len();
                assert_eq!(buf.push_slice(&memory[..read]), read);
                buf.end_of_file();
                Ok(())
            }
            ReadEndsAtBlock => {
                let mut content = content()?;
                if content.len() > 4096 {
                    content.truncate(content.len() / 4096 * 4096);
                }
                of(&content, buf);
                Ok(())
            }
            LastByteIsNotRead => {
                let mut content = content()?;
                content.pop();
                of(&content, buf);
                Ok(())
            }
            ReadPastEndFails if offset > state.length(Uri::new(&self.name)) => {
                Err(Error::invalid_argument("past the end"))
            }
            ReadOfNothingFails if state.length(Uri::new(&self.name)) == 0 => {
                Err(Error::invalid_argument("the file is empty"))
            }
            ReadEndsAtNul => {
                let content = content()?;
                let end = content.iter().position(|&byte| byte == 0).unwrap_or(content.len());
                of(&content[..end], buf);
                Ok(())
            }
            ReaderKeepsAPosition => {
                let position = self.position.load(Ordering::SeqCst);
                let before = buf.filled().len();
                inner.read_at(position, buf)?;
                let read = buf.filled().len() - before;
                self.position.fetch_add(read as u64, Ordering::SeqCst);
                Ok(())
            }
            ReaderFollowsTheName => {
                state.inner.new_random_access_file(Uri::new(&self.name))?.read_at(offset, buf)
            }
            ReaderEndsWhenDeleted if !state.is_file(Uri::new(&self.name)) => {
                buf.end_of_file();
                Ok(())
            }
            ReaderSharesItsPosition => {
                self.position.store(offset, Ordering::SeqCst);
                thread::sleep(Duration::from_micros(10));
                inner.read_at(self.position.load(Ordering::SeqCst), buf)
            }
            _ => inner.read_at(offset, buf),
        }
    }
}

/// A file of a [`Broken`] that is open for writing. Keeps all of it, and writes all of it again.
pub struct BrokenWriter<F: Filesystem> {
    state: Arc<State<F>>,
    name: Vec<u8>,
    id: usize,
    content: Vec<u8>,
    /// How much of `content` was flushed, and how much is in the file.
    flushed: usize,
    written: usize,
    /// Where appending begins.
    start: usize,
    /// What was in the file before.
    old: Vec<u8>,
    thread: ThreadId,
    closed: bool,
    touched: bool,
}

impl<F: Filesystem> BrokenWriter<F> {
    /// Writes what was appended to the file.
    fn publish(&mut self, is_close: bool) -> Result<()> {
        use Defect::*;
        let state = Arc::clone(&self.state);
        let uri = Uri::new(&self.name);
        // A file that was deleted or renamed meanwhile does not come back.
        if lock(&state.owners).get(&self.name) != Some(&self.id) {
            return self.publish_late(uri);
        }
        let publishes = is_close && state.is(VisibleAtClose);
        if !(state.is_file(uri) || publishes) {
            return Ok(());
        }
        if !(self.touched || publishes) {
            return Ok(());
        }
        let mut content = self.content.clone();
        match state.defect {
            LastPartialBlockIsLost if is_close && content.len() > 4096 => {
                content.truncate(content.len() / 4096 * 4096);
            }
            UnflushedIsLost if is_close && self.flushed > self.start => {
                content.truncate(self.flushed);
            }
            OldTailStays => {
                if let Some(tail) = self.old.get(content.len()..) {
                    content.extend_from_slice(tail);
                }
            }
            WritersShareABuffer if is_close => {
                let shared = lock(&state.shared);
                if shared.len() > content.len() {
                    content.clone_from(&shared);
                }
            }
            _ => {}
        }
        self.written = content.len();
        self.flushed = self.content.len();
        let stays = match state.defect {
            ModifiedStaysOnAppend => self.start > 0,
            ModifiedStaysOnOverwrite => self.start == 0 && !self.old.is_empty(),
            _ => false,
        };
        if !stays {
            state.touch(uri);
        }
        state.write(uri, &content)
    }

    /// What is left to do where another file took the name, or none is there any more.
    fn publish_late(&self, uri: Uri<'_>) -> Result<()> {
        let state = &self.state;
        if state.is(Defect::LateWriterMixes) && state.is_file(uri) && !self.closed {
            let mut content = state.content(uri)?;
            let end = content.len().min(self.content.len());
            content[..end].copy_from_slice(&self.content[..end]);
            return state.write(uri, &content);
        }
        if state.is(Defect::LateWriterLeavesATail) && self.start > 0 && !self.closed {
            return state.write(uri, &self.content[self.start..]);
        }
        Ok(())
    }
}

impl<F: Filesystem> WritableFile for BrokenWriter<F> {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        use Defect::*;
        let state = Arc::clone(&self.state);
        self.touched = true;
        let mut data = data.to_vec();
        match state.defect {
            EmptyAppendFails if data.is_empty() => return Err(Error::invalid_argument("no data")),
            SmallAppendsAreLost if data.len() < 4 => return Ok(()),
            LargeAppendsAreCut => data.truncate(1 << 20),
            HighBitIsLost => data.iter_mut().for_each(|byte| *byte &= 0x7f),
            LineEndsAreTranslated => {
                let mut kept = Vec::with_capacity(data.len());
                for (index, &byte) in data.iter().enumerate() {
                    if byte != b'\r' || data.get(index + 1) != Some(&b'\n') {
                        kept.push(byte);
                    }
                }
                data = kept;
            }
            WriterHasAThread if thread::current().id() != self.thread => {
                return Err(Error::failed_precondition("another thread"));
            }
            WritersShareABuffer => lock(&state.shared).extend_from_slice(&data),
            _ => {}
        }
        if state.is(AppendStartsOver) && self.start == 0 && self.content.len() > self.flushed {
            self.start = self.flushed;
        }
        if state.is(AppendStartsOver) && !self.old.is_empty() {
            let end = data.len().min(self.content.len());
            self.content[..end].copy_from_slice(&data[..end]);
            return Ok(());
        }
        self.content.extend_from_slice(&data);
        Ok(())
    }

    fn tell(&mut self) -> Result<u64> {
        use Defect::*;
        let position = self.content.len() as u64;
        Ok(match self.state.defect {
            TellForgetsFlushed => position - self.flushed as u64,
            TellGoesOn if self.start == 0 => position + self.old.len() as u64,
            TellIsZero => 0,
            _ => position,
        })
    }

    fn flush(&mut self) -> Result<()> {
        use Defect::*;
        if self.state.is(FlushDoesNothing) {
            return Ok(());
        }
        if self.state.is(FlushWritesTwice) && (1..1 << 20).contains(&self.flushed) {
            let last = self.content[self.flushed - 1];
            self.content.push(last);
        }
        self.publish(false)
    }

    fn sync(&mut self) -> Result<()> {
        if self.state.is(Defect::SyncDoesNothing) {
            return Ok(());
        }
        self.publish(false)
    }

    fn close(&mut self) -> Result<()> {
        if !self.state.is(Defect::WritesWhenDropped) {
            self.publish(true)?;
        }
        self.closed = true;
        lock(&self.state.open).remove(&self.name);
        Ok(())
    }
}

impl<F: Filesystem> Drop for BrokenWriter<F> {
    fn drop(&mut self) {
        use Defect::*;
        let state = Arc::clone(&self.state);
        lock(&state.open).remove(&self.name);
        if state.is(WritesWhenDropped) {
            let _ = self.publish(true);
        }
        let uri = Uri::new(&self.name);
        match state.defect {
            DroppedFilesVanish if !self.closed => {
                let _ = state.inner.delete_file(uri);
            }
            DroppedFilesStayLocked if !self.closed => {
                lock(&state.locked).insert(self.name.clone());
            }
            DropPublishesAgain if !state.is_dir(uri) => {
                let _ = state.write(uri, &self.content);
            }
            RenameFollowsOpenFile if self.closed && !state.is_file(uri) && self.touched => {
                let _ = state.write(uri, &self.content);
            }
            _ => {}
        }
    }
}

/// A mapped file of a [`Broken`].
pub struct BrokenRegion(Arc<AlignedRegion>);

impl ReadOnlyMemoryRegion for BrokenRegion {
    fn content(&self) -> RegionContent<'_> {
        self.0.as_bytes().into()
    }
}
