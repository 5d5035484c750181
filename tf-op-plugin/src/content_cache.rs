//! A cache by content, shared by all kernels of the process.

use core::fmt;
use sha2::{Digest as _, Sha256};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tf_plugin_core::sync::Mutex;
use tf_plugin_core::{ProcessOrigin, Result};

type Key = [u8; 32];

/// Values that are computed from bytes, by a hash of these bytes: a parsed model or vocabulary, which all nodes of a process
/// share.
///
/// An op that gets such bytes as an input cannot use a `#[state]`, because the input is not known when the node is created.
/// Several nodes, and the same node after a model is loaded again, find the value by its content. While the cache has more
/// than `limit` bytes, it drops the values that were used least recently; the last one stays. A dropped value that an op
/// still uses is found again, so no content has two values at a time.
///
/// A fork may come at any time: a value that the parent was computing is computed again by the child.
///
/// # Examples
/// ```
/// use std::collections::HashMap;
/// use std::sync::Arc;
/// use tf_op_plugin::{ContentCache, prelude::*};
///
/// type Ids = HashMap<String, usize>;
///
/// /// Reads a vocabulary: a word in each line.
/// fn read(text: &[u8]) -> Result<Ids> {
///     let text = str::from_utf8(text).or_code(Code::InvalidArgument)?;
///     Ok(text.lines().zip(0..).map(|(word, id)| (word.to_owned(), id)).collect())
/// }
///
/// fn memory(ids: &Ids) -> usize {
///     ids.keys().map(|word| word.len() + 48).sum()
/// }
///
/// static VOCABULARIES: ContentCache<Ids> = ContentCache::new(64 << 20, memory);
///
/// let ids = VOCABULARIES.get_or_try_insert_with(b"to\nbe\n", read)?;
/// assert_eq!(ids["be"], 1);
/// // Another copy of the same content.
/// let again = VOCABULARIES.get_or_try_insert_with(&"to\nbe\n".to_owned().into_bytes(), read)?;
/// assert!(Arc::ptr_eq(&ids, &again));
/// # Ok::<(), Error>(())
/// ```
pub struct ContentCache<V> {
    state: Mutex<State<V>>,
    limit: usize,
    memory: fn(&V) -> usize,
}

struct State<V> {
    entries: Vec<Entry<V>>,
    clock: u64,
}

struct Entry<V> {
    key: Key,
    value: Value<V>,
    used: u64,
}

enum Value<V> {
    /// A thread of this process computes it.
    Pending(ProcessOrigin),
    /// Kept in memory.
    Kept(Arc<V>),
    /// Over the limit: alive only while an op uses it.
    Evicted(Weak<V>),
}

/// What a thread does about a key.
enum Step<V> {
    Use(Arc<V>),
    Wait,
    Compute,
}

impl<V> ContentCache<V> {
    /// Creates an empty cache that keeps about `limit` bytes. `memory` returns how many bytes a value takes.
    #[must_use]
    pub const fn new(limit: usize, memory: fn(&V) -> usize) -> Self {
        Self { state: Mutex::new(State { entries: Vec::new(), clock: 0 }), limit, memory }
    }

    /// Returns the value of a content. One thread computes it with `create`; others that need it meanwhile wait.
    ///
    /// The content is hashed, which takes about 1 ms for 1 MB. [`Strings::is_same_memory`](crate::Strings::is_same_memory)
    /// saves that for calls with the same tensor.
    ///
    /// # Errors
    /// Returns the error of `create`. It is not cached: the next call computes again.
    pub fn get_or_try_insert_with(
        &self,
        content: &[u8],
        create: impl FnOnce(&[u8]) -> Result<V>,
    ) -> Result<Arc<V>> {
        let key: Key = Sha256::digest(content).into();
        loop {
            match self.state.lock()?.step(key) {
                Step::Use(value) => return Ok(value),
                // No condition variable: in a forked child its waiters are never woken.
                Step::Wait => std::thread::sleep(Duration::from_millis(1)),
                Step::Compute => break,
            }
        }
        // The lock is not held meanwhile, because a fork would wait for it.
        let mut pending = Pending { cache: self, key, result: None };
        let value = Arc::new(create(content)?);
        pending.result = Some(Arc::clone(&value));
        drop(pending);
        Ok(value)
    }
}

impl<V> fmt::Debug for ContentCache<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContentCache").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Replaces the entry of a content that is being computed, also if that fails or panics.
struct Pending<'c, V> {
    cache: &'c ContentCache<V>,
    key: Key,
    result: Option<Arc<V>>,
}

impl<V> Drop for Pending<'_, V> {
    fn drop(&mut self) {
        let Ok(mut state) = self.cache.state.lock() else { return };
        let evicted = state.finish(self.key, self.result.take(), self.cache);
        drop(state);
        // Freeing 100 MB takes milliseconds, in which a fork would wait for the lock.
        drop(evicted);
    }
}

