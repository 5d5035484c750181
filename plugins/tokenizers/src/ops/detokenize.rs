//! Ids to texts.

use super::Id;
use super::known::Known;
use crate::decode::UnknownIds;
use std::marker::PhantomData;
use tf_op_plugin::prelude::*;

/// Joins ids to texts, a text for each row.
#[op(name = "HfDetokenize", inputs(ids, tokenizer: []), outputs(text: [_]), types(T = [i32, i64]))]
struct Detokenize<T: Id> {
    /// Whether to leave out tokens such as `[CLS]`.
    #[attr(default = true)]
    skip_special_tokens: bool,
    /// What happens with ids that the vocabulary does not have: an error, or nothing.
    #[attr(default = "strict", allowed("strict", "ignore"))]
    errors: String,
    #[state(Known::default())]
    known: Known,
    kind: PhantomData<T>,
}

impl<T: Id> Op for Detokenize<T> {
    type Inputs = (Ragged<Tensor<T>>, Strings);
    type Outputs = StringsBuf;

    fn compute(
        &self,
        (ids, tokenizer): Self::Inputs,
        context: &OpContext<'_>,
    ) -> Result<StringsBuf> {
        /// About 200 µs of work.
        const GRAIN: usize = 1024;
        let tokenizer = self.known.get(tokenizer)?;
        let unknown = unknown(&self.errors);
        let rows: Vec<_> = ids.rows().collect();
        let grain = (GRAIN * rows.len()).checked_div(ids.values().len()).unwrap_or(GRAIN);
        let parts = context.parallel(rows.len(), grain, |part| {
            let mut texts = StringsBuf::new();
            for row in &rows[part] {
                let ids = ids.values()[row.clone()].iter().map(|id| id.get());
                texts.push(tokenizer.decode(ids, row.start, self.skip_special_tokens, unknown)?);
            }
            Ok(texts)
        })?;
        let mut parts = parts.into_iter();
        let mut texts = parts.next().unwrap_or_default();
        parts.for_each(|part| texts.append(part));
        Ok(texts)
    }
}

/// Returns what the attribute `errors` means.
pub(super) fn unknown(errors: &str) -> UnknownIds {
    if errors == "ignore" { UnknownIds::Ignore } else { UnknownIds::Strict }
}
