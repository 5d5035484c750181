//! Hides the secrets of this process in texts that others wrote: a gateway may echo a URL or a header in its error.
//!
//! A secret is known from when it is [kept](keep): [`Secret::new`](crate::config::Secret::new) does that. It is found in
//! every spelling that a server may give it: percent-encoded, as XML, as JSON, or cut off at the end of the text.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::PoisonError;
use tf_fs_plugin::sync::{Mutex, MutexGuard};

/// Shown in place of a secret.
pub(crate) const REDACTED: &str = "** redacted **";
/// A shorter text is part of many words.
const SHORTEST: usize = 6;
/// A shorter beginning of a secret, at the end of a text, may be another word.
const SHORTEST_CUT: usize = 12;
/// The most secrets that are known. Tokens are renewed, and old ones expire.
const MOST: usize = 256;
/// What comes before a credential that is made for one request, or that another program made, and its shortest length.
/// After a word it has a digit or a `=`: the next word of a sentence has neither.
const MARKS: [(&str, usize); 10] = [
    ("sig=", 8),
    ("signature=", 8),
    ("security-token=", 16),
    ("securitytoken=", 16),
    ("access_token=", 16),
    ("client_secret=", 6),
    ("client_assertion=", 16),
    ("bearer ", 20),
    ("basic ", 12),
    ("sharedkey ", 20),
];

/// The secrets of this process, as [`spelled`] has them.
static KNOWN: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn known() -> MutexGuard<'static, Vec<Vec<u8>>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a secret, which [`redacted`] hides from now on. One that is shorter than six characters is not hidden.
pub fn keep(secret: &str) {
    // A SAS is a query with a signature in it, which may be echoed alone.
    let signature = secret.split(['&', '?']).find_map(|field| field.strip_prefix("sig="));
    for secret in [Some(secret), signature].into_iter().flatten() {
        let secret: Vec<u8> = spelled(secret.trim()).into_iter().map(|(byte, _)| byte).collect();
        add(&mut known(), secret);
    }
}

fn add(known: &mut Vec<Vec<u8>>, secret: Vec<u8>) {
    if secret.len() < SHORTEST || known.contains(&secret) {
        return;
    }
    if known.len() >= MOST {
        known.remove(0);
    }
    known.push(secret);
}

/// Returns the text without the secrets of this process, and without what looks like a signature or a token.
pub fn redacted(text: &str) -> Cow<'_, str> {
    let letters = spelled(text);
    let bytes: Vec<u8> = letters.iter().map(|(byte, _)| *byte).collect();
    let mut hidden: Vec<Range<usize>> = Vec::new();
    for secret in known().iter() {
        let starts = (0..bytes.len()).filter(|&at| bytes[at] == secret[0]);
        hidden.extend(starts.filter_map(|at| {
            let same = bytes[at..].iter().zip(secret).take_while(|(one, other)| one == other);
            let same = same.count();
            let is_cut_off =
                at + same == bytes.len() && same >= SHORTEST_CUT.max(secret.len() / 2).min(16);
            (same == secret.len() || is_cut_off).then_some(at..at + same)
        }));
    }
    for (mark, shortest) in MARKS {
        let is_mark = |at: &usize| {
            let end = at + mark.len();
            bytes.get(*at..end).is_some_and(|part| part.eq_ignore_ascii_case(mark.as_bytes()))
        };
        // A mark within what follows another would be read to the same end: of many, in quadratic time.
        let mut done = 0;
        hidden.extend((0..bytes.len()).filter(is_mark).filter_map(|at| {
            if at < done {
                return None;
            }
            let from = at + mark.len();
            let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"&\"'<>,;)".contains(byte);
            let len = bytes[from..].iter().position(is_end).unwrap_or(bytes.len() - from);
            done = from + len;
            let is_word = mark.ends_with(' ')
                && bytes[from..from + len]
                    .iter()
                    .all(|&byte| !byte.is_ascii_digit() && byte != b'=');
            (len >= shortest && !is_word).then_some(from..from + len)
        }));
    }
    if hidden.is_empty() {
        return text.into();
    }
    hidden.sort_by_key(|range| range.start);
    let (mut shown, mut end) = (String::new(), 0);
    for range in hidden {
        let (from, to) = (letters[range.start].1.start, letters[range.end - 1].1.end);
        if from >= end {
            shown.push_str(&text[end..from]);
            shown.push_str(REDACTED);
        }
        end = end.max(to);
    }
    shown.push_str(&text[end..]);
    shown.into()
}

