//! Servers that refuse, break off, stall, and contradict themselves.

use crate::server::{Content, Reply, Request, Server, chunked};
use crate::{error, fs, impatient, open, read, settings};
use https::{Https, Settings};
use std::time::{Duration, Instant, SystemTime};
use tf_fs_plugin::prelude::*;

#[test]
fn refusals_have_codes_and_say_what_to_do() {
    for (status, code, advice) in [
        (400, Code::InvalidArgument, ""),
        (401, Code::Unauthenticated, "TF_HTTPS_BEARER_TOKENS"),
        (403, Code::PermissionDenied, "signed"),
        (404, Code::NotFound, ""),
        (405, Code::Unimplemented, ""),
        (410, Code::NotFound, ""),
        (418, Code::InvalidArgument, ""),
        (451, Code::PermissionDenied, ""),
    ] {
        let server = Server::new(move |_, _| Reply::new(status));
        let (got, text) = error(open(&fs(), &server.url("f?signature=sesame")));
        assert_eq!(got, code, "{text}");
        assert!(text.contains(advice) && !text.contains("sesame"), "{text}");
        assert!(status == 404 || status == 410 || text.contains(&status.to_string()), "{text}");
        assert_eq!(server.take_log().len(), 1, "{status} is not tried again");
    }
}

#[test]
fn transient_errors_are_retried() {
    let content = Content::new(100_000, 0);
    for status in [408, 429, 500, 502, 503, 504, 520] {
        let copy = content.clone();
        let server = Server::new(move |request, n| match n {
            0..2 => Reply::new(status),
            _ => copy.reply(request),
        });
        assert!(read(&fs(), &server.url("f")).unwrap() == *content.bytes, "{status}");
    }
    let settings = Settings { retry_timeout: Duration::from_millis(700), ..settings() };
    for (status, advice) in [(429, "fewer files"), (503, "try again later")] {
        let server = Server::new(move |_, _| Reply::new(status));
        let (code, text) = error(open(&Https::with(settings.clone()), &server.url("f")));
        assert_eq!(code, Code::Unavailable);
        assert!(text.contains(advice), "{text}");
        assert!(server.take_log().len() > 1);
    }
}

#[test]
fn a_server_is_left_alone_as_long_as_it_wants() {
    let content = Content::new(100_000, 0);
    let in_a_while = || {
        // Dates have no fractions of a second.
        let time = SystemTime::now() + Duration::from_secs(3);
        httpdate::fmt_http_date(time)
    };
    for header in [|| "1".to_owned(), in_a_while] {
        let copy = content.clone();
        let server = Server::new(move |request, n| match n {
            0 => Reply::new(429).header("Retry-After", header()),
            _ => copy.reply(request),
        });
        let began = Instant::now();
        assert!(read(&fs(), &server.url("f")).unwrap() == *content.bytes);
        assert!(began.elapsed() >= Duration::from_millis(900), "{:?}", began.elapsed());
    }
}

