//! The pattern language of `get_matching_paths`, for one component of a path.
//!
//! | Pattern | Matches |
//! |---|---|
//! | `*` | any run of characters, also none |
//! | `?` | one character |
//! | `[abc]`, `[a-z]` | one character of the list |
//! | `[^abc]`, `[!abc]` | one character that is not in the list |
//! | `\c` | the character `c` |
//!
//! A character is a Unicode scalar value where the bytes are UTF-8, otherwise a byte. `[` without its `]` matches
//! itself, and so does `\` at the end. TensorFlow's own filesystems use `fnmatch`, which differs only in that `\` and
//! in classes such as `[[:alpha:]]`, which the header does not mention.

use std::borrow::Cow;

/// Returns whether a component has no wildcard, so that it only matches the name that [`unescape`] returns.
#[must_use]
pub fn is_literal(component: &[u8]) -> bool {
    let mut bytes = component.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'*' | b'?' | b'[' => return false,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
    true
}

/// Returns the name that a component without wildcards matches: each `\c` becomes `c`.
#[must_use]
pub fn unescape(component: &[u8]) -> Cow<'_, [u8]> {
    if !component.contains(&b'\\') {
        return Cow::Borrowed(component);
    }
    let mut name = Vec::with_capacity(component.len());
    let mut bytes = component.iter();
    while let Some(&byte) = bytes.next() {
        name.push(if byte == b'\\' { *bytes.next().unwrap_or(&byte) } else { byte });
    }
    Cow::Owned(name)
}

/// Returns whether a name matches a pattern as a whole.
///
/// ```
/// use tf_fs_plugin::glob;
/// assert!(glob::matches(b"part-*.tfrecord", b"part-00.tfrecord"));
/// assert!(glob::matches(b"[^.]?", "aé".as_bytes()));
/// assert!(!glob::matches(br"\*", b"a"));
/// ```
#[must_use]
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // The length of what follows the last `]` of the pattern. A `[` in it matches itself, so there
    // is no need to search for its `]` again and again.
    let unclosed = pattern.iter().rev().position(|&byte| byte == b']').unwrap_or(pattern.len());
    let (mut pattern, mut name) = (pattern, name);
    // The pattern after the last `*`, and the part of the name that `*` does not match yet.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let Some(rest) = pattern.strip_prefix(b"*") {
            pattern = rest;
            retry = Some((rest, name));
            continue;
        }
        let step = if name.is_empty() {
            if pattern.is_empty() {
                return true;
            }
            None
        } else {
            match_one(pattern, name, pattern.len() <= unclosed)
        };
        match (step, &mut retry) {
            (Some((rest_of_pattern, rest_of_name)), _) => {
                pattern = rest_of_pattern;
                name = rest_of_name;
            }
            (None, Some((after_star, end))) if !end.is_empty() => {
                *end = &end[char_len(end)..];
                pattern = after_star;
                name = end;
            }
            (None, _) => return false,
        }
    }
}

/// Matches one element of a pattern, except `*`, with the first character of a non-empty name.
/// Returns the rest of both. In an `unclosed` pattern no `[` begins a list.
fn match_one<'p, 'n>(
    pattern: &'p [u8],
    name: &'n [u8],
    unclosed: bool,
) -> Option<(&'p [u8], &'n [u8])> {
    let (character, rest) = name.split_at(char_len(name));
    match *pattern.first()? {
        b'?' => return Some((&pattern[1..], rest)),
        b'[' if !unclosed => {
            if let Some((is_in_list, after)) = match_list(&pattern[1..], character) {
                return is_in_list.then_some((after, rest));
            }
        }
        _ => {}
    }
    Some((strip_literal(pattern, character)?, rest))
}

/// Returns what follows these bytes in a pattern, each of which may have a `\` before it: also those within a character.
fn strip_literal<'p>(mut pattern: &'p [u8], bytes: &[u8]) -> Option<&'p [u8]> {
    for byte in bytes {
        pattern = match pattern {
            [b'\\', escaped, rest @ ..] => (escaped == byte).then_some(rest)?,
            [first, rest @ ..] => (first == byte).then_some(rest)?,
            [] => return None,
        };
    }
    Some(pattern)
}

