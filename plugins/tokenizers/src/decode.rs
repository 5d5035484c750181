//! Ids to texts.

use crate::Tokenizer;
use tf_plugin_core::{Error, Result};
use tokenizers::Decoder as _;

/// What happens with ids that the vocabulary does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownIds {
    /// They are an error.
    Strict,
    /// They are skipped, as Python's `tokenizers` does.
    Ignore,
}

impl Tokenizer {
    /// Returns the text of a row of ids. `first` is the index of the first one in the whole input, for errors.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an id that the vocabulary does not have, if these are errors.
    pub fn decode(
        &self,
        ids: impl IntoIterator<Item = i64>,
        first: usize,
        skip_special_tokens: bool,
        unknown: UnknownIds,
    ) -> Result<String> {
        let mut tokens = Vec::new();
        for (index, id) in ids.into_iter().enumerate() {
            let Some(token) = self.id_to_token(id) else {
                match unknown {
                    UnknownIds::Strict => return Err(self.unknown_id(id, first + index)),
                    UnknownIds::Ignore => continue,
                }
            };
            if !skip_special_tokens || !self.inner.get_added_vocabulary().is_special_token(&token) {
                tokens.push(token);
            }
        }
        let Some(decoder) = self.inner.get_decoder() else { return Ok(tokens.join(" ")) };
        decoder.decode(tokens).map_err(|cause| {
            Error::invalid_argument(format!(
                "the tokenizer cannot decode ids: {cause}; check the part \"decoder\" of its JSON"
            ))
        })
    }
}
