//! Texts to ids.

use crate::Tokenizer;
use crate::affixes::{Affixes, RowOptions};
use crate::bert::Bert;
use crate::rows::Rows;
use crate::text::Text;
use crate::truncation::{Truncation, truncate};
use crate::words::Words;
use std::borrow::Cow;
use tf_plugin_core::{Code, Error, Result};
use tokenizers::{
    Encoding, Model as _, OffsetReferential, OffsetType, PostProcessor, PreTokenizedString,
    PreTokenizer as _, Token, TruncationDirection, TruncationParams, TruncationStrategy,
};

/// The unit of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of the text as it was passed, as tensorflow-text counts.
    Bytes,
    /// Characters, as Python's `tokenizers` counts. An invalid sequence is one character.
    Chars,
}

/// How texts are encoded.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether the tokens that a model needs, such as `[CLS]`, are added.
    pub add_special_tokens: bool,
    /// How long a row may be.
    pub truncation: Truncation,
    /// Whether offsets are computed, and their unit.
    pub offsets: Option<Unit>,
    /// Whether the numbers of the texts in their pairs are returned.
    pub type_ids: bool,
}

/// Encodes the texts of one call.
#[derive(Debug)]
pub struct Encoder<'t> {
    tokenizer: &'t Tokenizer,
    options: Options,
    /// The truncation of a single text and of a pair, without the special tokens.
    limits: Option<TruncationParams>,
    is_pair: bool,
    /// The way of rows of ids alone, if these options allow it.
    affixes: Option<&'t Affixes>,
    /// The way of ASCII texts.
    bert: Option<&'t Bert>,
}

/// Encodes texts on one thread.
#[derive(Debug)]
pub struct Worker<'e> {
    encoder: &'e Encoder<'e>,
    /// The ids of the last words, if the model has the same each time.
    words: Option<Words>,
}

impl<'t> Encoder<'t> {
    /// Checks the options.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the special tokens alone are longer than a row may be.
    pub fn new(tokenizer: &'t Tokenizer, options: Options, is_pair: bool) -> Result<Self> {
        let limits = options.truncation.params(tokenizer, is_pair, options.add_special_tokens)?;
        let only_second =
            |params: &TruncationParams| params.strategy == TruncationStrategy::OnlySecond;
        let has_ids_only =
            !is_pair && options.offsets.is_none() && !limits.as_ref().is_some_and(only_second);
        let affixes = &tokenizer.affixes[usize::from(options.add_special_tokens)];
        let affixes = affixes.as_ref().filter(|_| has_ids_only);
        let bert = tokenizer.bert.as_ref().filter(|_| affixes.is_some());
        Ok(Self { tokenizer, options, limits, is_pair, affixes, bert })
    }

    /// Returns what encodes texts on this thread.
    #[must_use]
    pub fn worker(&self) -> Worker<'_> {
        let words = self.tokenizer.words.as_ref().filter(|_| self.affixes.is_some());
        Worker { encoder: self, words: words.map(|caches| caches.take()) }
    }

    /// Appends a row of a text, or a pair of texts, by the crate's `Encoding`.
    fn push_encoding(&self, text: &[u8], pair: Option<&[u8]>, rows: &mut Rows) -> Result<()> {
        let text = Text::new(text);
        let pair = pair.map(Text::new);
        let mut first = self.one(&text, 0)?;
        let mut second = pair.as_ref().map(|pair| self.one(pair, 1)).transpose()?;
        if let Some(params) = &self.limits {
            (first, second) = truncate(first, second, params)?;
        }
        let add_special_tokens = self.options.add_special_tokens;
        let inner = &self.tokenizer.inner;
        let encoding = post_process(inner, first, second, add_special_tokens).map_err(failed)?;
        rows.lengths.push(encoding.len());
        rows.ids.extend_from_slice(encoding.get_ids());
        if self.options.type_ids {
            rows.type_ids.extend_from_slice(encoding.get_type_ids());
        }
        if let Some(unit) = self.options.offsets {
            self.push_offsets(&encoding, unit, &text, pair.as_ref(), rows);
        }
        Ok(())
    }

    /// Returns whether ASCII texts take the short way, which takes a quarter of the time.
    pub(crate) fn is_fast(&self) -> bool {
        self.bert.is_some()
    }

    /// Splits a text at added tokens, and normalizes it.
    fn segments(&self, text: &Text<'_>) -> PreTokenizedString {
        let inner = &self.tokenizer.inner;
        inner.get_added_vocabulary().extract_and_normalize(inner.get_normalizer(), &text.utf8)
    }

    /// Splits segments into the pieces that the model tokenizes.
    fn split(&self, segments: &mut PreTokenizedString) -> Result<()> {
        match self.tokenizer.inner.get_pre_tokenizer() {
            Some(pre_tokenizer) => pre_tokenizer.pre_tokenize(segments).map_err(failed),
            None => Ok(()),
        }
    }

    /// Encodes one text. The steps are those of the crate's `Tokenizer::encode`, whose truncation belongs to the
    /// tokenizer instead of the call.
    fn one(&self, text: &Text<'_>, type_id: u32) -> Result<Encoding> {
        let inner = &self.tokenizer.inner;
        let mut pieces = self.segments(text);
        self.split(&mut pieces)?;
        let stop = self.options.truncation.early_stop(type_id);
        inner.get_model().tokenize_in_pretokenized(&mut pieces, stop).map_err(failed)?;
        let offsets = match self.options.offsets {
            None => OffsetType::None,
            // The same, without the crate's table of characters.
            Some(_) if text.is_ascii() => OffsetType::Byte,
            Some(_) => OffsetType::Char,
        };
        let mut encoding = pieces.into_encoding(None, type_id, offsets).map_err(failed)?;
        if type_id != 0 && self.options.type_ids {
            // Without offsets the crate leaves them 0.
            encoding.set_type_ids(vec![type_id; encoding.len()]);
        }
        Ok(encoding)
    }

    /// Appends offsets. The crate's own ones in bytes are wrong where a post-processor trims spaces, which it counts in
    /// characters; so these are converted.
    fn push_offsets(
        &self,
        encoding: &Encoding,
        unit: Unit,
        text: &Text<'_>,
        pair: Option<&Text<'_>>,
        rows: &mut Rows,
    ) {
        let tables: Vec<Option<Vec<usize>>> = std::iter::once(text)
            .chain(pair)
            .map(|text| (unit == Unit::Bytes && !text.is_ascii()).then(|| text.begins()))
            .collect();
        for (index, &(start, limit)) in encoding.get_offsets().iter().enumerate() {
            // A special token is in no text.
            let table =
                encoding.token_to_sequence(index).and_then(|number| tables.get(number)?.as_ref());
            let convert = |at: usize| match table {
                Some(begins) => begins.get(at).or(begins.last()).copied().unwrap_or(at),
                None => at,
            };
            rows.starts.push(convert(start));
            rows.limits.push(convert(limit));
        }
    }
}