/// Returns the bytes that a text spells, each with its place: percent-encoded once or more often, and escaped as in XML or
/// JSON.
fn spelled(text: &str) -> Vec<(u8, Range<usize>)> {
    let mut letters = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.as_bytes().get(at) {
        let (spelled, len) = escape(&text.as_bytes()[at..]).unwrap_or((byte, 1));
        // All bytes of a character have its place: a text is only cut between characters.
        let start = (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(at);
        let end = (at + len..).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
        letters.push((spelled, start..end));
        at += len;
    }
    letters
}

/// Returns the byte that this text begins with in an escaped form, and the length of that form.
fn escape(text: &[u8]) -> Option<(u8, usize)> {
    let number = |digits: &[u8], radix| {
        let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
        u8::from_str_radix(digits, radix).ok()
    };
    match *text {
        // `%252B` is `%2B`, encoded once more.
        [b'%', ..] => {
            let again = text[1..].chunks(2).take_while(|pair| *pair == b"25").count();
            let digits = |from: usize| number(text.get(from..from + 2)?, 16);
            match digits(1 + 2 * again) {
                Some(byte) => Some((byte, 3 + 2 * again)),
                None if again > 0 => Some((b'%', 1 + 2 * again)),
                None => None,
            }
        }
        [b'\\', b'u', ..] => Some((number(text.get(2..6)?, 16)?, 6)),
        [b'\\', byte @ (b'/' | b'"' | b'\\'), ..] => Some((byte, 2)),
        [b'&', ..] => {
            let end = text.iter().take(9).position(|&byte| byte == b';')?;
            let byte = match &text[1..end] {
                b"amp" => b'&',
                b"lt" => b'<',
                b"gt" => b'>',
                b"quot" => b'"',
                b"apos" => b'\'',
                [b'#', b'x' | b'X', digits @ ..] => number(digits, 16)?,
                [b'#', digits @ ..] => number(digits, 10)?,
                _ => return None,
            };
            Some((byte, end + 1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_in_every_spelling() {
        keep("planted/one+two=&\"three");
        keep("?sv=2020&sp=rl&sig=planted%2Bfour%3D");
        for text in [
            "planted/one+two=&\"three",
            "planted%2Fone%2Btwo%3D%26%22three",
            "planted%2fone%2btwo%3d%26%22three",
            "planted%252Fone%252Btwo%253D%2526%2522three",
            "planted/one+two=&amp;&quot;three",
            "planted&#x2F;one&#43;two&#x3D;&amp;&#34;three",
            r#"planted\/one\u002Btwo=\u0026\"three"#,
            "planted%2Bfour%3D",
            "planted+four=",
            "%70lanted+four=",
        ] {
            let shown = redacted(text).into_owned();
            assert_eq!(shown, REDACTED, "{text}");
            let around = format!("ü refused: {text} é");
            assert_eq!(redacted(&around), format!("ü refused: {REDACTED} é"), "{text}");
            let twice = format!("{text} {text}");
            assert_eq!(redacted(&twice), format!("{REDACTED} {REDACTED}"), "{text}");
        }
        assert_eq!(redacted("GET /?a=planted/one+tw"), format!("GET /?a={REDACTED}"), "cut off");
    }

    #[test]
    fn text_that_looks_like_a_token_is_hidden() {
        for (text, shown) in [
            ("/c/b?se=1&sig=c2VzYW1l%3D&sp=r", "/c/b?se=1&sig=** redacted **&sp=r"),
            ("a?x&amp;sig=c2VzYW1l&amp;y", "a?x&amp;sig=** redacted **&amp;y"),
            ("X-Amz-Signature=0123456789abcdef", "X-Amz-Signature=** redacted **"),
            (
                "Authorization: Bearer eyJhbGciOiJSUzI1NiIs.x",
                "Authorization: Bearer ** redacted **",
            ),
            ("SharedKey acc:c2VzYW1lc2VzYW1lc2VzYW1l", "SharedKey ** redacted **"),
            ("Basic dTpzZXNhbWU=, Basic", "Basic ** redacted **, Basic"),
        ] {
            assert_eq!(redacted(text), shown);
        }
    }

    #[test]
    fn many_marks_take_linear_time() {
        let began = std::time::Instant::now();
        assert_eq!(redacted(&"sig=".repeat(100_000)), format!("sig={REDACTED}"));
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        keep("short");
        keep("");
        keep("walnut-orchard");
        for text in [
            "",
            "short",
            "100 %",
            "%",
            "%2",
            "%zz",
            "%25",
            "&;",
            "&",
            "\\",
            "\\u12",
            "é&#xFFFF;😀",
            "the bearer token is not valid",
            "basic authentication is not supported",
            "signature=wrong",
            "HTTP 503 from walnut-orc",
        ] {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn old_secrets_make_room() {
        let mut known = Vec::new();
        for number in 0..2 * MOST {
            add(&mut known, format!("planted-old-{number:05}").into_bytes());
        }
        add(&mut known, b"planted-old-00511".into());
        assert_eq!(known.len(), MOST);
        assert_eq!(known.last().unwrap(), b"planted-old-00511");
    }
}
