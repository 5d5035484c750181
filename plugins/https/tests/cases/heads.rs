//! Servers that treat HEAD differently from GET.

use crate::server::{Content, Reply, Request, Server};
use crate::{error, fs, open, read_in, settings};
use https::{Https, Settings};
use std::time::Duration;
use tf_fs_plugin::prelude::*;

/// Returns the methods of all requests since the last call.
fn methods(server: &Server) -> String {
    let log = server.take_log();
    log.iter().map(|request| request.method.as_str()).collect::<Vec<_>>().join(" ")
}

/// Asserts what `exists`, `stat` and a read tell of a file of 5,000 bytes.
fn assert_readable(fs: &Https, url: &str, case: &str) {
    let uri = Uri::new(url.as_bytes());
    assert!(fs.path_exists(uri).unwrap(), "{case}: exists");
    assert_eq!(fs.stat(uri).unwrap().length, 5000, "{case}: stat");
    let file = open(fs, url).unwrap();
    assert!(read_in(&file, 1 << 20).unwrap() == *Content::new(5000, 0).bytes, "{case}: read");
}

#[test]
fn a_file_that_only_get_shows_exists() {
    for status in [
        300, 302, 304, 400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 411, 412, 415, 416, 418,
        421, 423, 425, 426, 428, 429, 451, 500, 501, 502, 503, 504, 505, 520, 599,
    ] {
        for has_ranges in [true, false] {
            let content = Content::new(5000, 0);
            let server = Server::new(move |request, _| match (&*request.method, has_ranges) {
                ("HEAD", _) => Reply::new(status),
                (_, true) => content.reply(request),
                (_, false) => content.whole(),
            });
            let fs = fs();
            assert_readable(&fs, &server.url("f"), &format!("{status}, ranges: {has_ranges}"));
            let sent = methods(&server);
            if has_ranges {
                // One HEAD tells that this host has none.
                assert_eq!(sent.matches("HEAD").count(), 1, "{status}: {sent}");
            }
            // And the next one is looked up with one request.
            std::thread::sleep(Duration::from_millis(2));
            assert!(fs.path_exists(Uri::new(server.url("g").as_bytes())).unwrap());
            assert_eq!(methods(&server), if has_ranges { "GET" } else { "HEAD GET" }, "{status}");
        }
    }
}

#[test]
fn a_host_that_answers_head_gets_no_further_requests() {
    let content = Content::new(5000, 0);
    let server = Server::new(move |request, _| match &*request.target {
        "/f" => content.reply(request),
        _ => Reply::new(404),
    });
    let fs = fs();
    let exists = |path: &str| {
        std::thread::sleep(Duration::from_millis(2));
        fs.path_exists(Uri::new(server.url(path).as_bytes())).unwrap()
    };
    for _ in 0..3 {
        assert!(exists("f"));
        assert_eq!(methods(&server), "HEAD");
        // A 404 costs one small request more, and the host keeps its HEAD.
        assert!(!exists("missing"));
        let log = server.take_log();
        assert_eq!(log.iter().map(|r| &*r.method).collect::<Vec<_>>(), ["HEAD", "GET"]);
        assert_eq!(log[1].range(), Some((0, 0)));
    }
}

#[test]
fn a_refusal_is_that_of_the_get() {
    for (status, code) in [
        (404, Code::NotFound),
        (410, Code::NotFound),
        (401, Code::Unauthenticated),
        (403, Code::PermissionDenied),
        (503, Code::Unavailable),
    ] {
        let server = Server::new(move |request, _| match &*request.method {
            "HEAD" => Reply::new(405),
            _ => Reply::new(status),
        });
        let settings = Settings { retry_timeout: Duration::from_millis(300), ..settings() };
        let url = server.url("f");
        let (got, text) = error(Https::with(settings).stat(Uri::new(url.as_bytes())));
        assert_eq!(got, code, "{text}");
        assert!(status == 404 || status == 410 || text.contains(&status.to_string()), "{text}");
    }
}

#[test]
fn a_head_without_a_valid_response_is_ignored() {
    type Way = (&'static str, fn(&Request) -> Reply);
    let ways: [Way; 5] = [
        ("closed", |_| Reply { drop: true, ..Reply::default() }),
        ("a length that is none", |_| Reply::new(200).header("Content-Length", "many")),
        ("a redirect in circles", |_| Reply::new(302).header("Location", "/f")),
        ("a redirect to nowhere", |_| Reply::new(302).header("Location", "ftp://h/f")),
        ("in chunks", |_| Reply::new(200).header("Transfer-Encoding", "chunked")),
    ];
    for (case, way) in ways {
        let content = Content::new(5000, 0);
        let server = Server::new(move |request, _| match &*request.method {
            "HEAD" => way(request),
            _ => content.reply(request),
        });
        assert_readable(&fs(), &server.url("f"), case);
    }
}

#[test]
fn a_signature_for_get_alone_is_followed() {
    let content = Content::new(5000, 0);
    let server = Server::new(move |request, _| match (&*request.target, &*request.method) {
        ("/f", _) => Reply::new(303).header("Location", "/signed?signature=1"),
        (_, "HEAD") => Reply::new(403),
        _ => content.reply(request),
    });
    assert_readable(&fs(), &server.url("f"), "signed");
}

#[test]
fn looks_at_a_host_without_head_share_a_connection() {
    let content = Content::new(5000, 0);
    let server = Server::new(move |request, _| match &*request.method {
        "HEAD" => Reply::new(405),
        _ => content.reply(request),
    });
    let fs = fs();
    for n in 0..20 {
        assert!(fs.path_exists(Uri::new(server.url(&n.to_string()).as_bytes())).unwrap());
    }
    assert!(server.connections() <= 3, "{} connections", server.connections());
}
