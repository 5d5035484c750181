//! BERT's pipeline for ASCII texts whose offsets are not requested.
//!
//! The crate spends most of its time on the record of which character comes from where, and in Unicode's tables. Neither is
//! needed here. All other texts and pipelines go the crate's way.

use tokenizers::models::wordpiece::WordPiece;
use tokenizers::{Model as _, ModelWrapper, NormalizerWrapper, PreTokenizerWrapper, Tokenizer};

/// What becomes of an ASCII character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// It is left out.
    Removed,
    /// It ends a word.
    Space,
    /// It is a word.
    Punctuation,
    /// It belongs to a word, as this character.
    Letter(u8),
}

/// BERT's pipeline: `BertNormalizer`, `BertPreTokenizer`, `WordPiece`.
#[derive(Debug)]
pub(crate) struct Bert {
    classes: [Class; 128],
    /// The added tokens in ASCII. A text with one goes the crate's way.
    added: Vec<String>,
    /// The first bytes of the added tokens.
    first: [bool; 128],
    unknown: u32,
}

impl Bert {
    /// Returns the pipeline, if the tokenizer has it.
    pub(crate) fn of(tokenizer: &Tokenizer) -> Option<Self> {
        let Some(NormalizerWrapper::BertNormalizer(normalizer)) = tokenizer.get_normalizer() else {
            return None;
        };
        let Some(PreTokenizerWrapper::BertPreTokenizer(_)) = tokenizer.get_pre_tokenizer() else {
            return None;
        };
        let model = model(tokenizer)?;
        let unknown = model.token_to_id(&model.unk_token)?;
        let added = tokenizer.get_added_tokens_decoder();
        // These are looked for in normalized text.
        if added.values().any(|token| token.normalized) {
            return None;
        }
        let added: Vec<String> = added
            .into_values()
            .map(|token| token.content)
            .filter(|content| content.is_ascii() && !content.is_empty())
            .collect();
        let mut first = [false; 128];
        for token in &added {
            first[usize::from(token.as_bytes()[0])] = true;
        }
        let classes = core::array::from_fn(|code| {
            let byte = code as u8;
            class(byte, normalizer.clean_text, normalizer.lowercase)
        });
        Some(Self { classes, added, first, unknown })
    }

    /// Appends the ids of a text; returns false, and appends nothing, for a text that goes the crate's way.
    pub(crate) fn encode(&self, tokenizer: &Tokenizer, text: &[u8], ids: &mut Vec<u32>) -> bool {
        let (Some(model), true) = (model(tokenizer), self.takes(text)) else { return false };
        self.words(model, text, ids);
        true
    }

    /// Returns whether the text is ASCII without added tokens.
    fn takes(&self, text: &[u8]) -> bool {
        let mut suspect = false;
        for &byte in text {
            let Some(first) = self.first.get(usize::from(byte)) else { return false };
            suspect |= first;
        }
        let has = |token: &String| text.windows(token.len()).any(|part| part == token.as_bytes());
        !(suspect && self.added.iter().any(has))
    }

    fn words(&self, model: &WordPiece, text: &[u8], ids: &mut Vec<u32>) {
        let mut word = String::with_capacity(32);
        let mut piece = String::new();
        for &byte in text {
            match self.classes[usize::from(byte)] {
                Class::Removed => {}
                Class::Letter(letter) => word.push(char::from(letter)),
                other => {
                    self.word(model, &word, &mut piece, ids);
                    word.clear();
                    if other == Class::Punctuation {
                        word.push(char::from(byte));
                        self.word(model, &word, &mut piece, ids);
                        word.clear();
                    }
                }
            }
        }
        self.word(model, &word, &mut piece, ids);
    }

    /// Appends the longest tokens that a word consists of; or the unknown one, if there are none.
    fn word(&self, model: &WordPiece, word: &str, piece: &mut String, ids: &mut Vec<u32>) {
        if word.is_empty() {
            return;
        }
        if word.len() > model.max_input_chars_per_word {
            ids.push(self.unknown);
            return;
        }
        let first = ids.len();
        let mut start = 0;
        while start < word.len() {
            let (text, prefix) = if start == 0 {
                (word, 0)
            } else {
                piece.clear();
                piece.push_str(&model.continuing_subword_prefix);
                piece.push_str(&word[start..]);
                (piece.as_str(), model.continuing_subword_prefix.len())
            };
            let ends = (prefix + 1..=text.len()).rev();
            let found = ends
                .filter_map(|end| Some((model.token_to_id(&text[..end])?, end - prefix)))
                .next();
            let Some((id, length)) = found else {
                ids.truncate(first);
                ids.push(self.unknown);
                return;
            };
            ids.push(id);
            start += length;
        }
    }
}

fn model(tokenizer: &Tokenizer) -> Option<&WordPiece> {
    match tokenizer.get_model() {
        ModelWrapper::WordPiece(model) => Some(model),
        _ => None,
    }
}

