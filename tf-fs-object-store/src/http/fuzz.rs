//! Fuzz targets for a server's bytes. `tests/fuzz` lists all targets.

use super::response_head::parse;
use super::{HttpBody, RangeResponse, content_range, date, number, retry_after, unsatisfied_size};
use crate::{GetOptions, Range};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use tf_plugin_fuzz::{fuzz, halves, text};
use tokio::io::AsyncWriteExt;

#[test]
fn heads() {
    let words = [
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/9\r\nContent-Length: 5\r\nETag: \"e\"\r\n\r\n",
        "HTTP/1.1 ",
        "HTTP/1.0 ",
        "200",
        "404 X",
        "100 Continue",
        "\r\n",
        "\r\n\r\n",
        "\n",
        "Content-Length: ",
        "Transfer-Encoding: chunked",
        "Connection: close",
        "X: y",
        " ",
    ];
    fuzz!(words, |bytes| {
        let whole = parse(bytes);
        let Ok(Some((answer, len))) = &whole else { return };
        assert!(*len <= bytes.len());
        assert!((100..600).contains(&answer.status) && answer.status != 101);
        assert!(!(answer.chunked && answer.keep), "the end of the body is not known");
        assert!(bytes[..*len].ends_with(b"\n"));
        // It is the same however it arrives.
        for end in 0..*len {
            assert!(matches!(parse(&bytes[..end]), Ok(None)), "{end} bytes of {len}");
        }
        let (again, again_len) = parse(&bytes[..*len]).unwrap().unwrap();
        assert_eq!(
            (again.status, again.content_length, again_len),
            (answer.status, answer.content_length, *len)
        );
    });
}

#[test]
fn header_values() {
    let words = [
        "bytes ",
        "bytes */",
        "0",
        "9",
        "-",
        "/",
        "+",
        "*",
        "18446744073709551615",
        "Sun, 06 Nov 1994 08:49:37 GMT",
    ];
    fuzz!(words, |bytes| {
        let value = text(bytes);
        if let Some(number) = number(&value) {
            assert_eq!(value.trim_start_matches('0'), number.to_string().trim_start_matches('0'));
        }
        if let Some((range, size)) = content_range(&value) {
            let printed = format!("bytes {}-{}/{size}", range.start, range.end - 1);
            assert_eq!(content_range(&printed), Some((range, size)));
        }
        if let Some(size) = unsatisfied_size(&value) {
            assert_eq!(unsatisfied_size(&format!("bytes */{size}")), Some(size));
        }
        if let Some(date) = date(&value) {
            assert_eq!(super::date(&httpdate::fmt_http_date(date)), Some(date));
        }
        let _ = retry_after(&value);
        // A response is never believed to have other bytes than were requested.
        let wanted = Range::new(2, 6);
        let answer =
            RangeResponse { status: 206, content_range: Some(&value), ..RangeResponse::default() };
        if let Ok(Some(head)) = answer.head(GetOptions::new("k", wanted)) {
            assert!((wanted.start + 1..=wanted.end.min(head.size)).contains(&head.end));
        }
    });
}

/// Returns the body of a response of these bytes, which arrive in pieces of `piece` bytes.
async fn received(response: Vec<u8>, piece: usize) -> Option<Vec<u8>> {
    let (client, mut server) = tokio::io::duplex(64);
    let send = async move {
        // Bytes before the request would be an error.
        let mut request = [0; 1000];
        let _ = tokio::io::AsyncReadExt::read(&mut server, &mut request).await;
        for piece in response.chunks(piece) {
            if server.write_all(piece).await.is_err() {
                return;
            }
        }
        let _ = server.shutdown().await;
        let mut rest = Vec::new();
        let _ = tokio::io::AsyncReadExt::read_to_end(&mut server, &mut rest).await;
    };
    let receive = async move {
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(client)).await.ok()?;
        let request = super::Request::get("/").body(super::Chunks::default()).ok()?;
        let read = async move {
            let response = sender.send_request(request).await.ok()?;
            let mut body = HttpBody::new(
                response.into_body(),
                Arc::from("e"),
                std::time::Duration::from_secs(20),
            );
            let mut bytes = Vec::new();
            while let Some(chunk) = body.chunk().await.ok()? {
                assert!(!chunk.is_empty());
                bytes.extend_from_slice(&chunk);
            }
            Some(bytes)
        };
        tokio::join!(connection, read).1
    };
    tokio::join!(send, receive).1
}

#[test]
fn chunked_bodies() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let words = ["0\r\n\r\n", "\r\n", "5", "a", "ffffffffffffffff", ";x=y", "0", "hello"];
    fuzz!(words, |bytes| {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let (body, sizes) = halves(bytes);
        let mut encoded = head.to_vec();
        let mut rest = body;
        for size in sizes.iter().chain([&255; 4]).map(|&size| usize::from(size)) {
            let (chunk, after) = rest.split_at(size.min(rest.len()));
            if !chunk.is_empty() {
                encoded.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
                encoded.extend_from_slice(chunk);
                encoded.extend_from_slice(b"\r\n");
            }
            rest = after;
        }
        let sent = &body[..body.len() - rest.len()];
        encoded.extend_from_slice(b"0\r\n\r\n");
        let piece = 1 + usize::from(bytes.first().copied().unwrap_or_default() % 70);
        assert_eq!(runtime.block_on(received(encoded, piece)).as_deref(), Some(sent));
        // Others are an error, or end.
        let _ = runtime.block_on(received([head, bytes].concat(), piece));
    });
}
