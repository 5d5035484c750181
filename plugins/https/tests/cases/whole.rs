//! Files of servers that send them only as a whole.

use crate::server::{Content, Reply, Request, Server, chunked};
use crate::{error, fs, impatient, open, read, read_in, settings};
use flate2::Compression;
use flate2::write::GzEncoder;
use https::{Https, Settings};
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use tf_fs_plugin::prelude::*;

/// Compresses the bytes.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns a response without a length.
fn in_chunks(bytes: &[u8]) -> Reply {
    Reply::new(200).header("Transfer-Encoding", "chunked").body(chunked(bytes))
}

#[test]
fn a_server_without_ranges_sends_the_body_once() {
    // In memory, and on the disk.
    for len in [1_000_000, 20 << 20] {
        let content = Content::new(len, 0);
        let ways: [fn(&Content) -> Reply; 3] = [
            |content| content.whole(),
            |content| in_chunks(&content.bytes),
            |content| Reply { no_length: true, ..content.whole() },
        ];
        for (n, way) in ways.into_iter().enumerate() {
            let copy = content.clone();
            let server = Server::new(move |_, _| way(&copy));
            let file = open(&fs(), &server.url("f")).unwrap();
            assert_eq!(file.size(), len as u64);
            for piece in [100_000, 30 << 20] {
                assert!(read_in(&file, piece).unwrap() == *content.bytes, "{len} {n}");
            }
            assert_eq!(server.take_log().len(), 1, "{len} {n}");
        }
    }
}

#[test]
fn a_length_that_only_the_body_tells_costs_one_more_request() {
    let content = Content::new(100_000, 0);
    let copy = content.clone();
    let server = Server::new(move |_, _| in_chunks(&copy.bytes));
    let fs = Https::with(Settings::default());
    let url = server.url("f");
    let uri = Uri::new(url.as_bytes());
    assert_eq!(fs.get_file_size(uri).unwrap(), 100_000);
    assert!(read(&fs, &url).unwrap() == *content.bytes);
    assert!(fs.path_exists(uri).unwrap());
    let log = server.take_log();
    assert!(log.iter().filter(|request| request.method == "GET").count() <= 2, "{log:?}");
    // And it is not kept for ever.
    std::thread::sleep(Duration::from_millis(1_500));
    read(&fs, &url).unwrap();
    assert_eq!(server.take_log().len(), 1);
}

#[test]
fn a_look_whether_a_file_exists_keeps_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let mut open = Vec::new();
        for connection in listener.incoming().take(6) {
            let mut connection = connection.unwrap();
            let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
            let line = lines.next().unwrap().unwrap();
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let head = match line.starts_with("HEAD") {
                true => "HTTP/1.1 405 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                false => "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
            };
            connection.write_all(head.as_bytes()).unwrap();
            if !line.starts_with("HEAD") {
                open.push(connection);
            }
        }
        open
    });
    let fs = Https::with(impatient());
    for n in 0..3 {
        let url = format!("{url}/{n}");
        assert!(fs.path_exists(Uri::new(url.as_bytes())).unwrap());
    }
    let open = server.join().unwrap();
    assert_eq!(open.len(), 3);
    for mut connection in open {
        connection.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let end = connection.read(&mut [0]);
        assert!(!matches!(&end, Err(error) if error.kind() == ErrorKind::WouldBlock), "{end:?}");
    }
}

#[test]
fn an_open_file_is_opened_again_until_the_cache_expires() {
    for (cache, seen) in [(Duration::from_secs(60), 0), (Duration::from_millis(1), 1)] {
        let version = Arc::new(AtomicUsize::new(0));
        let now = Arc::clone(&version);
        let server =
            Server::new(move |_, _| Content::new(1000, now.load(Ordering::Relaxed)).whole());
        let fs = Https::with(Settings { cache, ..settings() });
        let url = server.url("f");
        let old = open(&fs, &url).unwrap();
        version.store(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(2));
        assert!(read(&fs, &url).unwrap() == *Content::new(1000, seen).bytes, "{cache:?}");
        assert!(read_in(&old, 1000).unwrap() == *Content::new(1000, 0).bytes, "one version");
    }
}