/// Returns what the normalizer and the pre-tokenizer do with a character.
fn class(byte: u8, clean_text: bool, lowercase: bool) -> Class {
    match byte {
        b'\t' | b'\n' | b'\r' | b' ' => Class::Space,
        // Control characters, among them `\x0b` and `\x0c`, which are white space too.
        0..=31 | 127 if clean_text => Class::Removed,
        b'\x0b' | b'\x0c' => Class::Space,
        _ if byte.is_ascii_punctuation() => Class::Punctuation,
        _ if lowercase => Class::Letter(byte.to_ascii_lowercase()),
        _ => Class::Letter(byte),
    }
}

#[cfg(test)]
mod tests {
    use crate::Tokenizer;
    use crate::encode::{Encoder, Options, Unit};
    use crate::rows::Rows;
    use crate::truncation::{Side, Strategy, Truncation};

    /// A tokenizer of BERT's kind.
    fn tokenizer(normalizer: &str, special: bool) -> Tokenizer {
        let json = format!(
            r####"{{"version": "1.0",
                "added_tokens": [{{"id": 1, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": {}, "special": true}}],
                "normalizer": {{"type": "BertNormalizer", {normalizer}, "handle_chinese_chars": true, "strip_accents": null}},
                "pre_tokenizer": {{"type": "BertPreTokenizer"}},
                "post_processor": {{"type": "TemplateProcessing",
                    "single": [{{"SpecialToken": {{"id": "[CLS]", "type_id": 0}}}}, {{"Sequence": {{"id": "A", "type_id": 0}}}},
                        {{"SpecialToken": {{"id": "[CLS]", "type_id": 1}}}}],
                    "pair": [{{"Sequence": {{"id": "A", "type_id": 0}}}}, {{"Sequence": {{"id": "B", "type_id": 1}}}}],
                    "special_tokens": {{"[CLS]": {{"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}}}}}},
                "model": {{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                    "max_input_chars_per_word": 8, "vocab": {{"[UNK]": 0, "[CLS]": 1, "a": 2, "##a": 3, "ab": 4, "##b": 5,
                    "##ba": 6, "A": 7, "!": 8, "[": 9, "##!": 10, "\u0000": 11, "cls": 12, "]": 13, "##A": 14}}}}}}"####,
            !special
        );
        Tokenizer::from_json(json.as_bytes()).expect("a tokenizer")
    }

    /// Returns ids and type ids; with offsets the crate computes them.
    fn encode(
        tokenizer: &Tokenizer,
        options: Options,
        text: &[u8],
    ) -> (Vec<u32>, Vec<u32>, Vec<usize>) {
        let mut rows = Rows::default();
        let encoder = Encoder::new(tokenizer, options, false).expect("options");
        encoder.worker().encode(text, None, &mut rows).expect("a row");
        (rows.ids, rows.type_ids, rows.lengths)
    }

    fn compare(tokenizer: &Tokenizer, text: &[u8]) {
        let cut = |side, strategy| Truncation::To { max_length: 4, strategy, side };
        for add_special_tokens in [false, true] {
            for truncation in [
                Truncation::None,
                cut(Side::Right, Strategy::LongestFirst),
                cut(Side::Left, Strategy::OnlyFirst),
            ] {
                let options =
                    Options { add_special_tokens, truncation, offsets: None, type_ids: true };
                let slow = Options { offsets: Some(Unit::Bytes), ..options };
                assert_eq!(
                    encode(tokenizer, options, text),
                    encode(tokenizer, slow, text),
                    "{:?}, {options:?}",
                    text.escape_ascii().to_string()
                );
            }
        }
    }

    #[test]
    fn rows_are_those_of_the_crate() {
        for normalizer in [
            r#""clean_text": true, "lowercase": true"#,
            r#""clean_text": false, "lowercase": false"#,
        ] {
            let tokenizer = tokenizer(normalizer, true);
            assert!(tokenizer.bert.is_some());
            for byte in 0..=127 {
                compare(&tokenizer, &[b'a', byte, b'B', byte, byte]);
            }
            let words = [
                "a",
                "A",
                "ab",
                "ba",
                "!",
                " ",
                "[CLS]",
                "[cls]",
                "aaaaaaaaa",
                "[",
                "c",
                "\t",
                "\u{e9}",
            ];
            tf_plugin_fuzz::fuzz!(words, |text: &[u8]| compare(&tokenizer, text));
        }
    }

    #[test]
    fn tokens_in_normalized_text_are_the_crate_s_business() {
        let tokenizer = tokenizer(r#""clean_text": true, "lowercase": true"#, false);
        assert!(tokenizer.bert.is_none());
        // Words that the cache has from the first time.
        for _ in 0..2 {
            for text in ["ab a", "", "[cls] a[CLS]ba !", "aaaaaaaaa A", "\u{e9} b"] {
                compare(&tokenizer, text.as_bytes());
            }
        }
    }
}
