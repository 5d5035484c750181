//! OpenDAL's HTTP requests over the engine's connections: retried, limited and counted as those of other stores.

use crate::error::{carried, explain};
use crate::service::arriving;
use crate::spool::FileBody;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http::{Request, Response, StatusCode, header};
use opendal_core::{Buffer, HttpBody, HttpTransport};
use tf_fs_object_store::http::{Chunks, Http, HttpError, Method};
use tf_fs_object_store::{ErrorKind, GetHead, GetOptions, Range, StoreError as _};

/// The most bytes of a response that is not a file: a listing of about 100,000 names.
const LARGEST: usize = 128 << 20;

/// What OpenDAL writes where the [file](Transport::upload) is sent.
pub(super) const STANDS_FOR_A_FILE: &[u8] = b"a file";

/// The connections of one remote.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    pub(super) http: Http,
    /// The path that all names in listings begin with.
    pub(super) root: String,
    /// The body of a PUT, in place of OpenDAL's.
    pub(super) upload: Option<FileBody>,
}

impl HttpTransport for Transport {
    async fn fetch(&self, request: Request<Buffer>) -> opendal_core::Result<Response<HttpBody>> {
        self.send(request).await.map_err(carried)
    }
}

impl Transport {
    /// Sends a request. Statuses that OpenDAL has no kind for become errors of the engine here.
    async fn send(&self, request: Request<Buffer>) -> Result<Response<HttpBody>, HttpError> {
        let (mut parts, body) = request.into_parts();
        let is_directory = parts.uri.path().ends_with('/');
        if parts.method.as_str() == "MOVE" && is_directory {
            // OpenDAL writes `T`, and a directory at the destination would be deleted with all that is in it.
            parts.headers.insert("overwrite", http::HeaderValue::from_static("F"));
        }
        let method = parts.method.clone();
        let range =
            parts.headers.get(header::RANGE).and_then(|range| range_of(range.to_str().ok()?));
        let has_condition = parts.headers.contains_key(header::IF_MATCH);
        let again = (method.as_str() == "MKCOL").then(|| parts.clone());
        let response = match &self.upload {
            Some(file) if method.as_str() == "PUT" => {
                parts.headers.insert(header::CONTENT_LENGTH, file.len().into());
                self.http.send_body(Request::from_parts(parts, file.clone())).await?
            }
            _ => self.http.send(Request::from_parts(parts, Chunks::new(body))).await?,
        };
        let mut head = head_of(&response)?;
        if let Some(range) = range {
            if has_condition && response.status == 412 {
                return Err(HttpError::Changed);
            }
            if let Some(found) = found(&response, &mut head, range)? {
                let len = found.end.saturating_sub(range.start);
                return Ok(head.map(|()| stream(response.into_body(Some(len)))));
            }
        }
        match (method.as_str(), response.status) {
            // OpenDAL takes no other success.
            ("DELETE", 200) => *head.status_mut() = StatusCode::NO_CONTENT,
            // The directory is there, or rclone serves a disk that cannot be written to. Apache says 403 if somebody else has just
            // created it.
            ("MKCOL", 403 | 405) => {
                let is_there = match again {
                    Some(parts) => self.is_there(parts).await,
                    None => false,
                };
                if !is_there {
                    return Err(refused(response, None).await);
                }
                *head.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            }
            // Apache says so of what is below a file.
            ("PROPFIND", 400) => {
                return Err(refused(response, Some(ErrorKind::NotFound)).await);
            }
            // Some of it failed.
            ("DELETE" | "COPY" | "MOVE", 207) => return Err(refused(response, None).await),
            (_, 200..=299) => {}
            // A directory: the engine looks for one where there is no file.
            ("GET", 301 | 302 | 307 | 308 | 405) => {
                return Err(refused(response, Some(ErrorKind::NotFound)).await);
            }
            _ => return Err(refused(response, None).await),
        }
        let body = response.collect(LARGEST).await?;
        if method.as_str() == "PROPFIND" && !is_below(&body, &self.root) {
            let how = "it lists names that are not below the url; write the url as the server does";
            return Err(HttpError::Invalid(how.to_owned()));
        }
        Ok(head.map(|()| whole(body)))
    }
}

