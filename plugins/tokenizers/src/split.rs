//! Pre-tokenizers on plain text.
//!
//! Those of the crate copy each piece, the original of the piece, and a table of both. Rows of ids need the pieces alone, and of
//! those that a cache knows not even a copy.

use std::borrow::Cow;
use tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::metaspace::PrependScheme;

/// A pre-tokenizer. It splits a text as that of the crate does.
#[derive(Debug)]
pub(crate) enum Splitter {
    /// `Metaspace`: a space becomes another character, which begins a piece.
    Metaspace { replacement: char, prepend: PrependScheme, splits: bool },
    /// `ByteLevel` with the regular expression of GPT-2, for ASCII: its classes of characters are Unicode's.
    ByteLevel { adds_space: bool },
}

/// What an ASCII character is to `ByteLevel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Space,
    Letter,
    Digit,
    Other,
}

impl Splitter {
    /// Returns the splitter of a pre-tokenizer that has one.
    pub(crate) fn of(pre_tokenizer: &PreTokenizerWrapper) -> Option<Self> {
        match pre_tokenizer {
            PreTokenizerWrapper::Metaspace(metaspace) => Some(Self::Metaspace {
                replacement: metaspace.get_replacement(),
                prepend: metaspace.prepend_scheme,
                splits: metaspace.split,
            }),
            PreTokenizerWrapper::ByteLevel(byte_level) if byte_level.use_regex => {
                Some(Self::ByteLevel { adds_space: byte_level.add_prefix_space })
            }
            _ => None,
        }
    }

    /// Returns whether it can split a text.
    pub(crate) fn takes(&self, text: &str) -> bool {
        matches!(self, Self::Metaspace { .. }) || text.is_ascii()
    }

    /// Returns the text whose pieces [`next`](Self::next) finds. `is_first` says that the original text begins with it.
    pub(crate) fn prepare<'t>(&self, text: &'t str, is_first: bool) -> Cow<'t, str> {
        if text.is_empty() {
            return Cow::Borrowed(text);
        }
        match *self {
            Self::Metaspace { replacement, prepend, .. } => {
                let is_prepended = match prepend {
                    PrependScheme::Always => true,
                    PrependScheme::First => is_first,
                    PrependScheme::Never => false,
                };
                let mut prepared = String::with_capacity(2 * text.len() + replacement.len_utf8());
                if is_prepended && !text.starts_with([' ', replacement]) {
                    prepared.push(replacement);
                }
                prepared.extend(text.chars().map(|one| if one == ' ' { replacement } else { one }));
                Cow::Owned(prepared)
            }
            Self::ByteLevel { adds_space } if adds_space && !text.starts_with(' ') => {
                Cow::Owned(format!(" {text}"))
            }
            Self::ByteLevel { .. } => Cow::Borrowed(text),
        }
    }

    /// Returns the length of the first piece of a text that is not empty.
    pub(crate) fn next(&self, text: &str) -> usize {
        match *self {
            Self::Metaspace { splits: false, .. } => text.len(),
            Self::Metaspace { replacement, .. } => {
                let first = text.chars().next().map_or(0, char::len_utf8);
                text[first..].find(replacement).map_or(text.len(), |at| first + at)
            }
            Self::ByteLevel { .. } => next_word(text.as_bytes()),
        }
    }

    /// Returns what the model gets for a piece.
    pub(crate) fn spelled<'p>(&self, piece: &'p str) -> Cow<'p, str> {
        let is_spelled_so = |byte: u8| byte.is_ascii_graphic();
        match self {
            Self::ByteLevel { .. } if !piece.bytes().all(is_spelled_so) => {
                Cow::Owned(piece.bytes().map(spelled).collect())
            }
            _ => Cow::Borrowed(piece),
        }
    }
}

/// Returns the character by which `ByteLevel` replaces a byte of ASCII.
fn spelled(byte: u8) -> char {
    match byte {
        // The bytes that are not printed, in their order.
        0..=b' ' => char::from_u32(0x100 + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7f => '\u{121}',
        _ => char::from(byte),
    }
}

fn class(byte: u8) -> Class {
    match byte {
        b'\t'..=b'\r' | b' ' => Class::Space,
        _ if byte.is_ascii_alphabetic() => Class::Letter,
        _ if byte.is_ascii_digit() => Class::Digit,
        _ => Class::Other,
    }
}

/// Returns the length of the first match of the regular expression of GPT-2 in ASCII:
/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`.
fn next_word(text: &[u8]) -> usize {
    let run = |start: usize| {
        let kind = text.get(start).copied().map(class);
        text[start..].iter().take_while(|&&byte| Some(class(byte)) == kind).count()
    };
    match text {
        [b'\'', b's' | b't' | b'm' | b'd', ..] => 2,
        [b'\'', b'r' | b'v', b'e', ..] | [b'\'', b'l', b'l', ..] => 3,
        // A space belongs to the word behind it.
        [b' ', next, ..] if class(*next) != Class::Space => 1 + run(1),
        [first, ..] if class(*first) == Class::Space => match run(0) {
            // The last one of several is left to the word.
            spaces if spaces > 1 && spaces < text.len() => spaces - 1,
            spaces => spaces,
        },
        _ => run(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::pre_tokenizers::byte_level::ByteLevel;
    use tokenizers::pre_tokenizers::metaspace::Metaspace;
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer as _};

    /// Compares the pieces with those of the crate.
    fn compare(pre_tokenizer: &PreTokenizerWrapper, text: &str) {
        let splitter = Splitter::of(pre_tokenizer).expect("a splitter");
        if !splitter.takes(text) {
            return;
        }
        let mut pieces = PreTokenizedString::from(text);
        pre_tokenizer.pre_tokenize(&mut pieces).expect("pieces");
        let expected = pieces.get_splits(OffsetReferential::Original, OffsetType::None);
        let expected: Vec<&str> = expected.iter().map(|(piece, ..)| *piece).collect();
        let prepared = splitter.prepare(text, true);
        let (mut rest, mut found) = (&*prepared, Vec::new());
        while !rest.is_empty() {
            let (piece, others) = rest.split_at(splitter.next(rest));
            found.push(splitter.spelled(piece));
            rest = others;
        }
        assert_eq!(found, expected, "{text:?}, {splitter:?}");
    }

    fn all() -> Vec<PreTokenizerWrapper> {
        let metaspaces = [PrependScheme::Always, PrependScheme::First, PrependScheme::Never]
            .map(|scheme| [true, false].map(|splits| Metaspace::new('▁', scheme, splits).into()));
        let byte_levels = [true, false].map(|space| ByteLevel::new(space, true, true).into());
        metaspaces.into_iter().flatten().chain(byte_levels).collect()
    }

    #[test]
    fn pieces_are_those_of_the_crate() {
        let all = all();
        for byte in 0..=127 {
            let byte = char::from(byte);
            for text in
                [format!("a{byte}b"), format!(" {byte}{byte} 1"), format!("{byte} '{byte}x")]
            {
                all.iter().for_each(|one| compare(one, &text));
            }
        }
        let words = [
            "a", "we", "'ve", "'s", "'", "'l", "ll", " ", "  ", "\n", "\t ", "1", "!", "▁", "é",
            "\0", "\x7f", "\x1c",
        ];
        tf_plugin_fuzz::fuzz!(words, |text: &[u8]| {
            let text = String::from_utf8_lossy(text);
            all.iter().for_each(|one| compare(one, &text));
        });
    }
}
