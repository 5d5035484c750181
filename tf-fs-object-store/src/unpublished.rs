//! Changes of this process that the store does not show yet: files that it is writing, names that it gave up,
//! directories that it emptied.

use crate::Name;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tf_fs_plugin::ProcessOrigin;

/// The names that are open for writing and not published yet. They exist for this process.
#[derive(Debug, Default)]
pub struct UnpublishedWrites(Mutex<Names>);

#[derive(Debug, Default)]
struct Names {
    /// The latest writer of each name that is open.
    open: BTreeMap<Name, Arc<Write>>,
    /// Names that were never published and may be deleted once.
    abandoned: Recent<Name, ()>,
    /// Directories that may have vanished with the last file that this process deleted in them.
    emptied: Recent<Name, ()>,
    /// Lengths that this process published, for choosing how to copy. The store decides in the end.
    published: Recent<Name, u64>,
}

#[derive(Debug)]
struct Write {
    since: SystemTime,
    len: AtomicU64,
    published: AtomicBool,
    deleted: AtomicBool,
}

/// One file open for writing. It is dropped when the file was published or abandoned.
#[derive(Debug)]
pub struct UnpublishedWrite {
    unpublished: Arc<UnpublishedWrites>,
    name: Name,
    write: Arc<Write>,
    /// In a forked child the lock may be held for ever.
    origin: ProcessOrigin,
}

/// A file that this process is writing and nobody else can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnpublishedStat {
    /// Bytes so far.
    pub(crate) len: u64,
    /// When it was opened.
    pub(crate) since: SystemTime,
}

/// How this process has used a name that is deleted, and that the store does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalState {
    /// Nothing.
    None,
    /// This process is writing it.
    Unpublished,
    /// This process was writing it and has abandoned it.
    Abandoned,
}

impl UnpublishedWrites {
    /// Records that a file was opened for writing. From now on it exists for this process, with no bytes.
    pub fn begin(self: &Arc<Self>, name: &Name) -> UnpublishedWrite {
        let write = Arc::new(Write {
            since: SystemTime::now(),
            len: AtomicU64::new(0),
            published: AtomicBool::new(false),
            deleted: AtomicBool::new(false),
        });
        let mut names = self.names();
        names.abandoned.take(name);
        names.open.insert(name.clone(), Arc::clone(&write));
        drop(names);
        UnpublishedWrite {
            unpublished: Arc::clone(self),
            name: name.clone(),
            write,
            origin: ProcessOrigin::current(),
        }
    }

    /// Returns the file of this name, if this process is writing it and has not published it.
    pub(crate) fn get(&self, name: &Name) -> Option<UnpublishedStat> {
        self.names().open.get(name).and_then(|write| write.unpublished())
    }

    /// Returns the keys in this bucket that begin with `prefix`, are being written and are not published.
    pub(crate) fn below(&self, name: &Name, prefix: &str) -> Vec<String> {
        let names = self.names();
        if names.open.is_empty() {
            return Vec::new();
        }
        names
            .open
            .range(name.with_key(prefix)..)
            .take_while(|(found, _)| found.bucket == name.bucket && found.key.starts_with(prefix))
            .filter(|(_, write)| write.unpublished().is_some())
            .map(|(found, _)| found.key.clone())
            .collect()
    }

    /// Records that the name was deleted or renamed: what is still written to it is discarded. Returns whether its
    /// deletion succeeds although no store has it.
    pub(crate) fn delete(&self, name: &Name) -> LocalState {
        let mut names = self.names();
        let abandoned = names.abandoned.take(name).is_some();
        names.published.take(name);
        let unpublished = names.open.get(name).is_some_and(|write| {
            let unpublished = write.unpublished().is_some();
            write.deleted.store(true, Ordering::Release);
            unpublished
        });
        match (unpublished, abandoned) {
            (true, _) => LocalState::Unpublished,
            (false, true) => LocalState::Abandoned,
            (false, false) => LocalState::None,
        }
    }

    /// Calls [`delete`](Self::delete) for all names that begin with `prefix`.
    pub(crate) fn delete_below(&self, name: &Name, prefix: &str) {
        for key in self.below(name, prefix) {
            self.delete(&name.with_key(key));
        }
    }

    /// Records that this process deleted a file in this directory.
    pub(crate) fn emptied(&self, directory: Name) {
        self.names().emptied.put(directory, ());
    }

    /// Returns whether this process deleted a file in this directory. Returns `true` only once.
    pub(crate) fn take_emptied(&self, directory: &Name) -> bool {
        self.names().emptied.take(directory).is_some()
    }

