//! The parts that are held of a file, and the streams that read it.

use super::{BLOCKS, File, Owner, STRAYS, State};
use crate::read::readahead::KEPT;
use crate::read::segment::Segment;
use crate::{Client, GetHead, ObjectMeta, Range};
use std::sync::Arc;

impl State {
    /// Returns the part that has all of `read` already.
    pub(super) fn at_hand(&self, read: Range) -> Option<Arc<Segment>> {
        let after = self.parts.partition_point(|held| held.part.range().start <= read.start);
        let held = &self.parts[after.checked_sub(1)?];
        (held.part.range().end >= read.end && held.part.has(read.end))
            .then(|| Arc::clone(&held.part))
    }

    /// Records a read, and frees what it leaves behind. Returns its stream.
    pub(super) fn note(&mut self, read: Range, file: &File<impl Client>) -> usize {
        self.clock += 1;
        self.was_read = true;
        let (i, given_up) = self.streams.note(read);
        if let Some(id) = given_up {
            self.parts.retain(|held| held.owner != Owner::Stream(id));
        }
        let stream = self.streams.get(i);
        if stream.is_whole(file.version.size) && !self.was_whole {
            self.was_whole = true;
            file.source.reads.habits.read_whole(&file.source.name, file.version.size);
        }
        let id = stream.id;
        let is_sequence = stream.is_sequence();
        let clock = self.clock;
        for held in &mut self.parts {
            let range = held.part.range();
            if range.start < read.end && range.end > read.start {
                match held.owner {
                    // It belongs to the stream that reads it.
                    Owner::Opening if is_sequence => held.owner = Owner::Stream(id),
                    Owner::Block(_) => held.owner = Owner::Block(clock),
                    _ => {}
                }
            }
        }
        if self.parts.iter().any(|held| held.owner == Owner::Opening) && !is_sequence {
            if self.strays == 0 {
                // It is not read as its neighbours were.
                self.parts.retain(|held| {
                    let range = held.part.range();
                    let is_read = range.start < read.end && range.end > read.start;
                    held.owner != Owner::Opening || range.start == 0 || is_read
                });
            }
            self.strays += 1;
            if self.strays > STRAYS {
                self.parts.retain(|held| held.owner != Owner::Opening);
            }
        }
        // The bytes that this read itself gets are not read yet.
        self.free(id, read.start.saturating_sub(KEPT));
        self.drop_blocks();
        i
    }

    /// Frees the bytes that a stream holds before `position`.
    pub(super) fn free(&mut self, id: u64, position: u64) {
        self.parts.retain(|held| {
            if held.owner != Owner::Stream(id) {
                return true;
            }
            if held.part.range().start < position {
                held.part.release(position);
            }
            held.part.range().end > position
        });
    }

    /// Drops the least recently used blocks, but none that is on its way.
    pub(super) fn drop_blocks(&mut self) {
        let mut blocks: Vec<(u64, usize)> = Vec::new();
        for (i, held) in self.parts.iter().enumerate() {
            if let Owner::Block(used) = held.owner
                && held.part.is_over()
            {
                blocks.push((used, i));
            }
        }
        if blocks.len() > BLOCKS {
            blocks.sort_unstable();
            let mut old: Vec<usize> =
                blocks[..blocks.len() - BLOCKS].iter().map(|(_, i)| *i).collect();
            old.sort_unstable();
            for i in old.into_iter().rev() {
                self.parts.remove(i);
            }
        }
    }

    /// Returns the part that contains `position`.
    pub(super) fn part_at(&self, position: u64, size: u64) -> Option<Arc<Segment>> {
        if position >= size {
            return None;
        }
        let after = self.parts.partition_point(|held| held.part.range().start <= position);
        let held = &self.parts[after.checked_sub(1)?];
        (held.part.range().end > position).then(|| Arc::clone(&held.part))
    }

    /// Returns where the next part after `position` begins.
    pub(super) fn next_start(&self, position: u64) -> u64 {
        let after = self.parts.partition_point(|held| held.part.range().start <= position);
        self.parts.get(after).map_or(u64::MAX, |held| held.part.range().start)
    }
}

/// Returns whether this is `*.data-?????-of-?????`: TensorFlow reads where the index says, and first near the end.
pub(super) fn is_checkpoint_data(key: &str) -> bool {
    let is_number = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = key.rsplit_once(".data-").and_then(|(_, numbers)| numbers.split_once("-of-"));
    numbers.is_some_and(|(shard, shards)| is_number(shard) && is_number(shards))
}

pub(super) fn length(range: Range) -> usize {
    usize::try_from(range.len()).unwrap_or(usize::MAX)
}

/// Returns what a listing would say of an object that was just opened.
pub(super) fn known(head: &GetHead) -> Option<ObjectMeta> {
    // Otherwise a listing may tell more.
    head.modified.map(|_| head.meta())
}
