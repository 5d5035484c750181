//! How a file is read: which reads follow one another, and how far to read ahead of them.

use super::get::Range;

/// Behind the position of a sequence as much stays in memory: TensorFlow looks one byte back before
/// it seeks, and asks some ranges twice.
pub(super) const KEPT: u64 = 1 << 20;
/// A gap up to this is read over.
const GAP: u64 = 128 << 10;
/// Reads up to this length tell nothing: TensorFlow probes with one byte before it seeks.
const PROBE: u64 = 16;
/// As many bytes in a row are a sequence, if all reads are as small.
const RUN: u64 = 64 << 10;
/// The window is at most this many times what was read in a row.
const LEAD: u64 = 32;
/// Sequences told apart in one file.
const STREAMS: usize = 4;
/// The first parts are this long, so that they arrive soon; also where a file has only a few.
pub(super) const SMALL_PART: u64 = 4 << 20;
/// As much is read in small parts.
const SMALL_PARTS: u64 = 12 << 20;

/// What limits reading ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes of the object.
    pub(super) size: u64,
    /// Bytes of a large part.
    pub(super) part: u64,
    /// Bytes read ahead at most.
    pub(super) window: u64,
}

/// Reads that follow one another.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) id: u64,
    /// Where the next read is expected.
    pub(super) next: u64,
    /// Where it began.
    start: u64,
    /// Up to here parts were made.
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
    /// Notes a read; which stream it belongs to, and the id of one that was given up for it.
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
        // One that is no sequence goes first.
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

    /// Whether some stream reads ahead.
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
            // It skips more than it reads: what is read ahead is mostly for nothing.
            self.window /= 4;
            self.run /= 2;
        }
        self.next = read.end;
        self.ahead = self.ahead.max(self.next);
    }

    /// Whether the reads follow one another: at once from the beginning of the file, else after the
    /// third read: TensorFlow's smallest random access is two.
    pub(super) fn is_sequence(&self) -> bool {
        self.start == 0 || self.reads >= 3 || (self.reads == 0 && self.run >= RUN)
    }

    /// Whether all of a file of `size` was read from its beginning on.
    pub(super) fn is_whole(&self, size: u64) -> bool {
        self.start == 0 && self.next >= size && self.run >= size - size / 8
    }

    /// The reader has to wait: read further ahead.
    pub(super) fn waited(&mut self, read: u64, limits: Limits) {
        let large = if self.reads >= 2 { read } else { 0 };
        self.window = (self.window * 2)
            .max(SMALL_PART)
            .max(large)
            .min(self.run.saturating_mul(LEAD))
            .min(limits.window);
    }

    /// Bytes up to here are read ahead already.
    pub(super) fn skip_to(&mut self, end: u64) {
        self.ahead = self.ahead.max(end);
    }

    pub(super) fn ahead(&self) -> u64 {
        self.ahead
    }

    /// The next part to read ahead, if it lies in the window.
    pub(super) fn next_part(&self, limits: Limits) -> Option<Range> {
        if !self.is_sequence() || self.window == 0 || self.ahead >= limits.size {
            return None;
        }
        let part = self.part_at(self.ahead, limits);
        let reach = self.next.saturating_add(self.window.min(limits.window));
        (part.start + part.len() / 2 <= reach).then_some(part)
    }

    /// The part that begins at `start`.
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

/// The lengths of the parts in which a large read of `len` bytes is fetched.
pub(super) fn split(len: u64, part: u64) -> u64 {
    let small = SMALL_PART.min(part);
    (len.div_ceil(4)).next_multiple_of(1 << 20).clamp(small, part.max(small))
}
