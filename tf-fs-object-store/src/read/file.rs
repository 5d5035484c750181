//! An object that this process has open for reading.

mod arriving;
mod disk;
mod growth;
mod state;

use super::chunk::CHUNK;
use super::readahead::{KEPT, Limits, SMALL_PART, Streams, split};
use super::segment::{Segment, Unavailable};
use super::source::{Fetch, Source};
use super::version::Version;
use crate::object::strong;
use crate::{Client, Connection, Name, ObjectMeta, ObjectStore, Range};
use futures_util::stream::{FuturesUnordered, StreamExt};
use growth::End;
use state::{is_checkpoint_data, length};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use tf_fs_plugin::prelude::*;
use tokio::sync::Semaphore;

/// Bytes of the beginning of a file that arrive before anybody reads.
const BEGINNING: u64 = 1 << 20;
/// Bytes that a file may hold without a share of the budget.
const SPARE: u64 = 64 << 10;
/// Reads up to this length that belong to no sequence are kept, in case they are repeated.
const BLOCK: u64 = 1 << 20;
/// More reads elsewhere than this give up the beginning of a file.
const STRAYS: u32 = 2;
/// Blocks kept.
const BLOCKS: usize = 2;
/// Bytes that are fetched after the one that TensorFlow reads before it seeks.
const AFTER_PROBE: u64 = 512 << 10;
/// Bytes at the end of a file that are fetched at once: indexes are read from their last bytes on.
const TAIL: u64 = 128 << 10;
/// Up to this length a hole in a sequence is filled by a part; more goes straight to the reader.
const HOLE: u64 = 2 << 20;
/// The most bytes fetched at the opening of a file that is expected to be read whole.
const EXPECTED: u64 = 64 << 20;

/// An object open for reading, in one process.
#[derive(Debug)]
pub(crate) struct File<C: Client> {
    pub(crate) connection: Arc<Connection<C>>,
    source: Arc<Source<C::Store>>,
    version: Version,
    state: Mutex<State>,
    end: Mutex<End>,
}

#[derive(Debug)]
struct State {
    /// In order, without overlaps.
    parts: Vec<Held>,
    streams: Streams,
    clock: u64,
    reads_ahead: bool,
    /// Whether anything was read, and whether all of it was.
    was_read: bool,
    was_whole: bool,
    /// Reads elsewhere while nobody has read the beginning.
    strays: u32,
}

#[derive(Debug)]
struct Held {
    part: Arc<Segment>,
    owner: Owner,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Owner {
    /// The stream of this id.
    Stream(u64),
    /// None: a block, with the time of its last use.
    Block(u64),
    /// The beginning of the file.
    Opening,
}

/// Where bytes of a read come from.
enum Piece {
    Segment(Arc<Segment>, Range),
    Direct(Range),
}

impl Piece {
    fn range(&self) -> Range {
        match self {
            Self::Segment(_, range) | Self::Direct(range) => *range,
        }
    }
}

impl<C: Client> File<C> {
    /// Opens an object; `None` if there is none of this name.
    pub(crate) async fn open(connection: &Arc<Connection<C>>, name: &Name) -> Result<Option<Self>> {
        match connection.listings.object(name) {
            // An empty one would not be requested by its ETag: nobody would see that it has been filled.
            Some(ObjectMeta { size: Some(size @ 1..), etag: Some(etag), modified })
                if strong(Some(&etag)).is_some() =>
            {
                let source = Self::source(connection, name).await?.assuming();
                // A listing may round the time; mirrors have none.
                let modified = modified.filter(|_| source.store.mirrors().is_some());
                let version = Version { size, etag: Some(etag), modified };
                Ok(Some(Self::of(connection, Arc::new(source), version, Vec::new())))
            }
            _ => Self::ask(connection, name).await,
        }
    }

