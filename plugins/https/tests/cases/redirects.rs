//! Redirects.

use crate::server::{Content, Reply, Request, Server};
use crate::{error, fs, open, read, read_in, settings};
use https::{Https, Secret, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tf_fs_plugin::prelude::*;

fn to(status: u16, location: impl ToString) -> Reply {
    Reply::new(status).header("Location", location)
}

#[test]
fn all_kinds_are_followed_and_the_place_is_remembered() {
    let content = Content::new(20 << 20, 0);
    for status in [301, 302, 303, 307, 308] {
        let there = content.serve();
        let url = there.url("g?signature=1");
        let here = Server::new(move |request, _| match &*request.target {
            "/d/f" => to(status, "../e"),
            "/e" => to(status, &url),
            _ => Reply::new(404),
        });
        let file = open(&fs(), &here.url("d/f")).unwrap();
        assert_eq!(here.take_log().len(), 2, "{status}");
        assert!(read_in(&file, 1 << 20).unwrap() == *content.bytes);
        assert!(here.take_log().is_empty(), "all ranges of an open file come from one place");
        let log = there.take_log();
        assert!(log.len() > 1 && log.iter().all(|request| request.target == "/g?signature=1"));
        let uri = here.url("d/f");
        assert_eq!(fs().get_file_size(Uri::new(uri.as_bytes())).unwrap(), 20 << 20);
    }
}

#[test]
fn a_signature_that_has_ended_is_renewed() {
    let content = Content::new(20 << 20, 0);
    let valid = Arc::new(AtomicUsize::new(0));
    let (copy, now) = (content.clone(), Arc::clone(&valid));
    let there = Server::new(move |request, _| {
        let wanted = format!("/g?signature={}", now.load(Ordering::SeqCst));
        if request.target == wanted { copy.reply(request) } else { Reply::new(403) }
    });
    let (url, now) = (there.url("g"), Arc::clone(&valid));
    let here =
        Server::new(move |_, _| to(302, format!("{url}?signature={}", now.load(Ordering::SeqCst))));
    let file = open(&fs(), &here.url("f")).unwrap();
    valid.store(1, Ordering::SeqCst);
    assert!(read_in(&file, 1 << 20).unwrap() == *content.bytes);
}

#[test]
fn redirects_without_end_or_without_a_target_are_errors() {
    let far = Server::new(|_, n| to(302, format!("/{n}")));
    let around = Server::new(|_, _| to(301, "/f"));
    for server in [far, around] {
        let (code, text) = error(open(&fs(), &server.url("f")));
        assert_eq!(code, Code::FailedPrecondition, "{text}");
        assert!(text.contains("10 redirects"), "{text}");
        assert_eq!(server.take_log().len(), 11);
    }
    for location in ["ftp://h/x", "http://", ""] {
        let server = Server::new(move |request, n| match n {
            0..11 => to(302, location),
            _ => Reply::new(500).body(request.target.clone()),
        });
        assert_eq!(error(open(&fs(), &server.url("f"))).0, Code::FailedPrecondition, "{location}");
    }
    let server = Server::new(|_, _| Reply::new(302));
    assert_eq!(error(open(&fs(), &server.url("f"))).0, Code::FailedPrecondition);
}

#[test]
fn credentials_stay_with_their_host() {
    let content = Content::new(5 << 20, 0);
    let there = content.serve();
    let url = there.url("g");
    let here = Server::new(move |request, _| match request.header("authorization") {
        Some("Bearer sesame") => to(302, &url),
        _ => Reply::new(401),
    });
    let tokens = format!("http://127.0.0.1:{}=sesame", here.port);
    let fs = Https::with(Settings { bearer_tokens: Some(Secret::new(tokens)), ..settings() });
    assert!(read(&fs, &here.url("f")).unwrap() == *content.bytes);
    let log: Vec<Request> = there.take_log();
    assert!(!log.is_empty());
    for request in log {
        for (name, value) in &request.headers {
            assert!(!value.contains("sesame") && name != "referer", "{name}: {value}");
        }
    }
}

#[test]
fn a_password_goes_along_to_the_same_port_alone() {
    let server =
        Server::new(|request, _| match (&*request.target, request.header("authorization")) {
            (_, None) => Reply::new(401),
            ("/f", _) => to(302, "/g"),
            _ => Reply::new(200).body("bytes"),
        });
    for entry in ["default", "machine 127.0.0.1"] {
        let netrc = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(netrc.path(), format!("{entry} login u password p")).unwrap();
        let fs = Https::with(Settings { netrc: Some(netrc.path().into()), ..settings() });
        assert_eq!(read(&fs, &server.url("f")).unwrap(), b"bytes");
        // Another port is another server.
        let other = Server::new(|request, _| match request.header("authorization") {
            None => Reply::new(200).body("none"),
            Some(_) => Reply::new(200).body("some"),
        });
        let url = other.url("g");
        let here = Server::new(move |_, _| to(302, &url));
        assert_eq!(read(&fs, &here.url("f")).unwrap(), b"none", "{entry}");
    }
}

#[test]
fn no_redirect_leads_from_tls_to_plain_text() {
    let clear = Server::new(|_, _| Reply::new(200).body("x"));
    let url = clear.url("g?signature=sesame");
    let server = Server::tls("127.0.0.1", move |_, _| to(302, &url));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &server.authority).unwrap();
    let fs = Https::with(Settings { ca_file: Some(file.path().into()), ..settings() });
    let (code, text) = error(open(&fs, &server.url("f")));
    assert_eq!(code, Code::FailedPrecondition);
    assert!(text.contains("http://127.0.0.1") && !text.contains("sesame"), "{text}");
    assert!(clear.take_log().is_empty());
}