impl Worker<'_> {
    /// Encodes a text, or a pair of texts, and appends the row.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the text, or cannot cut the pair to its length.
    pub fn encode(&mut self, text: &[u8], pair: Option<&[u8]>, rows: &mut Rows) -> Result<()> {
        let encoder = self.encoder;
        debug_assert_eq!(
            pair.is_some(),
            encoder.is_pair,
            "the encoder was made for the other kind"
        );
        let Some(affixes) = encoder.affixes else { return encoder.push_encoding(text, pair, rows) };
        let (type_ids, limits) = (encoder.options.type_ids, encoder.limits.as_ref());
        affixes.push_row(rows, RowOptions { type_ids, limits }, |ids| self.push_ids(text, ids))
    }

    /// Appends the ids of a text.
    fn push_ids(&mut self, text: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        let encoder = self.encoder;
        let inner = &encoder.tokenizer.inner;
        if let Some(bert) = encoder.bert
            && bert.encode(inner, text, ids)
        {
            return Ok(());
        }
        let mut segments = encoder.segments(&Text::new(text));
        let enough = match encoder.options.truncation.early_stop(0) {
            Some((length, TruncationDirection::Right)) => ids.len().saturating_add(length),
            _ => usize::MAX,
        };
        let model = inner.get_model();
        if let (Some(splitter), Some(words)) = (&encoder.tokenizer.splitter, &mut self.words) {
            let segments = segments.get_splits(OffsetReferential::Original, OffsetType::None);
            let is_taken = |(text, _, tokens): &(&str, _, &Option<_>)| {
                tokens.is_some() || splitter.takes(text)
            };
            if segments.iter().all(is_taken) {
                for (segment, (start, _), tokens) in segments {
                    if let Some(tokens) = tokens {
                        push_tokens(tokens, ids);
                        continue;
                    }
                    let segment = splitter.prepare(segment, start == 0);
                    let mut rest = &*segment;
                    while !rest.is_empty() && ids.len() < enough {
                        let (piece, others) = rest.split_at(splitter.next(rest));
                        words
                            .push_ids(model, piece, |piece| splitter.spelled(piece), ids)
                            .map_err(failed)?;
                        rest = others;
                    }
                }
                return Ok(());
            }
        }
        encoder.split(&mut segments)?;
        for (piece, _, tokens) in segments.get_splits(OffsetReferential::Original, OffsetType::None)
        {
            if ids.len() >= enough {
                break;
            }
            match (tokens, &mut self.words) {
                (Some(tokens), _) => push_tokens(tokens, ids),
                (None, Some(words)) => {
                    words.push_ids(model, piece, Cow::Borrowed, ids).map_err(failed)?;
                }
                (None, None) => push_tokens(&model.tokenize(piece).map_err(failed)?, ids),
            }
        }
        Ok(())
    }
}

/// Appends the ids of tokens, such as an added one.
fn push_tokens(tokens: &[Token], ids: &mut Vec<u32>) {
    ids.extend(tokens.iter().map(|token| token.id));
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        if let (Some(caches), Some(words)) = (&self.encoder.tokenizer.words, self.words.take()) {
            caches.give_back(words);
        }
    }
}

/// Adds special tokens, and joins a pair.
pub(crate) fn post_process(
    tokenizer: &tokenizers::Tokenizer,
    first: Encoding,
    second: Option<Encoding>,
    add_special_tokens: bool,
) -> tokenizers::Result<Encoding> {
    if let Some(processor) = tokenizer.get_post_processor() {
        return processor.process(first, second, add_special_tokens);
    }
    let encodings = std::iter::once(first).chain(second).collect();
    let mut joined = <dyn PostProcessor>::default_process(encodings, add_special_tokens)?;
    joined.pop().ok_or_else(|| "the pair was not joined".into())
}

#[cold]
fn failed(cause: Box<dyn std::error::Error + Send + Sync>) -> Error {
    Error::new(
        Code::InvalidArgument,
        format!(
            "the tokenizer cannot encode a text: {cause}; check the parts \"model\" and \"pre_tokenizer\" of its JSON"
        ),
    )
}
