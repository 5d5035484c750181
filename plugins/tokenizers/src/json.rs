//! Reads a `tokenizer.json`.

use crate::affixes::Affixes;
use crate::bert::Bert;
use crate::encode::post_process;
use crate::split::Splitter;
use crate::truncation::Truncation;
use crate::words::{WordCaches, is_repeatable};
use serde_json::{Map, Value};
use std::sync::OnceLock;
use tf_plugin_core::sync::Mutex;
use tf_plugin_core::{Error, Result};
use tokenizers::{PaddingParams, TruncationParams, parallelism};

/// The longest JSON that is read, unless [`LIMIT_VARIABLE`] holds another number.
pub const DEFAULT_LIMIT: usize = 64 << 20;
/// The environment variable with the longest JSON that is read, in bytes.
pub const LIMIT_VARIABLE: &str = "TENSORFLOW_TOKENIZERS_MAX_JSON_BYTES";

/// A tokenizer that was read from its JSON.
#[derive(Debug)]
pub struct Tokenizer {
    /// Without its padding and truncation, which each call has of its own.
    pub(crate) inner: tokenizers::Tokenizer,
    /// The section `truncation` of the JSON.
    pub(crate) truncation: Option<TruncationParams>,
    /// The section `padding` of the JSON.
    pub(crate) padding: Option<PaddingParams>,
    /// The way of ASCII texts, if it is BERT's.
    pub(crate) bert: Option<Bert>,
    /// What the post-processor adds to a text, without and with special tokens, if that is the same for all texts.
    pub(crate) affixes: [Option<Affixes>; 2],
    /// The pre-tokenizer on plain text, if it has one.
    pub(crate) splitter: Option<Splitter>,
    /// The ids of words, if the model always has the same for one.
    pub(crate) words: Option<WordCaches>,
    vocabulary_size: usize,
    json_bytes: usize,
}

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is too long, not JSON, of another version, or does not describe a tokenizer.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        Self::from_json_within(json, limit()?)
    }

    fn from_json_within(json: &[u8], limit: usize) -> Result<Self> {
        if json.len() > limit {
            return Err(Error::invalid_argument(format!(
                "tokenizer.json has {} bytes, the limit is {limit}; check that it is the right file, or set \
                 {LIMIT_VARIABLE} to a larger number of bytes",
                json.len()
            )));
        }
        let text = std::str::from_utf8(json).map_err(|error| {
            Error::invalid_argument(format!(
                "tokenizer.json is not UTF-8: byte {} is invalid; pass the content of a tokenizer.json, as \
                 Python's `Tokenizer.save` writes it",
                error.valid_up_to()
            ))
        })?;
        warm_up();
        let mut inner: tokenizers::Tokenizer =
            text.parse().map_err(|cause| explain(text, cause))?;
        let truncation = inner.get_truncation().cloned();
        let padding = inner.get_padding().cloned();
        // Removing it cannot fail.
        let _ = inner.with_truncation(None);
        inner.with_padding(None);
        let vocabulary_size = inner.get_vocab_size(true);
        let bert = Bert::of(&inner);
        let affixes = [false, true].map(|add_special_tokens| {
            Affixes::of(|encoding| post_process(&inner, encoding, None, add_special_tokens))
        });
        let splitter = inner.get_pre_tokenizer().and_then(Splitter::of);
        let words = is_repeatable(inner.get_model()).then(WordCaches::default);
        let json_bytes = json.len();
        Ok(Self {
            inner,
            truncation,
            padding,
            bert,
            affixes,
            splitter,
            words,
            vocabulary_size,
            json_bytes,
        })
    }

    /// Returns the number of tokens, with the added ones.
    #[must_use]
    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    /// Returns about how many bytes of memory it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        // An estimate: a vocabulary is in two hash maps, and each token is a `String` in both.
        (64 << 10) + self.json_bytes * MEMORY_PER_JSON_BYTE
    }

    /// Returns the truncation that the JSON asks for.
    #[must_use]
    pub fn default_truncation(&self) -> Truncation {
        self.truncation.as_ref().map_or(Truncation::None, Truncation::from_params)
    }
}

const MEMORY_PER_JSON_BYTE: usize = 6;

/// Returns the longest JSON that is read.
fn limit() -> Result<usize> {
    match std::env::var(LIMIT_VARIABLE) {
        Err(_) => Ok(DEFAULT_LIMIT),
        Ok(value) => value.trim().parse().map_err(|_| {
            Error::invalid_argument(format!(
                "{LIMIT_VARIABLE} is \"{value}\", which is not a number of bytes; set it to a number such as 134217728"
            ))
        }),
    }
}

