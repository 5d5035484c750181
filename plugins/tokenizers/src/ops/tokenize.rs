//! Texts to ragged ids.

use super::attributes::{self, TruncationAttributes};
use super::known::Known;
use super::{Id, extend};
use crate::encode::{Options, Unit};
use crate::rows::{Rows, row_splits};
use std::marker::PhantomData;
use tf_op_plugin::prelude::*;

/// Splits texts into ids, a row for each text.
#[op(name = "HfTokenize", inputs(text: [..s], pair: [..s], tokenizer: []), outputs(ids: [_]), types(T = [i32, i64]))]
struct Tokenize<T: Id> {
    /// Whether to add the tokens that a model needs, such as `[CLS]`.
    #[attr(default = true)]
    add_special_tokens: bool,
    /// Which text of a pair loses tokens; `file` is the truncation of the JSON.
    #[attr(
        default = "file",
        allowed("file", "none", "longest_first", "only_first", "only_second")
    )]
    truncation: String,
    /// The largest number of ids in a row; 0 is that of the JSON.
    #[attr(default = 0, min = 0)]
    max_length: i64,
    /// At which end tokens are removed.
    #[attr(default = "file", allowed("file", "left", "right"))]
    truncation_side: String,
    #[state(TruncationAttributes::new(&truncation, max_length, &truncation_side))]
    truncation_attributes: TruncationAttributes,
    #[state(Known::default())]
    known: Known,
    kind: PhantomData<T>,
}

impl<T: Id> Op for Tokenize<T> {
    type Inputs = (Strings, Option<Strings>, Strings);
    type Outputs = Ragged<Tensor<T>>;

    fn compute(
        &self,
        (text, pair, tokenizer): Self::Inputs,
        context: &OpContext<'_>,
    ) -> Result<Self::Outputs> {
        let tokenizer = self.known.get(tokenizer)?;
        let truncation = self.truncation_attributes.truncation(&tokenizer)?;
        let options = Options {
            add_special_tokens: self.add_special_tokens,
            truncation,
            offsets: None,
            type_ids: false,
        };
        let parts = attributes::encode(context, &tokenizer, options, &text, pair.as_ref())?;
        ragged(&parts)
    }
}

/// Splits texts into ids, a row for each text, and says where each token begins and ends in its text.
#[op(
    name = "HfTokenizeWithOffsets",
    inputs(text: [..s], pair: [..s], tokenizer: []),
    outputs(ids: [n], starts: [n], limits: [n]),
    types(T = [i32, i64])
)]
struct TokenizeWithOffsets<T: Id> {
    /// Whether to add the tokens that a model needs, such as `[CLS]`.
    #[attr(default = true)]
    add_special_tokens: bool,
    /// Which text of a pair loses tokens; `file` is the truncation of the JSON.
    #[attr(
        default = "file",
        allowed("file", "none", "longest_first", "only_first", "only_second")
    )]
    truncation: String,
    /// The largest number of ids in a row; 0 is that of the JSON.
    #[attr(default = 0, min = 0)]
    max_length: i64,
    /// At which end tokens are removed.
    #[attr(default = "file", allowed("file", "left", "right"))]
    truncation_side: String,
    /// The unit of offsets.
    #[attr(default = "BYTE", allowed("BYTE", "UTF8_CHAR"))]
    unit: String,
    #[state(TruncationAttributes::new(&truncation, max_length, &truncation_side))]
    truncation_attributes: TruncationAttributes,
    #[state(Known::default())]
    known: Known,
    kind: PhantomData<T>,
}

impl<T: Id> Op for TokenizeWithOffsets<T> {
    type Inputs = (Strings, Option<Strings>, Strings);
    type Outputs = (Ragged<Tensor<T>>, TensorBuf<i64>, TensorBuf<i64>);

    fn compute(
        &self,
        (text, pair, tokenizer): Self::Inputs,
        context: &OpContext<'_>,
    ) -> Result<Self::Outputs> {
        let tokenizer = self.known.get(tokenizer)?;
        let truncation = self.truncation_attributes.truncation(&tokenizer)?;
        let unit = if self.unit == "BYTE" { Unit::Bytes } else { Unit::Chars };
        let options = Options {
            add_special_tokens: self.add_special_tokens,
            truncation,
            offsets: Some(unit),
            type_ids: false,
        };
        let parts = attributes::encode(context, &tokenizer, options, &text, pair.as_ref())?;
        let offsets = |of: fn(&Rows) -> &Vec<usize>| -> TensorBuf<i64> {
            parts.iter().flat_map(of).map(|&offset| offset as i64).collect()
        };
        Ok((ragged(&parts)?, offsets(|rows| &rows.starts), offsets(|rows| &rows.limits)))
    }
}

fn ragged<T: Id>(parts: &[Rows]) -> Result<Ragged<Tensor<T>>> {
    let mut values = TensorBuf::with_capacity(parts.iter().map(|part| part.ids.len()).sum());
    for part in parts {
        extend(&mut values, &part.ids)?;
    }
    let splits: TensorBuf<i64> = row_splits(parts).into_iter().collect();
    Ragged::new(values.into(), splits.into())
}
