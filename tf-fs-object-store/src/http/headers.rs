//! Header values, parsed strictly: one that is not valid HTTP is `None`.

use super::HeaderMap;
use crate::Range;
use ::http::header::{AsHeaderName, TRANSFER_ENCODING};
use std::time::{Duration, SystemTime};

/// Parses a number as HTTP writes it: digits, and nothing else. Rust's own parser accepts a `+` as well.
pub fn number(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

/// Parses the values of `Content-Length`: one number, which a list or several headers may repeat (RFC 9110, 8.6).
pub(super) fn length<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<u64> {
    let text = |value| std::str::from_utf8(value).unwrap_or("-");
    let mut all = values.flat_map(|value| text(value).split(',')).map(|text| number(text.trim()));
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

/// Returns the words of a list in all values of a header, such as `gzip` and `chunked`, in lower case.
pub fn words(headers: &HeaderMap, name: impl AsHeaderName) -> Vec<String> {
    let all = headers.get_all(name);
    let lists = all.iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    lists.flat_map(|list| split(&list)).collect()
}

fn split(list: &str) -> Vec<String> {
    let words = list.split(',').map(|word| word.trim().to_ascii_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}

/// Words of `Content-Encoding` that name no compression, as misconfigured servers send them.
const PLAIN: [&str; 6] = ["identity", "none", "binary", "8bit", "utf-8", "aws-chunked"];

/// Returns how a body is compressed, such as `gzip`, where `Content-Encoding` and `Transfer-Encoding` have these values.
/// `None` if it is not.
pub fn compression<T: AsRef<str>>(lists: impl IntoIterator<Item = T>) -> Option<String> {
    let mut codings: Vec<_> = lists.into_iter().flat_map(|list| split(list.as_ref())).collect();
    codings.retain(|coding| coding != "chunked" && !PLAIN.contains(&coding.as_str()));
    (!codings.is_empty()).then(|| codings.join(", "))
}

/// Returns whether `Transfer-Encoding` frames the body, whatever `Content-Length` says (RFC 9112, 6.3): in chunks, or until
/// the end of the connection.
pub(super) fn is_coded(headers: &HeaderMap) -> bool {
    words(headers, TRANSFER_ENCODING).iter().any(|coding| coding != "identity")
}

/// Parses the range and the size of the whole object in a `Content-Range` such as `bytes 0-9/100`.
pub fn content_range(text: &str) -> Option<(Range, u64)> {
    let (range, size) = text.strip_prefix("bytes")?.trim_start().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (number(first.trim())?, number(last.trim())?);
    Some((Range::new(first, last.checked_add(1)?), number(size.trim())?))
}

/// Parses the size of the whole object in `bytes */100`, the `Content-Range` of a response 416.
pub fn unsatisfied_size(text: &str) -> Option<u64> {
    number(text.strip_prefix("bytes */")?.trim())
}

/// Parses a date in one of HTTP's three formats, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn date(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text).ok()
}

/// Returns how long a `Retry-After` wants no requests: seconds, or until a date. `None` if that is over.
pub fn retry_after(text: &str) -> Option<Duration> {
    let text = text.trim();
    let wait = match number(text) {
        Some(seconds) => Duration::from_secs(seconds),
        None => date(text)?.duration_since(SystemTime::now()).ok()?,
    };
    (!wait.is_zero()).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_digits() {
        assert_eq!(content_range("bytes 0-9/100"), Some((Range::new(0, 10), 100)));
        for text in [
            "bytes +0-9/100",
            "bytes 0-+9/100",
            "bytes 0-9/+100",
            "bytes -1-9/100",
            "bytes 0-9/*",
            "bytes 0-18446744073709551615/100",
            "items 0-9/100",
            "bytes 0-9",
            "",
        ] {
            assert_eq!(content_range(text), None, "{text}");
        }
        assert_eq!(unsatisfied_size("bytes */100"), Some(100));
        for text in ["bytes */+100", "bytes */-1", "bytes */", "bytes 0-1/2"] {
            assert_eq!(unsatisfied_size(text), None, "{text}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after("7"), Some(Duration::from_secs(7)));
        let later = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        let wait = retry_after(&later).expect("a date to come");
        assert!((Duration::from_secs(90)..=Duration::from_secs(100)).contains(&wait), "{wait:?}");
        for text in ["0", "-7", "soon", "", "Sun, 06 Nov 1994 08:49:37 GMT"] {
            assert_eq!(retry_after(text), None, "{text}");
        }
    }
}
