//! What a response says of a file, and whether to believe it.

use std::time::{Duration, SystemTime};
use tf_fs_object_store::http::{
    Failed, HttpBody, Response, content_range, date, header, unsatisfied_size, words,
};
use tf_fs_object_store::{GetOptions, Head, Range};

/// A response to a GET.
pub(crate) enum Answer {
    /// The bytes that were requested.
    Part(Head, Option<HttpBody>),
    /// The server does not send a part of this file: here is the whole file, or nothing that can be used.
    Whole(Option<Response>),
    /// Another status.
    Refused(Response),
}

/// Returns the version and the time that a response tells.
pub(crate) fn version(response: &Response) -> (Option<String>, Option<SystemTime>) {
    let etag = response.header("etag").filter(|etag| !etag.is_empty());
    (etag.map(str::to_owned), response.header("last-modified").and_then(date))
}

/// A file that was written less than this before its response may be written again with the same ETag: nginx and Apache
/// make ETags from a time in seconds and the length.
const RECENT: Duration = Duration::from_secs(2);

/// Returns whether a file was written less than two seconds before this response, by the server's clock.
fn is_recent(response: &Response, modified: Option<SystemTime>) -> bool {
    let now = response.header("date").and_then(date).unwrap_or_else(SystemTime::now);
    modified.is_some_and(|modified| modified + RECENT > now)
}

/// Words of `Content-Encoding` that name no compression, as misconfigured servers send them.
const PLAIN: [&str; 6] = ["identity", "none", "binary", "8bit", "utf-8", "aws-chunked"];

/// Returns how a server compressed a body although that was not requested, such as `gzip`.
pub(crate) fn encoding(response: &Response) -> Option<String> {
    let mut codings = words(&response.headers, header::CONTENT_ENCODING);
    codings.extend(words(&response.headers, header::TRANSFER_ENCODING));
    codings.retain(|coding| coding != "chunked" && !PLAIN.contains(&coding.as_str()));
    (!codings.is_empty()).then(|| codings.join(", "))
}

/// Reads the response to a request for `wanted`.
///
/// # Errors
/// If it contradicts itself or the request, or is of another version of the file.
pub(crate) fn read(response: Response, wanted: GetOptions<'_>) -> Result<Answer, Failed> {
    let (etag, modified) = version(&response);
    let is_first = wanted.if_match.is_none() && wanted.range.start == 0;
    match response.status {
        200 | 206 => {}
        412 if wanted.if_match.is_some() => return Err(Failed::Changed),
        416 => return past_the_end(&response, wanted.range),
        _ => return Ok(Answer::Refused(response)),
    }
    match (wanted.if_match, &etag) {
        (Some(wanted), Some(etag)) if wanted != etag => return Err(Failed::Changed),
        (Some(_), None) => {
            return Err(Failed::Invalid(
                "it has no ETag, although the file had one when it was opened".into(),
            ));
        }
        _ => {}
    }
    if response.status == 200 {
        return match is_first {
            true => Ok(Answer::Whole(Some(response))),
            false => {
                Err(Failed::Invalid("it has all of the file, and not the requested bytes".into()))
            }
        };
    }
    let range = response.header("content-range").unwrap_or_default();
    if is_first && (encoding(&response).is_some() || range.ends_with("/*")) {
        // Bytes of the compressed file, or of one whose length the server does not know.
        return Ok(Answer::Whole(None));
    }
    let (got, size) = content_range(range)
        .filter(|(got, size)| {
            let (asked, is_some) = (wanted.range, got.end > got.start);
            got.start == asked.start && got.end <= asked.end && got.end <= *size && is_some
        })
        .ok_or_else(|| wrong_range(range, wanted.range))?;
    if encoding(&response).is_some() {
        return Err(Failed::Invalid("it is compressed, which earlier ones were not".into()));
    }
    let len = got.end - got.start;
    if let Some(told) = response.content_length.filter(|&told| told != len) {
        return Err(Failed::Invalid(format!("Content-Length {told} for {len} bytes")));
    }
    let head = Head::new(size, got.end)
        .with_etag(etag)
        .with_modified(modified)
        .with_recent(is_recent(&response, modified));
    Ok(Answer::Part(head, Some(response.into_body(Some(len)))))
}

fn past_the_end(response: &Response, wanted: Range) -> Result<Answer, Failed> {
    let (etag, modified) = version(response);
    match response.header("content-range").and_then(unsatisfied_size) {
        Some(size) if size <= wanted.start => {
            let head = Head::new(size, size).with_etag(etag).with_modified(modified);
            Ok(Answer::Part(head, None))
        }
        // The file may be empty. Without a range the server tells.
        None if wanted.start == 0 => Ok(Answer::Whole(None)),
        _ => Err(Failed::Invalid("HTTP 416 for bytes that the file has".into())),
    }
}

fn wrong_range(got: &str, wanted: Range) -> Failed {
    let got = match got {
        "" => "no Content-Range".to_owned(),
        got => format!("Content-Range `{}`", got.escape_debug()),
    };
    Failed::Invalid(format!("{got} for bytes {}-{}", wanted.start, wanted.end.saturating_sub(1)))
}
