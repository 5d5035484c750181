//! How a file is read: which reads follow one another, and how far to read ahead of them.

use crate::Range;

/// Bytes that stay in memory behind the position of a sequence: TensorFlow looks one byte back before it seeks, and
/// requests some ranges twice.
pub(super) const KEPT: u64 = 1 << 20;
/// A gap up to this length is read over.
const GAP: u64 = 128 << 10;
/// Reads up to this length tell nothing: TensorFlow probes with one byte before it seeks.
const PROBE: u64 = 16;
/// So many bytes in a row are a sequence, even if all reads are that small.
const RUN: u64 = 64 << 10;
/// The window is at most this many times what was read in a row.
const LEAD: u64 = 32;
/// The most sequences that are told apart in one file.
const STREAMS: usize = 4;
/// The length of the first parts, so that they arrive soon; also where a file has only a few.
pub(super) const SMALL_PART: u64 = 4 << 20;
/// Bytes that are read in small parts.
const SMALL_PARTS: u64 = 12 << 20;
/// A large read is fetched with so many requests at a time, unless a limit changes that.
const PIECES: usize = 8;
/// At 80 MB/s, about what a store sends on one connection, a piece takes 26 ms, and its first byte 30 ms. Shorter pieces
/// gain little: 10 of 1.6 MiB save 1 % of an epoch of `TFRecordDataset`.
const SMALL_PIECE: u64 = 2 << 20;
/// Reads up to this length are fetched in pieces of [`SMALL_PART`], which keeps the number of requests low.
const SHORT: u64 = 8 << 20;

/// The limits of reading ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes of the object.
    pub(super) size: u64,
    /// Bytes of a large part.
    pub(super) part: u64,
    /// Bytes read ahead at most.
    pub(super) window: u64,
    /// Requests at a time.
    pub(super) at_once: usize,
}

/// Reads that follow one another.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) id: u64,
    /// Where the next read is expected.
    pub(super) next: u64,
    /// Where it began.
    start: u64,
    /// The end of the parts that were made.
    ahead: u64,
    window: u64,
    /// Bytes read in a row.
    run: u64,
    reads: u32,
    used: u64,
}

/// The sequences of a file.
#[derive(Debug, Default)]
pub(super) struct Streams {
    list: Vec<Stream>,
    clock: u64,
    ids: u64,
}

impl Streams {
    /// Records a read. Returns which stream it belongs to, and the id of one that was given up for it.
    pub(super) fn note(&mut self, read: Range) -> (usize, Option<u64>) {
        self.clock += 1;
        // The last used one first: it is the most likely.
        let found = self
            .list
            .iter()
            .enumerate()
            .filter(|(_, stream)| stream.takes(read))
            .max_by_key(|(_, stream)| stream.used)
            .map(|(i, _)| i);
        if let Some(i) = found {
            self.list[i].advance(read);
            self.list[i].used = self.clock;
            return (i, None);
        }
        self.ids += 1;
        let stream = Stream {
            id: self.ids,
            next: read.end,
            start: read.start,
            ahead: read.end,
            window: 0,
            run: read.len(),
            reads: u32::from(read.len() > PROBE),
            used: self.clock,
        };
        if self.list.len() < STREAMS {
            self.list.push(stream);
            return (self.list.len() - 1, None);
        }
        // One that is not a sequence goes first.
        let (i, _) = self
            .list
            .iter()
            .enumerate()
            .min_by_key(|(_, stream)| (stream.is_sequence(), stream.used))
            .expect("it is full");
        let given_up = std::mem::replace(&mut self.list[i], stream);
        (i, Some(given_up.id))
    }

    pub(super) fn get(&mut self, i: usize) -> &mut Stream {
        &mut self.list[i]
    }

    /// Returns whether some stream reads ahead.
    pub(super) fn reads_ahead(&self) -> bool {
        self.list.iter().any(|stream| stream.window > 0)
    }
}

impl Stream {
    fn takes(&self, read: Range) -> bool {
        let behind = self.next.saturating_sub(KEPT).max(self.start.saturating_sub(1));
        let reach = if self.is_sequence() { self.ahead.max(self.next + GAP) } else { self.next };
        (behind..=reach).contains(&read.start)
    }

    fn advance(&mut self, read: Range) {
        if read.end <= self.next {
            return;
        }
        let gap = read.start.saturating_sub(self.next);
        self.run += read.end - read.start.max(self.next);
        self.reads += u32::from(read.len() > PROBE);
        if gap > GAP.max(read.len()) {
            // It skips more than it reads: most of what is read ahead is wasted.
            self.window /= 4;
            self.run /= 2;
        }
        self.next = read.end;
        self.ahead = self.ahead.max(self.next);
    }

    /// Returns whether the reads follow one another: at once from the beginning of the file, else after the third read,
    /// because TensorFlow's smallest random access is two.
    pub(super) fn is_sequence(&self) -> bool {
        self.start == 0 || self.reads >= 3 || (self.reads == 0 && self.run >= RUN)
    }

