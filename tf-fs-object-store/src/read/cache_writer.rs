//! Collects blocks for the disk cache from the bytes that arrive.

use super::chunk::{CHUNK, Chunk, ChunkPool};
use super::source::Source;
use crate::MemoryBudget;
use crate::ObjectStore;
use crate::disk::BLOCK;
use std::ops::Range;
use std::sync::Arc;

/// Collects the bytes of one request until they are a whole block.
#[derive(Debug)]
pub(super) struct CacheWriter<S: ObjectStore> {
    source: Arc<Source<S>>,
    budget: Arc<MemoryBudget>,
    /// Bytes of one block, from its first byte on.
    pieces: Vec<Piece>,
    /// Where the next one has to begin.
    next: u64,
}

/// Bytes of a chunk.
#[derive(Debug)]
struct Piece(Arc<Chunk>, Range<usize>);

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.0.bytes()[self.1.clone()]
    }
}

impl<S: ObjectStore> CacheWriter<S> {
    pub(super) fn new(source: Arc<Source<S>>, budget: Arc<MemoryBudget>) -> Self {
        Self { source, budget, pieces: Vec::new(), next: u64::MAX }
    }

    /// Adds bytes of the object, from `start` on, that have arrived.
    pub(super) async fn add(&mut self, start: u64, chunk: &Arc<Chunk>) {
        let Some(cached) = self.source.cached() else { return };
        let end = start + chunk.bytes().len() as u64;
        let mut position = start;
        while position < end {
            let index = position / BLOCK;
            let block = index * BLOCK..cached.size().min((index + 1) * BLOCK);
            let to = end.min(block.end);
            if position == block.start {
                self.pieces.clear();
                self.next = position;
            }
            if position == self.next {
                let piece = (position - start) as usize..(to - start) as usize;
                self.pieces.push(Piece(Arc::clone(chunk), piece));
                self.next = to;
                if to == block.end {
                    let pieces = std::mem::take(&mut self.pieces);
                    Arc::clone(cached).keep(index, pieces, &self.budget).await;
                }
            }
            position = to;
        }
    }

    /// Adds a copy of such bytes that belong to somebody else.
    pub(super) async fn copy(&mut self, mut start: u64, bytes: &[u8], chunks: &Arc<ChunkPool>) {
        if self.source.cached().is_none() {
            return;
        }
        for piece in bytes.chunks(CHUNK) {
            let mut chunk = chunks.take(piece.len());
            chunk.bytes_mut().extend_from_slice(piece);
            self.add(start, &Arc::new(chunk)).await;
            start += piece.len() as u64;
        }
    }
}
