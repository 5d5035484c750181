//! The tokenizers that a kernel has used.

use crate::Tokenizer;
use std::fmt;
use std::sync::Arc;
use tf_op_plugin::sync::Mutex;
use tf_op_plugin::{ContentCache, Result, ResultExt as _, Strings};

/// All tokenizers of the process. What no kernel uses stays up to 256 MiB.
static CACHE: ContentCache<Tokenizer> = ContentCache::new(256 << 20, Tokenizer::memory);

/// How many tokenizers a kernel keeps. A node of a graph has one; in eager mode a kernel serves all calls with the same
/// attributes.
const LEN: usize = 4;

/// The tokenizers that a kernel has used last.
///
/// The tensor with the JSON is kept, too. While it is, its memory is not used for another one, so the same address is
/// the same JSON, and a call need not look at megabytes.
#[derive(Default)]
pub(super) struct Known {
    last: Mutex<Vec<(Strings, Arc<Tokenizer>)>>,
}

impl Known {
    pub(super) fn get(&self, json: Strings) -> Result<Arc<Tokenizer>> {
        let found = |(known, _): &(Strings, Arc<Tokenizer>)| known.is_same_memory(&json);
        if let Some((_, tokenizer)) = find(&mut self.last.lock()?, found) {
            return Ok(Arc::clone(tokenizer));
        }
        let tokenizer = CACHE
            .get_or_try_insert_with(json.only()?, Tokenizer::from_json)
            .context("input `tokenizer`")?;
        let mut last = self.last.lock()?;
        let oldest = (last.len() >= LEN).then(|| last.remove(0));
        last.push((json, Arc::clone(&tokenizer)));
        drop(last);
        // Outside of the lock, for which a fork would wait.
        drop(oldest);
        Ok(tokenizer)
    }
}

/// Finds an item, and moves it to the end: the first one is then that which was not used for the longest time.
fn find<T>(items: &mut [T], matches: impl FnMut(&T) -> bool) -> Option<&T> {
    let at = items.iter().position(matches)?;
    items[at..].rotate_left(1);
    items.last()
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_was_found_is_the_last_to_be_replaced() {
        let mut items = vec![1, 2, 3];
        assert_eq!(super::find(&mut items, |item| *item == 1), Some(&1));
        assert_eq!(items, [2, 3, 1]);
        assert_eq!(super::find(&mut items, |item| *item == 1), Some(&1));
        assert_eq!(super::find(&mut items, |item| *item == 4), None);
        assert_eq!(items, [2, 3, 1]);
    }
}