    /// Opens an object as it is now, whatever was remembered of it; `None` if there is none of this name.
    pub(crate) async fn ask(connection: &Arc<Connection<C>>, name: &Name) -> Result<Option<Self>> {
        let source = Arc::new(Self::source(connection, name).await?);
        if source.begins_on_disk() {
            return Self::validate(connection, source).await;
        }
        let reads = &source.reads;
        let settings = source.store.settings();
        let is_jumped_into = is_checkpoint_data(&name.key);
        let expected = match is_jumped_into {
            false => reads.habits.expect(name).unwrap_or(0).min(EXPECTED),
            true => 0,
        };
        let large = settings.read_part as u64;
        let len = match expected {
            0 if is_jumped_into => SPARE,
            0 => source.end_of_blocks(SMALL_PART.min(large)),
            _ => source.end_of_blocks(split(expected, large, settings.read_concurrency)),
        };
        let began = connection.listings.begin();
        let mut parts = Vec::new();
        let mut start = len;
        // The last one reaches further: a neighbour that is a little longer needs no further GET.
        while start + len / 8 < expected {
            let end = if start + len < expected { len } else { len + len / 4 };
            let end = source.end_of_blocks(start + end);
            let range = Range::new(start, end);
            let Some(reserved) = connection.process.budget.try_reserve(length(range)) else {
                break;
            };
            let (part, arrival) = Segment::new(range, range.end, Some(reserved));
            let fetch = Fetch::new(Arc::clone(&source), range, "read");
            Self::receive(connection, &source, arrival, fetch);
            parts.push(Held { part: Arc::new(part), owner: Owner::Opening });
            start += len;
        }
        let range = Range::new(0, len);
        let mut fetch = Fetch::new(Arc::clone(&source), range, "open");
        let Some(head) = fetch.open().await? else { return Ok(None) };
        let version = source.version().expect("settled by the answer").clone();
        Self::tell(connection, &source, &head, began);
        parts.retain(|held| held.part.range().start < version.size);
        if head.end > 0 {
            let whole = Range::new(0, head.end);
            fetch.end_at(head.end);
            let wanted = if expected > 0 { head.end } else { head.end.min(BEGINNING) };
            let mut reserved = connection.process.budget.try_reserve(length(whole));
            let wanted = match &mut reserved {
                Some(_) => wanted,
                None => wanted.min(SPARE),
            };
            let (part, arrival) = Segment::new(whole, wanted, reserved);
            Self::receive(connection, &source, arrival, fetch);
            parts.insert(0, Held { part: Arc::new(part), owner: Owner::Opening });
        }
        Ok(Some(Self::of(connection, source, version, parts)))
    }

    /// Opens the same version of an object that another process opened. It uses no locks of `old`: they may be held for
    /// ever.
    pub(crate) async fn again(connection: &Arc<Connection<C>>, old: &Self) -> Result<Self> {
        let mut source = Self::source(connection, &old.source.name).await?;
        if !old.source.assumption.is_confirmed() {
            source = source.assuming();
        }
        Ok(Self::of(connection, Arc::new(source), old.version.clone(), Vec::new()))
    }

    async fn source(connection: &Arc<Connection<C>>, name: &Name) -> Result<Source<C::Store>> {
        let store = connection.bucket(&name.bucket).await?;
        Ok(Source::new(name.clone(), store, Arc::clone(&connection.reads)).on_disk(C::scheme()))
    }

    fn of(
        connection: &Arc<Connection<C>>,
        source: Arc<Source<C::Store>>,
        version: Version,
        parts: Vec<Held>,
    ) -> Self {
        let _ = source.pin(version.clone());
        Self {
            connection: Arc::clone(connection),
            source,
            version,
            state: Mutex::new(State {
                strays: 0,
                parts,
                streams: Streams::default(),
                clock: 0,
                reads_ahead: false,
                was_read: false,
                was_whole: false,
            }),
            end: Mutex::default(),
        }
    }

    /// Returns the size of the version that the file is open at.
    pub(crate) fn size(&self) -> u64 {
        self.version.size
    }

    /// Gives up a version that was only remembered. Returns `false` if the store has confirmed it: then it stays the
    /// version of this file.
    pub(crate) fn give_up(&self) -> bool {
        self.source.assumption.give_up()
    }

    /// Reads from byte `offset` on.
    pub(crate) fn read(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        let end = offset.saturating_add(buf.remaining() as u64).min(self.version.size);
        if offset >= end {
            if buf.remaining() > 0 && !self.source.assumption.is_confirmed() {
                self.connection.block_on(self.confirm_end())?;
            }
            return self.finish(self.version.size, buf);
        }
        let read = Range::new(offset, end);
        match self.source.cached() {
            Some(cached) => self.read_with_disk(cached, read, buf)?,
            None => self.take(read, buf)?,
        }
        self.finish(end, buf)
    }

