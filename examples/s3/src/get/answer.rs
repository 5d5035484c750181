//! What is received: the head of an answer, and whether to believe it.

use super::Cause;
use crate::connection::REGION_HEADER;
use crate::failure;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use std::time::Duration;
use std::time::SystemTime;
use tf_fs_object_store::http::{content_range, number, unsatisfied_size};
use tf_fs_object_store::{GetOptions, Head, Range};

/// What of an answer's head matters.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_length: Option<u64>,
    pub(super) chunked: bool,
    /// Whether the connection can be used again.
    pub(super) keep: bool,
    content_range: Option<String>,
    content_encoding: Option<String>,
    etag: Option<String>,
    modified: Option<SystemTime>,
    pub(super) retry_after: Option<Duration>,
    request_id: Option<String>,
    region: Option<String>,
    date: Option<String>,
}

/// The head at the beginning of `bytes` and its length, unless it is incomplete.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Answer, usize)>, Cause> {
    let mut headers = [httparse::EMPTY_HEADER; 96];
    let mut response = httparse::Response::new(&mut headers);
    let len = match response.parse(bytes) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(Cause::Nonsense(format!("its head is not HTTP: {error}"))),
    };
    let mut answer = Answer {
        status: response.code.unwrap_or_default(),
        keep: response.version == Some(1),
        ..Answer::default()
    };
    for header in response.headers.iter() {
        let value = String::from_utf8_lossy(header.value);
        let value = value.trim();
        let some = || Some(value.to_owned());
        match header.name.to_ascii_lowercase().as_str() {
            "content-length" => {
                let length = number(value).ok_or_else(|| {
                    Cause::Nonsense(format!("Content-Length `{}`", value.escape_debug()))
                })?;
                once(&mut answer.content_length, length, "Content-Lengths")?;
            }
            // Where such a body ends is not looked for, so nothing may follow it.
            "transfer-encoding" => answer.chunked = true,
            "connection" if has_token(value, "close") => answer.keep = false,
            "content-range" => {
                once(&mut answer.content_range, value.to_owned(), "Content-Ranges")?;
            }
            "content-encoding" if !value.eq_ignore_ascii_case("identity") => {
                answer.content_encoding = some();
            }
            "etag" if !value.is_empty() => once(&mut answer.etag, value.to_owned(), "ETags")?,
            "x-amz-request-id" => answer.request_id = some(),
            REGION_HEADER => answer.region = some(),
            "date" => answer.date = some(),
            "last-modified" => answer.modified = time(value),
            "retry-after" => answer.retry_after = number(value).map(Duration::from_secs),
            _ => {}
        }
    }
    answer.keep &= !answer.chunked;
    match answer.status {
        // Another protocol begins, which was not asked for.
        101 => Err(Cause::Nonsense("HTTP 101 to a GET".into())),
        100..=599 => Ok(Some((answer, len))),
        status => Err(Cause::Nonsense(format!("HTTP {status}"))),
    }
}

/// Takes a value that an answer may have once, or several times the same.
fn once<T: PartialEq>(to: &mut Option<T>, value: T, what: &str) -> Result<(), Cause> {
    if to.as_ref().is_some_and(|before| *before != value) {
        return Err(Cause::Nonsense(format!("two {what}")));
    }
    *to = Some(value);
    Ok(())
}

/// Whether a list such as `keep-alive, close` has this word.
fn has_token(list: &str, token: &str) -> bool {
    list.split(',').any(|word| word.trim().eq_ignore_ascii_case(token))
}

impl Answer {
    /// One that the official client received.
    pub(super) fn described(
        content_range: Option<&str>,
        content_length: Option<i64>,
        content_encoding: Option<&str>,
        etag: Option<&str>,
        modified: Option<SystemTime>,
    ) -> Self {
        Self {
            status: if content_range.is_some() { 206 } else { 200 },
            content_length: content_length.and_then(|length| u64::try_from(length).ok()),
            content_range: content_range.map(str::to_owned),
            content_encoding: content_encoding.map(str::to_owned),
            etag: etag.map(str::to_owned),
            modified,
            ..Self::default()
        }
    }

    /// What it says of the object, if it is the answer to `wanted` and can be believed.
    pub(super) fn head(&self, wanted: GetOptions<'_>) -> Result<Head, Cause> {
        let (size, end) = match self.status {
            200 => {
                let size = self.content_length.ok_or(Cause::Unsupported)?;
                if wanted.range.start > 0 {
                    return Err(Cause::Nonsense("the whole object in place of a range".into()));
                }
                (size, size.min(wanted.range.end))
            }
            206 => {
                let (range, size) = self
                    .content_range
                    .as_deref()
                    .and_then(content_range)
                    .ok_or_else(|| self.wrong_range(wanted.range))?;
                if range.start != wanted.range.start
                    || range.end > wanted.range.end
                    || range.end > size
                    || range.is_empty()
                {
                    return Err(self.wrong_range(wanted.range));
                }
                match self.content_length {
                    Some(length) if length != range.len() => {
                        return Err(Cause::Nonsense(format!(
                            "Content-Length {length} for {} bytes",
                            range.len()
                        )));
                    }
                    Some(_) => {}
                    None => return Err(Cause::Unsupported),
                }
                (size, range.end)
            }
            status => return Err(Cause::Nonsense(format!("HTTP {status} to a GET"))),
        };
        if self.chunked {
            return Err(Cause::Unsupported);
        }
        // Beside a range it is what the object was stored with, and its bytes are given as they are. Beside a whole
        // object somebody may have compressed these very bytes on the way, although that was not asked for.
        if self.status == 200
            && let Some(encoding) = &self.content_encoding
        {
            return Err(Cause::Nonsense(format!(
                "Content-Encoding `{}` where the object's own bytes were requested",
                encoding.escape_debug()
            )));
        }
        if let (Some(asked), Some(got)) = (wanted.if_match, &self.etag)
            && asked != got
        {
            return Err(Cause::Changed);
        }
        Ok(Head::new(size, end).with_etag(self.etag.clone()).with_modified(self.modified))
    }