#[test]
fn a_file_opened_by_a_token_is_not_open_without_it() {
    let server = Server::new(|request, _| match request.header("authorization") {
        Some("Bearer sesame") => Content::new(1000, 0).whole(),
        _ => Reply::new(401),
    });
    let fs = Https::new("http").unwrap();
    let set = |key: &str, value: &str| {
        let values = OptionValues::Buffer(vec![value.as_bytes().to_vec()]);
        let option = FilesystemOption::new(key, values);
        fs.set_filesystem_configuration_option(&option).unwrap();
    };
    set("listing_ttl_ms", "60000");
    set("bearer_tokens", &format!("http://127.0.0.1:{}=sesame", server.port));
    let url = server.url("f");
    let _open = open(&fs, &url).unwrap();
    assert_eq!(read(&fs, &url).unwrap().len(), 1000);
    assert_eq!(server.take_log().iter().filter(|request| request.method == "GET").count(), 1);
    set("bearer_tokens", "other.example.com=x");
    assert_eq!(error(open(&fs, &url)).0, Code::Unauthenticated);
}

#[test]
fn a_whole_answer_that_nobody_opens_keeps_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/f", listener.local_addr().unwrap());
    let (says, hears) = channel();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for connection in listener.incoming() {
            let n = counted.fetch_add(1, Ordering::Relaxed);
            let (mut connection, says) = (connection.unwrap(), says.clone());
            thread::spawn(move || {
                let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
                let _ = lines.next();
                while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
                // Without an ETag: first a part that breaks off, then all.
                let head = match n {
                    0 => "206 X\r\nContent-Range: bytes 0-9/900000\r\nContent-Length: 10",
                    _ => "200 X\r\nContent-Length: 900000",
                };
                let response = format!("HTTP/1.1 {head}\r\n\r\n");
                let _ = connection.write_all(response.as_bytes());
                if n > 0 {
                    connection.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                    let end = connection.read(&mut [0]);
                    let _ = says.send(end.map_err(|error| error.kind()));
                }
            });
        }
    });
    let fs = Https::with(impatient());
    let file = open(&fs, &url).unwrap();
    let mut bytes = [0; 1000];
    let error = file.read_at(0, &mut ReadBuf::from_slice(&mut bytes)).unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error:#}");
    let mut ended = 0;
    while ended < count.load(Ordering::Relaxed) - 1 {
        let end = hears.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_ne!(end, Err(ErrorKind::WouldBlock), "the connection is kept");
        ended += 1;
    }
}

#[test]
fn a_version_without_ranges_does_not_mislead() {
    let content = Content::new(20 << 20, 0);
    let copy = content.clone();
    let server = Server::new(move |_, _| copy.whole().header("ETag", &copy.etag));
    let (fs, url) = (Https::with(Settings::default()), server.url("f"));
    assert_eq!(fs.get_file_size(Uri::new(url.as_bytes())).unwrap(), 20 << 20);
    assert!(read(&fs, &url).unwrap() == *content.bytes);
    assert_eq!(server.take_log().len(), 2);
}

#[test]
fn a_head_without_a_length_is_not_believed() {
    let content = Content::new(100_000, 0);
    let copy = content.clone();
    let server = Server::new(move |request, _| match &*request.method {
        "HEAD" => Reply::new(200),
        _ => copy.reply(request),
    });
    let url = server.url("f");
    assert_eq!(fs().get_file_size(Uri::new(url.as_bytes())).unwrap(), 100_000);
}

