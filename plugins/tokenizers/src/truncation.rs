//! How long a row of ids may be.

use crate::Tokenizer;
use tf_plugin_core::{Error, Result};
use tokenizers::{
    Encoding, PostProcessor as _, TruncationDirection, TruncationParams, TruncationStrategy,
    truncate_encodings,
};

/// At which end tokens are removed or added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// At the beginning.
    Left,
    /// At the end.
    Right,
}

impl Side {
    pub(crate) fn direction(self) -> TruncationDirection {
        match self {
            Self::Left => TruncationDirection::Left,
            Self::Right => TruncationDirection::Right,
        }
    }
}

/// Which text of a pair loses tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The longer one, one token at a time.
    LongestFirst,
    /// The first one alone.
    OnlyFirst,
    /// The second one alone.
    OnlySecond,
}

impl Strategy {
    fn raw(self) -> TruncationStrategy {
        match self {
            Self::LongestFirst => TruncationStrategy::LongestFirst,
            Self::OnlyFirst => TruncationStrategy::OnlyFirst,
            Self::OnlySecond => TruncationStrategy::OnlySecond,
        }
    }
}

/// How long a row of ids may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// As long as the text needs.
    None,
    /// At most `max_length` ids, special tokens included.
    To {
        /// The largest number of ids.
        max_length: usize,
        /// Which text of a pair loses tokens.
        strategy: Strategy,
        /// At which end tokens are removed.
        side: Side,
    },
}

impl Truncation {
    /// Returns the truncation of a JSON. Its `stride` makes further rows, which the ops do not have.
    pub(crate) fn from_params(params: &TruncationParams) -> Self {
        Self::To {
            max_length: params.max_length,
            strategy: match params.strategy {
                TruncationStrategy::LongestFirst => Strategy::LongestFirst,
                TruncationStrategy::OnlyFirst => Strategy::OnlyFirst,
                TruncationStrategy::OnlySecond => Strategy::OnlySecond,
            },
            side: match params.direction {
                TruncationDirection::Left => Side::Left,
                TruncationDirection::Right => Side::Right,
            },
        }
    }

    /// Returns after how many tokens the model may stop, for the text with this number in its pair.
    pub(crate) fn early_stop(self, type_id: u32) -> Option<(usize, TruncationDirection)> {
        match self {
            // The same condition as in the crate.
            Self::To { max_length, strategy, side }
                if strategy != Strategy::OnlySecond || type_id != 0 =>
            {
                Some((max_length, side.direction()))
            }
            _ => None,
        }
    }

    /// Checks that the special tokens have room, and returns the parameters without them.
    pub(crate) fn params(
        self,
        tokenizer: &Tokenizer,
        is_pair: bool,
        add_special: bool,
    ) -> Result<Option<TruncationParams>> {
        let Self::To { max_length, strategy, side } = self else { return Ok(None) };
        let special = match tokenizer.inner.get_post_processor() {
            Some(processor) if add_special => processor.added_tokens(is_pair),
            _ => 0,
        };
        let Some(room) = max_length.checked_sub(special) else {
            return Err(Error::invalid_argument(format!(
                "max_length is {max_length}, and the tokenizer adds {special} special tokens; set max_length to at \
                 least {special}, or add_special_tokens to False"
            )));
        };
        Ok(Some(TruncationParams {
            max_length: room,
            strategy: strategy.raw(),
            direction: side.direction(),
            stride: 0,
        }))
    }
}

/// Removes tokens from one text or a pair.
pub(crate) fn truncate(
    first: Encoding,
    second: Option<Encoding>,
    params: &TruncationParams,
) -> Result<(Encoding, Option<Encoding>)> {
    let lengths = (first.len(), second.as_ref().map(Encoding::len));
    let (mut first, mut second) = truncate_encodings(first, second, params).map_err(|_| match lengths {
        (_, None) => Error::invalid_argument(
            "truncation \"only_second\" needs a second text; pass pair, or set truncation to \"longest_first\"",
        ),
        (first, Some(second)) => Error::invalid_argument(format!(
            "a pair with {first} and {second} tokens cannot be cut to {} by one of its texts alone; set truncation \
             to \"longest_first\", or raise max_length",
            params.max_length
        )),
    })?;
    // The crate keeps what it cut off.
    first.take_overflowing();
    if let Some(second) = &mut second {
        second.take_overflowing();
    }
    Ok((first, second))
}