/// Returns an error that says which part of the JSON is wrong.
#[cold]
fn explain(text: &str, cause: Box<dyn std::error::Error + Send + Sync>) -> Error {
    const NEXT: &str = "pass the content of a tokenizer.json, as Python's `Tokenizer.save` of tokenizers 0.23 writes it";
    let cause = cause.to_string();
    if text.trim_start().is_empty() {
        return Error::invalid_argument(format!("tokenizer.json is empty; {NEXT}"));
    }
    if let Some(version) = cause.strip_prefix("Unknown tokenizer version '") {
        let version = version.split('\'').next().unwrap_or_default();
        return Error::invalid_argument(format!(
            "tokenizer.json has version \"{version}\", this plugin reads \"1.0\"; {NEXT}"
        ));
    }
    if !text.trim_start().starts_with('{') {
        return Error::invalid_argument(format!(
            "tokenizer.json is not a JSON object: {cause}; {NEXT}"
        ));
    }
    if let Ok(object) = serde_json::from_str::<Map<String, Value>>(text)
        && !object.contains_key("model")
    {
        let mut keys: Vec<&str> = object.keys().take(4).map(String::as_str).collect();
        // The order of a map is a feature of `serde_json`.
        keys.sort_unstable();
        return Error::invalid_argument(format!(
            "tokenizer.json has no key \"model\", its keys are [{}]; {NEXT}, not tokenizer_config.json or vocab.json",
            keys.join(", ")
        ));
    }
    Error::invalid_argument(format!(
        "tokenizer.json does not describe a tokenizer: {cause}; {NEXT}"
    ))
}

/// Fills the lazy statics of the crate `tokenizers`, once in a process.
///
/// A thread that forks while another one fills a `LazyLock` leaves it locked in the child forever. A fork waits for the
/// holder of the SDK's lock, and so for the end of this.
fn warm_up() {
    static DONE: OnceLock<()> = OnceLock::new();
    static ONE: Mutex<()> = Mutex::new(());
    if DONE.get().is_some() {
        return;
    }
    let _guard = ONE.lock();
    if DONE.get().is_some() {
        return;
    }
    parallelism::set_parallelism(false);
    // If it failed, only forks during the first call would be at risk. The tests see that it does not.
    let _ = use_all_statics();
    let _ = DONE.set(());
}

/// Encodes a text with every part of the crate that has a lazy static.
fn use_all_statics() -> tokenizers::Result<usize> {
    const EVERYTHING: &str = r#"{
        "version": "1.0",
        "added_tokens": [{"id": 0, "content": "[S]", "single_word": true, "lstrip": true, "rstrip": true,
            "normalized": false, "special": true}],
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": true, "lowercase": true},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Whitespace"},
            {"type": "UnicodeScripts"},
            {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}]},
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "WordLevel", "unk_token": "[S]", "vocab": {"[S]": 0}}
    }"#;
    let tokenizer: tokenizers::Tokenizer = EVERYTHING.parse()?;
    let encoding = tokenizer.encode("one [S] deux", true)?;
    Ok(tokenizer.decode(encoding.get_ids(), false)?.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(json: &[u8]) -> String {
        Tokenizer::from_json(json).unwrap_err().to_string()
    }

    #[test]
    fn the_warm_up_succeeds() {
        assert!(use_all_statics().unwrap() > 0);
    }

    #[test]
    fn text_that_is_not_a_tokenizer_is_refused() {
        assert!(error(b"").starts_with("tokenizer.json is empty; pass the content"));
        assert!(error(b" \n").starts_with("tokenizer.json is empty; pass the content"));
        assert!(error(b"hello").starts_with(
            "tokenizer.json is not a JSON object: expected value at line 1 column 1; "
        ));
        assert!(error(b"[1]").starts_with("tokenizer.json is not a JSON object: "));
        assert!(
            error(b"{\"model\": ")
                .starts_with("tokenizer.json does not describe a tokenizer: EOF while parsing")
        );
        assert!(error(b"{}").starts_with("tokenizer.json has no key \"model\", its keys are []; "));
        assert!(error(br#"{"version": "1.0", "do_lower_case": true}"#).starts_with(
            "tokenizer.json has no key \"model\", its keys are [do_lower_case, version]; "
        ));
        assert!(
            error(br#"{"version": "1.0", "model": {"type": "New"}}"#)
                .starts_with("tokenizer.json does not describe a tokenizer: ")
        );
        assert!(
            error(b"\x1f\x8b\x08").starts_with("tokenizer.json is not UTF-8: byte 1 is invalid; ")
        );
    }

    #[test]
    fn another_version_is_refused() {
        let json = br#"{"version": "2.0", "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0}}}"#;
        assert!(
            error(json)
                .starts_with("tokenizer.json has version \"2.0\", this plugin reads \"1.0\"; ")
        );
    }

    #[test]
    fn a_file_that_is_too_long_is_refused_before_it_is_read() {
        let long = vec![b'{'; DEFAULT_LIMIT + 1];
        let text = error(&long);
        assert!(
            text.starts_with("tokenizer.json has 67108865 bytes, the limit is 67108864; "),
            "{text}"
        );
        assert!(
            text.ends_with("set TENSORFLOW_TOKENIZERS_MAX_JSON_BYTES to a larger number of bytes"),
            "{text}"
        );
    }
}
