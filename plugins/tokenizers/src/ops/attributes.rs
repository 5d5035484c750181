//! What the attributes of several ops mean.

use crate::Tokenizer;
use crate::encode::{Encoder, Options};
use crate::pad::Padding;
use crate::rows::Rows;
use crate::truncation::{Side, Strategy, Truncation};
use tf_op_plugin::{Error, OpContext, Result, Strings, ensure};

/// The attributes of truncation; what is `None` is that of the JSON.
#[derive(Clone, Copy, Debug)]
pub(super) struct TruncationAttributes {
    /// Whether there is none, whatever the JSON says.
    is_off: bool,
    strategy: Option<Strategy>,
    max_length: Option<usize>,
    side: Option<Side>,
}

impl TruncationAttributes {
    /// Returns the attribute `max_length`, if it is set.
    pub(super) const fn max_length(&self) -> Option<usize> {
        self.max_length
    }

    /// Reads `truncation`, `max_length` and `truncation_side`.
    pub(super) fn new(truncation: &str, max_length: i64, truncation_side: &str) -> Self {
        let strategy = match truncation {
            "longest_first" => Some(Strategy::LongestFirst),
            "only_first" => Some(Strategy::OnlyFirst),
            "only_second" => Some(Strategy::OnlySecond),
            _ => None,
        };
        Self {
            is_off: truncation == "none",
            strategy,
            max_length: usize::try_from(max_length).ok().filter(|&length| length > 0),
            side: side(truncation_side),
        }
    }

    /// Returns the truncation with a tokenizer.
    pub(super) fn truncation(&self, tokenizer: &Tokenizer) -> Result<Truncation> {
        if self.is_off {
            return Ok(Truncation::None);
        }
        let file = match tokenizer.default_truncation() {
            Truncation::None => None,
            Truncation::To { max_length, strategy, side } => Some((max_length, strategy, side)),
        };
        let Some(max_length) = self.max_length.or(file.map(|(max_length, ..)| max_length)) else {
            ensure!(
                self.strategy.is_none(),
                Error::invalid_argument(
                    "truncation needs a length, and the tokenizer's JSON has none; set max_length"
                )
            );
            return Ok(Truncation::None);
        };
        let strategy = self.strategy.or(file.map(|(_, strategy, _)| strategy));
        let side = self.side.or(file.map(|(.., side)| side));
        Ok(Truncation::To {
            max_length,
            strategy: strategy.unwrap_or(Strategy::LongestFirst),
            side: side.unwrap_or(Side::Right),
        })
    }
}

/// Returns the side for an attribute, if it is not that of the JSON.
fn side(name: &str) -> Option<Side> {
    match name {
        "left" => Some(Side::Left),
        "right" => Some(Side::Right),
        _ => None,
    }
}

/// The attributes of padding.
pub(super) struct PaddingAttributes<'a> {
    pub(super) padding: &'a str,
    pub(super) side: &'a str,
    pub(super) multiple_of: i64,
    pub(super) id: i64,
    pub(super) type_id: i64,
}

impl PaddingAttributes<'_> {
    /// Returns the padding with a tokenizer. `max_length` is the attribute: it is also the length without truncation.
    pub(super) fn padding(
        &self,
        tokenizer: &Tokenizer,
        truncation: Truncation,
        max_length: Option<usize>,
    ) -> Result<Padding> {
        let mut padding = Padding::of(tokenizer);
        match (self.padding, truncation) {
            ("longest", _) => padding.length = None,
            ("max_length", Truncation::To { max_length, .. }) => padding.length = Some(max_length),
            ("max_length", Truncation::None) => {
                ensure!(
                    max_length.is_some(),
                    Error::invalid_argument(
                        "padding \"max_length\" needs a length, and there is no truncation; set max_length",
                    )
                );
                padding.length = max_length;
            }
            _ => {}
        }
        if let Some(side) = side(self.side) {
            padding.side = side;
        }
        // A negative number is that of the JSON.
        padding.multiple_of = usize::try_from(self.multiple_of).unwrap_or(padding.multiple_of);
        padding.id = unless_negative(self.id, "pad_id")?.unwrap_or(padding.id);
        padding.type_id = unless_negative(self.type_id, "pad_type_id")?.unwrap_or(padding.type_id);
        Ok(padding)
    }
}

fn unless_negative(number: i64, name: &str) -> Result<Option<u32>> {
    if number < 0 {
        return Ok(None);
    }
    let small = u32::try_from(number);
    let small = small.map_err(|_| {
        Error::invalid_argument(format!("{name} is {number}, the largest id is {}", u32::MAX))
    })?;
    Ok(Some(small))
}

/// Encodes a batch on several threads. The parts are in the order of the texts.
pub(super) fn encode(
    context: &OpContext<'_>,
    tokenizer: &Tokenizer,
    options: Options,
    text: &Strings,
    pair: Option<&Strings>,
) -> Result<Vec<Rows>> {
    let encoder = Encoder::new(tokenizer, options, pair.is_some())?;
    context.parallel(text.len(), grain(text, pair, encoder.is_fast()), |part| {
        let mut rows = Rows::with_capacity(part.len());
        let mut worker = encoder.worker();
        for index in part {
            worker.encode(&text[index], pair.map(|pair| &pair[index]), &mut rows)?;
        }
        Ok(rows)
    })
}

/// Returns how many texts make a part that is worth a thread: about 200 µs of work.
fn grain(text: &Strings, pair: Option<&Strings>, is_fast: bool) -> usize {
    let wanted = if is_fast { 8192 } else { 2048 };
    let all = |strings: &Strings| strings.iter().map(<[u8]>::len).sum::<usize>();
    let bytes = all(text) + pair.map_or(0, all);
    (wanted * text.len()).checked_div(bytes).unwrap_or(wanted).max(1)
}
