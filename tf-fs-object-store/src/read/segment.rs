//! A range that is read ahead, and can be read while it arrives.

use super::cache_writer::CacheWriter;
use super::chunk::{CHUNK, Chunk, ChunkPool};
use super::source::Fetch;
use crate::{ObjectStore, Range, Reservation, metrics};
use bytes::BufMut;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tf_fs_plugin::prelude::*;
use tokio::sync::Notify;

/// The first bytes of a part are given to readers once there are this many.
const FIRST_CHUNK: usize = 64 << 10;
/// The rest of a response that nobody wants any more is read if it is at most this long, so that the connection can be
/// used again.
const DRAINED: u64 = 256 << 10;
/// How long that may take.
const DRAIN_TIME: Duration = Duration::from_millis(500);
/// Reads up to this length are copied while the lock is held.
const SMALL: usize = 16 << 10;

/// A range that is read ahead. Dropping it ends its GET.
#[derive(Debug)]
pub(super) struct Segment {
    range: Range,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// For readers: bytes that one waits for have arrived, or the end.
    arrived: Notify,
    /// For the GET: more is wanted, or nothing any more.
    wanted: Notify,
}

#[derive(Debug)]
struct State {
    chunks: VecDeque<(u64, Arc<Chunk>)>,
    /// The end of the bytes that have arrived.
    filled: u64,
    /// The end of the bytes that are to arrive.
    wanted: u64,
    /// The nearest position that a reader waits for.
    awaited: u64,
    /// The end of the bytes that were read.
    read: u64,
    done: bool,
    cancelled: bool,
    failure: Option<FetchError>,
    reservation: Option<Reservation>,
}

/// An error for several readers.
#[derive(Clone, Debug)]
struct FetchError(Code, Arc<str>);

/// Why a part cannot return bytes.
#[derive(Debug)]
pub(super) enum Unavailable {
    /// Its GET had failed before: another attempt is worth while.
    FailedEarlier,
    /// Its GET failed just now.
    FailedNow(Error),
}

impl Segment {
    /// Creates a part of `range`, of which bytes up to `wanted` arrive unasked, and the arrival to run for it.
    pub(super) fn new(
        range: Range,
        wanted: u64,
        reservation: Option<Reservation>,
    ) -> (Self, SegmentWriter) {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                chunks: VecDeque::new(),
                filled: range.start,
                wanted,
                awaited: u64::MAX,
                read: range.start,
                done: false,
                cancelled: false,
                failure: None,
                reservation,
            }),
            arrived: Notify::new(),
            wanted: Notify::new(),
        });
        (Self { range, shared: Arc::clone(&shared) }, SegmentWriter(shared))
    }

    /// Returns the range that it was made for; the object may end earlier.
    pub(super) fn range(&self) -> Range {
        self.range
    }

    /// Returns whether bytes up to `end` are there.
    pub(super) fn has(&self, end: u64) -> bool {
        self.shared.lock().filled >= end
    }

    /// Returns whether nothing more will arrive.
    pub(super) fn is_over(&self) -> bool {
        let state = self.shared.lock();
        state.done || state.failure.is_some()
    }

    /// Lets bytes up to `end` arrive.
    pub(super) fn want(&self, end: u64) {
        let mut state = self.shared.lock();
        if state.wanted < end {
            state.wanted = end;
            drop(state);
            self.shared.wanted.notify_one();
        }
    }

    /// Adds the bytes of `range` that are there to `buf`, from its start on, and returns how many.
    pub(super) fn copy(&self, range: Range, buf: &mut ReadBuf<'_>) -> usize {
        let mut state = self.shared.lock();
        let end = range.end.min(state.filled);
        if range.start >= end {
            return 0;
        }
        state.read = state.read.max(end);
        let first = state.chunks.partition_point(|(start, _)| *start <= range.start);
        let first = first.saturating_sub(1);
        if state.chunks.get(first).is_none_or(|(start, _)| *start > range.start) {
            return 0;
        }
        let small = range.len() <= SMALL as u64;
        let mut taken = Vec::new();
        let mut copied = 0;
        for (start, chunk) in state.chunks.range(first..) {
            if *start >= end {
                break;
            }
            if small {
                copied += copy_of(*start, chunk.bytes(), range.start, end, buf);
            } else {
                taken.push((*start, Arc::clone(chunk)));
            }
        }
        drop(state);
        for (start, chunk) in &taken {
            copied += copy_of(*start, chunk.bytes(), range.start, end, buf);
        }
        metrics::READ_AHEAD_HIT_BYTES.add(copied as u64);
        copied
    }

    /// Waits until the bytes up to `end`, or all that there are, have arrived.
    pub(super) async fn wait(&self, end: u64) -> Result<(), Unavailable> {
        let mut first = true;
        loop {
            let mut arrived = std::pin::pin!(self.shared.arrived.notified());
            arrived.as_mut().enable();
            {
                let mut state = self.shared.lock();
                if state.filled >= end || state.done {
                    return Ok(());
                }
                if let Some(FetchError(code, text)) = &state.failure {
                    return Err(match first {
                        true => Unavailable::FailedEarlier,
                        false => Unavailable::FailedNow(Error::new(*code, text.to_string())),
                    });
                }
                state.awaited = state.awaited.min(end);
                if state.wanted < end {
                    state.wanted = end;
                    self.shared.wanted.notify_one();
                }
            }
            first = false;
            arrived.await;
        }
    }

    /// Frees the bytes before `position`.
    pub(super) fn release(&self, position: u64) {
        let mut state = self.shared.lock();
        let mut freed = Vec::new();
        while let Some((start, chunk)) = state.chunks.front()
            && start + chunk.bytes().len() as u64 <= position
        {
            freed.extend(state.chunks.pop_front());
        }
        if !freed.is_empty() {
            let start = state.chunks.front().map_or(state.filled, |(start, _)| *start);
            let left = usize::try_from(self.range.end - start).unwrap_or(usize::MAX);
            if let Some(reservation) = &mut state.reservation {
                reservation.shrink(left);
            }
        }
        drop(state);
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.cancelled = true;
        metrics::READ_AHEAD_WASTED_BYTES.add(state.filled - state.read);
        drop(state);
        self.shared.wanted.notify_one();
    }
}

