//! Bytes that wait to be uploaded.

use crate::Reservation;
use bytes::{Bytes, BytesMut};
use std::fmt;
use std::mem;
use std::sync::Arc;

/// The first chunk: enough for the many files of a few bytes.
const SMALLEST_CHUNK: usize = 16 << 10;
/// Small enough that a file which stops growing wastes little, large enough to cost few calls.
const LARGEST_CHUNK: usize = 1 << 20;

/// Appended bytes in chunks: memory grows with them, and no byte is copied again.
#[derive(Default)]
pub struct Buffer {
    full: Vec<Bytes>,
    last: BytesMut,
    len: usize,
    reservations: Vec<Reservation>,
}

impl Buffer {
    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns how many bytes can be appended before [`grow`](Self::grow) is needed.
    pub fn room(&self) -> usize {
        self.last.capacity() - self.last.len()
    }

    /// Returns the size of the next chunk, when `wanted` bytes are to be appended to a buffer that is to hold `limit`
    /// in all.
    pub fn next_chunk(&self, wanted: usize, limit: usize) -> usize {
        self.len.max(wanted).clamp(SMALLEST_CHUNK, LARGEST_CHUNK).min(limit - self.len)
    }

    /// Makes room for `chunk` bytes, which `reservation` pays for.
    pub fn grow(&mut self, chunk: usize, reservation: Reservation) {
        let full = mem::replace(&mut self.last, BytesMut::with_capacity(chunk));
        if !full.is_empty() {
            self.full.push(full.freeze());
        }
        self.reservations.push(reservation);
    }

    /// Appends `data`, for which there is room.
    pub fn append(&mut self, data: &[u8]) {
        debug_assert!(data.len() <= self.room());
        self.last.extend_from_slice(data);
        self.len += data.len();
    }

    /// Returns all bytes, and keeps them.
    pub fn share(&mut self) -> Content {
        if !self.last.is_empty() {
            // The rest of the chunk stays for later bytes.
            self.full.push(self.last.split().freeze());
        }
        Content(Arc::new(Inner {
            chunks: self.full.clone(),
            len: self.len,
            reservations: Vec::new(),
        }))
    }

    /// Takes all bytes with their reservations, and leaves the buffer empty.
    pub fn take(&mut self) -> Content {
        let mut taken = mem::take(self);
        let reservations = mem::take(&mut taken.reservations);
        let Self { mut full, last, len, .. } = taken;
        if !last.is_empty() {
            full.push(last.freeze());
        }
        Content(Arc::new(Inner { chunks: full, len, reservations }))
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("len", &self.len).finish_non_exhaustive()
    }
}

/// Bytes on their way to the store. Clones share them; the last one gives the memory back.
#[derive(Clone)]
pub struct Content(Arc<Inner>);

struct Inner {
    chunks: Vec<Bytes>,
    len: usize,
    #[expect(dead_code, reason = "held until the bytes are gone")]
    reservations: Vec<Reservation>,
}

impl Content {
    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        self.0.len as u64
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Returns the bytes in order, in chunks.
    pub fn chunks(&self) -> &[Bytes] {
        &self.0.chunks
    }

    /// Returns the first `len` bytes.
    pub(crate) fn prefix(&self, len: usize) -> Self {
        let len = len.min(self.0.len);
        let mut left = len;
        let chunks = self.0.chunks.iter().map_while(|chunk| {
            let first = (left > 0).then(|| chunk.slice(..left.min(chunk.len())))?;
            left -= first.len();
            Some(first)
        });
        Self(Arc::new(Inner { chunks: chunks.collect(), len, reservations: Vec::new() }))
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content").field("len", &self.0.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryBudget;

    fn append(buffer: &mut Buffer, budget: &Arc<MemoryBudget>, mut data: &[u8], limit: usize) {
        while !data.is_empty() {
            if buffer.room() == 0 {
                let chunk = buffer.next_chunk(data.len(), limit);
                buffer.grow(chunk, budget.try_reserve(chunk).unwrap());
            }
            let (now, later) = data.split_at(data.len().min(buffer.room()));
            buffer.append(now);
            data = later;
        }
    }

    fn bytes(content: &Content) -> Vec<u8> {
        assert_eq!(
            content.len(),
            content.chunks().iter().map(|chunk| chunk.len() as u64).sum::<u64>()
        );
        content.chunks().concat()
    }

    #[test]
    fn memory_grows_with_the_bytes_and_is_given_back() {
        let budget = Arc::new(MemoryBudget::new(64 << 20));
        let mut buffer = Buffer::default();
        append(&mut buffer, &budget, b"twelve bytes", 8 << 20);
        assert_eq!(budget.used(), SMALLEST_CHUNK);
        for _ in 0..2000 {
            append(&mut buffer, &budget, &[7; 3000], 8 << 20);
            assert!(budget.used() <= (2 * buffer.len()).max(SMALLEST_CHUNK));
            assert!(budget.used() <= buffer.len() + LARGEST_CHUNK);
        }
        let content = buffer.take();
        assert_eq!((buffer.len(), buffer.room()), (0, 0));
        assert_eq!(content.len(), 12 + 6_000_000);
        let clone = content.clone();
        drop(content);
        assert!(budget.used() > 6_000_000);
        drop(clone);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_buffer_filled_to_its_limit_takes_no_more_memory_than_that() {
        let budget = Arc::new(MemoryBudget::new(64 << 20));
        for piece in [1 << 20, 999_983, 4096, 8 << 20] {
            let mut buffer = Buffer::default();
            let data = vec![1; 8 << 20];
            for piece in data.chunks(piece) {
                append(&mut buffer, &budget, piece, 8 << 20);
            }
            assert_eq!((buffer.len(), buffer.room(), budget.used()), (8 << 20, 0, 8 << 20));
        }
    }

    #[test]
    fn a_shared_buffer_stays_unchanged() {
        let budget = Arc::new(MemoryBudget::new(64 << 20));
        let mut buffer = Buffer::default();
        append(&mut buffer, &budget, b"one ", 100_000);
        let one = buffer.share();
        append(&mut buffer, &budget, b"two", 100_000);
        let two = buffer.share();
        assert_eq!(bytes(&one), b"one ");
        assert_eq!(bytes(&two), b"one two");
        append(&mut buffer, &budget, &[b'x'; 50_000], 100_000);
        assert_eq!(bytes(&buffer.take()), [b"one two".as_slice(), &[b'x'; 50_000]].concat());
        assert_eq!(budget.used(), 0);
    }
}
