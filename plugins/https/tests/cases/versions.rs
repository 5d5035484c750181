//! Servers whose validators change although their files do not, and whose conditions cannot be relied on.

use crate::server::{Content, Reply, Request, Server, chunked};
use crate::{error, fs, open, read, settings};
use https::{Https, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tf_fs_object_store::VersionCheck;
use tf_fs_plugin::prelude::*;

const LEN: usize = 9 << 20;
const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

/// Returns the response of a server that ignores `If-Match`.
fn unconditional(content: &Content, request: &Request) -> Reply {
    let mut request = request.clone();
    request.headers.remove("if-match");
    content.reply(&request)
}

/// Reads the file of a server from several threads, at its beginning, its end and in between.
fn read_everywhere(fs: &Https, url: &str, content: &Content) -> Result<()> {
    let file = open(fs, url)?;
    for offset in [0, LEN - 100, LEN - (1 << 20)] {
        let mut memory = [0; 100];
        let mut buf = ReadBuf::from_slice(&mut memory);
        file.read_at(offset as u64, &mut buf)?;
        assert!(buf.filled() == &content.bytes[offset..offset + 100], "{offset}");
    }
    assert!(read(fs, url)? == *content.bytes);
    Ok(())
}

type Quirk = fn(&Content, &Request, usize) -> Reply;

/// Servers whose files are read although their validators differ from response to response.
const QUIRKS: [(&str, Quirk); 9] = [
    ("refuses each If-Match", |content, request, _| match request.header("if-match") {
        Some(_) => Reply::new(412).header("ETag", "\"another\""),
        None => content.reply(request),
    }),
    ("refuses it without an ETag, and the file has no time", |content, request, _| {
        match request.header("if-match") {
            Some(_) => Reply::new(412),
            None => content.reply(request).without("Last-Modified"),
        }
    }),
    ("weak, then strong", |content, request, n| {
        let reply = unconditional(content, request);
        if n < 1 { reply.header("ETag", format!("W/{}", content.etag)) } else { reply }
    }),
    ("strong, then weak, which equals no condition", |content, request, n| {
        if n > 0 && request.header("if-match").is_some() {
            return Reply::new(412);
        }
        let reply = content.reply(request);
        if n > 0 { reply.header("ETag", format!("W/{}", content.etag)) } else { reply }
    }),
    ("the ETag of an encoding", |content, request, n| {
        let reply = unconditional(content, request);
        if n % 2 == 1 {
            reply.header("ETag", format!("{}-gzip\"", content.etag.trim_end_matches('"')))
        } else {
            reply
        }
    }),
    ("two nodes", |content, request, n| {
        unconditional(content, request).header("ETag", format!("\"node-{}\"", n % 2))
    }),
    ("two nodes that check", |content, request, n| {
        let etag = format!("\"node-{}\"", n % 2);
        Content { etag, ..content.clone() }.reply(request)
    }),
    ("an ETag for each response", |content, request, n| {
        unconditional(content, request).header("ETag", format!("\"{n}\""))
    }),
    ("the times of two nodes, and equal ETags", |content, request, n| {
        let reply = unconditional(content, request);
        if n % 2 == 1 { reply.header("Last-Modified", LATER) } else { reply }
    }),
];

#[test]
fn validators_that_are_no_conditions_do_not_prevent_reading() {
    for (name, quirk) in QUIRKS {
        let content = Content::new(LEN, 0);
        let copy = content.clone();
        let server = Server::new(move |request, n| quirk(&copy, request, n));
        let fs = fs();
        read_everywhere(&fs, &server.url("f"), &content)
            .unwrap_or_else(|error| panic!("{name}: {error:#}"));
        // As `tf.io.read_file` does it: the version is remembered from a HEAD or from the last time.
        let remembers = Https::with(Settings { cache: Duration::from_secs(60), ..settings() });
        let url = server.url("f");
        for _ in 0..2 {
            assert_eq!(remembers.get_file_size(Uri::new(url.as_bytes())).unwrap(), LEN as u64);
            let outcome = read(&remembers, &url);
            assert!(outcome.unwrap_or_else(|error| panic!("{name}: {error:#}")) == *content.bytes);
        }
        // The result counts for the host.
        let is_learned = !matches!(name, "weak, then strong");
        server.take_log();
        assert!(read(&fs, &server.url("g")).unwrap() == *content.bytes);
        let log = server.take_log();
        assert!(log.len() <= 6, "{name}: {} requests", log.len());
        let is_bound = log.iter().any(|request| request.header("if-match").is_some());
        let keeps = [
            "weak, then strong",
            "the ETag of an encoding",
            "the times of two nodes, and equal ETags",
        ];
        assert!(!is_learned || keeps.contains(&name) || !is_bound, "{name}");
    }
}

#[test]
fn a_change_is_seen_all_the_same() {
    for (name, quirk) in QUIRKS {
        for (etag, time) in [("\"new\"", LATER), ("\"new\"", "Sun, 06 Nov 1994 08:49:37 GMT")] {
            // Where ETags tell nothing only the time is left.
            let is_unseen = time != LATER
                && matches!(
                    name,
                    "two nodes" | "two nodes that check" | "an ETag for each response"
                );
            if is_unseen {
                continue;
            }
            let (old, new) = (Content::new(LEN, 0), Content::new(LEN, 7));
            let is_new = Arc::<AtomicBool>::default();
            let flag = Arc::clone(&is_new);
            let server = Server::new(move |request, n| match flag.load(Ordering::SeqCst) {
                false => quirk(&old, request, n),
                true => {
                    unconditional(&new, request).header("ETag", etag).header("Last-Modified", time)
                }
            });
            let fs = fs();
            let file = open(&fs, &server.url("f")).unwrap();
            // So that what can be learned of the host is known.
            let mut memory = [0; 100];
            file.read_at(LEN as u64 - (1 << 20), &mut ReadBuf::from_slice(&mut memory)).unwrap();
            is_new.store(true, Ordering::SeqCst);
            let mut buf = ReadBuf::from_slice(&mut memory);
            let (code, text) = error(file.read_at(LEN as u64 - 100, &mut buf));
            assert_eq!((code, buf.filled().len()), (Code::FailedPrecondition, 0), "{name}: {text}");
            assert!(text.contains("changed"), "{name}: {text}");
        }
    }
}

#[test]
fn nodes_that_agree_on_nothing_need_a_setting() {
    let quirks: [(Quirk, &str); 4] = [
        (
            |content, request, n| {
                let reply = unconditional(content, request)
                    .header("ETag", format!("\"node-{}\"", n.min(1)));
                if n > 0 { reply.header("Last-Modified", LATER) } else { reply }
            },
            "node-1",
        ),
        (
            |content, request, n| {
                let reply = unconditional(content, request).without("Last-Modified");
                reply.header("ETag", format!("\"node-{}\"", n.min(1)))
            },
            "node-1",
        ),
        (
            |content, request, n| {
                let reply = unconditional(content, request).without("ETag");
                if n > 0 { reply.header("Last-Modified", LATER) } else { reply }
            },
            "modification time",
        ),
        (
            |content, request, n| {
                let reply = unconditional(content, request);
                if n > 0 { reply.without("ETag") } else { reply }
            },
            "no ETag",
        ),
    ];
    // The first response is of one node, all others are of another: none is requested again with success.
    for (quirk, told) in quirks {
        let content = Content::new(LEN, 0);
        let copy = content.clone();
        let server = Server::new(move |request, n| quirk(&copy, request, n));
        if told != "no ETag" {
            let (code, text) = error(read(&fs(), &server.url("f")));
            assert_eq!(code, Code::FailedPrecondition, "{text}");
            assert!(text.contains(told) && text.contains("TF_HTTPS_VERSION_CHECK=size"), "{text}");
        }
        let settings = Settings { version_check: VersionCheck::Size, ..settings() };
        server.take_log();
        read_everywhere(&Https::with(settings), &server.url("f"), &content).unwrap();
        assert!(server.take_log().iter().all(|request| request.header("if-match").is_none()));
    }
}

#[test]
fn a_head_may_tell_another_etag_than_a_get() {
    let content = Content::new(LEN, 0);
    let copy = content.clone();
    let server = Server::new(move |request, _| match &*request.method {
        "HEAD" => content.reply(request).header("ETag", "\"head\""),
        _ => content.reply(request),
    });
    let fs = Https::with(Settings { cache: Duration::from_secs(60), ..settings() });
    let url = server.url("f");
    assert_eq!(fs.get_file_size(Uri::new(url.as_bytes())).unwrap(), LEN as u64);
    assert!(read(&fs, &url).unwrap() == *copy.bytes);
}

#[test]
fn a_time_that_is_not_told_any_more_is_not_believed() {
    let content = Content::new(LEN, 0);
    let server = Server::new(move |request, n| {
        let reply = unconditional(&content, request).without("ETag");
        if n == 0 { reply } else { reply.without("Last-Modified") }
    });
    let (code, text) = error(read(&fs(), &server.url("f")));
    assert_eq!(code, Code::Unavailable, "{text}");
    assert!(text.contains("Last-Modified"), "{text}");
}

#[test]
fn a_part_that_is_the_whole_file_is_a_whole_file() {
    let content = Content::new(LEN, 0);
    for is_chunked in [false, true] {
        let whole = content.clone();
        // Some send it without being asked for a range too.
        let server = Server::new(move |request, _| {
            let range = format!("bytes 0-{}/{LEN}", LEN - 1);
            let mut reply = whole.whole().header("Content-Range", range);
            reply.status = 206;
            match is_chunked && request.method == "GET" {
                true => {
                    let body = chunked(&reply.body);
                    reply.header("Transfer-Encoding", "chunked").body(body)
                }
                false => reply,
            }
        });
        let url = server.url("f");
        assert!(read(&fs(), &url).unwrap() == *content.bytes);
        assert_eq!(server.take_log().len(), 1);
        assert_eq!(fs().get_file_size(Uri::new(url.as_bytes())).unwrap(), LEN as u64);
        assert!(read(&fs(), &url).unwrap() == *content.bytes);
    }
}

#[test]
fn a_part_is_the_beginning_of_more_than_was_requested() {
    for is_chunked in [false, true] {
        let content = Content::new(LEN, 0);
        let copy = content.clone();
        // The size is known from a HEAD, and each GET from the beginning on gets all.
        let server = Server::new(move |request, _| match request.range() {
            Some((0, _)) => {
                let range = format!("bytes 0-{}/{LEN}", LEN - 1);
                let reply = Reply { status: 206, ..copy.whole() };
                let reply = reply.header("Content-Range", range).header("ETag", &copy.etag);
                let body = chunked(&reply.body);
                match is_chunked {
                    true => reply.header("Transfer-Encoding", "chunked").body(body),
                    false => reply,
                }
            }
            _ => copy.reply(request),
        });
        let fs = Https::with(Settings { cache: Duration::from_secs(60), ..settings() });
        let url = server.url("f");
        assert_eq!(fs.get_file_size(Uri::new(url.as_bytes())).unwrap(), LEN as u64);
        let file = open(&fs, &url).unwrap();
        let mut memory = [0; 100];
        let mut buf = ReadBuf::from_slice(&mut memory);
        file.read_at(0, &mut buf).unwrap();
        assert!(buf.filled() == &content.bytes[..100]);
        assert!(read(&fs, &url).unwrap() == *content.bytes);
        // A body that was refused for its surplus would be requested again from where it broke.
        let log = server.take_log();
        let mut starts = log.iter().filter_map(Request::range).map(|(start, _)| start);
        assert!(starts.all(|start| start % (1 << 20) == 0), "{is_chunked}: {log:?}");
    }
}