    /// Returns the length that this process last published under this name.
    pub(crate) fn published_len(&self, name: &Name) -> Option<u64> {
        self.names().published.get(name).copied()
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write {
    fn unpublished(&self) -> Option<UnpublishedStat> {
        let hidden = self.published.load(Ordering::Acquire) || self.deleted.load(Ordering::Acquire);
        (!hidden)
            .then(|| UnpublishedStat { len: self.len.load(Ordering::Acquire), since: self.since })
    }
}

impl UnpublishedWrite {
    /// Sets the number of bytes so far.
    pub fn set_len(&self, len: u64) {
        self.write.len.store(len, Ordering::Release);
    }

    /// Records that the store has the file, as far as it was written: look there.
    pub fn mark_published(&self) {
        self.write.published.store(true, Ordering::Release);
        if self.is_of_this_process() {
            let len = self.write.len.load(Ordering::Acquire);
            self.unpublished.names().published.put(self.name.clone(), len);
        }
    }

    /// Records that the file was abandoned without ever being published. TensorFlow deletes some such names afterwards
    /// (the lock file of `Dataset.cache`), which then has to succeed once.
    pub fn abandon(&self) {
        let shown = self.write.published.load(Ordering::Acquire) || self.is_deleted();
        if !shown && self.is_of_this_process() && self.close() {
            self.unpublished.names().abandoned.put(self.name.clone(), ());
        }
    }

    /// Returns whether this process deleted the name while it was being written.
    pub fn is_deleted(&self) -> bool {
        self.write.deleted.load(Ordering::Acquire)
    }

    fn is_of_this_process(&self) -> bool {
        self.origin.is_current()
    }

    /// Removes it from the open names, unless a later writer has taken its place. Returns whether it did.
    fn close(&self) -> bool {
        let mut names = self.unpublished.names();
        let is_mine = names.open.get(&self.name).is_some_and(|open| Arc::ptr_eq(open, &self.write));
        if is_mine {
            names.open.remove(&self.name);
        }
        is_mine
    }
}

impl Drop for UnpublishedWrite {
    fn drop(&mut self) {
        if self.is_of_this_process() {
            self.close();
        }
    }
}

/// A table that keeps only its latest entries.
#[derive(Debug)]
struct Recent<K, V> {
    entries: HashMap<K, (u64, V)>,
    order: VecDeque<(u64, K)>,
    next: u64,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self { entries: HashMap::new(), order: VecDeque::new(), next: 0 }
    }
}

impl<K: Clone + Eq + Hash, V> Recent<K, V> {
    const MAX: usize = 4096;

    fn put(&mut self, key: K, value: V) {
        self.next += 1;
        self.order.push_back((self.next, key.clone()));
        self.entries.insert(key, (self.next, value));
        // Entries that were put again or taken since have another number or are gone.
        while self.order.len() > Self::MAX {
            let Some((number, key)) = self.order.pop_front() else { break };
            if self.entries.get(&key).is_some_and(|entry| entry.0 == number) {
                self.entries.remove(&key);
            }
        }
    }

    fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    fn take(&mut self, key: &K) -> Option<V> {
        self.entries.remove(key).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: &str) -> Name {
        Name::new("mem", "b", key)
    }

    fn len(writes: &UnpublishedWrites, key: &str) -> Option<u64> {
        writes.get(&name(key)).map(|found| found.len)
    }

    #[test]
    fn a_name_exists_from_the_first_moment_until_it_is_published() {
        let writes = Arc::new(UnpublishedWrites::default());
        assert_eq!(len(&writes, "d/a"), None);
        let write = writes.begin(&name("d/a"));
        assert_eq!(len(&writes, "d/a"), Some(0));
        write.set_len(7);
        assert_eq!(len(&writes, "d/a"), Some(7));
        assert_eq!(writes.below(&name("d"), "d/"), ["d/a"]);
        assert!(writes.below(&name("d"), "e").is_empty());
        write.mark_published();
        assert_eq!(len(&writes, "d/a"), None);
        assert_eq!(writes.published_len(&name("d/a")), Some(7));
        write.abandon();
        drop(write);
        assert_eq!(writes.delete(&name("d/a")), LocalState::None);
    }

    #[test]
    fn an_abandoned_name_can_be_deleted_once() {
        let writes = Arc::new(UnpublishedWrites::default());
        let write = writes.begin(&name("lock"));
        write.abandon();
        drop(write);
        assert_eq!(len(&writes, "lock"), None);
        assert_eq!(writes.delete(&name("lock")), LocalState::Abandoned);
        assert_eq!(writes.delete(&name("lock")), LocalState::None);
    }

    #[test]
    fn a_file_deleted_while_it_is_written_stays_away() {
        let writes = Arc::new(UnpublishedWrites::default());
        let write = writes.begin(&name("a"));
        assert_eq!(writes.delete(&name("a")), LocalState::Unpublished);
        assert!(write.is_deleted());
        assert_eq!(len(&writes, "a"), None);
        write.abandon();
        drop(write);
        assert_eq!(writes.delete(&name("a")), LocalState::None);
    }

    #[test]
    fn the_later_writer_counts() {
        let writes = Arc::new(UnpublishedWrites::default());
        let first = writes.begin(&name("a"));
        let second = writes.begin(&name("a"));
        second.set_len(2);
        first.abandon();
        drop(first);
        assert_eq!(len(&writes, "a"), Some(2));
        drop(second);
        assert_eq!(len(&writes, "a"), None);
    }

    #[test]
    fn tables_do_not_grow() {
        let mut recent = Recent::default();
        for n in 0..2 * Recent::<usize, ()>::MAX {
            recent.put(n, ());
            recent.put(0, ());
        }
        assert!(recent.get(&0).is_some());
        assert!(recent.get(&1).is_none());
        assert!(recent.entries.len() <= Recent::<usize, ()>::MAX);
        assert!(recent.take(&0).is_some() && recent.take(&0).is_none());
    }
}
