//! Bodies of responses: sent, cut, held back, altered.

use std::future::Future;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use s3s::StdError;
use tokio::time::Sleep;

use crate::fault::Reply;
use crate::log::Live;
use crate::shape::Wire;

/// What happens to the rest of a response after a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing special.
    Go,
    /// The connection is reset.
    Reset,
    /// The connection is closed.
    Close,
    /// Nothing more is sent.
    Stall,
    /// One byte is sent, then another one after this time.
    Trickle(Duration),
}

/// How the connection of a response ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Reset,
    Close,
    HalfClose,
}

/// Tells the task of a connection to end it.
pub(crate) type Ends = tokio::sync::mpsc::UnboundedSender<End>;

/// How long hyper and the kernel get to send the bytes before the end of a connection.
pub(crate) const SETTLE: Duration = Duration::from_millis(30);

/// The body of a response, which does what a fault requires and keeps the log.
pub(crate) struct Outgoing {
    inner: s3s::Body,
    live: Option<Live>,
    wire: Arc<Wire>,
    ends: Ends,
    /// Bytes until `then`.
    left: u64,
    then: Then,
    rest: Bytes,
    sleep: Option<Pin<Box<Sleep>>>,
    close_idle: bool,
    size: SizeHint,
}

impl Outgoing {
    pub(crate) fn new(
        inner: s3s::Body,
        live: Option<Live>,
        wire: Arc<Wire>,
        ends: Ends,
    ) -> Outgoing {
        let size = inner.size_hint();
        Outgoing {
            inner,
            live,
            wire,
            ends,
            left: u64::MAX,
            then: Then::Go,
            rest: Bytes::new(),
            sleep: None,
            close_idle: false,
            size,
        }
    }

    /// Does `then` after `left` bytes.
    pub(crate) fn after(&mut self, left: u64, then: Then) {
        (self.left, self.then) = (left, then);
    }

    /// Lets the head tell another length than that of the body.
    pub(crate) fn lies(&mut self) {
        self.size = SizeHint::default();
    }

    /// Ends the connection once all is sent.
    pub(crate) fn close_idle(&mut self) {
        self.close_idle = true;
        // hyper requests no frame of an empty body.
        if self.is_end_stream() {
            self.wire.close_after_flush();
        }
    }

    fn count(&self, bytes: &Bytes) {
        if let Some(live) = &self.live {
            live.0.sent(bytes.len());
        }
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, StdError>>> {
        loop {
            if !self.rest.is_empty() {
                return Poll::Ready(Some(Ok(std::mem::take(&mut self.rest))));
            }
            match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
            }
        }
    }

    fn poll_sleep(&mut self, time: Duration, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        ready!(sleep.as_mut().poll(cx));
        self.sleep = None;
        Poll::Ready(())
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let this = &mut *self;
        if this.left == 0 {
            match this.then {
                Then::Go => this.left = u64::MAX,
                Then::Stall => return Poll::Pending,
                Then::Reset | Then::Close => {
                    // hyper sends what it holds while the body has nothing.
                    ready!(this.poll_sleep(SETTLE, cx));
                    let end = if this.then == Then::Reset { End::Reset } else { End::Close };
                    // A task that is gone has no connection to end.
                    let _ = this.ends.send(end);
                    this.then = Then::Stall;
                    return Poll::Pending;
                }
                Then::Trickle(every) => {
                    ready!(this.poll_sleep(every, cx));
                    this.left = 1;
                }
            }
        }
        let data = match ready!(this.poll_data(cx)) {
            Some(Ok(data)) => data,
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => {
                if this.then == Then::Close || this.then == Then::Reset {
                    // The head has promised more bytes than there are.
                    this.left = 0;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                if this.close_idle {
                    this.wire.close_after_flush();
                }
                return Poll::Ready(None);
            }
        };
        let now = (data.len() as u64).min(this.left) as usize;
        this.rest = data.slice(now..);
        this.left -= now as u64;
        let data = data.slice(..now);
        this.count(&data);
        if this.close_idle && this.rest.is_empty() && this.inner.is_end_stream() {
            this.wire.close_after_flush();
        }
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.then == Then::Go && self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.then == Then::Go { self.inner.size_hint() } else { self.size }
    }
}

/// The response of a server, before it is sent.
pub(crate) type Answer = Response<s3s::Body>;

/// Returns an error response in S3's format.
pub(crate) fn error(reply: &Reply, head: bool) -> Answer {
    let xml = reply.document.clone().unwrap_or_else(|| {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{}</Code><Message>{}</Message></Error>",
            reply.code, reply.message
        )
    });
    let body = if reply.body && !head { s3s::Body::from(xml) } else { s3s::Body::empty() };
    let mut answer = Response::new(body);
    *answer.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if reply.body {
        answer
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    }
    for (name, value) in &reply.headers {
        set(answer.headers_mut(), name, value);
    }
    answer
}