impl<V> State<V> {
    fn step(&mut self, key: Key) -> Step<V> {
        self.clock += 1;
        let used = self.clock;
        let value = Value::Pending(ProcessOrigin::current());
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == key) else {
            self.entries.push(Entry { key, value, used });
            return Step::Compute;
        };
        entry.used = used;
        let alive = match &entry.value {
            Value::Pending(origin) if origin.is_current() => return Step::Wait,
            // The thread that computes it belongs to the parent of this process.
            Value::Pending(_) => None,
            Value::Kept(value) => return Step::Use(Arc::clone(value)),
            Value::Evicted(value) => value.upgrade(),
        };
        if let Some(value) = alive {
            return Step::Use(value);
        }
        entry.value = value;
        Step::Compute
    }

    /// Returns what is over the limit.
    fn finish(
        &mut self,
        key: Key,
        computed: Option<Arc<V>>,
        cache: &ContentCache<V>,
    ) -> Vec<Arc<V>> {
        match (self.entries.iter().position(|entry| entry.key == key), computed) {
            (Some(index), None) => drop(self.entries.swap_remove(index)),
            (Some(index), Some(value)) => self.entries[index].value = Value::Kept(value),
            (None, _) => {}
        }
        self.entries.retain(
            |entry| !matches!(&entry.value, Value::Evicted(weak) if weak.strong_count() == 0),
        );
        self.evict(cache)
    }

    /// Drops the least recently used values until the rest is within the limit. The last one stays.
    fn evict(&mut self, cache: &ContentCache<V>) -> Vec<Arc<V>> {
        let mut kept: Vec<&mut Entry<V>> =
            self.entries.iter_mut().filter(|entry| matches!(entry.value, Value::Kept(_))).collect();
        kept.sort_by_key(|entry| std::cmp::Reverse(entry.used));
        let mut total = 0_usize;
        let mut evicted = Vec::new();
        for (index, entry) in kept.into_iter().enumerate() {
            let Value::Kept(value) = &entry.value else { continue };
            total = total.saturating_add((cache.memory)(value));
            if index > 0 && total > cache.limit {
                let weak = Arc::downgrade(value);
                if let Value::Kept(value) =
                    std::mem::replace(&mut entry.value, Value::Evicted(weak))
                {
                    evicted.push(value);
                }
            }
        }
        evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tf_plugin_core::Error;

    fn cache(limit: usize) -> ContentCache<Vec<u8>> {
        ContentCache::new(limit, Vec::len)
    }

    fn copy(content: &[u8]) -> Result<Vec<u8>> {
        Ok(content.to_vec())
    }

    fn get(cache: &ContentCache<Vec<u8>>, content: &str) -> Arc<Vec<u8>> {
        cache.get_or_try_insert_with(content.as_bytes(), copy).unwrap()
    }

    #[test]
    fn the_same_content_is_computed_once() {
        let cache = cache(1000);
        let first = get(&cache, "a");
        // Another copy of the content.
        let again = cache.get_or_try_insert_with(b"a", |_| panic!("it is cached")).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(*get(&cache, "b"), b"b");
    }

    #[test]
    fn threads_that_start_together_share_one() {
        let (cache, computed) = (cache(1000), AtomicUsize::new(0));
        let slow = |content: &[u8]| {
            computed.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
            copy(content)
        };
        let all = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| cache.get_or_try_insert_with(b"a", slow).unwrap()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(all.iter().all(|one| Arc::ptr_eq(one, &all[0])));
        assert_eq!(computed.into_inner(), 1);
    }

    #[test]
    fn what_is_over_the_limit_is_dropped_when_no_op_uses_it() {
        let cache = cache(1);
        let used = get(&cache, "used");
        let unused = Arc::downgrade(&get(&cache, "unused"));
        assert!(unused.upgrade().is_some(), "the last one stays");
        drop(get(&cache, "last"));
        assert!(unused.upgrade().is_none());
        assert!(Arc::ptr_eq(&used, &get(&cache, "used")));
    }

    #[test]
    fn what_was_used_least_recently_is_dropped_first() {
        let cache = cache(4);
        let [first, second] = ["aa", "bb"].map(|content| Arc::downgrade(&get(&cache, content)));
        drop(get(&cache, "aa"));
        drop(get(&cache, "cc"));
        assert!(first.upgrade().is_some() && second.upgrade().is_none());
    }

    #[test]
    fn errors_and_panics_are_not_cached() {
        let cache = cache(1000);
        let fails = |_: &[u8]| Err(Error::invalid_argument("no"));
        assert!(cache.get_or_try_insert_with(b"a", fails).is_err());
        let panics = || cache.get_or_try_insert_with(b"a", |_| panic!("no"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert!(cache.state.lock().unwrap().entries.is_empty());
        assert_eq!(*get(&cache, "a"), b"a");
    }
}
