//! The content of an object: shared pieces, which are never copied, and runs of zeros that take no memory.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use s3s::StdError;
use s3s::stream::{ByteStream, RemainingLength};

/// The bytes of runs of zeros.
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

/// Pieces shorter than this are joined: a small piece would keep its whole network buffer alive.
const SMALL: usize = 16 << 10;

#[derive(Clone, Debug)]
enum Piece {
    Bytes(Bytes),
    Zeros(u64),
}

impl Piece {
    fn len(&self) -> u64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::Zeros(len) => *len,
        }
    }

    fn slice(&self, range: Range<u64>) -> Piece {
        match self {
            Piece::Bytes(bytes) => {
                Piece::Bytes(bytes.slice(range.start as usize..range.end as usize))
            }
            Piece::Zeros(_) => Piece::Zeros(range.end - range.start),
        }
    }
}

/// Immutable content of any size; a clone shares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Data {
    pieces: Arc<Vec<Piece>>,
    len: u64,
}

impl Data {
    /// Returns `len` zeros.
    pub(crate) fn zeros(len: u64) -> Data {
        Data::from_pieces(vec![Piece::Zeros(len)])
    }

    fn from_pieces(pieces: Vec<Piece>) -> Data {
        let len = pieces.iter().map(Piece::len).sum();
        Data { pieces: Arc::new(pieces), len }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether a part of it is a run of zeros, which is not in memory.
    pub(crate) fn is_sparse(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Zeros(_)))
    }

    /// Concatenates `parts`.
    pub(crate) fn concat<'a>(parts: impl IntoIterator<Item = &'a Data>) -> Data {
        Data::from_pieces(parts.into_iter().flat_map(|data| data.pieces.iter().cloned()).collect())
    }

    /// Returns the bytes of `range`, which lies within the content.
    pub(crate) fn slice(&self, range: Range<u64>) -> Data {
        let mut pieces = Vec::new();
        let mut at = 0;
        for piece in self.pieces.iter() {
            let end = at + piece.len();
            let (from, to) = (range.start.max(at), range.end.min(end));
            if from < to {
                pieces.push(piece.slice(from - at..to - at));
            }
            at = end;
        }
        Data::from_pieces(pieces)
    }

    /// Calls `visit` with the content, in order.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&[u8])) {
        for piece in self.pieces.iter() {
            match piece {
                Piece::Bytes(bytes) => visit(bytes),
                Piece::Zeros(len) => {
                    let mut left = *len;
                    while left > 0 {
                        let n = left.min(ZEROS.len() as u64);
                        visit(&ZEROS[..n as usize]);
                        left -= n;
                    }
                }
            }
        }
    }

    /// Returns the content in one piece of memory; shared where it already is one.
    pub(crate) fn to_bytes(&self) -> Bytes {
        if let [Piece::Bytes(bytes)] = self.pieces.as_slice() {
            return bytes.clone();
        }
        let mut all = Vec::with_capacity(self.len as usize);
        self.for_each(|bytes| all.extend_from_slice(bytes));
        all.into()
    }

    pub(crate) fn stream(self) -> DataStream {
        DataStream { left: self.len, data: self, next: 0, zeros: 0 }
    }
}

impl From<Bytes> for Data {
    fn from(bytes: Bytes) -> Data {
        Data::from_pieces(if bytes.is_empty() { Vec::new() } else { vec![Piece::Bytes(bytes)] })
    }
}

/// Collects a body as it arrives from the network.
#[derive(Default)]
pub(crate) struct DataBuilder {
    pieces: Vec<Piece>,
    small: BytesMut,
}

impl DataBuilder {
    pub(crate) fn push(&mut self, bytes: Bytes) {
        if bytes.len() < SMALL {
            self.small.extend_from_slice(&bytes);
            if self.small.len() >= 4 * SMALL {
                self.flush();
            }
        } else {
            self.flush();
            self.pieces.push(Piece::Bytes(bytes));
        }
    }

    fn flush(&mut self) {
        if !self.small.is_empty() {
            self.pieces.push(Piece::Bytes(self.small.split().freeze()));
        }
    }

    pub(crate) fn finish(mut self) -> Data {
        self.flush();
        Data::from_pieces(self.pieces)
    }
}

/// Content that is being sent.
pub(crate) struct DataStream {
    data: Data,
    next: usize,
    /// How many zeros of the run at `next` are sent.
    zeros: u64,
    left: u64,
}

impl Stream for DataStream {
    type Item = Result<Bytes, StdError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let pieces = Arc::clone(&self.data.pieces);
        loop {
            let bytes = match pieces.get(self.next) {
                None => return Poll::Ready(None),
                Some(Piece::Bytes(bytes)) => {
                    self.next += 1;
                    bytes.clone()
                }
                Some(Piece::Zeros(len)) if self.zeros < *len => {
                    let n = (len - self.zeros).min(ZEROS.len() as u64);
                    self.zeros += n;
                    Bytes::from_static(&ZEROS[..n as usize])
                }
                Some(Piece::Zeros(_)) => {
                    self.next += 1;
                    self.zeros = 0;
                    continue;
                }
            };
            self.left -= bytes.len() as u64;
            return Poll::Ready(Some(Ok(bytes)));
        }
    }
}

impl ByteStream for DataStream {
    fn remaining_length(&self) -> RemainingLength {
        RemainingLength::new_exact(self.left as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_go_across_pieces() {
        let data = Data::concat([
            &Data::from(Bytes::from_static(b"abc")),
            &Data::zeros(2),
            &Bytes::from_static(b"de").into(),
        ]);
        assert_eq!(data.len(), 7);
        assert_eq!(data.slice(1..6).to_bytes(), Bytes::from_static(b"bc\0\0d"));
        assert_eq!(data.slice(3..3).to_bytes(), Bytes::new());
        assert!(data.is_sparse() && !data.slice(0..3).is_sparse());
    }

    #[test]
    fn a_builder_joins_small_pieces_only() {
        let mut builder = DataBuilder::default();
        builder.push(Bytes::from_static(b"a"));
        builder.push(Bytes::from_static(b"b"));
        builder.push(Bytes::from(vec![7; SMALL]));
        builder.push(Bytes::from_static(b"c"));
        let data = builder.finish();
        assert_eq!(data.pieces.len(), 3);
        assert_eq!(data.len(), SMALL as u64 + 3);
        assert_eq!(&data.to_bytes()[..3], b"ab\x07");
    }
}