/// Sets a header; a name or value that HTTP does not allow is the test's mistake.
pub(crate) fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
        panic!("HTTP does not allow the header {name:?}: {value:?}; correct the fault that sets it")
    };
    headers.insert(name, value);
}

/// Returns the length of the body, where it is known.
pub(crate) fn length(answer: &Answer) -> Option<u64> {
    let header = answer.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    header.and_then(|value| value.parse().ok()).or_else(|| answer.body().size_hint().exact())
}

/// Replaces the body with the result of `change`.
pub(crate) async fn map_bytes(answer: Answer, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Answer {
    let (mut parts, body) = answer.into_parts();
    let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let bytes = change(bytes.into());
    if parts.headers.contains_key(header::CONTENT_LENGTH) {
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
    }
    Response::from_parts(parts, s3s::Body::from(bytes))
}

/// Does the same as [`map_bytes`] for a body of text.
pub(crate) async fn map_text(answer: Answer, change: impl FnOnce(String) -> String) -> Answer {
    map_bytes(answer, |bytes| change(String::from_utf8_lossy(&bytes).into_owned()).into_bytes())
        .await
}

fn is_xml(answer: &Answer) -> bool {
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/xml"))
}

/// Returns where the content of the root element begins.
fn root_content(xml: &str) -> Option<usize> {
    let declaration = xml.find("?>").map_or(0, |at| at + 2);
    let root = declaration + xml[declaration..].find('<')?;
    Some(root + xml[root..].find('>')? + 1)
}

fn insert_in_root(xml: &str, text: &str) -> String {
    match root_content(xml) {
        Some(at) if !xml[..at].ends_with("/>") => [&xml[..at], text, &xml[at..]].concat(),
        _ => xml.to_owned(),
    }
}

/// Replaces the content of each `<name>` element; `None` removes the element.
fn replace_elements(xml: &str, name: &str, content: Option<&str>) -> String {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut out = String::new();
    let mut rest = xml;
    while let Some((before, after)) = rest.split_once(&open) {
        let Some((_, tail)) = after.split_once(&close) else { break };
        out.push_str(before);
        if let Some(content) = content {
            out.push_str(&[&open, content, &close].concat());
        }
        rest = tail;
    }
    out + rest
}

pub(crate) async fn bad_xml(answer: Answer) -> Answer {
    map_text(answer, |xml| {
        let xml = if root_content(&xml).is_some() {
            xml
        } else {
            "<?xml version=\"1.0\"?><Result><A>".to_owned()
        };
        let mut end = xml.len() * 2 / 3;
        while !xml.is_char_boundary(end) {
            end -= 1;
        }
        xml[..end].to_owned()
    })
    .await
}

pub(crate) async fn huge_xml(answer: Answer, len: usize) -> Answer {
    const FILLER: &str = "<Filler>0123456789abcdef0123456789abcdef</Filler>";
    map_text(answer, |xml| insert_in_root(&xml, &FILLER.repeat(len.div_ceil(FILLER.len())))).await
}

pub(crate) async fn xml_bomb(answer: Answer) -> Answer {
    map_text(answer, |xml| {
        let mut entities = "<!ENTITY e0 \"eeeeeeeeee\">".to_owned();
        for i in 1..10 {
            entities += &format!("<!ENTITY e{i} \"{}\">", format!("&e{};", i - 1).repeat(10));
        }
        let root = xml.find("?>").map_or(0, |at| at + 2);
        let content = insert_in_root(&xml[root..], "<Prefix>&e9;</Prefix><Code>&e9;</Code>");
        format!("{}<!DOCTYPE bomb [{entities}]>{content}", &xml[..root])
    })
    .await
}

pub(crate) async fn unknown_xml(answer: Answer) -> Answer {
    const UNKNOWN: &str =
        "<Unheard of=\"it\"><Key>not one</Key><ETag>&quot;no&quot;</ETag><!-- - --></Unheard>";
    map_text(answer, |xml| {
        let xml = insert_in_root(&xml, UNKNOWN);
        ["Contents", "Upload", "Deleted", "CommonPrefixes", "Part"]
            .iter()
            .fold(xml, |xml, name| xml.replace(&format!("<{name}>"), &format!("<{name}>{UNKNOWN}")))
    })
    .await
}

pub(crate) async fn endless(answer: Answer, token: bool) -> Answer {
    map_text(answer, |xml| {
        let xml = replace_elements(&xml, "NextContinuationToken", None);
        let xml = replace_elements(&xml, "NextMarker", None);
        let xml = replace_elements(&xml, "IsTruncated", Some("true"));
        // The token encodes the name "\0": the listing begins again at the first name.
        let more = if token { "<NextContinuationToken>AA==</NextContinuationToken>" } else { "" };
        insert_in_root(&xml, more)
    })
    .await
}

/// Leaves out the objects that were deleted.
pub(crate) async fn quiet(answer: Answer) -> Answer {
    map_text(answer, |xml| replace_elements(&xml, "Deleted", None)).await
}

pub(crate) async fn etag(mut answer: Answer, etag: Option<&str>) -> Answer {
    if answer.headers_mut().remove(header::ETAG).is_some()
        && let Some(etag) = etag
    {
        set(answer.headers_mut(), "etag", etag);
    }
    if is_xml(&answer) {
        map_text(answer, |xml| replace_elements(&xml, "ETag", etag)).await
    } else {
        answer
    }
}

pub(crate) async fn gzip(answer: Answer) -> Answer {
    let mut answer = map_bytes(answer, |bytes| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let written = encoder.write_all(&bytes).and_then(|()| encoder.finish());
        written.expect("memory can be written")
    })
    .await;
    set(answer.headers_mut(), "content-encoding", "gzip");
    answer
}

pub(crate) fn wrong_range(answer: &mut Answer) {
    let headers = answer.headers_mut();
    let range =
        headers.get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let parsed = range.as_deref().and_then(|range| {
        let (span, size) = range.strip_prefix("bytes ")?.split_once('/')?;
        let (first, last) = span.split_once('-')?;
        Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?, size.to_owned()))
    });
    if let Some((first, last, size)) = parsed {
        set(headers, "content-range", &format!("bytes {}-{}/{size}", first + 1, last + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements() {
        let xml = "<?xml version=\"1.0\"?>\n<R x=\"y\"><ETag>1</ETag><A/><ETag>2</ETag></R>";
        assert_eq!(
            replace_elements(xml, "ETag", None),
            "<?xml version=\"1.0\"?>\n<R x=\"y\"><A/></R>"
        );
        assert!(
            replace_elements(xml, "ETag", Some("n")).contains("<ETag>n</ETag><A/><ETag>n</ETag>")
        );
        assert!(insert_in_root(xml, "<N/>").contains("<R x=\"y\"><N/><ETag>1"));
        assert_eq!(insert_in_root("<R/>", "<N/>"), "<R/>");
    }
}
