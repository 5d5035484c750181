//! Objects that are appended to while they are open, as event files are while TensorBoard reads them.
//!
//! An open file is one version. A reader that keeps reading at its end wants to know whether it goes on. If the object
//! is longer now, and its old end is unchanged, the file is the new version from then on. Any other change is an error.

use super::super::source::{Fetch, Source};
use super::{BEGINNING, File, Held, Owner, Segment, length};
use crate::{Client, ObjectStore, Range, StoreError as _};
use bytes::BufMut;
use std::sync::{Arc, PoisonError};
use tf_fs_plugin::prelude::*;
use tokio::time::Instant;

/// Bytes before the end that have to be the same in a longer version.
const SAME: u64 = 4 << 10;

/// The end of the file, as readers have seen it.
#[derive(Debug, Default)]
pub(super) struct End {
    /// Once a reader was told that the file ends: when the store was last known to say so too, or it was first told.
    told: Option<Instant>,
    /// All of [`File::tail`]; empty while it is not known.
    tail: Vec<u8>,
    /// Whether it was requested. While the store may be down it is not requested again.
    is_requested: bool,
}

impl<C: Client> File<C> {
    /// Records that a reader came to the end; `read` are the bytes that it just got. `is_told`: it wanted more.
    pub(super) fn end_is_reached(&self, read: &[u8], is_told: bool) {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if end.tail.is_empty() {
            let tail =
                read.len().checked_sub(length(self.tail())).map(|from| read[from..].to_vec());
            end.tail = tail.or_else(|| self.tail_at_hand()).unwrap_or_default();
        }
        if is_told {
            end.told.get_or_insert_with(Instant::now);
        }
    }

    /// Requests the last bytes if they are not known. If this fails, the file ends nevertheless.
    pub(super) fn complete_tail(&self) {
        {
            let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
            if end.is_requested || !end.tail.is_empty() || self.version.size == 0 {
                return;
            }
            end.is_requested = true;
        }
        let _ = self.connection.block_on(self.confirm_end());
    }

    /// Returns the range that has to be the same in a longer version.
    fn tail(&self) -> Range {
        let size = self.version.size;
        Range::new(size.saturating_sub(SAME), size)
    }

    /// Requests the last bytes: that the object ends there was only remembered, or nobody has read them.
    pub(super) async fn confirm_end(&self) -> Result<()> {
        let range = self.tail();
        let mut fetch = Fetch::new(Arc::clone(&self.source), range, "read");
        let mut tail = Vec::with_capacity(length(range));
        while fetch.fill(&mut tail).await? > 0 {}
        self.end_is_reached(&tail, true);
        Ok(())
    }

    /// Returns the last bytes, if all of them are in memory or on the disk.
    fn tail_at_hand(&self) -> Option<Vec<u8>> {
        let wanted = self.tail();
        let mut tail = vec![0; length(wanted)];
        let mut buf = ReadBuf::from_slice(&mut tail);
        let mut position = wanted.start;
        while position < wanted.end {
            let rest = Range::new(position, wanted.end);
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let part = state.part_at(position, wanted.end);
            drop(state);
            let copied = match part {
                Some(part) => part.copy(rest, &mut buf) as u64,
                None => self.source.cached().map_or(0, |cached| cached.read(rest, &mut buf)),
            };
            if copied == 0 {
                return None;
            }
            position += copied;
        }
        Some(tail)
    }

    /// Returns whether a read at `offset` should check whether the object has grown: the reader wants more again, and
    /// what it was told may be out of date.
    pub(crate) fn may_have_grown(&self, offset: u64) -> bool {
        if offset < self.version.size {
            return false;
        }
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let ttl = self.source.store.settings().listing_ttl;
        end.told.is_some_and(|told| told.elapsed() >= ttl)
    }

    /// Returns the object as it is now, if it has been appended to.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if it has changed otherwise; as the store says.
    pub(crate) async fn grown(&self) -> Result<Option<Self>> {
        let tail = {
            let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(told) = end.told.as_mut() else { return Ok(None) };
            *told = Instant::now();
            end.tail.clone()
        };
        let old = &self.source;
        let size = self.version.size;
        let source = Source::new(old.name.clone(), Arc::clone(&old.store), Arc::clone(&old.reads));
        let source = Arc::new(source.on_disk(C::scheme()));
        let range = Range::new(size - tail.len() as u64, size.saturating_add(BEGINNING));
        let mut fetch = Fetch::new(Arc::clone(&source), range, "read");
        // An object that was deleted ends where it ended, like a deleted file that is open.
        let Some(head) = fetch.open().await? else { return Ok(None) };
        let version = source.version().expect("settled by the answer").clone();
        if version.size == size {
            // The store is up.
            self.end.lock().unwrap_or_else(PoisonError::into_inner).is_requested = false;
            return Ok(None);
        }
        let mut same = Vec::with_capacity(tail.len()).limit(tail.len());
        while version.size > size && fetch.fill(&mut same).await? > 0 {}
        if version.size < size || same.into_inner() != tail || tail.is_empty() && size > 0 {
            return Err(
                <C::Store as ObjectStore>::Error::changed().into_error("read", &old.name, 1)
            );
        }
        let mut parts = Vec::new();
        if head.end > size {
            let added = Range::new(size, head.end);
            fetch.end_at(head.end);
            let reserved = self.connection.process.budget.try_reserve(length(added));
            let (part, arrival) = Segment::new(added, added.end, reserved);
            Self::receive(&self.connection, &source, arrival, fetch);
            parts.push(Held { part: Arc::new(part), owner: Owner::Opening });
        }
        Ok(Some(Self::of(&self.connection, source, version, parts)))
    }
}
