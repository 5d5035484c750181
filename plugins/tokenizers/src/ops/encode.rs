//! Texts to a rectangle of ids, for a model.

use super::attributes::{self, PaddingAttributes, TruncationAttributes};
use super::known::Known;
use super::{Id, check};
use crate::encode::Options;
use crate::rows::Rows;
use std::marker::PhantomData;
use tf_op_plugin::prelude::*;

/// Splits texts into ids, and fills short rows: the inputs of a model.
#[op(
    name = "HfEncode",
    inputs(text: [..s], pair: [..s], tokenizer: []),
    outputs(ids: [..s, _], attention_mask: [..s, _], type_ids: [..s, _]),
    types(T = [i32, i64])
)]
struct Encode<T: Id> {
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
    /// The length of rows: of the longest one, or that of the truncation.
    #[attr(default = "file", allowed("file", "longest", "max_length"))]
    padding: String,
    /// At which end ids are added.
    #[attr(default = "file", allowed("file", "left", "right"))]
    padding_side: String,
    /// The length of rows is rounded up to a multiple of this; a negative number is that of the JSON.
    #[attr(default = -1)]
    pad_to_multiple_of: i64,
    /// The id that is added; a negative number is that of the JSON, or of `[PAD]` or `<pad>`, or 0.
    #[attr(default = -1)]
    pad_id: i64,
    /// The type id that is added; a negative number is that of the JSON, or 0.
    #[attr(default = -1)]
    pad_type_id: i64,
    #[state(TruncationAttributes::new(&truncation, max_length, &truncation_side))]
    truncation_attributes: TruncationAttributes,
    #[state(Known::default())]
    known: Known,
    kind: PhantomData<T>,
}

impl<T: Id> Op for Encode<T> {
    type Inputs = (Strings, Option<Strings>, Strings);
    type Outputs = (Tensor<T>, Tensor<T>, Tensor<T>);

    fn compute(
        &self,
        (text, pair, tokenizer): Self::Inputs,
        context: &OpContext<'_>,
    ) -> Result<Self::Outputs> {
        let tokenizer = self.known.get(tokenizer)?;
        let truncation = self.truncation_attributes.truncation(&tokenizer)?;
        let padding = PaddingAttributes {
            padding: &self.padding,
            side: &self.padding_side,
            multiple_of: self.pad_to_multiple_of,
            id: self.pad_id,
            type_id: self.pad_type_id,
        };
        let padding =
            padding.padding(&tokenizer, truncation, self.truncation_attributes.max_length())?;
        let options = Options {
            add_special_tokens: self.add_special_tokens,
            truncation,
            offsets: None,
            type_ids: true,
        };
        let parts = attributes::encode(context, &tokenizer, options, &text, pair.as_ref())?;
        let width = padding.width(&parts)?;
        check::<T>(&[padding.id, padding.type_id])?;
        let mut shape = text.shape().to_vec();
        shape.push(width as i64);
        let fill = |values: fn(&Rows) -> &Vec<u32>, pad: u32| -> Result<Tensor<T>> {
            let mut output = TensorBuf::zeros(&shape)?;
            if pad != 0 {
                output.fill(T::of(pad));
            }
            let lengths = parts.iter().flat_map(|part| &part.lengths);
            // A width of 0 has no chunks, and no ids either.
            let rows = output.chunks_exact_mut(width.max(1));
            let mut values = parts.iter().flat_map(values);
            for (row, &length) in rows.zip(lengths) {
                let places = &mut row[padding.place(length, width)];
                places
                    .iter_mut()
                    .zip(&mut values)
                    .for_each(|(place, &value)| *place = T::of(value));
            }
            output.with_shape(&shape)
        };
        for part in &parts {
            check::<T>(&part.ids)?;
        }
        let mut mask = TensorBuf::zeros(&shape)?;
        let lengths = parts.iter().flat_map(|part| &part.lengths);
        for (row, &length) in mask.chunks_exact_mut(width.max(1)).zip(lengths) {
            row[padding.place(length, width)].fill(T::of(1));
        }
        Ok((
            fill(|part| &part.ids, padding.id)?,
            mask.with_shape(&shape)?,
            fill(|part| &part.type_ids, padding.type_id)?,
        ))
    }
}
