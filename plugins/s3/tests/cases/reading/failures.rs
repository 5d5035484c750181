//! What breaks off is resumed, what lies gives no wrong byte, and all of it ends.

use super::{KIB, MIB, gets, open, read_by, summary};
use s3_server::{At, Fault, What, When};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{IMPATIENT, Store, code, content, host};

#[test]
fn what_broke_off_is_resumed() {
    let body = content(5 * MIB, 9);
    let faults = [
        (What::ResetBody(At::Byte(0)), 1),
        (What::CutBody(At::Middle), 1),
        (What::CutBody(At::Last), 1),
        (What::StallBody(At::Middle), 1),
        (What::TrickleBody(At::Middle, Duration::from_millis(100)), 1),
        (What::Reset, 1),
        (What::status(503, "SlowDown"), 1),
        (What::WrongContentRange, 1),
        (What::ContentLength(7), 1),
        (What::Gzip, 1),
        (What::CloseIdle, 0),
        (What::NoEtag, 0),
        (What::SlowHead(Duration::from_millis(1)), 0),
        (What::Header("x-long".into(), "x".repeat(9_000)), 0),
    ];
    let next = AtomicUsize::new(0);
    let resume = || {
        let store =
            Store::with("resumed", &[("stall_timeout_ms", "3000"), ("read_part_bytes", "1048576")]);
        store.put("f", body.clone());
        while let Some((what, more)) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
            let slow = matches!(what, What::StallBody(_) | What::TrickleBody(..));
            for k in if slow { 2..=3 } else { 1..=5 } {
                store.clear_faults();
                store.inject(Fault::new(When::Nth(k), what.clone()).operation("GetObject"));
                let (read, counts) = store.requests(|| read_by(&store, "f", 100 * KIB));
                assert!(read == body, "{what:?} at {k}");
                assert_eq!(gets(&counts), 5 + more, "{what:?} at {k}: {}", summary(&store));
            }
        }
    };
    // Much of it is waiting for the fault to be noticed.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(resume);
        }
    });
}

#[test]
fn only_what_is_missing_is_asked_for_again() {
    let store = Store::new("rest");
    let body = content(MIB, 9);
    store.put("f", body.clone());
    store.inject(Fault::new(When::Nth(1), What::CutBody(At::Byte(300_000))));
    assert!(read_by(&store, "f", 2 * MIB) == body);
    let again = &store.log()[1];
    assert!(again.headers["range"].starts_with("bytes=300000-"), "{again:?}");
    let etag = store.stat(store.bucket(), "f").unwrap().etag;
    assert_eq!(again.headers["if-match"], format!("\"{etag}\""));
}

#[test]
fn answers_that_lie_give_no_wrong_byte() {
    let store = Store::with("lies", IMPATIENT);
    let body = content(3 * MIB, 9);
    store.put("f", body.clone());
    store.set(&[("read_part_bytes", "1048576")]);
    for what in [
        What::WholeFor206,
        What::WrongContentRange,
        What::ContentLength(7),
        What::ContentLength(-7),
        What::Gzip,
        What::NoEtag,
        What::ChangedEtag,
        What::Header("content-length".into(), "x".into()),
        What::Header("x-long".into(), "x".repeat(60_000)),
    ] {
        store.clear_faults();
        store.inject(Fault::new(When::All, what.clone()).operation("GetObject"));
        let Ok(file) = host().new_random_access_file(store.uri("f")) else { continue };
        for (offset, n) in [(0, 1_000), (1_500_000, 100), (2 * MIB, 2 * MIB), (0, 4 * MIB)] {
            if let Ok(read) = file.read(offset as u64, n) {
                assert!(read == body[offset..body.len().min(offset + n)], "{what:?} {offset} {n}");
            }
        }
    }
}

#[test]
fn failures_end_in_bounded_time() {
    let store = Store::with("bounded", IMPATIENT);
    store.put("f", content(8 * MIB, 9));
    for (what, codes) in [
        (What::Stall, &[Code::DeadlineExceeded][..]),
        (What::StallBody(At::Byte(100_000)), &[Code::DeadlineExceeded]),
        (What::Reset, &[Code::Unavailable]),
        (What::status(500, "InternalError"), &[Code::Unavailable]),
        (What::status(403, "AccessDenied"), &[Code::PermissionDenied]),
    ] {
        let file = open(&store, "f");
        store.quiet();
        store.inject(Fault::new(When::All, what.clone()));
        let start = Instant::now();
        let read = file.read(5 * MIB as u64, 2 * MIB);
        let took = start.elapsed();
        let outcome = read.map(|read| read.len());
        store.clear_faults();
        match outcome {
            Ok(len) => assert!(
                len == 2 * MIB && matches!(what, What::StallBody(_)),
                "{what:?}: {len} bytes"
            ),
            Err(error) => assert!(codes.contains(&error.code()), "{what:?}: {error:#}"),
        }
        assert!(took < Duration::from_secs(4), "{what:?}: {took:?}");
        // The file is not broken for ever.
        assert_eq!(file.read(5 * MIB as u64, 2 * MIB).unwrap().len(), 2 * MIB, "{what:?}");
    }
}

/// A store that sends ranges of these bytes in chunks, `missing` of them not at all.
fn in_chunks(body: &'static [u8], missing: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut writer = stream.try_clone().unwrap();
                let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
                while let Some(range) = lines
                    .by_ref()
                    .find_map(|line| Some(line.strip_prefix("range: bytes=")?.to_owned()))
                {
                    assert!(lines.any(|line| line.is_empty()));
                    let (first, last) = range.split_once('-').unwrap();
                    let first: usize = first.parse().unwrap();
                    let end = body.len().min(last.parse::<usize>().unwrap() + 1);
                    let head = format!(
                        "HTTP/1.1 206 X\r\nContent-Range: bytes {first}-{}/{}\r\nETag: \"e\"\r\n\
                         Transfer-Encoding: chunked\r\n\r\n",
                        end - 1,
                        body.len()
                    );
                    writer.write_all(head.as_bytes()).unwrap();
                    for chunk in body[first..end - missing].chunks(100) {
                        let text = String::from_utf8_lossy(chunk);
                        writer
                            .write_all(format!("{:x}\r\n{text}\r\n", chunk.len()).as_bytes())
                            .unwrap();
                    }
                    writer.write_all(b"0\r\n\r\n").unwrap();
                }
            });
        }
    });
    url
}

#[test]
fn ranges_in_chunks_are_read() {
    const BODY: &[u8] = &[b'x'; 1000];
    let store = Store::with("chunks", IMPATIENT);
    store.set(&[("endpoint_url", &in_chunks(BODY, 0))]);
    let file = host().new_random_access_file(store.uri("f")).unwrap();
    assert_eq!(file.read(0, 2000).unwrap(), BODY);
    assert_eq!(file.read(700, 200).unwrap(), &BODY[..200]);
    // No fewer bytes than promised count as all of them.
    store.set(&[("endpoint_url", &in_chunks(BODY, 1))]);
    let read = host().new_random_access_file(store.uri("f")).and_then(|file| file.read(0, 2000));
    assert_eq!(code(read), Code::Unavailable);
}
