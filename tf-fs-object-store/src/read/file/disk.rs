//! Files of which blocks are on a disk. The TensorFlow thread that reads takes them from there, straight into its
//! buffer. Missing bytes come from the store, in whole blocks, so that they are there the next time.

use super::{File, length};
use crate::disk::{BLOCK, CachedVersion};
use crate::read::source::{Fetch, Source};
use crate::{Client, Connection, Range};
use std::sync::{Arc, PoisonError};
use tf_fs_plugin::prelude::*;

impl<C: Client> File<C> {
    /// Opens an object of which some version is on the disk. A request of one byte tells which one is current; `None`
    /// if there is none of this name.
    pub(super) async fn validate(
        connection: &Arc<Connection<C>>,
        source: Arc<Source<C::Store>>,
    ) -> Result<Option<Self>> {
        let began = connection.listings.begin();
        let mut fetch = Fetch::new(Arc::clone(&source), Range::new(0, 1), "open");
        let Some(head) = fetch.open().await? else { return Ok(None) };
        Self::tell(connection, &source, &head, began);
        // So that the connection can be used again.
        let mut byte = Vec::with_capacity(1);
        while fetch.fill(&mut byte).await? > 0 {}
        let version = source.version().expect("settled by the answer").clone();
        Ok(Some(Self::of(connection, source, version, Vec::new())))
    }

    /// Reads the bytes that are on the disk from there, and the rest from the store.
    pub(super) fn read_with_disk(
        &self,
        cached: &CachedVersion,
        read: Range,
        buf: &mut ReadBuf<'_>,
    ) -> Result<()> {
        let before = buf.filled().len();
        let mut position = read.start;
        while position < read.end {
            let rest = Range::new(position, read.end);
            if !self.is_at_hand(rest) && self.is_confirmed_for(cached, position)? {
                let read = cached.read(rest, buf);
                if read > 0 {
                    self.note_from_disk(Range::new(position, position + read));
                    position += read;
                    continue;
                }
            }
            let until = cached.missing_until(position, read.end);
            self.take(Range::new(position, until), buf)?;
            position = until;
            if buf.filled().len() - before != length(Range::new(read.start, position)) {
                // The object is shorter than it was said to be.
                break;
            }
        }
        Ok(())
    }

    /// Returns whether the store has confirmed this version, so that the disk may be read. Queries the store if the
    /// block at `position` is there.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if it is another one.
    fn is_confirmed_for(&self, cached: &CachedVersion, position: u64) -> Result<bool> {
        if !self.source.assumption.is_confirmed() {
            if !cached.has(position) {
                return Ok(false);
            }
            let mut fetch = Fetch::new(Arc::clone(&self.source), Range::new(0, 1), "read");
            let mut byte = Vec::with_capacity(1);
            self.connection.block_on(fetch.fill(&mut byte))?;
        }
        Ok(true)
    }

    fn is_at_hand(&self, read: Range) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).at_hand(read).is_some()
    }

    /// Records a read from the disk like one from memory: the bytes that follow may have to be fetched.
    fn note_from_disk(&self, read: Range) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let i = state.note(read, self);
        if state.streams.get(i).is_sequence() {
            let limits = self.limits();
            self.read_ahead(&mut state, i, limits);
        }
    }

    /// Returns what to fetch for `range`: whole blocks, if they are kept.
    pub(super) fn whole_blocks(&self, range: Range) -> Range {
        if self.source.cached().is_none() {
            return range;
        }
        let end = range.end.next_multiple_of(BLOCK).min(self.version.size);
        Range::new(range.start / BLOCK * BLOCK, end.max(range.end))
    }

    /// Returns where a request for about `len` bytes ends.
    pub(super) fn end_of_request(&self, position: u64, len: u64) -> u64 {
        let end = position + len;
        let whole = end / BLOCK * BLOCK;
        if whole > position && self.source.cached().is_some() { whole } else { end }
    }

    /// Returns what to fetch of a part to read ahead; `Err` with where to continue if its beginning is on the disk.
    pub(super) fn missing(&self, part: Range) -> Result<Range, u64> {
        match self.source.cached() {
            Some(cached) if cached.has(part.start) => {
                Err(((part.start / BLOCK + 1) * BLOCK).min(self.version.size))
            }
            Some(cached) => Ok(Range::new(part.start, cached.missing_until(part.start, part.end))),
            None => Ok(part),
        }
    }
}
