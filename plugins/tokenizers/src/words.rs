//! The ids of words: a cache of what the model has computed.
//!
//! The crate makes a string and offsets of each token, which rows without offsets do not need. Its caches save the merges of BPE
//! and the best path of Unigram only, and that of BPE belongs to a thread.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use tf_plugin_core::sync::Mutex;
use tokenizers::{Model as _, ModelWrapper};

/// The longest word that is kept, in bytes.
const LONGEST: usize = 64;
/// After so many words a cache begins again: about 2 MB.
const MANY: usize = 20_000;
/// How many caches wait for a next part of a batch.
const IDLE: usize = 16;

/// The words of a part of a batch, and of parts before it.
#[derive(Default)]
pub(crate) struct Words {
    /// Where the ids of each word are in `ids`.
    places: HashMap<Box<str>, Range<usize>>,
    ids: Vec<u32>,
}

impl Words {
    /// Appends the ids of a word, for which the model gets what `spelled` returns.
    pub(crate) fn push_ids<'w>(
        &mut self,
        model: &ModelWrapper,
        word: &'w str,
        spelled: impl FnOnce(&'w str) -> Cow<'w, str>,
        ids: &mut Vec<u32>,
    ) -> tokenizers::Result<()> {
        if let Some(place) = self.places.get(word) {
            ids.extend_from_slice(&self.ids[place.clone()]);
            return Ok(());
        }
        let first = ids.len();
        ids.extend(model.tokenize(&spelled(word))?.iter().map(|token| token.id));
        if word.len() <= LONGEST {
            if self.places.len() == MANY {
                *self = Self::default();
            }
            let start = self.ids.len();
            self.ids.extend_from_slice(&ids[first..]);
            self.places.insert(word.into(), start..self.ids.len());
        }
        Ok(())
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words({})", self.places.len())
    }
}

/// The caches that no thread uses at the moment.
#[derive(Debug, Default)]
pub(crate) struct WordCaches {
    idle: Mutex<Vec<Words>>,
}

impl WordCaches {
    /// Takes a cache, or makes one.
    pub(crate) fn take(&self) -> Words {
        self.idle.lock().ok().and_then(|mut idle| idle.pop()).unwrap_or_default()
    }

    /// Keeps a cache for a next part.
    pub(crate) fn give_back(&self, words: Words) {
        if let Ok(mut idle) = self.idle.lock()
            && idle.len() < IDLE
        {
            idle.push(words);
        }
    }
}

/// Returns whether a model always has the same ids for a word.
pub(crate) fn is_repeatable(model: &ModelWrapper) -> bool {
    let chance = match model {
        ModelWrapper::BPE(model) => model.dropout.map(f64::from),
        ModelWrapper::Unigram(model) => model.alpha,
        _ => None,
    };
    chance.is_none_or(|chance| chance == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tokenizer;

    #[test]
    fn a_cache_begins_again_and_keeps_no_long_words() {
        let json = br#"{"version": "1.0", "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1}}}"#;
        let tokenizer = Tokenizer::from_json(json).expect("a tokenizer");
        let model = tokenizer.inner.get_model();
        let (mut words, mut ids) = (Words::default(), Vec::new());
        let mut push = |words: &mut Words, word: &str| {
            ids.clear();
            words.push_ids(model, word, Cow::Borrowed, &mut ids).expect("ids");
            ids.clone()
        };
        assert_eq!((push(&mut words, "a"), push(&mut words, "b")), (vec![1], vec![0]));
        assert_eq!((push(&mut words, "a"), words.places.len()), (vec![1], 2));
        push(&mut words, &"a".repeat(LONGEST + 1));
        assert_eq!(words.places.len(), 2);
        for number in 0..MANY {
            push(&mut words, &number.to_string());
        }
        assert_eq!((words.places.len(), words.ids.len()), (2, 2));
        assert_eq!(push(&mut words, "a"), [1]);
    }

    #[test]
    fn caches_are_used_again() {
        let caches = WordCaches::default();
        let mut words = caches.take();
        words.places.insert("a".into(), 0..0);
        caches.give_back(words);
        assert_eq!(caches.take().places.len(), 1);
        assert_eq!(caches.take().places.len(), 0);
    }
}