/// Returns whether a character is in the list that `list` begins with, and what follows the list's
/// `]`; `None` if there is no `]`.
fn match_list<'p>(list: &'p [u8], character: &[u8]) -> Option<(bool, &'p [u8])> {
    let negated = matches!(list.first(), Some(b'^' | b'!'));
    let mut rest = &list[usize::from(negated)..];
    let mut is_in_list = false;
    let mut first = true;
    loop {
        if !first && rest.first() == Some(&b']') {
            return Some((is_in_list != negated, &rest[1..]));
        }
        first = false;
        let low = next_in_list(&mut rest)?;
        let high = match rest {
            [b'-', next, ..] if *next != b']' => {
                rest = &rest[1..];
                next_in_list(&mut rest)?
            }
            _ => low,
        };
        // UTF-8 sorts like the scalar values it encodes.
        is_in_list |= low <= character && character <= high;
    }
}

fn next_in_list<'p>(rest: &mut &'p [u8]) -> Option<&'p [u8]> {
    if rest.len() > 1 && rest[0] == b'\\' {
        *rest = &rest[1..];
    }
    if rest.is_empty() {
        return None;
    }
    let (character, after) = rest.split_at(char_len(rest));
    *rest = after;
    Some(character)
}

/// Returns the length in bytes of the first character of non-empty `bytes`; 1 if it is not UTF-8.
fn char_len(bytes: &[u8]) -> usize {
    let wanted = match bytes[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return 1,
    };
    match bytes.get(..wanted) {
        Some(character) if std::str::from_utf8(character).is_ok() => wanted,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, hits: &[&str], misses: &[&str]) {
        for name in hits {
            assert!(matches(pattern.as_bytes(), name.as_bytes()), "{pattern} ~ {name}");
        }
        for name in misses {
            assert!(!matches(pattern.as_bytes(), name.as_bytes()), "{pattern} !~ {name}");
        }
    }

    #[test]
    fn wildcards() {
        check("*", &["", "a", "abc", ".hidden"], &[]);
        check("a*", &["a", "ab"], &["", "ba"]);
        check("*a*b", &["ab", "xaxbxb", "aab"], &["ba", "a", "abc"]);
        check("a?c", &["abc", "aéc"], &["ac", "abbc"]);
        check("", &[""], &["a"]);
    }

    #[test]
    fn lists() {
        check("[abc]", &["a", "c"], &["d", "", "ab"]);
        check("[^abc]x", &["dx"], &["ax", "x"]);
        check("[!abc]", &["d"], &["a"]);
        check("[a-c]", &["b"], &["d", "-"]);
        check("[a-]", &["a", "-"], &["b"]);
        check("[]a]", &["]", "a"], &["b"]);
        check("[^]a]", &["b"], &["]", "a"]);
        check("[α-ω]", &["β"], &["a"]);
        check(r"[\]]", &["]"], &[r"\"]);
        check("[abc", &["[abc"], &["a"]);
        check("[", &["["], &["a"]);
    }

    #[test]
    fn escapes() {
        check(r"\*", &["*"], &["a", r"\*"]);
        check(r"a\?b", &["a?b"], &["axb"]);
        check(r"\[1\]", &["[1]"], &["1"]);
        check(r"a\", &[r"a\"], &["a"]);
        assert!(is_literal(br"a\*b") && !is_literal(b"a*b") && !is_literal(b"[a"));
        assert_eq!(&*unescape(br"a\*b\"), br"a*b\");
        // Within a character, which these bytes are not before they are unescaped.
        assert_eq!(&*unescape(b"\xc3\\\xa9"), "é".as_bytes());
        assert!(matches(b"\xc3\\\xa9*", "éa".as_bytes()));
        assert!(!matches(b"\xc3\\*", "éa".as_bytes()));
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "a*".repeat(64) + "b";
        assert!(!matches(pattern.as_bytes(), "a".repeat(4096).as_bytes()));
    }

    #[test]
    fn lists_that_never_end_are_looked_at_once() {
        let pattern = format!("*{}", "[a".repeat(400));
        assert!(!matches(pattern.as_bytes(), "[a".repeat(800).as_bytes().split_last().unwrap().1));
        assert!(matches(pattern.as_bytes(), "[a".repeat(800).as_bytes()));
        check("[a]*[b", &["axx[b"], &["axxb"]);
    }

    #[test]
    fn bytes_that_are_not_utf8() {
        assert!(matches(b"a?b", b"a\xffb"));
        assert!(matches(b"[^a]", b"\xc3"));
        assert!(!matches(b"?", b"\xff\xfe"));
    }
}
