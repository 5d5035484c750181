//! Files that are open.

use super::state::{State, lock, read_all};
use crate::defect::Defect::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;
use tf_fs_plugin::prelude::*;

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
    pub(super) state: Arc<State<F>>,
    /// `None` for a directory that was opened.
    inner: Option<F::Reader>,
    cached: Option<Vec<u8>>,
    name: Vec<u8>,
    position: AtomicU64,
}

impl<F: Filesystem> RandomAccessFile for BrokenReader<F> {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        let (state, uri) = (&self.state, Uri::new(&self.name));
        let is_lost = match state.defect {
            FlushCachesLoses => state.forgotten.load(Ordering::SeqCst) == 1,
            ReaderEndsWhenDeleted => !state.is_file(uri),
            _ => false,
        };
        let Some(inner) = self.inner.as_ref().filter(|_| !is_lost) else {
            buf.end_of_file();
            return Ok(());
        };
        if let Some(content) = &self.cached {
            buf.fill_from(content, offset);
            return Ok(());
        }
        match state.defect {
            ReadIgnoresOffset => inner.read_at(0, buf),
            ReadCutsOffset => inner.read_at(offset & 0xffff_ffff, buf),
            ReadEndsAt64KiB | ReadEndsAtBlock | LastByteIsNotRead | ReadEndsAtNul => {
                let content = read_all(inner, state.length(uri))?;
                let len = content.len();
                let end = match state.defect {
                    ReadEndsAt64KiB => len.min((offset as usize).saturating_add(64 << 10)),
                    ReadEndsAtBlock if len > 4096 => len / 4096 * 4096,
                    ReadEndsAtBlock => len,
                    LastByteIsNotRead => len.saturating_sub(1),
                    _ => content.iter().position(|&byte| byte == 0).unwrap_or(len),
                };
                buf.fill_from(&content[..end], offset);
                Ok(())
            }
            ReadPastEndFails if offset > state.length(uri) => {
                Err(Error::invalid_argument("past the end"))
            }
            ReadOfNothingFails if state.length(uri) == 0 => {
                Err(Error::invalid_argument("the file is empty"))
            }
            ReaderKeepsAPosition => {
                let position = self.position.load(Ordering::SeqCst);
                let before = buf.filled().len();
                inner.read_at(position, buf)?;
                let read = buf.filled().len() - before;
                self.position.fetch_add(read as u64, Ordering::SeqCst);
                Ok(())
            }
            ReaderFollowsTheName => state.inner.new_random_access_file(uri)?.read_at(offset, buf),
            ReaderSharesItsPosition => {
                self.position.store(offset, Ordering::SeqCst);
                thread::sleep(Duration::from_micros(10));
                inner.read_at(self.position.load(Ordering::SeqCst), buf)
            }
            _ => inner.read_at(offset, buf),
        }
    }
}

impl<F: Filesystem> State<F> {
    /// Opens for reading.
    pub(super) fn open_reader(this: &Arc<Self>, uri: Uri<'_>) -> Result<BrokenReader<F>> {
        let state = this;
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
    }

    /// Opens for writing at the end.
    pub(super) fn open_at_end(this: &Arc<Self>, uri: Uri<'_>) -> Result<BrokenWriter<F>> {
        let state = this;
        ensure!(
            !(state.is(LocksOpenFiles) && lock(&state.open).contains(uri.as_bytes())),
            Error::unavailable("another writer has it")
        );
        if state.is(AppendNeedsFile) {
            state.inner.stat(uri)?;
        }
        let before = if state.is_file(uri) { state.content(uri)? } else { Vec::new() };
        match state.defect {
            AppendTruncates => State::open(this, uri, None),
            AppendStartsOver => {
                let mut writer = State::open(this, uri, Some(before))?;
                writer.start = 0;
                Ok(writer)
            }
            _ => State::open(this, uri, Some(before)),
        }
    }