    /// The size that an answer 416 tells.
    pub(super) fn unsatisfied_size(&self) -> Option<u64> {
        self.content_range.as_deref().and_then(unsatisfied_size)
    }

    fn wrong_range(&self, asked: Range) -> Cause {
        Cause::Nonsense(format!(
            "Content-Range `{}` for bytes {}-{}",
            self.content_range.as_deref().unwrap_or_default().escape_debug(),
            asked.start,
            asked.end.saturating_sub(1)
        ))
    }

    /// What the store says with it and as much of its body as was read.
    pub(super) fn refusal(&self, body: &[u8]) -> failure::Answer {
        let header = |name: &str| match name {
            "x-amz-request-id" => self.request_id.as_deref(),
            REGION_HEADER => self.region.as_deref(),
            "date" => self.date.as_deref(),
            _ => None,
        };
        failure::Answer::new(self.status, header, body, 1)
    }

    /// The region that the store names.
    pub(super) fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    /// The store's clock.
    pub(super) fn date(&self) -> Option<SystemTime> {
        time(self.date.as_deref()?)
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn time(text: &str) -> Option<SystemTime> {
    let time = DateTime::from_str(text, Format::HttpDate).ok()?;
    SystemTime::try_from(time).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(lines: &[&str]) -> Result<Answer, Cause> {
        let text = format!("{}\r\n\r\n", lines.join("\r\n"));
        let (answer, len) = parse(text.as_bytes())?.expect("a whole head");
        assert_eq!(len, text.len());
        Ok(answer)
    }

    #[test]
    fn a_length_is_digits() {
        let length = |value: &str| {
            parsed(&["HTTP/1.1 200 OK", &format!("Content-Length:{value}")])
                .map(|answer| answer.content_length)
        };
        for (value, expected) in
            [("5", 5), (" 5 ", 5), ("\t007", 7), ("18446744073709551615", u64::MAX)]
        {
            assert_eq!(length(value).unwrap(), Some(expected), "{value:?}");
        }
        for value in [
            "",
            " ",
            "+5",
            "-5",
            "- 5",
            "5 5",
            "5, 5",
            "0x5",
            "5.0",
            "1e3",
            "٥",
            "18446744073709551616",
            "999999999999999999999999",
        ] {
            assert!(matches!(length(value), Err(Cause::Nonsense(_))), "{value:?}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_not_believed() {
        let ok = "HTTP/1.1 206 OK";
        for lines in [
            [ok, "Content-Length: 5", "Content-Length: 6"],
            [ok, "Content-Range: bytes 0-4/9", "Content-Range: bytes 1-5/9"],
            [ok, "ETag: \"a\"", "ETag: \"b\""],
        ] {
            assert!(matches!(parsed(&lines), Err(Cause::Nonsense(_))), "{lines:?}");
        }
        assert_eq!(
            parsed(&[ok, "Content-Length: 5", "Content-Length: 5"]).unwrap().content_length,
            Some(5)
        );
    }

    #[test]
    fn a_connection_is_kept_where_the_end_of_the_body_is_known() {
        let keep =
            |line: &str| parsed(&["HTTP/1.1 404 X", "Content-Length: 5", line]).unwrap().keep;
        assert!(keep("X: y") && keep("Connection: keep-alive") && keep("Connection: closed"));
        for line in [
            "Transfer-Encoding: chunked",
            "transfer-encoding: Chunked",
            "Transfer-Encoding: identity",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding:",
            "Connection: close",
            "Connection: keep-alive, Close",
        ] {
            assert!(!keep(line), "{line}");
        }
        assert!(!parsed(&["HTTP/1.0 404 X", "Content-Length: 5"]).unwrap().keep);
    }

    #[test]
    fn only_http_is_taken_for_an_answer() {
        for lines in [
            &["HTTP/1.1 101 Switching Protocols"][..],
            &["HTTP/1.1 099 X"],
            &["HTTP/1.1 600 X"],
            &["HTTP/1.1 -20 X"],
            &["HTTP/1.1 2000 X"],
            &["HTTP/1.1  200 X"],
            &["HTTP/2 200 X"],
            &["ICY 200 OK"],
            &["HTTP/1.1 200 OK", "Content-Length : 5"],
            &["HTTP/1.1 200 OK", "Content-Length: 5", " 6"],
            &["HTTP/1.1 200 OK", "X: a\0b"],
        ] {
            assert!(matches!(parsed(lines), Err(Cause::Nonsense(_))), "{lines:?}");
        }
        assert_eq!(parsed(&["HTTP/1.1 200"]).unwrap().status, 200);
    }
}
