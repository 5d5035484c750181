//! Texts as the bytes that TensorFlow has, which need not be UTF-8.

use std::borrow::Cow;

/// A text in UTF-8, and the bytes that it comes from.
///
/// Each invalid sequence becomes one U+FFFD, as Python's `bytes.decode(errors="replace")` does.
pub(crate) struct Text<'a> {
    bytes: &'a [u8],
    pub(crate) utf8: Cow<'a, str>,
}

impl<'a> Text<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, utf8: String::from_utf8_lossy(bytes) }
    }

    /// Returns whether each character is a byte.
    pub(crate) fn is_ascii(&self) -> bool {
        self.bytes.is_ascii()
    }

    /// Returns where the bytes of each character begin, and where the last one ends.
    pub(crate) fn begins(&self) -> Vec<usize> {
        let mut begins = Vec::with_capacity(self.bytes.len() + 1);
        let mut at = 0;
        for chunk in self.bytes.utf8_chunks() {
            begins.extend(chunk.valid().char_indices().map(|(index, _)| at + index));
            at += chunk.valid().len();
            if !chunk.invalid().is_empty() {
                begins.push(at);
                at += chunk.invalid().len();
            }
        }
        begins.push(at);
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_text_is_not_copied() {
        assert!(matches!(Text::new("a\0é".as_bytes()).utf8, Cow::Borrowed("a\0é")));
    }

    #[test]
    fn characters_are_found_in_the_original_bytes() {
        // `\xe2\x82` is the beginning of a character: one replacement. Each `\xff` is one.
        let bytes = b"a\xff\xc3\xa9\xe2\x82c\xff\xff";
        let text = Text::new(bytes);
        assert_eq!(text.utf8, "a\u{fffd}é\u{fffd}c\u{fffd}\u{fffd}");
        let begins = text.begins();
        let found: Vec<&[u8]> = begins.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect();
        let expected: [&[u8]; 7] =
            [b"a", b"\xff", "é".as_bytes(), b"\xe2\x82", b"c", b"\xff", b"\xff"];
        assert_eq!(found, expected);
        assert_eq!(begins.last(), Some(&bytes.len()));
        assert_eq!(Text::new(b"").begins(), [0]);
        assert!(!text.is_ascii() && Text::new(b"a\0").is_ascii());
    }
}