/// Adds `from..end` of a chunk that begins at `start`, as far as it reaches and `buf` is not past it.
fn copy_of(start: u64, bytes: &[u8], from: u64, end: u64, buf: &mut ReadBuf<'_>) -> usize {
    let skip = usize::try_from(from.saturating_sub(start)).unwrap_or(usize::MAX);
    let len = usize::try_from(end - start).unwrap_or(usize::MAX).min(bytes.len());
    bytes.get(skip..len).map_or(0, |bytes| buf.push_slice(bytes))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The arrival of a part's bytes.
#[derive(Debug)]
pub(super) struct SegmentWriter(Arc<Shared>);

/// If it ends early, such as by a panic of the store's code, nobody waits for its bytes any more.
impl Drop for SegmentWriter {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if state.done || state.cancelled || state.failure.is_some() {
            return;
        }
        let text = "the task that received its bytes ended early; look for a panic in the log";
        state.failure = Some(FetchError(Code::Internal, text.into()));
        drop(state);
        self.0.arrived.notify_waiters();
    }
}

/// The next step of an arrival.
enum Next {
    Read(usize),
    Wait,
    Stop,
}

impl SegmentWriter {
    /// Runs until all bytes have arrived, the GET failed, or the part was dropped.
    pub(super) async fn run<S: ObjectStore>(
        self,
        mut fetch: Fetch<S>,
        mut keeper: CacheWriter<S>,
        chunks: Arc<ChunkPool>,
    ) {
        let cancelled = self.receive(&mut fetch, &mut keeper, &chunks).await;
        if cancelled && fetch.is_open() && fetch.left().len() <= DRAINED {
            let mut rest = chunks.take(CHUNK);
            let drain = async { while matches!(fetch.fill(rest.bytes_mut()).await, Ok(1..)) {} };
            let _ = tokio::time::timeout(DRAIN_TIME, drain).await;
        }
    }

