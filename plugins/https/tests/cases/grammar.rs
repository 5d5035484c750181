//! Responses as servers write them, within HTTP's grammar and slightly outside of it, where curl and browsers accept them.

use crate::server::{Content, Reply, Request, Server, chunked};
use crate::whole::gzip;
use crate::{error, fs, open, read, settings};
use https::{Https, Settings};
use std::time::Duration;
use tf_fs_plugin::prelude::*;

/// Returns how `edit` changes the head of a response to a request for a part of 5,000 bytes.
fn edited(request: &Request, edit: fn(&str) -> Vec<u8>) -> Reply {
    let content = Content::new(5000, 0);
    let reply = content.reply(request);
    let mut head =
        format!("HTTP/1.1 {} OK\r\nContent-Length: {}\r\n", reply.status, reply.body.len());
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    Reply { head: Some(edit(&(head + "\r\n"))), ..reply }
}

/// Adds lines after the first one.
fn with(head: &str, lines: &str) -> Vec<u8> {
    head.replacen("\r\n", &format!("\r\n{lines}\r\n"), 1).into_bytes()
}

type Edit = (&'static str, fn(&str) -> Vec<u8>);

const HEADS: [Edit; 24] = [
    ("no reason", |head| head.replacen(" OK", "", 1).into_bytes()),
    ("an empty reason", |head| head.replacen(" OK", " ", 1).into_bytes()),
    ("a reason in Latin-1", |head| {
        let mut bytes = head.as_bytes().to_vec();
        let at = head.find("OK").unwrap();
        bytes[at] = 0xfc;
        bytes
    }),
    ("several spaces", |head| head.replacen("HTTP/1.1 ", "HTTP/1.1   ", 1).into_bytes()),
    ("spaces before the reason", |head| head.replacen(" OK", "   OK", 1).into_bytes()),
    ("lines that end with LF", |head| head.replace("\r\n", "\n").into_bytes()),
    ("HTTP/1.0", |head| head.replacen("HTTP/1.1", "HTTP/1.0", 1).into_bytes()),
    ("HTTP/1.0 with keep-alive", |head| {
        with(&head.replacen("HTTP/1.1", "HTTP/1.0", 1), "Connection: Keep-Alive")
    }),
    ("a folded line", |head| with(head, "X: a\r\n b\r\n\tc")),
    ("a value in UTF-8", |head| with(head, "Content-Disposition: attachment; filename=\"ä.bin\"")),
    ("a value in Latin-1", |head| {
        let mut bytes = with(head, "Content-Disposition: attachment; filename=?.bin");
        let at = bytes.iter().position(|&byte| byte == b'?').unwrap();
        bytes[at] = 0xe4;
        bytes
    }),
    ("an empty value", |head| with(head, "Content-Encoding:\r\nX: \r\nContent-Type:")),
    ("no space after the colon", |head| head.replace(": ", ":").into_bytes()),
    ("tabs around values", |head| {
        head.replace(": ", ":\t ")
            .replace("\r\n", " \t\r\n")
            .replace("\r\n \t\r\n", "\r\n\r\n")
            .into_bytes()
    }),
    ("names in capitals", |head| {
        head.replace("Content-", "CONTENT-").replace("ETag", "ETAG").into_bytes()
    }),
    ("the length twice", |head| with(head, "Content-Length: 5000")),
    ("the length in a list", |head| head.replace(": 5000\r", ": 5000, 5000\r").into_bytes()),
    ("identity", |head| with(head, "Transfer-Encoding: identity")),
    ("no compression", |head| with(head, "Content-Encoding: UTF-8")),
    ("100 before", |head| format!("HTTP/1.1 100 Continue\r\n\r\n{head}").into_bytes()),
    ("102 and 103 before", |head| {
        let early = "HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n";
        format!("HTTP/1.1 102 Processing\r\n\r\n{early}{head}").into_bytes()
    }),
    ("200 headers", |head| {
        let lines: Vec<String> = (0..200).map(|n| format!("X-{n}: {n}")).collect();
        with(head, &lines.join("\r\n"))
    }),
    ("a header of 100 KiB", |head| with(head, &format!("X: {}", "x".repeat(100 << 10)))),
    ("200 KiB of headers", |head| {
        let lines: Vec<String> =
            (0..50).map(|n| format!("X-{n}: {}", "x".repeat(4 << 10))).collect();
        with(head, &lines.join("\r\n"))
    }),
];

#[test]
fn heads_that_curl_and_browsers_accept_are_accepted() {
    for (case, edit) in HEADS {
        let server = Server::new(move |request, _| {
            // The content is that of a request for bytes, of which the first 5,000 are all.
            edited(request, edit)
        });
        // A server that has sent a range is read over other connections from then on.
        let fs = fs();
        for path in ["f", "g"] {
            let bytes =
                read(&fs, &server.url(path)).unwrap_or_else(|error| panic!("{case}: {error:#}"));
            assert!(bytes == *Content::new(5000, 0).bytes, "{case}");
        }
        std::thread::sleep(Duration::from_millis(2));
        let url = server.url("f");
        assert_eq!(fs.get_file_size(Uri::new(url.as_bytes())).unwrap(), 5000, "{case}");
    }
}

#[test]
fn bodies_of_all_framings_are_whole() {
    type Body = (&'static str, fn(&[u8]) -> Reply);
    let ways: [Body; 8] = [
        ("chunks with extensions and trailers", |bytes| {
            let mut body = format!("{:X};name=\"value\"\r\n", bytes.len()).into_bytes();
            body.extend_from_slice(bytes);
            body.extend_from_slice(b"\r\n000;last\r\nX-Checksum: 1\r\nETag: \"other\"\r\n\r\n");
            Reply::new(200).header("Transfer-Encoding", "chunked").body(body)
        }),
        ("chunks and a length", |bytes| {
            let reply = Reply::new(200).header("Transfer-Encoding", "chunked");
            reply.header("Content-Length", 3).body(chunked(bytes))
        }),
        ("gzip in chunks", |bytes| {
            let reply = Reply::new(200).header("Transfer-Encoding", "gzip, chunked");
            reply.body(chunked(&gzip(bytes)))
        }),
        ("x-gzip", |bytes| Reply::new(200).header("Content-Encoding", "X-GZip").body(gzip(bytes))),
        ("identity and gzip", |bytes| {
            Reply::new(200).header("Content-Encoding", "identity, gzip").body(gzip(bytes))
        }),
        ("identity with a length", |bytes| {
            let reply = Reply::new(200).header("Transfer-Encoding", "identity");
            reply.header("Content-Length", bytes.len()).body(bytes)
        }),
        ("identity without a length", |bytes| {
            let reply = Reply::new(200).header("Transfer-Encoding", "identity");
            Reply { no_length: true, ..reply.body(bytes) }
        }),
        ("until the end", |bytes| Reply { no_length: true, ..Reply::new(200).body(bytes) }),
    ];
    for (case, way) in ways {
        let server = Server::new(move |_, _| way(&Content::new(300_000, 0).bytes));
        let (fs, url) = (Https::with(Settings::default()), server.url("f"));
        let bytes = read(&fs, &url).unwrap_or_else(|error| panic!("{case}: {error:#}"));
        assert!(bytes == *Content::new(300_000, 0).bytes, "{case}");
        assert_eq!(fs.get_file_size(Uri::new(url.as_bytes())).unwrap(), 300_000, "{case}");
    }
}

#[test]
fn ambiguous_text_is_an_error() {
    let heads: [Edit; 5] = [
        ("two lengths", |head| with(head, "Content-Length: 4999")),
        ("a list of two lengths", |head| head.replace(": 5000\r", ": 5000, 4999\r").into_bytes()),
        ("a folded length", |head| head.replace(": 5000\r", ": 50\r\n 00\r").into_bytes()),
        ("another encoding", |head| with(head, "Content-Encoding: gzip, br")),
        ("several encodings", |head| with(head, "Content-Encoding: gzip\r\nContent-Encoding: br")),
    ];
    let attempt = |(case, edit): Edit| {
        let server = Server::new(move |request, _| edited(request, edit));
        let settings = Settings { retry_timeout: Duration::from_millis(300), ..settings() };
        let (code, text) = error(open(&Https::with(settings), &server.url("f")));
        assert!(matches!(code, Code::Unavailable | Code::FailedPrecondition), "{case}: {text}");
    };
    std::thread::scope(|scope| {
        for head in heads {
            scope.spawn(move || attempt(head));
        }
    });
}

#[test]
fn a_location_is_followed_as_it_is_written() {
    let locations: [(&[u8], &str); 12] = [
        ("/ä.bin".as_bytes(), "/%C3%A4.bin"),
        (b"/\xe4.bin", "/%E4.bin"),
        ("/x?ä=日".as_bytes(), "/x?%C3%A4=%E6%97%A5"),
        (b"/a b.bin", "/a%20b.bin"),
        (b"\\a\\b", "/a/b"),
        (b"?x=1", "/d/f?x=1"),
        (b"g#fragment", "/d/g"),
        (b"../g/./h/../i", "/g/i"),
        (b"/%61%2f%zz", "/%61%2f%zz"),
        (b"//HOST/g", "/g"),
        (b"HTTP://HOST/g", "/g"),
        (b"http://user:pw@HOST/g", "/g"),
    ];
    for (location, target) in locations {
        let content = Content::new(5000, 0);
        let server = Server::new(move |request, _| {
            if request.target == target {
                return content.reply(request);
            }
            let host = request.header("host").unwrap().as_bytes();
            let at = location.windows(4).position(|window| window == b"HOST");
            let location = match at {
                Some(at) => [&location[..at], host, &location[at + 4..]].concat(),
                None => location.to_vec(),
            };
            let head =
                [b"HTTP/1.1 302 X\r\nContent-Length: 0\r\nlocation: ", &*location, b"\r\n\r\n"];
            Reply { head: Some(head.concat()), ..Reply::new(302) }
        });
        let shown = String::from_utf8_lossy(location);
        let bytes =
            read(&fs(), &server.url("d/f")).unwrap_or_else(|error| panic!("{shown}: {error:#}"));
        assert_eq!(bytes.len(), 5000, "{shown}");
    }
}

#[test]
fn a_redirect_to_nowhere_says_so() {
    for lines in ["", "Location: /a\r\nLocation: /b\r\n"] {
        let server = Server::new(move |_, _| {
            let head = format!("HTTP/1.1 302 X\r\nContent-Length: 0\r\n{lines}\r\n").into_bytes();
            Reply { head: Some(head), ..Reply::new(302) }
        });
        let (code, text) = error(open(&fs(), &server.url("f")));
        assert_eq!(code, Code::FailedPrecondition);
        assert!(text.contains("names no place to follow"), "{text}");
    }
}

#[test]
fn a_host_is_named_in_each_way() {
    let content = Content::new(5000, 0);
    let server = Server::new(move |request, _| content.reply(request));
    assert_eq!(read(&fs(), &server.url("f").replace("http", "HTTP")).unwrap().len(), 5000);
    for host in ["127.0.0.1", "127.1", "0x7f000001", "2130706433", "LOCALHOST", "１２７.0.0.1"] {
        let url = format!("http://{host}:{}/f", server.port);
        let bytes = read(&fs(), &url).unwrap_or_else(|error| panic!("{host}: {error:#}"));
        assert_eq!(bytes.len(), 5000, "{host}");
    }
}
