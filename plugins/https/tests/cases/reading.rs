//! Files of servers that send any part of them.

use crate::server::{Content, Reply, Server};
use crate::{error, fs, open, read, read_in, settings};
use https::{Https, Settings};
use std::fs::DirEntry;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use tf_fs_object_store::DiskCache;
use tf_fs_plugin::prelude::*;

#[test]
fn a_file_is_read_by_few_ranges_of_one_version() {
    let content = Content::new(20 << 20, 0);
    let server = content.serve();
    for piece in [256 << 10, 3 << 20, 32 << 20] {
        let file = open(&fs(), &server.url("f")).unwrap();
        assert_eq!(file.size(), 20 << 20);
        assert!(read_in(&file, piece).unwrap() == *content.bytes, "{piece}");
        let log = server.take_log();
        assert!(log.len() <= 9, "{} requests of 20 MiB in pieces of {piece}", log.len());
        for (n, request) in log.iter().enumerate() {
            assert!(request.range().is_some() && request.method == "GET");
            assert_eq!(request.header("accept-encoding"), Some("identity"));
            assert_eq!(request.header("if-match"), (n > 0).then_some(&*content.etag));
        }
    }
}

#[test]
fn empty_files_are_empty_however_the_server_says_so() {
    let replies: [fn() -> Reply; 4] = [
        || Reply::new(200),
        || Reply::new(416).header("Content-Range", "bytes */0"),
        || Reply { no_length: true, ..Reply::new(200) },
        || Reply::new(200).header("Transfer-Encoding", "chunked").body("0\r\n\r\n"),
    ];
    for (n, reply) in replies.into_iter().enumerate() {
        let server = Server::new(move |_, _| reply());
        assert_eq!(read(&fs(), &server.url("f")).unwrap(), b"", "{n}");
    }
}

#[test]
fn a_file_that_changes_while_it_is_open_is_an_error() {
    let (old, new) = (Content::new(30 << 20, 0), Content::new(30 << 20, 7));
    let ways: [fn(&Content, &crate::server::Request) -> Reply; 4] = [
        // A server that honours If-Match, one that does not, one that knows no ranges any more, one without versions.
        |new, request| new.reply(request),
        |new, request| {
            let mut request = request.clone();
            request.headers.remove("if-match");
            new.reply(&request)
        },
        |new, _| new.whole().header("ETag", &new.etag),
        |new, request| {
            let mut request = request.clone();
            request.headers.remove("if-match");
            let reply = new.reply(&request).without("ETag");
            reply.header("Last-Modified", "Sun, 06 Nov 1994 08:49:38 GMT")
        },
    ];
    for (n, way) in ways.into_iter().enumerate() {
        let (old, new) = (old.clone(), new.clone());
        let is_new = Arc::<AtomicUsize>::default();
        let flag = Arc::clone(&is_new);
        let server = Server::new(move |request, _| match (flag.load(Ordering::SeqCst), n) {
            (0, 3) => old.reply(request).without("ETag"),
            (0, _) => old.reply(request),
            _ => way(&new, request),
        });
        let file = open(&fs(), &server.url("f")).unwrap();
        is_new.store(1, Ordering::SeqCst);
        let mut memory = [0; 100];
        let mut buf = ReadBuf::from_slice(&mut memory);
        let (code, text) = error(file.read_at((30 << 20) - 100, &mut buf));
        assert_eq!((code, buf.filled().len()), (Code::FailedPrecondition, 0), "{n}: {text}");
        assert!(text.contains("changed"), "{text}");
    }
}

#[test]
fn a_version_that_is_not_told_any_more_is_not_believed() {
    let content = Content::new(30 << 20, 0);
    let server = Server::new(move |request, n| match n {
        0 => content.reply(request),
        _ => content.reply(request).without("ETag"),
    });
    let file = open(&fs(), &server.url("f")).unwrap();
    let mut memory = [0; 100];
    let (code, text) = error(file.read_at(29 << 20, &mut ReadBuf::from_slice(&mut memory)));
    assert_eq!(code, Code::Unavailable, "{text}");
    assert!(text.contains("ETag"), "{text}");
}