    /// Returns whether all of a file of `size` was read from its beginning on.
    pub(super) fn is_whole(&self, size: u64) -> bool {
        self.start == 0 && self.next >= size && self.run >= size - size / 8
    }

    /// Widens the window, since the reader has to wait.
    pub(super) fn waited(&mut self, read: u64, limits: Limits) {
        let large = if self.reads >= 2 { read } else { 0 };
        self.window = (self.window * 2)
            .max(SMALL_PART)
            .max(large)
            .min(self.run.saturating_mul(LEAD))
            .min(limits.window);
    }

    /// Records that bytes up to `end` are read ahead already.
    pub(super) fn skip_to(&mut self, end: u64) {
        self.ahead = self.ahead.max(end);
    }

    pub(super) fn ahead(&self) -> u64 {
        self.ahead
    }

    /// Returns the next part to read ahead, if it lies in the window.
    pub(super) fn next_part(&self, limits: Limits) -> Option<Range> {
        if !self.is_sequence() || self.window == 0 || self.ahead >= limits.size {
            return None;
        }
        let part = self.part_at(self.ahead, limits);
        let reach = self.next.saturating_add(self.window.min(limits.window));
        (part.start + part.len() / 2 <= reach).then_some(part)
    }

    /// Returns the part that begins at `start`.
    pub(super) fn part_at(&self, start: u64, limits: Limits) -> Range {
        let rest = limits.size.saturating_sub(start);
        let small = SMALL_PART.min(limits.part);
        let len = if start.saturating_sub(self.start) < SMALL_PARTS {
            small
        } else {
            (limits.size / 8).next_multiple_of(1 << 20).clamp(small, limits.part.max(small))
        };
        // No tiny part at the end.
        let len = if rest <= len + len / 4 { rest } else { len };
        Range::new(start, start + len)
    }
}

