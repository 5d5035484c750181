//! The head of a response, parsed strictly.

use super::headers::{is_coded, length};
use super::{HeaderMap, HeaderName, HeaderValue, HttpError, header, words};

/// The head of a response.
#[derive(Debug)]
pub(super) struct ResponseHead {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) content_length: Option<u64>,
    /// The end of such a body is not looked for, so nothing may follow it.
    pub(super) chunked: bool,
    /// Whether the connection can be used again.
    pub(super) keep: bool,
}

/// Headers of a response; most have fewer than the first number, and the second is the most.
const HEADERS: [usize; 2] = [96, 1024];

/// Parses the head at the beginning of `bytes`, and returns it with its length; `None` if it is incomplete.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<(ResponseHead, usize)>, HttpError> {
    let parsed = match parse_into(bytes, &mut [httparse::EMPTY_HEADER; HEADERS[0]]) {
        Err(httparse::Error::TooManyHeaders) => {
            parse_into(bytes, &mut vec![httparse::EMPTY_HEADER; HEADERS[1]])
        }
        parsed => parsed,
    };
    let parsed =
        parsed.map_err(|error| HttpError::Invalid(format!("its head is not HTTP: {error}")))?;
    parsed.transpose()
}

type Parsed = Result<(ResponseHead, usize), HttpError>;

fn parse_into<'b>(
    bytes: &'b [u8],
    headers: &mut [httparse::Header<'b>],
) -> Result<Option<Parsed>, httparse::Error> {
    let mut config = httparse::ParserConfig::default();
    // Neither is valid any more, but curl and browsers accept both.
    config
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_multiple_spaces_in_response_status_delimiters(true);
    let mut response = httparse::Response::new(headers);
    Ok(match config.parse_response(&mut response, bytes)? {
        httparse::Status::Complete(len) => Some(answer(&response).map(|answer| (answer, len))),
        httparse::Status::Partial => None,
    })
}

fn answer(response: &httparse::Response<'_, '_>) -> Result<ResponseHead, HttpError> {
    let status = response.code.unwrap_or_default();
    let mut headers = HeaderMap::with_capacity(response.headers.len());
    for header in response.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let value = match header.value.contains(&b'\n') {
            // A folded line counts as one with spaces (RFC 9112, 5.2).
            true => {
                let unfold = |&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte };
                let value: Vec<u8> = header.value.iter().map(unfold).collect();
                HeaderValue::from_bytes(value.trim_ascii())
            }
            false => HeaderValue::from_bytes(header.value.trim_ascii()),
        };
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(HttpError::Invalid("one of its headers is not HTTP".to_owned()));
        };
        let is_single = matches!(name.as_str(), "content-range" | "etag");
        if is_single && headers.get(&name).is_some_and(|before| *before != value) {
            return Err(HttpError::Invalid(format!("two values of {name}")));
        }
        headers.append(name, value);
    }
    let mut answer = ResponseHead {
        status,
        content_length: content_length(&headers)?,
        chunked: is_coded(&headers),
        keep: response.version == Some(1)
            && !words(&headers, header::CONNECTION).iter().any(|word| word == "close")
            && !headers.contains_key(header::TRANSFER_ENCODING),
        headers,
    };
    if matches!(status, 204 | 304) {
        // Nothing follows, although the headers may describe the body that a 200 would have.
        (answer.content_length, answer.chunked) = (Some(0), false);
    }
    match status {
        // Another protocol begins, which was not requested.
        101 => Err(HttpError::Invalid("HTTP 101 to a GET".into())),
        100..=599 => Ok(answer),
        status => Err(HttpError::Invalid(format!("HTTP {status}"))),
    }
}