    /// Reads the bytes that are in memory, and the rest from the store.
    fn take(&self, read: Range, buf: &mut ReadBuf<'_>) -> Result<()> {
        let end = read.end;
        let (id, pieces) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            match state.at_hand(read) {
                Some(part) => {
                    let i = state.note(read, self);
                    if state.streams.get(i).is_sequence() {
                        let limits = self.limits();
                        self.read_ahead(&mut state, i, limits);
                    }
                    drop(state);
                    let copied = part.copy(read, buf) as u64;
                    if copied == read.len() {
                        return Ok(());
                    }
                    // Another reader, who is further on, has freed it.
                    let rest = Range::new(read.start + copied, end);
                    return self.connection.block_on(self.direct(rest, buf));
                }
                None => self.plan(&mut state, read),
            }
        };
        self.collect(&pieces, buf)?;
        if read.len() > KEPT {
            drop(pieces);
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.free(id, end - KEPT);
        }
        Ok(())
    }

    fn finish(&self, end: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        if end == self.version.size {
            let is_told = buf.remaining() > 0;
            if is_told {
                buf.end_of_file();
            }
            self.end_is_reached(buf.filled(), is_told);
            if is_told {
                // Later the store may have only a longer version.
                self.complete_tail();
            }
        }
        Ok(())
    }

    fn limits(&self) -> Limits {
        let settings = self.source.store.settings();
        let reading = self.connection.process.reading.load(Ordering::Relaxed).max(1);
        let share = self.connection.process.budget.limit() / (reading + 1);
        let window = settings.read_part.saturating_mul(settings.read_concurrency).min(share);
        // Parts that fit into the memory.
        let part = settings.read_part.min(share / 2).max(CHUNK);
        let (part, window) = (part as u64, window as u64);
        Limits { size: self.version.size, part, window, at_once: settings.read_concurrency }
    }

    /// Returns where the bytes of `read` come from, with the id of its stream. Starts the fetches for it.
    fn plan(&self, state: &mut State, read: Range) -> (u64, Vec<Piece>) {
        let limits = self.limits();
        let i = state.note(read, self);
        let is_sequence = state.streams.get(i).is_sequence();
        let mut pieces = Vec::with_capacity(2);
        let mut waits = false;
        let mut position = read.start;
        while position < read.end {
            if let Some(part) = state.part_at(position, limits.size) {
                let end = part.range().end.min(read.end);
                part.want(if is_sequence { part.range().end } else { end });
                waits |= !part.has(end);
                pieces.push(Piece::Segment(part, Range::new(position, end)));
                position = end;
                continue;
            }
            waits = true;
            let next = state.next_start(position);
            let hole = Range::new(position, next.min(read.end));
            let part = if is_sequence && hole.len() <= HOLE {
                let stream = state.streams.get(i);
                let part = stream.part_at(position, limits);
                let owner = Owner::Stream(stream.id);
                Some((Range::new(position, part.end.max(hole.end).min(next)), owner))
            } else if hole.len() <= BLOCK {
                Some((self.block(hole, next), Owner::Block(state.clock)))
            } else {
                None
            };
            if part.is_none_or(|(range, owner)| !self.start(state, range, owner)) {
                let len = split(hole.len(), limits.part, limits.at_once);
                let len = self.source.end_of_blocks(len);
                while position < hole.end {
                    // No tiny piece at the end.
                    let is_last = hole.end - position <= len + len / 4;
                    let end = if is_last { hole.end } else { self.end_of_request(position, len) };
                    pieces.push(Piece::Direct(Range::new(position, end)));
                    position = end;
                }
            }
        }
        if is_sequence {
            if waits {
                state.streams.get(i).waited(read.len(), limits);
            }
            self.read_ahead(state, i, limits);
        }
        (state.streams.get(i).id, pieces)
    }

    /// Returns what to fetch for a small read of `hole` that belongs to no sequence.
    fn block(&self, hole: Range, next: u64) -> Range {
        let size = self.version.size;
        if hole.start + TAIL >= size && hole.len() <= TAIL {
            // Nothing but the end of the file.
            return Range::new(hole.start.min(size.saturating_sub(TAIL)), next.min(size));
        }
        if hole.len() == 1 {
            return Range::new(hole.start, (hole.end + AFTER_PROBE).min(next).min(size));
        }
        hole
    }