#[test]
fn questions_are_answered_by_head_or_by_one_byte() {
    let content = Content::new(12_345, 0);
    let when = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(784_111_777);
    for refusal in [0, 400, 403, 405, 501] {
        let copy = content.clone();
        let server = Server::new(move |request, _| match (&*request.method, refusal) {
            ("HEAD", 1..) => Reply::new(refusal),
            _ => copy.reply(request),
        });
        let (fs, url) = (fs(), server.url("f"));
        let uri = Uri::new(url.as_bytes());
        assert_eq!(fs.stat(uri).unwrap(), FileStatistics::file(12_345).with_modified(when));
        assert!(fs.path_exists(uri).unwrap());
        assert!(!fs.is_directory(uri).unwrap());
        for request in server.take_log().iter().filter(|request| request.method == "GET") {
            assert_eq!((refusal > 0, request.range()), (true, Some((0, 0))));
        }
    }
    for status in [404, 410] {
        let server = Server::new(move |_, _| Reply::new(status));
        let (fs, url) = (fs(), server.url("f"));
        let uri = Uri::new(url.as_bytes());
        assert!(!fs.path_exists(uri).unwrap());
        assert_eq!(error(fs.stat(uri)).0, Code::NotFound);
        assert_eq!(error(open(&fs, &url)).0, Code::NotFound);
    }
}

#[test]
fn a_recent_lookup_is_not_repeated() {
    let content = Content::new(100_000, 0);
    let server = content.serve();
    let fs = https::Https::with(https::Settings::default());
    let url = server.url("f");
    let uri = Uri::new(url.as_bytes());
    // As `tf.io.read_file` does it.
    assert_eq!(fs.get_file_size(uri).unwrap(), 100_000);
    assert!(read(&fs, &url).unwrap() == *content.bytes);
    let methods: Vec<_> = server.take_log().into_iter().map(|request| request.method).collect();
    assert_eq!(methods, ["HEAD", "GET"]);
}

#[test]
fn a_version_that_may_share_its_etag_is_not_kept_on_the_disk() {
    const LEN: usize = 3 << 20;
    let versions = [Content::new(LEN, 0), Content::new(LEN, 7)];
    let bytes = versions.clone().map(|content| content.bytes);
    let second = "Sun, 06 Nov 1994 08:49:37 GMT";
    // When it was written and the server's clock, or this machine's if the server tells no time.
    for (modified, date, is_kept) in [
        (second, second, false),
        (second, "Sun, 06 Nov 1994 08:49:38 GMT", false),
        (second, "Sun, 06 Nov 1994 08:49:39 GMT", true),
        ("now", "", false),
        (second, "", true),
    ] {
        let number = Arc::<AtomicUsize>::default();
        let modified = match modified {
            // Here and not for all rows at once: a busy machine takes a second for a row.
            "now" => httpdate::fmt_http_date(SystemTime::now()),
            past => past.to_owned(),
        };
        let (flag, versions) = (Arc::clone(&number), versions.clone());
        let server = Server::new(move |request, _| {
            let bytes = Arc::clone(&versions[flag.load(Ordering::SeqCst)].bytes);
            let content = Content { bytes, etag: "\"same\"".to_owned() };
            let reply = content.reply(request).header("Last-Modified", &modified);
            if date.is_empty() { reply } else { reply.header("Date", date) }
        });
        let directory = tempfile::tempdir().unwrap();
        let read_with_disk = || {
            let disk_cache = Some(DiskCache::new(directory.path(), 1 << 30));
            read(&Https::with(Settings { disk_cache, ..settings() }), &server.url("f")).unwrap()
        };
        assert!(read_with_disk() == *bytes[0], "{date}");
        if is_kept {
            // Blocks are written while others arrive.
            while blocks(directory.path()) < LEN >> 20 {
                std::thread::sleep(Duration::from_millis(5));
            }
        } else {
            number.store(1, Ordering::SeqCst);
        }
        server.take_log();
        assert!(read_with_disk() == *bytes[usize::from(!is_kept)], "{date}");
        let log = server.take_log();
        let is_from_disk = log.len() == 1 && log[0].range() == Some((0, 0));
        assert_eq!(is_from_disk, is_kept, "{date}: {log:?}");
    }
}

/// Returns the number of blocks of 1 MiB that are on the disk, without those that are still written.
fn blocks(directory: &Path) -> usize {
    let count = |entry: DirEntry| match entry.path().is_dir() {
        true if entry.file_name() == "new" => 0,
        true => blocks(&entry.path()),
        false => usize::from(entry.metadata().is_ok_and(|data| data.len() > 1 << 20)),
    };
    std::fs::read_dir(directory).unwrap().flatten().map(count).sum()
}
