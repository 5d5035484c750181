//! The head of a response, and its body to come.

use super::headers::is_coded;
use super::response_head::{ResponseHead, content_length};
use super::{
    ErrorResponse, HeaderMap, HttpBody, HttpError, RangeResponse, Uri, compression, content_range,
    date, header, retry_after, words,
};
use crate::redact::redacted;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpInfo;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// The number of bytes of an error response's body that are read.
const REFUSAL: usize = 4 << 10;

/// The head of a response, and its body to come.
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// `Content-Length`, if it has one.
    pub content_length: Option<u64>,
    body: HttpBody,
    /// Whether the body is received as it is encoded.
    is_encoded: bool,
    endpoint: Arc<str>,
    pub(super) url: Uri,
    pub(super) peer: Option<IpAddr>,
}

// URLs may be signed, and headers may hold cookies.
impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Response");
        shown.field("status", &self.status).field("endpoint", &self.endpoint);
        shown.finish_non_exhaustive()
    }
}

impl Response {
    pub(super) fn new(
        response: ::http::Response<Incoming>,
        endpoint: Arc<str>,
        url: Uri,
        stall: Duration,
    ) -> Result<Self, HttpError> {
        let (parts, incoming) = response.into_parts();
        let mut body = HttpBody::new(incoming, Arc::clone(&endpoint), stall);
        // hyper then reads until the connection ends, and servers that say `identity` may keep it.
        body.ends_at_len =
            !is_coded(&parts.headers) && parts.headers.contains_key(header::TRANSFER_ENCODING);
        Ok(Self {
            status: parts.status.as_u16(),
            content_length: content_length(&parts.headers)?,
            headers: parts.headers,
            body,
            is_encoded: false,
            endpoint,
            url,
            peer: parts.extensions.get::<HttpInfo>().map(|info| info.remote_addr().ip()),
        })
    }

    pub(super) fn from_raw(
        answer: ResponseHead,
        body: HttpBody,
        endpoint: &Arc<str>,
        peer: Option<IpAddr>,
    ) -> Self {
        let ResponseHead { status, headers, content_length, chunked, .. } = answer;
        let endpoint = Arc::clone(endpoint);
        let url = Uri::default();
        Self { status, headers, content_length, body, is_encoded: chunked, endpoint, url, peer }
    }