    /// Starts to fetch `range`, as far as it is not there yet. Returns `false` if nothing is missing, or no memory is
    /// left.
    fn start(&self, state: &mut State, range: Range, owner: Owner) -> bool {
        let at = state.parts.partition_point(|held| held.part.range().start < range.start);
        let range = self.whole_blocks(range);
        let before = at.checked_sub(1).map_or(0, |i| state.parts[i].part.range().end);
        let after = state.parts.get(at).map_or(u64::MAX, |held| held.part.range().start);
        let range = Range::new(range.start.max(before), range.end.min(after));
        if range.is_empty() {
            return false;
        }
        let reserved = self.connection.process.budget.try_reserve(length(range));
        if reserved.is_none() && range.len() > SPARE {
            return false;
        }
        let (part, arrival) = Segment::new(range, range.end, reserved);
        let fetch = Fetch::new(Arc::clone(&self.source), range, "read");
        Self::receive(&self.connection, &self.source, arrival, fetch);
        state.parts.insert(at, Held { part: Arc::new(part), owner });
        true
    }

    /// Starts the GETs that the window of the stream has room for.
    fn read_ahead(&self, state: &mut State, i: usize, limits: Limits) {
        let id = state.streams.get(i).id;
        loop {
            let ahead = state.streams.get(i).ahead();
            if let Some(part) = state.part_at(ahead, limits.size) {
                part.want(part.range().end);
                state.streams.get(i).skip_to(part.range().end);
                continue;
            }
            let Some(part) = state.streams.get(i).next_part(limits) else { break };
            let part = Range::new(part.start, part.end.min(state.next_start(part.start)));
            let part = match self.missing(part) {
                Ok(part) => part,
                Err(end) => {
                    state.streams.get(i).skip_to(end);
                    continue;
                }
            };
            if !self.start(state, part, Owner::Stream(id)) {
                break;
            }
            state.streams.get(i).skip_to(part.end);
        }
        self.count(state);
    }

    /// Keeps count of the files that read ahead, which share the memory.
    fn count(&self, state: &mut State) {
        let reads_ahead = state.streams.reads_ahead();
        if reads_ahead != state.reads_ahead {
            state.reads_ahead = reads_ahead;
            let reading = &self.connection.process.reading;
            if reads_ahead {
                reading.fetch_add(1, Ordering::Relaxed);
            } else {
                reading.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Fills `buf` with the pieces, all at once.
    fn collect(&self, pieces: &[Piece], buf: &mut ReadBuf<'_>) -> Result<()> {
        if let [piece] = pieces {
            return self.connection.block_on(self.piece(piece, buf));
        }
        let lens: Vec<usize> = pieces.iter().map(|piece| length(piece.range())).collect();
        // As many GETs at a time as the settings allow; parts are being fetched already.
        let gate = Semaphore::new(self.source.store.settings().read_concurrency.max(1));
        let gate = &gate;
        buf.fill_parts(&lens, |bufs| {
            self.connection.block_on(async {
                let fill = pieces.iter().zip(bufs).map(|(piece, buf)| async move {
                    let _permit = match piece {
                        Piece::Direct(_) => gate.acquire().await.ok(),
                        Piece::Segment(..) => None,
                    };
                    self.piece(piece, buf).await
                });
                let mut running: FuturesUnordered<_> = fill.collect();
                while let Some(outcome) = running.next().await {
                    outcome?;
                }
                Ok(())
            })
        })?
    }

    /// Fills `buf` with one piece.
    async fn piece(&self, piece: &Piece, buf: &mut ReadBuf<'_>) -> Result<()> {
        match piece {
            Piece::Direct(range) => self.direct(*range, buf).await,
            Piece::Segment(part, range) => {
                let mut position = range.start;
                while position < range.end {
                    let step = range.end.min(position + BLOCK);
                    match part.wait(step).await {
                        Ok(()) => {}
                        Err(Unavailable::FailedEarlier) => {
                            self.forget(part);
                            return self.direct(Range::new(position, range.end), buf).await;
                        }
                        Err(Unavailable::FailedNow(error)) => {
                            self.forget(part);
                            return Err(error);
                        }
                    }
                    let copied = part.copy(Range::new(position, step), buf);
                    position += copied as u64;
                    if copied == 0 {
                        // Another reader, who is further on, has freed it.
                        return self.direct(Range::new(position, range.end), buf).await;
                    }
                }
                Ok(())
            }
        }
    }

    /// Drops a part that failed.
    fn forget(&self, part: &Arc<Segment>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.parts.retain(|held| !Arc::ptr_eq(&held.part, part));
    }
}

impl<C: Client> Drop for File<C> {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.reads_ahead {
            self.connection.process.reading.fetch_sub(1, Ordering::Relaxed);
        }
        if state.was_read && !state.was_whole {
            self.source.reads.habits.read_in_part(&self.source.name);
        }
    }
}