    /// Maps a file.
    pub(super) fn map(&self, uri: Uri<'_>) -> Result<BrokenRegion> {
        if self.is(RegionOfDirs) && self.is_dir(uri) {
            let region = Arc::new(AlignedRegion::read(&Bytes(b"x".to_vec()), 1)?);
            return Ok(BrokenRegion(region));
        }
        let reader = self.inner.new_random_access_file(uri)?;
        let mut length = self.length(uri);
        if self.is(RegionIsCut) {
            length = length.min(64 << 10);
        }
        let region = if self.is(RegionLacksFirst) {
            let content = self.content(uri)?.get(1..).unwrap_or_default().to_vec();
            AlignedRegion::read(&Bytes(content), length.saturating_sub(1))?
        } else {
            AlignedRegion::read(&reader, length)?
        };
        let mut region = Arc::new(region);
        if self.is(RegionIsCached) {
            let mut regions = lock(&self.regions);
            region = Arc::clone(regions.entry(uri.as_bytes().to_vec()).or_insert(region));
        }
        Ok(BrokenRegion(region))
    }

    /// Opens for writing, at the end of `before`.
    pub(super) fn open(
        this: &Arc<Self>,
        uri: Uri<'_>,
        before: Option<Vec<u8>>,
    ) -> Result<BrokenWriter<F>> {
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

/// A file of a [`Broken`] that is open for writing. Keeps all of it, and writes all of it again.
pub struct BrokenWriter<F: Filesystem> {
    pub(super) state: Arc<State<F>>,
    name: Vec<u8>,
    id: usize,
    content: Vec<u8>,
    /// How much of `content` was flushed, and how much is in the file.
    flushed: usize,
    written: usize,
    /// Where appending begins.
    start: usize,
    /// The previous content of the file.
    old: Vec<u8>,
    thread: ThreadId,
    closed: bool,
    touched: bool,
}

impl<F: Filesystem> BrokenWriter<F> {
    /// Writes what was appended to the file.
    fn publish(&mut self, is_close: bool) -> Result<()> {
        let state = Arc::clone(&self.state);
        let uri = Uri::new(&self.name);
        // A file that was deleted or renamed meanwhile does not come back.
        if lock(&state.owners).get(&self.name) != Some(&self.id) {
            return self.publish_late(uri);
        }
        let publishes = is_close && state.is(VisibleAtClose);
        if !(state.is_file(uri) && self.touched || publishes) {
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

    /// Does the remaining work if another file took the name, or the file is gone.
    fn publish_late(&self, uri: Uri<'_>) -> Result<()> {
        let state = &self.state;
        if state.is(LateWriterMixes) && state.is_file(uri) && !self.closed {
            let mut content = state.content(uri)?;
            let end = content.len().min(self.content.len());
            content[..end].copy_from_slice(&self.content[..end]);
            return state.write(uri, &content);
        }
        if state.is(LateWriterLeavesATail) && self.start > 0 && !self.closed {
            return state.write(uri, &self.content[self.start..]);
        }
        Ok(())
    }
}

impl<F: Filesystem> WritableFile for BrokenWriter<F> {
    fn append(&mut self, data: &[u8]) -> Result<()> {
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
        let position = self.content.len() as u64;
        Ok(match self.state.defect {
            TellForgetsFlushed => position - self.flushed as u64,
            TellGoesOn if self.start == 0 => position + self.old.len() as u64,
            TellIsZero => 0,
            _ => position,
        })
    }

    fn flush(&mut self) -> Result<()> {
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
        if self.state.is(SyncDoesNothing) {
            return Ok(());
        }
        self.publish(false)
    }

    fn close(&mut self) -> Result<()> {
        if !self.state.is(WritesWhenDropped) {
            self.publish(true)?;
        }
        self.closed = true;
        lock(&self.state.open).remove(&self.name);
        Ok(())
    }
}

impl<F: Filesystem> Drop for BrokenWriter<F> {
    fn drop(&mut self) {
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