#[test]
fn bodies_that_were_compressed_unasked_are_decoded() {
    let content = Content::new(3_000_000, 0);
    let compressed = gzip(&content.bytes);
    let size = compressed.len();
    let reply = move |request: &Request| {
        let reply = Reply::new(200).header("Content-Encoding", "gzip").header("ETag", "\"z\"");
        match request.range() {
            // Parts of the compressed bytes cannot be used.
            Some((first, last)) => {
                let last = last.min(size - 1);
                Reply { status: 206, ..reply }
                    .header("Content-Range", format!("bytes {first}-{last}/{size}"))
                    .header("Accept-Ranges", "bytes")
                    .body(&compressed[first..=last])
            }
            None => reply.body(&*compressed),
        }
    };
    for ranges in [true, false] {
        let reply = reply.clone();
        let server = Server::new(move |request, _| {
            let mut request = request.clone();
            if !ranges {
                request.headers.remove("range");
            }
            reply(&request)
        });
        let (fs, url) = (Https::with(Settings::default()), server.url("f"));
        assert_eq!(fs.get_file_size(Uri::new(url.as_bytes())).unwrap(), 3_000_000);
        assert!(read(&fs, &url).unwrap() == *content.bytes, "{ranges}");
    }
}

#[test]
fn undecodable_bytes_are_an_error() {
    let compressed = gzip(&Content::new(3_000_000, 0).bytes);
    let mut damaged = compressed.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    let short = compressed[..compressed.len() - 5].to_vec();
    let attempt = |body: Vec<u8>| {
        let server = Server::new(move |_, _| {
            Reply::new(200).header("Content-Encoding", "gzip").body(&*body)
        });
        let (code, text) = error(read(&fs(), &server.url("f")));
        assert_eq!(code, Code::Unavailable, "{text}");
        assert_eq!(server.take_log().len(), 6, "attempts");
    };
    // Most of each attempt is waiting.
    thread::scope(|scope| {
        for body in [short, damaged, b"plain".to_vec()] {
            scope.spawn(move || attempt(body));
        }
    });
    let server = Server::new(|_, _| Reply::new(200).header("Content-Encoding", "br").body("x"));
    let (code, text) = error(read(&fs(), &server.url("f")));
    assert_eq!(code, Code::FailedPrecondition);
    assert!(text.contains("Content-Encoding: br"), "{text}");
}

#[test]
fn there_is_a_limit_and_the_error_says_which() {
    for reply in
        [|content: &Content| content.whole(), |content: &Content| in_chunks(&content.bytes)]
    {
        let content = Content::new(3_000_000, 0);
        let server = Server::new(move |_, _| reply(&content));
        let fs = Https::with(Settings { spool: 1_000_000, ..settings() });
        let (code, text) = error(read(&fs, &server.url("f")));
        assert_eq!(code, Code::ResourceExhausted);
        assert!(text.contains("1000000") && text.contains("TF_HTTPS_SPOOL_BYTES"), "{text}");
    }
}

#[test]
fn a_small_body_becomes_no_large_file() {
    // Some 100 KiB that become 20 MiB.
    let bomb = gzip(&vec![0; 20 << 20]);
    let twice = [&*bomb, &*bomb].concat();
    let large = Settings { gzip_ratio: 1100, ..settings() };
    for (settings, limit, fits) in [
        (Settings { gzip_ratio: 100, ..settings() }, "100 times", false),
        (large.clone(), "", true),
        (Settings { gzip: 1_000_000, ..large.clone() }, "1000000 bytes", false),
        (Settings { spool: 1_000_000, ..large }, "SPOOL_BYTES", false),
    ] {
        for body in [bomb.clone(), twice.clone()] {
            let size = 20 << 20 << u32::from(body.len() > bomb.len());
            let server = Server::new(move |_, _| {
                Reply::new(200).header("Content-Encoding", "gzip").body(&*body)
            });
            let url = server.url("f");
            let fs = Https::with(settings.clone());
            let outcomes =
                [fs.get_file_size(Uri::new(url.as_bytes())), open(&fs, &url).map(|f| f.size())];
            for outcome in outcomes {
                if fits {
                    assert_eq!(outcome.unwrap(), size);
                    continue;
                }
                let (code, text) = error(outcome);
                assert_eq!(code, Code::ResourceExhausted);
                assert!(text.contains(limit) && text.contains("; raise TF_HTTPS_"), "{text}");
            }
            // Neither is made again.
            assert!(server.take_log().len() <= 4);
        }
    }
    // A small file may be of any ratio.
    let zeros = gzip(&vec![0; 10 << 20]);
    let server =
        Server::new(move |_, _| Reply::new(200).header("Content-Encoding", "gzip").body(&*zeros));
    assert_eq!(read(&fs(), &server.url("f")).unwrap().len(), 10 << 20);
}

