//! Files of which blocks are on a disk. They are read from there by the thread of TensorFlow that asks, straight into its
//! buffer; what is missing comes from the store, by whole blocks, so that it is there the next time.

use super::{File, length};
use crate::disk::{BLOCK, Cached};
use crate::read::source::{Fetch, Source};
use crate::{Client, Connection, Range};
use std::sync::{Arc, PoisonError};
use tf_fs_plugin::prelude::*;

impl<C: Client> File<C> {
    /// Opens an object of which some version is on the disk: a request of one byte says which one is read; `None` if there
    /// is none of this name.
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

    /// Reads what is on the disk from there, and the rest from the store.
    pub(super) fn read_with_disk(
        &self,
        cached: &Cached,
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

    /// Whether the store has said that this is the version, so that what is on the disk may be read; it is asked if the
    /// block at `position` is there.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if it is another one.
    fn is_confirmed_for(&self, cached: &Cached, position: u64) -> Result<bool> {
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

    /// Notes a read as one from memory is noted: what follows may have to be fetched.
    fn note_from_disk(&self, read: Range) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let i = state.note(read, self);
        if state.streams.get(i).is_sequence() {
            let limits = self.limits();
            self.read_ahead(&mut state, i, limits);
        }
    }

    /// What has to be fetched of `range`: whole blocks, if they are kept.
    pub(super) fn whole_blocks(&self, range: Range) -> Range {
        if self.source.cached().is_none() {
            return range;
        }
        let end = range.end.next_multiple_of(BLOCK).min(self.version.size);
        Range::new(range.start / BLOCK * BLOCK, end.max(range.end))
    }

    /// Where a request for about `len` bytes ends.
    pub(super) fn end_of_request(&self, position: u64, len: u64) -> u64 {
        let end = position + len;
        let whole = end / BLOCK * BLOCK;
        if whole > position && self.source.cached().is_some() { whole } else { end }
    }

    /// What has to be fetched of a part to read ahead; `Err` with where to go on if its beginning is on the disk.
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