impl Transport {
    /// Returns whether a directory is there that could not be created.
    async fn is_there(&self, mut parts: http::request::Parts) -> bool {
        parts.method = Method::from_bytes(b"PROPFIND").expect("a method");
        parts.headers.insert("depth", http::HeaderValue::from_static("0"));
        let found = self.http.send(Request::from_parts(parts, Chunks::default())).await;
        found.is_ok_and(|found| found.status == 207)
    }
}

/// The connections of a service whose client takes responses as they are.
#[derive(Clone, Debug)]
pub(super) struct Plain {
    pub(super) http: Http,
    /// The URL that the client begins its own with, and the one that stands in its place.
    pub(super) moved: Option<(&'static str, String)>,
}

impl HttpTransport for Plain {
    async fn fetch(&self, request: Request<Buffer>) -> opendal_core::Result<Response<HttpBody>> {
        self.send(request).await.map_err(carried)
    }
}

impl Plain {
    /// Sends a request. Refusals that mean the same everywhere become errors of the engine here.
    async fn send(&self, request: Request<Buffer>) -> Result<Response<HttpBody>, HttpError> {
        let (mut parts, body) = request.into_parts();
        if let Some((before, after)) = &self.moved {
            let url = parts.uri.to_string();
            let url = url.strip_prefix(before).map(|path| format!("{after}{path}"));
            let url = url.and_then(|url| url.parse().ok());
            parts.uri = url.ok_or_else(|| HttpError::invalid("its client has another URL"))?;
        }
        let range = parts.headers.get(header::RANGE);
        let range = range.and_then(|range| range_of(range.to_str().ok()?));
        let has_body = parts.method != Method::HEAD;
        let response = self.http.send(Request::from_parts(parts, Chunks::new(body))).await?;
        let mut head = head_of(&response)?;
        if matches!(response.status, 401 | 403 | 429 | 500..) {
            return Err(refused(response, None).await);
        }
        if let Some(range) = range
            && response.status != 416
            && let Some(found) = found(&response, &mut head, range)?
        {
            let len = found.end.saturating_sub(range.start);
            return Ok(head.map(|()| stream(response.into_body(Some(len)))));
        }
        let body = if has_body { response.collect(LARGEST).await? } else { Bytes::new() };
        Ok(head.map(|()| whole(body)))
    }
}

fn head_of(response: &tf_fs_object_store::http::Response) -> Result<Response<()>, HttpError> {
    let mut head = Response::new(());
    *head.status_mut() = StatusCode::from_u16(response.status)
        .map_err(|_| HttpError::Invalid(format!("its status is {}", response.status)))?;
    *head.headers_mut() = response.headers.clone();
    Ok(head)
}

/// Returns what the response to a request for these bytes tells of the file, and puts it into the head as OpenDAL reads it.
/// `None` for a refusal.
fn found(
    response: &tf_fs_object_store::http::Response,
    head: &mut Response<()>,
    range: Range,
) -> Result<Option<GetHead>, HttpError> {
    let found = response.range_response().head(GetOptions::new("", range))?;
    if let Some(found) = &found {
        // What OpenDAL reads of them: the size of the file. The engine's body checks the bytes.
        *head.status_mut() = StatusCode::PARTIAL_CONTENT;
        let size = format!("bytes */{}", found.size);
        head.headers_mut().insert(header::CONTENT_RANGE, size.try_into().expect("digits"));
    }
    Ok(found)
}

/// Returns the bytes of a response that has arrived.
fn whole(body: Bytes) -> HttpBody {
    let size = body.len() as u64;
    HttpBody::new(futures_util::stream::iter([Ok(Buffer::from(body))]), Some(size))
}

/// Returns whether each response of a listing is about a path below `root`, which OpenDAL takes for granted.
fn is_below(listing: &[u8], root: &str) -> bool {
    let listing = String::from_utf8_lossy(listing);
    let mut is_response = false;
    for element in listing.split('<') {
        let (tag, text) = element.split_once('>').unwrap_or((element, ""));
        let name = tag.split([' ', '\t', '\r', '\n', '/']).next().unwrap_or_default();
        match name.rsplit_once(':').map_or(name, |(_, name)| name) {
            "response" => is_response = true,
            // The first one of a response; properties may have others.
            "href" if std::mem::take(&mut is_response) => {
                let path = text.trim().replace("&amp;", "&");
                let path = percent_encoding::percent_decode_str(&path).decode_utf8_lossy();
                if !format!("{path}/").starts_with(root) {
                    return false;
                }
            }
            _ => {}
        }
    }
    true
}

async fn refused(
    response: tf_fs_object_store::http::Response,
    kind: Option<ErrorKind>,
) -> HttpError {
    // The text is HTML for people.
    let explain = |refusal: &mut _, _: &[u8]| explain(refusal);
    match response.into_error(explain).await {
        HttpError::Status(mut refusal) => {
            refusal.kind = kind.or(refusal.kind);
            HttpError::Status(refusal)
        }
        error => error,
    }
}

/// Returns the bytes that a request's `Range` names, as OpenDAL writes it.
fn range_of(text: &str) -> Option<Range> {
    let (start, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    Some(Range::new(start.parse().ok()?, last.parse::<u64>().ok()?.checked_add(1)?))
}

/// Returns the bytes of a file as OpenDAL passes them on. The engine's body checks their number.
fn stream(body: tf_fs_object_store::http::HttpBody) -> HttpBody {
    HttpBody::new(Box::pin(arriving(body).map_ok(Buffer::from).map_err(carried)), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use opendal_core::raw::oio::ReadStream as _;
    use std::io::{Read as _, Write as _};

    /// A buffer without capacity takes 64 bytes at a time. The first response of a server comes another way than the others.
    #[tokio::test]
    async fn bytes_arrive_in_large_pieces() {
        const LEN: usize = 4 << 20;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/f", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.unwrap();
                assert!(client.read(&mut [0; 4096]).unwrap() > 0, "a request");
                let head = format!(
                    "HTTP/1.1 206 OK\r\nContent-Length: {LEN}\r\nContent-Range: bytes 0-{}/{LEN}\r\n\
                     Connection: close\r\n\r\n",
                    LEN - 1
                );
                client.write_all(&[head.as_bytes(), &vec![1; LEN]].concat()).unwrap();
            }
        });
        let settings = crate::settings::Configured::of_variables(&|_| None).unwrap();
        let http = super::super::http(settings.bucket("h")).unwrap();
        let transport = Plain { http, moved: None };
        for _ in 0..2 {
            let request = Request::get(&url).header(header::RANGE, format!("bytes=0-{}", LEN - 1));
            let response = transport.fetch(request.body(Buffer::new()).unwrap()).await.unwrap();
            let (mut body, mut len, mut pieces) = (response.into_body(), 0, 0);
            loop {
                let piece = body.read().await.unwrap();
                if piece.is_empty() {
                    break;
                }
                len += piece.len();
                pieces += 1;
            }
            assert_eq!(len, LEN);
            assert!(pieces <= LEN / 4096, "{pieces}");
        }
    }