/// Returns the number of bytes of the body, if the headers tell it.
///
/// # Errors
/// If they contradict each other.
pub(super) fn content_length(headers: &HeaderMap) -> Result<Option<u64>, HttpError> {
    let values = || headers.get_all(header::CONTENT_LENGTH).iter().map(HeaderValue::as_bytes);
    if values().next().is_none() || is_coded(headers) {
        return Ok(None);
    }
    let wrong = || {
        let all: Vec<_> = values().map(<[u8]>::escape_ascii).map(|text| text.to_string()).collect();
        HttpError::Invalid(format!("Content-Length `{}`", all.join("`, `")))
    };
    length(values()).map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(lines: &[&str]) -> Result<ResponseHead, HttpError> {
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
            [("5", 5), (" 5 ", 5), ("5, 5,5", 5), ("\t007", 7), ("18446744073709551615", u64::MAX)]
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
            "5, 6",
            "5,",
            "0x5",
            "5.0",
            "1e3",
            "٥",
            "18446744073709551616",
            "999999999999999999999999",
        ] {
            assert!(matches!(length(value), Err(HttpError::Invalid(_))), "{value:?}");
        }
    }

    #[test]
    fn a_contradictory_response_is_not_believed() {
        let ok = "HTTP/1.1 206 OK";
        for lines in [
            [ok, "Content-Length: 5", "Content-Length: 6"],
            [ok, "Content-Range: bytes 0-4/9", "Content-Range: bytes 1-5/9"],
            [ok, "ETag: \"a\"", "ETag: \"b\""],
        ] {
            assert!(matches!(parsed(&lines), Err(HttpError::Invalid(_))), "{lines:?}");
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
    fn a_missing_body_is_not_waited_for() {
        for (status, length) in [("304", 0), ("204", 0), ("404", 5)] {
            let answer = parsed(&[&format!("HTTP/1.1 {status} X"), "Content-Length: 5"]).unwrap();
            assert_eq!((answer.content_length, answer.keep), (Some(length), true), "{status}");
        }
    }

    #[test]
    fn only_http_is_taken_for_an_answer() {
        for lines in [
            &["HTTP/1.1 101 Switching Protocols"][..],
            &["HTTP/1.1 099 X"],
            &["HTTP/1.1 600 X"],
            &["HTTP/1.1 -20 X"],
            &["HTTP/1.1 2000 X"],
            &["HTTP/2 200 X"],
            &["ICY 200 OK"],
            &["HTTP/1.1 200 OK", "Content-Length : 5"],
            &["HTTP/1.1 200 OK", "Content-Length: 5", " 6"],
            &["HTTP/1.1 200 OK", "X: a\0b"],
        ] {
            assert!(matches!(parsed(lines), Err(HttpError::Invalid(_))), "{lines:?}");
        }
    }

    #[test]
    fn heads_that_curl_and_browsers_accept_are_accepted() {
        for status in ["HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.1  200   OK", "HTTP/1.0 200 \u{fc}"]
        {
            assert_eq!(parsed(&[status]).unwrap().status, 200, "{status:?}");
        }
        let folded = parsed(&["HTTP/1.1 200 OK", "X: a", "\tb", " c", "Y:"]).unwrap();
        assert_eq!(folded.headers["x"], "a  \tb   c");
        assert_eq!(folded.headers["y"], "");
        let text = "HTTP/1.1 200 OK\nX: \u{e4}\nContent-Length: 5\n\n";
        let (answer, _) = parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!((answer.content_length, answer.headers["x"].len()), (Some(5), 2));
        let many: Vec<String> = (0..1000).map(|n| format!("X-{n}: {n}")).collect();
        let lines: Vec<&str> =
            ["HTTP/1.1 200 OK"].into_iter().chain(many.iter().map(String::as_str)).collect();
        assert_eq!(parsed(&lines).unwrap().headers.len(), 1000);
    }

    #[test]
    fn a_transfer_encoding_overrides_the_length() {
        for (encoding, length, chunked) in [
            ("chunked", None, true),
            ("gzip, Chunked", None, true),
            ("gzip", None, true),
            ("identity", Some(5), false),
        ] {
            let encoding = format!("Transfer-Encoding: {encoding}");
            let answer = parsed(&["HTTP/1.1 200 OK", "Content-Length: 5", &encoding]).unwrap();
            assert_eq!((answer.content_length, answer.chunked), (length, chunked), "{encoding}");
        }
    }
}