    /// Receives the bytes. Returns whether it ended because nobody wants the rest.
    async fn receive<S: ObjectStore>(
        &self,
        fetch: &mut Fetch<S>,
        keeper: &mut CacheWriter<S>,
        chunks: &Arc<ChunkPool>,
    ) -> bool {
        loop {
            let room = match self.next(fetch) {
                Next::Read(room) => room,
                Next::Wait => {
                    self.0.wanted.notified().await;
                    continue;
                }
                Next::Stop => return true,
            };
            let start = fetch.left().start;
            let mut chunk = chunks.take(room);
            let mut outcome = Ok(1);
            while chunk.bytes().len() < room && !matches!(outcome, Ok(0) | Err(_)) {
                let room = room - chunk.bytes().len();
                let mut to = chunk.bytes_mut().limit(room);
                let mut fill = std::pin::pin!(fetch.fill(&mut to));
                outcome = loop {
                    tokio::select! {
                        biased;
                        filled = &mut fill => break filled,
                        () = self.0.wanted.notified() => {
                            if self.0.lock().cancelled {
                                return true;
                            }
                        }
                    }
                };
            }
            let ended = fetch.left().is_empty();
            let chunk = Arc::new(chunk);
            let goes_on = self.add(start, Arc::clone(&chunk), outcome, ended);
            keeper.add(start, &chunk).await;
            if !goes_on {
                return false;
            }
        }
    }

    fn next<S: ObjectStore>(&self, fetch: &Fetch<S>) -> Next {
        let state = self.0.lock();
        if state.cancelled {
            return Next::Stop;
        }
        if state.filled >= state.wanted {
            return Next::Wait;
        }
        // Whole chunks from the second one on.
        let position = state.filled;
        drop(state);
        let begun = fetch.read_so_far();
        let room = if begun < FIRST_CHUNK as u64 {
            FIRST_CHUNK
        } else if begun < CHUNK as u64 {
            CHUNK - FIRST_CHUNK
        } else {
            CHUNK
        };
        let left = fetch.left().end.saturating_sub(position);
        Next::Read(usize::try_from(left).unwrap_or(usize::MAX).clamp(1, room))
    }