type Fault = (&'static str, fn(Reply, &Request) -> Reply);

/// What can go wrong with a response to a request for a range.
const FAULTS: [Fault; 16] = [
    ("closed", |reply, _| Reply { drop: true, ..reply }),
    ("broken off", |reply, _| Reply { cut: Some(reply.body.len() / 2), ..reply }),
    ("last byte missing", |reply, _| Reply { cut: Some(reply.body.len() - 1), ..reply }),
    ("no body", |reply, _| Reply { cut: Some(0), ..reply }),
    ("stalled", |reply, _| Reply { stall: Some(reply.body.len() / 2), ..reply }),
    ("length too short", |reply, _| {
        let len = reply.body.len() - 1;
        let reply = reply.header("Content-Length", len);
        Reply { cut: Some(len), ..reply }
    }),
    ("length too long", |reply, _| {
        let len = reply.body.len();
        Reply { cut: Some(len), ..reply.header("Content-Length", len + 1) }
    }),
    ("no Content-Range", |reply, _| reply.without("Content-Range")),
    ("one byte too late, as Content-Range says", |mut reply, request| {
        reply.body.rotate_left(1);
        let (first, _) = request.range().unwrap();
        let len = reply.body.len();
        let range = format!("bytes {}-{}/{}", first + 1, first + len, 6 << 20);
        reply.header("Content-Range", range)
    }),
    ("Content-Range of another size", |reply, _| {
        let len = reply.body.len();
        reply.header("Content-Range", format!("bytes 0-{}/{}", len, len / 2))
    }),
    ("chunked and short", |reply, _| {
        let body = chunked(&reply.body[..reply.body.len() - 1]);
        reply.header("Transfer-Encoding", "chunked").body(body)
    }),
    ("chunked and broken off", |reply, _| {
        let mut body = chunked(&reply.body);
        body.truncate(body.len() / 2);
        let cut = Some(body.len());
        Reply { cut, ..reply.header("Transfer-Encoding", "chunked").body(body) }
    }),
    ("several parts", |reply, _| {
        let reply = reply.without("Content-Range");
        reply.header("Content-Type", "multipart/byteranges; boundary=x")
    }),
    ("416 within the file", |_, _| Reply::new(416).header("Content-Range", "bytes */6291456")),
    ("503", |_, _| Reply::new(503).body("busy")),
    ("two lengths", |reply, _| {
        let len = reply.body.len();
        let mut reply = reply.header("Content-Length", len);
        reply.headers.push(("Content-Length".into(), (len + 1).to_string()));
        reply
    }),
];

#[test]
fn every_fault_at_every_request_passes() {
    let content = Content::new(6 << 20, 0);
    let good = content.serve();
    assert!(read(&fs(), &good.url("f")).unwrap() == *content.bytes);
    let requests = good.take_log().len();
    assert!(requests >= 2, "{requests}");
    for (name, fault) in FAULTS {
        for k in 0..requests {
            let copy = content.clone();
            let server = Server::new(move |request, n| {
                let reply = copy.reply(request);
                // A request that is dropped in favour of another may be any of them.
                if n == k && reply.status == 206 { fault(reply, request) } else { reply }
            });
            let outcome = read(&Https::with(impatient()), &server.url("f"));
            assert!(outcome.unwrap() == *content.bytes, "{name} at request {k}");
            assert!(server.take_log().len() > requests, "{name} at request {k}");
        }
    }
}

#[test]
fn faults_that_stay_end_in_an_error() {
    let content = Content::new(6 << 20, 0);
    let attempt = |(name, fault): Fault| {
        let copy = content.clone();
        let server = Server::new(move |request, _| fault(copy.reply(request), request));
        let settings = Settings { retry_timeout: Duration::from_secs(1), ..impatient() };
        let began = Instant::now();
        let (code, text) = error(read(&Https::with(settings), &server.url("f?signature=sesame")));
        let wanted = if name == "stalled" { Code::DeadlineExceeded } else { Code::Unavailable };
        // Halves of halves arrive, until nothing is left of them.
        assert_eq!(code, wanted, "{name}: {text}");
        assert!(began.elapsed() < Duration::from_secs(12), "{name}: {:?}", began.elapsed());
        assert!(!text.contains("sesame"), "{text}");
    };
    // Most of each attempt is waiting.
    std::thread::scope(|scope| {
        for fault in FAULTS {
            scope.spawn(move || attempt(fault));
        }
    });
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let port = Server::new(|_, _| Reply::new(200)).port;
    let settings = Settings { retry_timeout: Duration::from_millis(300), ..settings() };
    let url = format!("http://127.0.0.1:1/f?signature=sesame#{port}").replace('#', "&");
    let (code, text) = error(open(&Https::with(settings), &url));
    assert_eq!(code, Code::Unavailable);
    assert!(text.contains("http://127.0.0.1:1") && !text.contains("sesame"), "{text}");
}

#[test]
fn a_whole_file_in_response_to_a_range_is_not_a_part() {
    let content = Content::new(30 << 20, 0);
    let server = Server::new(move |request, n| match n {
        0 => content.reply(request),
        _ => content.whole().header("ETag", &content.etag),
    });
    let file = open(&fs(), &server.url("f")).unwrap();
    let mut memory = [0; 100];
    let mut buf = ReadBuf::from_slice(&mut memory);
    let (code, text) = error(file.read_at(29 << 20, &mut buf));
    assert_eq!((code, buf.filled().len()), (Code::Unavailable, 0), "{text}");
}
