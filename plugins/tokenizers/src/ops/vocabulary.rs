//! Tokens and ids.

use super::detokenize::unknown;
use super::known::Known;
use super::{Id, check};
use crate::decode::UnknownIds;
use std::marker::PhantomData;
use tf_op_plugin::prelude::*;

/// Returns the ids of tokens, -1 for those that the vocabulary does not have.
#[op(name = "HfTokenToId", inputs(tokens: [..s], tokenizer: []), outputs(ids: [..s]), types(T = [i32, i64]))]
struct TokenToId<T: Id> {
    #[state(Known::default())]
    known: Known,
    kind: PhantomData<T>,
}

impl<T: Id> Op for TokenToId<T> {
    type Inputs = (Strings, Strings);
    type Outputs = Tensor<T>;

    fn compute(&self, (tokens, tokenizer): Self::Inputs, _: &OpContext<'_>) -> Result<Tensor<T>> {
        let tokenizer = self.known.get(tokenizer)?;
        let mut ids = TensorBuf::zeros(tokens.shape())?;
        for (id, token) in ids.iter_mut().zip(tokens.iter()) {
            *id = match tokenizer.token_to_id(token) {
                Some(found) => {
                    check::<T>(&[found])?;
                    T::of(found)
                }
                None => T::UNKNOWN,
            };
        }
        ids.with_shape(tokens.shape())
    }
}

/// Returns the tokens of ids.
#[op(name = "HfIdToToken", inputs(ids: [..s], tokenizer: []), outputs(tokens: [..s]), types(T = [i32, i64]))]
struct IdToToken<T: Id> {
    /// What happens with ids that the vocabulary does not have: an error, or an empty string.
    #[attr(default = "strict", allowed("strict", "ignore"))]
    errors: String,
    #[state(Known::default())]
    known: Known,
    kind: PhantomData<T>,
}

impl<T: Id> Op for IdToToken<T> {
    type Inputs = (Tensor<T>, Strings);
    type Outputs = Strings;

    fn compute(&self, (ids, tokenizer): Self::Inputs, _: &OpContext<'_>) -> Result<Strings> {
        let tokenizer = self.known.get(tokenizer)?;
        let mut tokens = StringsBuf::new();
        for (index, id) in ids.iter().enumerate() {
            tokens.push(match unknown(&self.errors) {
                UnknownIds::Strict => tokenizer.require_token(id.get(), index)?,
                UnknownIds::Ignore => tokenizer.id_to_token(id.get()).unwrap_or_default(),
            });
        }
        tokens.with_shape(ids.shape())
    }
}

/// Returns the number of tokens, with the added ones.
#[op(name = "HfVocabSize", inputs(tokenizer: []), outputs(size: []))]
struct VocabSize {
    #[state(Known::default())]
    known: Known,
}

impl Op for VocabSize {
    type Inputs = (Strings,);
    type Outputs = (i32,);

    fn compute(&self, (tokenizer,): Self::Inputs, _: &OpContext<'_>) -> Result<(i32,)> {
        let size = self.known.get(tokenizer)?.vocabulary_size();
        Ok((i32::try_from(size).map_err(Error::invalid_argument)?,))
    }
}
