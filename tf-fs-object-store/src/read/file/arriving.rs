//! The way of a response: its head is shared, its bytes go to readers and to the disk cache.

use super::state::{known, length};
use super::{CHUNK, Fetch, File, Source};
use crate::read::cache_writer::CacheWriter;
use crate::read::segment::SegmentWriter;
use crate::{CacheEpoch, Client, Connection, GetHead, Lookup, ObjectStore, Range};
use bytes::BufMut;
use std::sync::Arc;
use tf_fs_plugin::prelude::*;

impl<C: Client> File<C> {
    /// Shares what the first response says of the object: TensorFlow requests its length next, or opens it again.
    pub(super) fn tell(
        connection: &Connection<C>,
        source: &Source<C::Store>,
        head: &GetHead,
        began: CacheEpoch,
    ) {
        if let Some(known) = known(head) {
            let ttl = source.store.settings().listing_ttl;
            connection.listings.insert_name(&source.name, &Lookup::File(known), began, ttl);
        }
    }

    /// Receives the bytes of a part, in the background.
    pub(super) fn receive(
        connection: &Connection<C>,
        source: &Arc<Source<C::Store>>,
        arrival: SegmentWriter,
        fetch: Fetch<C::Store>,
    ) {
        let process = &connection.process;
        let keeper = CacheWriter::new(Arc::clone(source), Arc::clone(&process.budget));
        process.spawn(arrival.run(fetch, keeper, Arc::clone(&source.reads.chunks)));
    }

    /// Fetches `range` straight into `buf`.
    pub(super) async fn direct(&self, range: Range, buf: &mut ReadBuf<'_>) -> Result<()> {
        let mut fetch = Fetch::new(Arc::clone(&self.source), range, "read");
        let mut keeper =
            CacheWriter::new(Arc::clone(&self.source), Arc::clone(&self.connection.process.budget));
        let (first, chunks) = (buf.filled().len(), &self.source.reads.chunks);
        let mut to = buf.limit(length(range));
        let mut kept = 0;
        loop {
            let is_over = fetch.fill(&mut to).await? == 0;
            // While the bytes are in the CPU's cache.
            let new = &to.get_ref().filled()[first + kept..];
            if is_over || new.len() >= CHUNK {
                keeper.copy(range.start + kept as u64, new, chunks).await;
                kept += new.len();
            }
            if is_over {
                return Ok(());
            }
        }
    }
}
