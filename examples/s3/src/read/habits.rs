//! What is expected of a file from how its neighbours were read: shards of a data set are as long as
//! each other, and each is read whole.

use crate::name::Name;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Directories of which habits are kept.
const DIRECTORIES: usize = 64;

/// How the files of some directories were read.
#[derive(Debug, Default)]
pub(super) struct Habits(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    of: HashMap<Directory, Habit>,
    clock: u64,
}

type Directory = (Arc<str>, String);

#[derive(Debug)]
struct Habit {
    /// Bytes of a file, rather too few: what lies past the end is asked for in vain.
    size: u64,
    used: u64,
}

impl Habits {
    /// The length of this file if it is as its neighbours, which were read whole.
    pub(super) fn expect(&self, name: &Name) -> Option<u64> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let clock = kept.clock;
        let habit = kept.of.get_mut(&directory(name))?;
        habit.used = clock;
        Some(habit.size)
    }

    /// This file was read whole, from its beginning to its end.
    pub(super) fn read_whole(&self, name: &Name, size: u64) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let used = kept.clock;
        let directory = directory(name);
        if kept.of.len() >= DIRECTORIES && !kept.of.contains_key(&directory) {
            let oldest = kept.of.iter().min_by_key(|(_, habit)| habit.used);
            if let Some(oldest) = oldest.map(|(directory, _)| directory.clone()) {
                kept.of.remove(&oldest);
            }
        }
        let habit = kept.of.entry(directory).or_insert(Habit { size, used });
        habit.used = used;
        // The last shard is often a short one, and says nothing of the others.
        habit.size = if size / 2 > habit.size { size } else { size.min(habit.size) };
    }

    /// This file was not read whole.
    pub(super) fn read_in_part(&self, name: &Name) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.of.remove(&directory(name));
    }
}

fn directory(name: &Name) -> Directory {
    let directory = name.key.rsplit_once('/').map_or("", |(directory, _)| directory);
    (Arc::clone(&name.bucket), directory.to_owned())
}