    /// Returns what it says of the range that was requested.
    pub fn range_response(&self) -> RangeResponse<'_> {
        RangeResponse {
            status: self.status,
            content_length: self.content_length,
            content_range: self.header("content-range"),
            content_type: self.header("content-type"),
            compression: self.compression(),
            etag: self.header("etag").filter(|etag| !etag.is_empty()),
            modified: self.header("last-modified").and_then(date),
        }
    }

    /// Returns how the body is compressed, if it is, such as `gzip`.
    pub fn compression(&self) -> Option<String> {
        let of = |name| words(&self.headers, name);
        compression(of(header::CONTENT_ENCODING).into_iter().chain(of(header::TRANSFER_ENCODING)))
    }

    /// Returns whether the body is received as it is encoded, so that it can only be [read in part](Self::beginning).
    pub fn is_encoded(&self) -> bool {
        self.is_encoded
    }

    /// At most `most` bytes of the body, as much as arrives in the stall timeout, without the framing of chunks.
    pub async fn beginning(self, most: usize) -> Vec<u8> {
        let length = self.content_length.and_then(|length| usize::try_from(length).ok());
        let most = length.unwrap_or(most).min(most);
        let is_encoded = self.is_encoded;
        let ended = |received: &[u8]| is_encoded && received.ends_with(b"0\r\n\r\n");
        let mut body = self.into_body(None);
        let stall = body.stall();
        let mut bytes = Vec::new();
        let receive = async {
            while bytes.len() < most && !ended(&bytes) {
                let Ok(Some(chunk)) = body.chunk().await else { break };
                bytes.extend_from_slice(&chunk[..chunk.len().min(most - bytes.len())]);
            }
        };
        // As much as has come by then has to do.
        let _ = tokio::time::timeout(stall, receive).await;
        if is_encoded {
            bytes = without_chunks(&bytes);
        }
        bytes
    }

    /// The value of a header that is there once, without space around it. Servers send UTF-8 too.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.get_all(name).iter();
        let first = all.next()?;
        if all.any(|other| other != first) {
            return None;
        }
        std::str::from_utf8(first.as_bytes()).ok().map(str::trim)
    }

    /// Scheme, host and port of the request's URL, for errors.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The URL of the request, with what may be secret in it. It is empty after an [`RawGet`](super::RawGet).
    pub fn url(&self) -> &Uri {
        &self.url
    }

    /// The address that the request went to; `None` through a proxy.
    pub fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    /// The body. If it has to have `len` bytes, any other number is a failure, unless the head announced more: then the
    /// body ends after `len` bytes.
    pub fn into_body(self, len: Option<u64>) -> HttpBody {
        let range = || content_range(self.header("content-range")?);
        let announced = self.content_length.or_else(|| range().map(|(range, _)| range.len()));
        let is_cut = len.is_some() && announced > len;
        self.body.with_len(len, is_cut)
    }

    /// The whole body.
    ///
    /// # Errors
    /// If it breaks off, makes no progress in the stall timeout, or has more than `most` bytes.
    pub async fn collect(self, most: usize) -> Result<Bytes, HttpError> {
        let len = self.content_length;
        self.into_body(len).collect(most).await
    }

    /// Returns the server's error response. As much of the body as arrives in the stall timeout, at most 4 KiB,
    /// is passed to `explain`, which may add to it.
    pub async fn into_error(self, explain: impl FnOnce(&mut ErrorResponse, &[u8])) -> HttpError {
        let mut refusal = ErrorResponse {
            status: self.status,
            endpoint: self.endpoint.to_string(),
            retry_after: self.header("retry-after").and_then(retry_after),
            ..ErrorResponse::default()
        };
        let bytes = self.beginning(REFUSAL).await;
        explain(&mut refusal, &bytes);
        for text in [&mut refusal.code, &mut refusal.message].into_iter().flatten() {
            *text = redacted(text).into_owned();
        }
        HttpError::Status(Box::new(refusal))
    }
}

/// Returns the data of a body in chunks, of which the end may be missing. A body in another encoding stays as it is.
fn without_chunks(encoded: &[u8]) -> Vec<u8> {
    let (mut data, mut rest) = (None, encoded);
    while let Ok(httparse::Status::Complete((start, len))) = httparse::parse_chunk_size(rest) {
        let data: &mut Vec<u8> = data.get_or_insert_default();
        let chunk = rest.get(start..).unwrap_or_default();
        let (chunk, after) =
            chunk.split_at(usize::try_from(len).unwrap_or(usize::MAX).min(chunk.len()));
        data.extend_from_slice(chunk);
        rest = after.strip_prefix(b"\r\n").unwrap_or_default();
    }
    data.unwrap_or_else(|| encoded.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined() {
        for (encoded, data) in [
            ("4\r\n<Err\r\n3;a=b\r\nor>\r\n0\r\n\r\n", "<Error>"),
            // Cut in the data, in the framing, and in the size.
            ("9\r\n<Err", "<Err"),
            ("4\r\n<Err\r", "<Err"),
            ("4\r\n<Err\r\n1", "<Err"),
            ("4\r\n", ""),
            ("0\r\n\r\n", ""),
            ("ffffffffffffffff\r\n<Err", "<Err"),
            ("<Error>", "<Error>"),
            ("", ""),
        ] {
            let joined = without_chunks(encoded.as_bytes());
            assert_eq!(String::from_utf8(joined).unwrap(), data, "{encoded:?}");
        }
    }
}