    #[test]
    fn a_listing_is_below_the_root() {
        let listing = |href: &str| {
            format!(
                "<D:multistatus xmlns:D=\"DAV:\"><D:response xmlns:x=\"y\">\n<D:href>{href}</D:href>\
                 <D:owner><D:href>/me</D:href></D:owner></D:response>"
            )
        };
        for href in ["/a b/", "/a%20b", "/a%20b/c", "\n/a%20b/d/ "] {
            assert!(is_below(listing(href).as_bytes(), "/a b/"), "{href}");
            assert!(is_below(listing(href).as_bytes(), "/"), "{href}");
        }
        for href in ["/", "/a%20bc", "/c", "", "http://h/a%20b/", "a%20b/"] {
            assert!(!is_below(listing(href).as_bytes(), "/a b/"), "{href}");
        }
        assert!(is_below(b"<response><href>/x&amp;y/z</href></response>", "/x&y/"));
        assert!(is_below(b"no XML", "/x/"));
    }

    #[test]
    fn a_range_is_read_back() {
        assert_eq!(range_of("bytes=5-9"), Some(Range::new(5, 10)));
        for text in ["bytes=5-", "bytes=-5", "bytes=a-b", "5-9", ""] {
            assert_eq!(range_of(text), None, "{text}");
        }
    }
}