    /// Adds a chunk, and returns whether more is to come.
    fn add(&self, start: u64, chunk: Arc<Chunk>, outcome: Result<usize>, ended: bool) -> bool {
        let mut state = self.0.lock();
        if !chunk.bytes().is_empty() {
            state.filled = start + chunk.bytes().len() as u64;
            state.chunks.push_back((start, chunk));
        }
        match outcome {
            Ok(n) => state.done |= n == 0 || ended,
            Err(error) => {
                state.failure = Some(FetchError(error.code(), format!("{error:#}").into()))
            }
        }
        let over = state.done || state.failure.is_some();
        if over || state.filled >= state.awaited {
            state.awaited = u64::MAX;
            drop(state);
            self.0.arrived.notify_waiters();
        }
        !over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Range = Range { start: 1_000, end: 1_000 + 3 * CHUNK as u64 };

    /// Returns a byte that differs from those at the neighbouring positions.
    fn byte(position: u64) -> u8 {
        (position % 251) as u8
    }

    fn is_right(range: Range, bytes: &[u8]) -> bool {
        (range.start..range.end).map(byte).eq(bytes.iter().copied())
    }

    fn chunk(chunks: &Arc<ChunkPool>, range: Range) -> Chunk {
        let mut chunk = chunks.take(range.len() as usize);
        chunk.bytes_mut().extend((range.start..range.end).map(byte));
        chunk
    }

    fn arrive(arrival: &SegmentWriter, start: u64, end: u64) -> bool {
        let chunk = chunk(&Arc::default(), Range::new(start, end));
        arrival.add(start, chunk.into(), Ok(1), end == RANGE.end)
    }

    fn copy(part: &Segment, range: Range) -> Vec<u8> {
        let mut bytes = vec![0; range.len() as usize];
        let copied = part.copy(range, &mut ReadBuf::from_slice(&mut bytes));
        bytes.truncate(copied);
        bytes
    }

    /// Returns the output of a future that has to be ready.
    fn now<F: Future>(future: F) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::pin!(future).poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn a_part_can_be_read_while_it_arrives() {
        let (part, arrival) = Segment::new(RANGE, RANGE.end, None);
        assert!(!part.has(RANGE.start + 1) && !part.is_over());
        assert!(copy(&part, RANGE).is_empty());
        let middle = RANGE.start + CHUNK as u64;
        assert!(arrive(&arrival, RANGE.start, middle));
        assert!(part.has(middle) && !part.has(middle + 1));
        // As much as there is, over the borders of chunks, long and short.
        let first = copy(&part, RANGE);
        assert!(first.len() == CHUNK && is_right(Range::new(RANGE.start, middle), &first));
        assert!(arrive(&arrival, middle, middle + 10));
        for range in [Range::new(middle - 5, middle + 5), Range::new(RANGE.start + 3, middle + 7)] {
            assert!(is_right(range, &copy(&part, range)));
        }
        assert!(!arrive(&arrival, middle + 10, RANGE.end), "that was all");
        assert!(part.is_over() && is_right(RANGE, &copy(&part, RANGE)));
    }

    #[test]
    fn a_waiter_is_woken_when_there_are_enough_bytes() {
        let (part, arrival) = Segment::new(RANGE, RANGE.start + 1, None);
        let enough = RANGE.start + 100;
        let mut wait = std::pin::pin!(part.wait(enough));
        assert!(now(wait.as_mut()).is_none());
        assert_eq!(arrival.0.lock().wanted, enough, "asked for by whoever waits");
        arrive(&arrival, RANGE.start, enough - 1);
        assert!(now(wait.as_mut()).is_none());
        arrive(&arrival, enough - 1, enough);
        assert!(matches!(now(wait), Some(Ok(()))));
        // The object may end earlier than was thought.
        let mut wait = std::pin::pin!(part.wait(RANGE.end));
        assert!(now(wait.as_mut()).is_none());
        let nothing = chunk(&Arc::default(), Range::new(enough, enough));
        arrival.add(enough, nothing.into(), Ok(0), false);
        assert!(matches!(now(wait), Some(Ok(()))));
        assert!(!part.has(RANGE.end));
    }

    #[test]
    fn a_failure_is_told_to_who_waits_and_tried_again_by_who_comes_later() {
        let (part, arrival) = Segment::new(RANGE, RANGE.end, None);
        arrive(&arrival, RANGE.start, RANGE.start + 10);
        let mut wait = std::pin::pin!(part.wait(RANGE.end));
        assert!(now(wait.as_mut()).is_none());
        let rest = chunk(&Arc::default(), Range::new(RANGE.start + 10, RANGE.start + 20));
        let failed = Err(Error::unavailable("broken"));
        assert!(!arrival.add(RANGE.start + 10, rest.into(), failed, false));
        match now(wait) {
            Some(Err(Unavailable::FailedNow(error))) => assert_eq!(error.code(), Code::Unavailable),
            other => panic!("{other:?}"),
        }
        assert!(matches!(now(part.wait(RANGE.end)), Some(Err(Unavailable::FailedEarlier))));
        // The bytes that arrived before are good.
        assert!(matches!(now(part.wait(RANGE.start + 20)), Some(Ok(()))));
        let range = Range::new(RANGE.start, RANGE.start + 20);
        assert!(is_right(range, &copy(&part, range)));
    }

    #[test]
    fn bytes_that_were_read_are_freed_by_whole_chunks() {
        let (part, arrival) = Segment::new(RANGE, RANGE.end, None);
        let step = CHUNK as u64;
        for n in 0..3 {
            arrive(&arrival, RANGE.start + n * step, RANGE.start + (n + 1) * step);
        }
        part.release(RANGE.start + 2 * step - 1);
        assert_eq!(arrival.0.lock().chunks.len(), 2);
        assert!(
            copy(&part, Range::new(RANGE.start, RANGE.end)).is_empty(),
            "its beginning is gone"
        );
        let rest = Range::new(RANGE.start + step, RANGE.end);
        assert!(is_right(rest, &copy(&part, rest)));
        part.release(RANGE.end);
        assert!(arrival.0.lock().chunks.is_empty());
    }

    #[test]
    fn a_part_that_is_dropped_ends_its_request() {
        let (part, arrival) = Segment::new(RANGE, RANGE.end, None);
        drop(part);
        assert!(arrival.0.lock().cancelled);
        assert!(now(arrival.0.wanted.notified()).is_some(), "the request is told");
    }
}
