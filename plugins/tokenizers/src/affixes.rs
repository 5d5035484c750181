//! Rows of ids without the crate's `Encoding`: special tokens, type ids and truncation.

use crate::rows::Rows;
use tf_plugin_core::Result;
use tokenizers::{Encoding, Token, TruncationDirection, TruncationParams};

/// What a post-processor adds to a text, and the type ids.
#[derive(Debug)]
pub(crate) struct Affixes {
    before: (Vec<u32>, Vec<u32>),
    type_id: u32,
    after: (Vec<u32>, Vec<u32>),
}

/// How a row is made of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowOptions<'a> {
    pub(crate) type_ids: bool,
    /// Without the special tokens.
    pub(crate) limits: Option<&'a TruncationParams>,
}

impl Affixes {
    /// Finds what is added to a text of one token that no vocabulary has. Returns `None` if the text would not be there once.
    pub(crate) fn of(
        post_process: impl Fn(Encoding) -> tokenizers::Result<Encoding>,
    ) -> Option<Self> {
        const PROBE: u32 = u32::MAX;
        let token = Token::new(PROBE, String::new(), (0, 0));
        let row = post_process(Encoding::from_tokens(vec![token], 0)).ok()?;
        let (ids, types) = (row.get_ids(), row.get_type_ids());
        let at = ids.iter().position(|&id| id == PROBE)?;
        let is_once = ids.iter().filter(|&&id| id == PROBE).count() == 1;
        (is_once && types.len() == ids.len()).then(|| Self {
            before: (ids[..at].to_vec(), types[..at].to_vec()),
            type_id: types[at],
            after: (ids[at + 1..].to_vec(), types[at + 1..].to_vec()),
        })
    }

    /// Appends a row; `text` appends the ids of the text.
    pub(crate) fn push_row(
        &self,
        rows: &mut Rows,
        options: RowOptions<'_>,
        text: impl FnOnce(&mut Vec<u32>) -> Result<()>,
    ) -> Result<()> {
        let start = rows.ids.len();
        rows.ids.extend_from_slice(&self.before.0);
        let inner = rows.ids.len();
        text(&mut rows.ids)?;
        if let Some(limits) = options.limits {
            let length = rows.ids.len() - inner;
            match limits.direction {
                TruncationDirection::Right => rows.ids.truncate(inner + limits.max_length),
                TruncationDirection::Left => {
                    let excess = length.saturating_sub(limits.max_length);
                    rows.ids.drain(inner..inner + excess);
                }
            }
        }
        if options.type_ids {
            rows.type_ids.extend_from_slice(&self.before.1);
            let length = rows.type_ids.len() + rows.ids.len() - inner;
            rows.type_ids.resize(length, self.type_id);
            rows.type_ids.extend_from_slice(&self.after.1);
        }
        rows.ids.extend_from_slice(&self.after.0);
        rows.lengths.push(rows.ids.len() - start);
        Ok(())
    }
}