#[test]
fn a_size_is_told_without_a_decompressed_copy() {
    // What it becomes does not fit into the memory, and the disk takes nothing.
    let content: Vec<u8> = (0..20_000_000_u32).map(|n| (n / 7 % 251) as u8).collect();
    let compressed = gzip(&content);
    assert!(compressed.len() < 16 << 20);
    let server = Server::new(move |_, _| {
        Reply::new(200).header("Content-Encoding", "gzip").body(&*compressed)
    });
    let url = server.url("f");
    let nowhere = Some("/dev/null/none".into());
    let cache = Duration::from_secs(60);
    let fs = Https::with(Settings { spool_directory: nowhere, cache, ..settings() });
    assert_eq!(fs.get_file_size(Uri::new(url.as_bytes())).unwrap(), 20_000_000);
    let (code, text) = error(open(&fs, &url));
    assert_eq!(code, Code::ResourceExhausted);
    assert!(text.contains("TF_HTTPS_SPOOL_DIRECTORY"), "{text}");
    // One body serves both.
    let fs = Https::with(Settings { cache, ..settings() });
    server.take_log();
    assert_eq!(fs.get_file_size(Uri::new(url.as_bytes())).unwrap(), 20_000_000);
    for _ in 0..2 {
        assert!(read(&fs, &url).unwrap() == content);
    }
    assert_eq!(server.take_log().len(), 2, "a HEAD and a GET");
}

#[test]
fn a_disk_without_room_is_named() {
    let content = Content::new(20 << 20, 0);
    let server = Server::new(move |_, _| content.whole());
    let fs = Https::with(Settings { spool_directory: Some("/dev/null/none".into()), ..settings() });
    let (code, text) = error(read(&fs, &server.url("f")));
    assert_eq!(code, Code::ResourceExhausted);
    assert!(text.contains("/dev/null/none") && text.contains("TF_HTTPS_SPOOL_DIRECTORY"), "{text}");
    assert_eq!(server.take_log().len(), 1, "it is not tried again");
}

#[test]
fn small_files_need_no_disk() {
    let content = Content::new(3_000_000, 0);
    let copy = content.clone();
    let server = Server::new(move |_, _| copy.whole());
    let fs = Https::with(Settings { spool_directory: Some("/dev/null/none".into()), ..settings() });
    assert!(read(&fs, &server.url("f")).unwrap() == *content.bytes, "in memory");
}

#[test]
fn a_body_that_breaks_off_is_received_again() {
    let content = Content::new(1_000_000, 0);
    for (cut, n_broken) in [(500_000, 3), (0, 2)] {
        let copy = content.clone();
        let server = Server::new(move |_, n| match n < n_broken {
            true => Reply { cut: Some(cut), ..copy.whole() },
            false => copy.whole(),
        });
        assert!(read(&fs(), &server.url("f")).unwrap() == *content.bytes);
        assert_eq!(server.take_log().len(), n_broken + 1);
    }
    let server = Server::new(move |_, n| match n {
        0 => Reply { stall: Some(1000), ..content.whole() },
        _ => content.whole(),
    });
    assert_eq!(read(&Https::with(impatient()), &server.url("f")).unwrap().len(), 1_000_000);
}
