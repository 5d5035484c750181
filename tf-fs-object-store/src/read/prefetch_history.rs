//! Predicts how a file is read from its neighbours: shards of a data set have the same length, and each is
//! read whole.

use crate::Name;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most directories of which habits are kept.
const DIRECTORIES: usize = 64;
/// After a file that was read in part, so many have to be read whole.
const DOUBT: u32 = 2;

/// How the files of some directories were read.
#[derive(Debug, Default)]
pub(super) struct PrefetchHistory(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    of: HashMap<Directory, DirHistory>,
    clock: u64,
}

type Directory = (Arc<str>, String);

#[derive(Debug)]
struct DirHistory {
    /// Bytes of a file, rather too few: bytes past the end are requested in vain.
    size: u64,
    used: u64,
    /// Files that have to be read whole before the next one is expected to be.
    doubt: u32,
}

impl PrefetchHistory {
    /// Returns the length of this file if it is like its neighbours, which were read whole.
    pub(super) fn expect(&self, name: &Name) -> Option<u64> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let clock = kept.clock;
        let habit = kept.of.get_mut(&directory(name))?;
        habit.used = clock;
        (habit.doubt == 0).then_some(habit.size)
    }

    /// Records that this file was read whole, from its beginning to its end.
    pub(super) fn read_whole(&self, name: &Name, size: u64) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let habit = kept.habit(name);
        habit.doubt = habit.doubt.saturating_sub(1);
        // The last shard is often a short one, and says nothing of the others.
        habit.size = if size / 2 > habit.size { size } else { size.min(habit.size) };
    }

    /// Records that this file was not read whole.
    pub(super) fn read_in_part(&self, name: &Name) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let habit = kept.habit(name);
        *habit = DirHistory { size: u64::MAX, doubt: DOUBT, ..*habit };
    }
}

impl Kept {
    /// Returns the habit of this file's directory.
    fn habit(&mut self, name: &Name) -> &mut DirHistory {
        self.clock += 1;
        let directory = directory(name);
        if self.of.len() >= DIRECTORIES && !self.of.contains_key(&directory) {
            let oldest = self.of.iter().min_by_key(|(_, habit)| habit.used);
            if let Some(oldest) = oldest.map(|(directory, _)| directory.clone()) {
                self.of.remove(&oldest);
            }
        }
        let habit =
            self.of.entry(directory).or_insert(DirHistory { size: u64::MAX, used: 0, doubt: 1 });
        habit.used = self.clock;
        habit
    }
}

fn directory(name: &Name) -> Directory {
    let directory = name.key.rsplit_once('/').map_or("", |(directory, _)| directory);
    (Arc::clone(&name.bucket), directory.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: &str) -> Name {
        Name::new("mem", "b", key)
    }

    #[test]
    fn neighbours_of_a_file_that_was_read_whole_are_expected_to_be_like_it() {
        let habits = PrefetchHistory::default();
        assert_eq!(habits.expect(&name("d/0")), None);
        habits.read_whole(&name("d/0"), 100);
        assert_eq!(habits.expect(&name("d/1")), Some(100));
        assert_eq!(habits.expect(&name("d/e/1")), None);
        assert_eq!(habits.expect(&name("1")), None);
        let other = Name::new("mem", "c", "d/1");
        assert_eq!(habits.expect(&other), None);
    }

    #[test]
    fn lengths_are_rather_too_short_unless_one_file_was_only_a_rest() {
        let habits = PrefetchHistory::default();
        for (size, expected) in [(100, 100), (90, 90), (95, 90), (180, 90), (200, 200)] {
            habits.read_whole(&name("d/0"), size);
            assert_eq!(habits.expect(&name("d/1")), Some(expected), "after {size}");
        }
    }

    #[test]
    fn a_file_that_was_read_in_part_is_not_forgotten_at_once() {
        let habits = PrefetchHistory::default();
        habits.read_whole(&name("d/0"), 100);
        habits.read_in_part(&name("d/0"));
        assert_eq!(habits.expect(&name("d/0")), None);
        habits.read_whole(&name("d/0"), 100);
        assert_eq!(habits.expect(&name("d/0")), None, "the last time but one was at random");
        habits.read_whole(&name("d/0"), 100);
        assert_eq!(habits.expect(&name("d/0")), Some(100));
    }

    #[test]
    fn the_directories_used_last_are_remembered() {
        let habits = PrefetchHistory::default();
        for n in 0..DIRECTORIES {
            habits.read_whole(&name(&format!("{n}/f")), 1);
        }
        assert_eq!(habits.expect(&name("0/f")), Some(1));
        habits.read_whole(&name("new/f"), 1);
        assert_eq!(habits.expect(&name("0/f")), Some(1));
        assert_eq!(habits.expect(&name("1/f")), None);
        assert_eq!(habits.0.lock().unwrap().of.len(), DIRECTORIES);
    }
}
