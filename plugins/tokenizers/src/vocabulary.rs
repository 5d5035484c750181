//! Tokens and their ids.

use crate::Tokenizer;
use tf_plugin_core::{Error, Result};

impl Tokenizer {
    /// Returns the id of a token.
    #[must_use]
    pub fn token_to_id(&self, token: &[u8]) -> Option<u32> {
        std::str::from_utf8(token).ok().and_then(|token| self.inner.token_to_id(token))
    }

    /// Returns the token of an id.
    #[must_use]
    pub fn id_to_token(&self, id: i64) -> Option<String> {
        u32::try_from(id).ok().and_then(|id| self.inner.id_to_token(id))
    }

    /// Returns an error about an id that is not in the vocabulary.
    #[cold]
    pub(crate) fn unknown_id(&self, id: i64, index: usize) -> Error {
        Error::invalid_argument(format!(
            "id {id} at index {index} is not in the vocabulary, which has {} tokens; check that the ids come from \
             this tokenizer, or set errors to \"ignore\"",
            self.vocabulary_size()
        ))
    }

    /// Returns the token of an id, or an error that names its index.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the vocabulary does not have the id.
    pub fn require_token(&self, id: i64, index: usize) -> Result<String> {
        self.id_to_token(id).ok_or_else(|| self.unknown_id(id, index))
    }
}