/// Returns the length of the parts in which a large read of `len` bytes is fetched, `at_once` of them at a time.
pub(super) fn split(len: u64, part: u64, at_once: usize) -> u64 {
    let pieces = PIECES.min(at_once).max(1) as u64;
    let small = if len > SHORT { SMALL_PIECE } else { SMALL_PART };
    len.div_ceil(pieces).next_multiple_of(256 << 10).clamp(small.min(part), part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const LIMITS: Limits = Limits { size: 256 * MIB, part: 8 * MIB, window: 64 * MIB, at_once: 32 };

    fn read(start: u64, len: u64) -> Range {
        Range::new(start, start + len)
    }

    #[test]
    fn from_the_beginning_on_the_first_read_is_a_sequence() {
        let mut streams = Streams::default();
        let (i, _) = streams.note(read(0, 256 * KIB));
        let stream = streams.get(i);
        assert!(stream.is_sequence());
        // Nobody has waited yet.
        assert_eq!(stream.next_part(LIMITS), None);
        stream.waited(256 * KIB, LIMITS);
        assert_eq!(stream.next_part(LIMITS), Some(read(256 * KIB, SMALL_PART)));
        assert!(streams.reads_ahead());
    }

    #[test]
    fn elsewhere_the_third_read_in_a_row_makes_a_sequence() {
        let mut streams = Streams::default();
        for n in 0..3 {
            let (i, _) = streams.note(read(100 * MIB + n * MIB, MIB));
            assert_eq!(i, 0);
            assert_eq!(streams.get(i).is_sequence(), n == 2);
        }
        // Probes of a byte tell nothing, but many small reads do.
        let mut streams = Streams::default();
        for n in 0..RUN / 16 {
            let (i, _) = streams.note(read(100 * MIB + n * 16, 16));
            assert_eq!(streams.get(i).is_sequence(), n + 1 == RUN / 16, "{n}");
        }
    }

    #[test]
    fn the_window_doubles_with_each_wait_up_to_what_was_read_and_is_allowed() {
        let mut streams = Streams::default();
        let mut position = 0;
        let mut windows = Vec::new();
        for _ in 0..7 {
            let (i, _) = streams.note(read(position, MIB));
            position += MIB;
            streams.get(i).waited(MIB, LIMITS);
            windows.push(streams.get(i).window / MIB);
        }
        assert_eq!(windows, [4, 8, 16, 32, 64, 64, 64]);
        // A few read bytes make a small window.
        let mut streams = Streams::default();
        let (i, _) = streams.note(read(0, 100 * KIB));
        for _ in 0..9 {
            streams.get(i).waited(100 * KIB, LIMITS);
        }
        assert_eq!(streams.get(i).window, LEAD * 100 * KIB);
    }

    #[test]
    fn parts_are_made_as_far_as_the_window_reaches() {
        let mut streams = Streams::default();
        let (i, _) = streams.note(read(0, 4 * MIB));
        let stream = streams.get(i);
        stream.window = 20 * MIB;
        let mut lens = Vec::new();
        while let Some(part) = stream.next_part(LIMITS) {
            lens.push(part.len() / MIB);
            stream.skip_to(part.end);
        }
        // A part of which half lies within it.
        assert_eq!((lens, stream.ahead()), (vec![4, 4, 8, 8], 28 * MIB));
        // Reading moves the window on.
        let (i, _) = streams.note(read(4 * MIB, 8 * MIB));
        assert_eq!(streams.get(i).next_part(LIMITS), Some(read(28 * MIB, 8 * MIB)));
    }

    #[test]
    fn random_reads_never_make_a_sequence() {
        let mut streams = Streams::default();
        for n in 1..200 {
            let place = n * 7_654_321 % (250 * MIB) + MIB;
            // As TensorFlow does: a byte before the place, then the same range twice.
            for range in [read(place - 1, 1), read(place, 512 * KIB), read(place, 512 * KIB)] {
                let (i, _) = streams.note(range);
                let stream = streams.get(i);
                stream.waited(512 * KIB, LIMITS);
                assert!(!stream.is_sequence(), "{n}: {stream:?}");
                assert_eq!(stream.next_part(LIMITS), None);
            }
        }
        assert_eq!(streams.list.len(), STREAMS);
    }

    #[test]
    fn a_sequence_goes_on_over_small_gaps_and_a_little_way_back() {
        let mut streams = Streams::default();
        let (first, _) = streams.note(read(0, MIB));
        for range in [read(MIB + GAP, MIB), read(2 * MIB - 1, 1), read(2 * MIB + 2 * GAP, 100)] {
            assert_eq!(streams.note(range), (first, None), "{range:?}");
        }
        // Bytes that are read ahead belong to it too.
        streams.get(first).skip_to(20 * MIB);
        assert_eq!(streams.note(read(15 * MIB, 100)), (first, None));
        let window = 64 * MIB;
        streams.get(first).window = window;
        assert_eq!(streams.note(read(19 * MIB, 100)), (first, None));
        assert_eq!(streams.get(first).window, window / 4, "it skips more than it reads");
        assert_ne!(streams.note(read(100 * MIB, 100)).0, first);
    }

    #[test]
    fn beyond_the_limit_a_stream_without_a_sequence_is_dropped() {
        let mut streams = Streams::default();
        let (i, _) = streams.note(read(0, MIB));
        let kept = streams.get(i).id;
        let mut ids = Vec::new();
        for n in 1..STREAMS as u64 {
            let (i, given_up) = streams.note(read(n * 40 * MIB, MIB));
            assert_eq!(given_up, None);
            ids.push(streams.get(i).id);
        }
        for (n, id) in ids.into_iter().enumerate() {
            let (_, given_up) = streams.note(read(200 * MIB + n as u64 * 10 * MIB, MIB));
            assert_eq!(given_up, Some(id));
        }
        assert!(streams.list.iter().any(|stream| stream.id == kept));
    }

    #[test]
    fn a_file_is_read_whole_by_one_sequence() {
        let mut streams = Streams::default();
        let size = 10 * MIB;
        for n in 0..10 {
            let (i, _) = streams.note(read(n * MIB, MIB));
            assert_eq!(streams.get(i).is_whole(size), n == 9);
        }
        let mut streams = Streams::default();
        let (i, _) = streams.note(read(9 * MIB, MIB));
        assert!(!streams.get(i).is_whole(size), "only its end");
    }

    #[test]
    fn parts_are_small_first_then_large_and_the_last_is_not_tiny() {
        let mut streams = Streams::default();
        let (i, _) = streams.note(read(0, MIB));
        let stream = streams.get(i);
        let parts = |limits: Limits| {
            let mut lens = Vec::new();
            let mut start = 0;
            while start < limits.size {
                let part = stream.part_at(start, limits);
                lens.push(part.len());
                start = part.end;
            }
            lens
        };
        assert_eq!(parts(Limits { size: 38 * MIB + 5, ..LIMITS }), {
            let mut lens = vec![4 * MIB; 3];
            lens.extend([5 * MIB; 4]);
            lens.push(6 * MIB + 5);
            lens
        });
        let lens = parts(Limits { size: 100 * MIB + 1913, ..LIMITS });
        assert_eq!(lens[..3], [4 * MIB; 3]);
        assert_eq!(lens[3..13], [8 * MIB; 10]);
        assert_eq!(lens[13..], [8 * MIB + 1913]);
        // The remainder joins the part before it if it is at most a quarter.
        assert_eq!(parts(Limits { size: 5 * MIB, ..LIMITS }), [5 * MIB]);
        assert_eq!(parts(Limits { size: 5 * MIB + 1, ..LIMITS }), [4 * MIB, MIB + 1]);
        assert_eq!(parts(Limits { size: 3 * MIB, part: MIB, ..LIMITS }), [MIB; 3]);
    }

    #[test]
    fn large_reads_are_split_into_eight() {
        for (len, expected) in
            [(1, 4096), (8, 4096), (9, 2048), (16, 2048), (20, 2560), (48, 6144), (256, 8192)]
        {
            assert_eq!(split(len * MIB, 8 * MIB, 32), expected * KIB, "{len}");
        }
        assert_eq!(split(16 * MIB, 8 * MIB, 4), 4 * MIB, "fewer at a time may be set");
        assert_eq!(split(256 * MIB, MIB, 32), MIB, "parts may be set to be small");
    }
}
