//! Stores that want to do harm: responses without end, heads that smuggle others.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tf_fs_plugin::{Code, Error};
use tf_plugin_s3_tests::{IMPATIENT, Store, content, host};

/// A request's head, line by line, and the connection that it came by.
#[derive(Clone, Debug)]
struct Asked {
    lines: Vec<String>,
    connection: usize,
}

impl Asked {
    fn is(&self, start: &str) -> bool {
        self.lines[0].starts_with(start)
    }

    /// The value of a parameter of the query.
    fn parameter(&self, name: &str) -> Option<&str> {
        let (_, query) = self.lines[0].split(' ').nth(1)?.split_once('?')?;
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }
}

/// A server that writes what it likes.
struct Raw {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Bytes that clients took.
    taken: Arc<AtomicUsize>,
}

/// Something that a store's responses can harm.
type Work<'a> = &'a dyn Fn() -> Result<(), Error>;

/// What is written for a request: the whole response, and whether its last piece comes again and again.
type Reply = (Vec<u8>, bool);

impl Raw {
    /// Its threads end with the process.
    fn start(reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (asked, taken) = (Arc::default(), Arc::default());
        let (log, bytes, reply) = (Arc::clone(&asked), Arc::clone(&taken), Arc::new(reply));
        std::thread::spawn(move || {
            for (connection, stream) in listener.incoming().flatten().enumerate() {
                let (log, bytes, reply) =
                    (Arc::clone(&log), Arc::clone(&bytes), Arc::clone(&reply));
                std::thread::spawn(move || serve(stream, connection, &log, &bytes, &*reply));
            }
        });
        Self { url, asked, taken }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A store whose requests go to this server.
    fn store(&self, topic: &str, settings: &[(&str, &str)]) -> Store {
        let store = Store::with(topic, IMPATIENT);
        store.set(&[("endpoint_url", &*self.url)]);
        store.set(settings);
        store
    }
}

fn serve(
    stream: TcpStream,
    connection: usize,
    log: &Mutex<Vec<Asked>>,
    taken: &AtomicUsize,
    reply: &dyn Fn(&Asked) -> Reply,
) {
    let Ok(mut writer) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(1..) => {}
                _ => return,
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let asked = Asked { lines, connection };
        let (bytes, is_endless) = reply(&asked);
        log.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        // The head, and a body of pieces of the same size.
        let mut rest = &bytes[..];
        loop {
            if writer.write_all(rest).is_err() {
                return;
            }
            taken.fetch_add(rest.len(), Ordering::Relaxed);
            if !is_endless {
                break;
            }
            rest = &bytes[bytes.len() - PIECE.len()..];
        }
    }
}

/// A piece of a body, as `Transfer-Encoding: chunked` has it: 64 KiB of blanks, which XML may have anywhere.
static PIECE: LazyLock<Vec<u8>> =
    LazyLock::new(|| [b"10000\r\n", &[b' '; 0x10000][..], b"\r\n"].concat());

/// A response that begins as `body` does and does not end.
fn endless(status: u16, body: &str) -> Reply {
    let mut bytes = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/xml\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(&PIECE);
    (bytes, true)
}

fn xml(body: &str) -> Reply {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/xml\r\n";
    (format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes(), false)
}

/// A listing of these objects: key and ETag.
fn listing(objects: &[(String, &str)], next: Option<&str>) -> Reply {
    let mut body = String::from("<ListBucketResult><EncodingType>url</EncodingType>");
    for (key, etag) in objects {
        let _ = write!(
            body,
            "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>{etag}</ETag>\
             <Size>7</Size></Contents>"
        );
    }
    let _ = write!(
        body,
        "<KeyCount>{}</KeyCount><IsTruncated>{}</IsTruncated>{}</ListBucketResult>",
        objects.len(),
        next.is_some(),
        next.map(|next| format!("<NextContinuationToken>{next}</NextContinuationToken>"))
            .unwrap_or_default()
    );
    xml(&body)
}

#[test]
fn an_answer_without_end_is_given_up() {
    for (status, body) in
        [(200, "<ListBucketResult>"), (500, "<Error>"), (404, "<Error>"), (200, "<X>")]
    {
        let server = Raw::start(move |_| endless(status, body));
        let store = server.store("hostile-endless", &[]);
        let works: [(&str, Work<'_>); 4] = [
            ("stat", &|| host().stat(store.uri("k")).map(drop)),
            ("list", &|| host().get_children(store.uri("d")).map(drop)),
            ("write", &|| host().write_file(store.uri("k"), "content")),
            ("delete", &|| {
                host().delete_recursively(store.uri("d")).map(drop).map_err(|left| left.error)
            }),
        ];
        for (name, work) in works {
            let (before, start) = (server.taken.load(Ordering::Relaxed), Instant::now());
            let asked = server.asked().len();
            let outcome = work();
            let taken = server.taken.load(Ordering::Relaxed) - before;
            let requests = server.asked().len() - asked;
            let error = outcome.expect_err(name);
            let text = format!("{error:#}");
            assert_eq!(error.code(), Code::ResourceExhausted, "{status} {body} {name}: {text}");
            assert!(text.contains("the response has more than 32 MiB"), "{name}: {text}");
            // Some are raced with another, or looked after. What is in the system's buffers counts, too, and what was on its
            // way before.
            assert!(requests <= 4, "{status} {body} {name}: {requests} requests");
            assert!(taken < (requests + 2) * (48 << 20), "{status} {body} {name}: {taken} bytes");
            assert!(start.elapsed() < Duration::from_secs(60), "{name}");
        }
    }
}

#[test]
fn an_answer_that_promises_too_much_is_not_read() {
    let server = Raw::start(|_| {
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n<ListBucketResult>";
        (head.into(), false)
    });
    let store = server.store("hostile-promise", &[("stall_timeout_ms", "20000")]);
    let start = Instant::now();
    let error = host().get_children(store.uri("d")).unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted, "{error:#}");
    assert!(start.elapsed() < Duration::from_secs(10), "waited for it: {:?}", start.elapsed());
}

#[test]
fn a_listing_without_end_is_given_up() {
    let server = Raw::start(|asked| {
        let page: usize = asked
            .parameter("continuation-token")
            .and_then(|token| token.strip_prefix("t")?.parse().ok())
            .unwrap_or(0);
        let names: Vec<_> =
            (0..1000).map(|n| (format!("d/{:09}", page * 1000 + n), "&quot;e&quot;")).collect();
        if asked.is("DELETE") || asked.is("HEAD") || !asked.lines[0].contains("list-type=2") {
            return (b"HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n".to_vec(), false);
        }
        // The directory that is renamed to is not there.
        match asked.parameter("prefix") {
            Some("e%2F") => listing(&[], None),
            _ => listing(&names, Some(&format!("t{}", page + 1))),
        }
    });
    let store = server.store("hostile-listing", &[("max_listed_names", "20000")]);
    let works: [(&str, Work<'_>); 4] = [
        ("list", &|| host().get_children(store.uri("d")).map(drop)),
        ("match", &|| host().get_matching_paths(store.uri("d/*")).map(drop)),
        ("match deep", &|| host().get_matching_paths(store.uri("*/*")).map(drop)),
        ("rename", &|| host().rename_file(store.uri("d"), store.uri("e"))),
    ];
    for (name, work) in works {
        let before = server.asked().len();
        let error = work().expect_err(name);
        let text = format!("{error:#}");
        assert_eq!(error.code(), Code::ResourceExhausted, "{name}: {text}");
        for part in ["more than 20000 names", "max_listed_names"] {
            assert!(text.contains(part), "{name}: {part}: {text}");
        }
        let requests = server.asked().len() - before;
        assert!((20..=40).contains(&requests), "{name}: {requests} requests");
    }
}

/// What a response says of itself is a hint: stores count differently, or leave it out. What it contains counts.
#[test]
fn a_listing_is_what_it_contains() {
    // SeaweedFS, Versity and NooBaa leave the common prefixes out of `KeyCount`.
    for of_itself in [
        "<KeyCount>1</KeyCount><IsTruncated>false</IsTruncated>",
        "<KeyCount>0</KeyCount><MaxKeys>0</MaxKeys><IsTruncated>false</IsTruncated>",
        "<KeyCount>1000</KeyCount><IsTruncated>false</IsTruncated>",
        "<MaxKeys>1</MaxKeys><IsTruncated>false</IsTruncated>",
        "<IsTruncated>false</IsTruncated><NextContinuationToken/>",
        "<IsTruncated>false</IsTruncated><NextContinuationToken>t</NextContinuationToken>",
        "<NextContinuationToken></NextContinuationToken>",
        "",
    ] {
        let server = Raw::start(move |asked| {
            let contents = "<Contents><Key>d/f</Key><Size>7</Size></Contents>";
            let prefix = "<CommonPrefixes><Prefix>d/s/</Prefix></CommonPrefixes>";
            let below = "<Contents><Key>d/s/x</Key><Size>7</Size></Contents>";
            let names = match asked.parameter("prefix").unwrap_or_default() {
                "d%2Ff" => contents.to_owned(),
                "d%2Fs" => prefix.to_owned(),
                "d%2Fs%2F" => below.to_owned(),
                "d" => "<CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes>".to_owned(),
                "d%2F" if asked.parameter("delimiter").is_some() => format!("{contents}{prefix}"),
                "d%2F" => format!("{contents}{below}"),
                _ => String::new(),
            };
            xml(&format!("<ListBucketResult>{of_itself}{names}</ListBucketResult>"))
        });
        let store = server.store("hostile-hints", &[]);
        let names = |names: Vec<Vec<u8>>| String::from_utf8(names.join(&b' ')).expect("text");
        assert_eq!(names(host().get_children(store.uri("d")).expect(of_itself)), "f s");
        let found = host().get_matching_paths(store.uri("d/*")).expect(of_itself);
        assert_eq!(found.len(), 2, "{of_itself}");
        host().is_directory(store.uri("d")).expect(of_itself);
        host().is_directory(store.uri("d/s")).expect(of_itself);
        assert_eq!(host().get_file_size(store.uri("d/f")).expect(of_itself), 7);
        let error = host().stat(store.uri("d/none")).unwrap_err();
        assert_eq!(error.code(), Code::NotFound, "{of_itself}");
    }
    // What is no listing is not an empty one.
    for body in ["", "ok", "{}", "<html></html>", "<ListBucketResult>"] {
        let server = Raw::start(move |_| xml(body));
        let store = server.store("hostile-no-listing", &[("max_attempts", "1")]);
        for outcome in [
            host().get_children(store.uri("d")).map(drop),
            host().stat(store.uri("d")).map(drop),
            host().delete_recursively(store.uri("d")).map_err(|left| left.error),
        ] {
            let error = outcome.expect_err(body);
            assert_ne!(error.code(), Code::NotFound, "{body}: {error:#}");
        }
    }
}

#[test]
fn a_circle_of_any_length_is_noticed() {
    for length in [1, 2, 3, 7, 100] {
        let server = Raw::start(move |asked| {
            let page: usize = asked
                .parameter("continuation-token")
                .and_then(|token| token.strip_prefix("t")?.parse().ok())
                .unwrap_or(0);
            // Other names each time.
            static NUMBER: AtomicUsize = AtomicUsize::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let names = [(format!("d/{number:09}"), "&quot;e&quot;")];
            listing(&names, Some(&format!("t{}", (page + 1) % length)))
        });
        let store = server.store("hostile-circle", &[]);
        let error = host().get_children(store.uri("d")).unwrap_err();
        assert_eq!(error.code(), Code::DataLoss, "{length}: {error:#}");
        let requests = server.asked().len();
        assert!(requests <= 4 * length + 2, "{length}: {requests} requests");
    }
}

#[test]
fn an_etag_adds_no_header() {
    let server = Raw::start(|asked| {
        if asked.lines[0].contains("list-type=2") {
            let evil = "&quot;e&quot;&#13;&#10;x-evil: 1&#13;&#10;&#13;&#10;GET /evil HTTP/1.1";
            return listing(&[("d/f".into(), evil)], None);
        }
        let head = "HTTP/1.1 206 X\r\netag: \"e\"\r\ncontent-range: bytes 0-6/7\r\ncontent-length: 7\r\n\r\n";
        (format!("{head}content").into_bytes(), false)
    });
    // Signing looks at the value, too; not every request is signed.
    for anonymous in ["0", "1"] {
        let settings = [("listing_ttl_ms", "60000"), ("anonymous", anonymous)];
        use_what_is_listed(&server.store("hostile-etag", &settings));
    }
    for asked in server.asked() {
        let evil = |line: &String| line.contains("evil") && !line.starts_with("authorization");
        assert!(!asked.lines.iter().any(evil), "{asked:?}");
    }
}

/// Lists `d`, and asks for the file in it with the ETag that was listed.
fn use_what_is_listed(store: &Store) {
    assert_eq!(host().get_children(store.uri("d")).expect("listed").len(), 1);
    // What the listing said of the file is remembered, its ETag too.
    let file = host().new_random_access_file(store.uri("d/f")).expect("opened");
    let error = file.read(0, 7).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error:#}");
    assert!(format!("{error:#}").contains("`if-match`"), "{error:#}");
    let _ = host().copy_file(store.uri("d/f"), store.uri("d/g"));
    let _ = host().rename_file(store.uri("d/f"), store.uri("d/g"));
    let _ = host().delete_file(store.uri("d/f"));
}

#[test]
fn credentials_add_no_header() {
    let server = Raw::start(|_| (b"HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n".to_vec(), false));
    for (key, value) in [
        ("session_token", "planted\r\nx-evil: 1"),
        ("session_token", "planted\nx-evil: 1"),
        ("access_key_id", "planted\r\nx-evil: 1"),
    ] {
        let store = server.store("hostile-token", &[(key, value)]);
        for error in [
            host().read_file(store.uri("k")).map(drop).unwrap_err(),
            host().stat(store.uri("k")).map(drop).unwrap_err(),
            host().write_file(store.uri("k"), "content").unwrap_err(),
        ] {
            assert!(!format!("{error:#} {error:?}").contains("planted"), "{key}: {error:?}");
            assert_eq!(error.code(), Code::Unauthenticated, "{key}: {error:#}");
            assert!(format!("{error:#}").contains("has a line break"), "{key}: {error:#}");
        }
    }
    for asked in server.asked() {
        assert!(!asked.lines.iter().any(|line| line.starts_with("x-evil")), "{asked:?}");
    }
}

/// After a response whose end two headers tell differently nothing else may be read of the connection: what one side takes
/// for the body is the next response to the other.
#[test]
fn a_connection_with_two_lengths_is_not_used_again() {
    for (status, encoding) in [
        (404, "chunked"),
        (404, "identity"),
        (416, "chunked"),
        (503, "chunked"),
        (404, "gzip, chunked"),
    ] {
        let server = Raw::start(move |_| {
            let body = "0\r\n\r\n";
            let head = format!(
                "HTTP/1.1 {status} X\r\ntransfer-encoding: {encoding}\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            (head.into_bytes(), false)
        });
        let store = server.store("hostile-lengths", &[("max_attempts", "1")]);
        for n in 0..3 {
            let file = host().new_random_access_file(store.uri(&format!("k{n}")));
            let read = file.and_then(|file| file.read(0, 10));
            assert!(!matches!(&read, Ok(read) if read == b"evil"), "{read:?}");
        }
        let mut by_connection = BTreeMap::<usize, usize>::new();
        for asked in server
            .asked()
            .iter()
            .filter(|asked| asked.lines.iter().any(|line| line.starts_with("range:")))
        {
            *by_connection.entry(asked.connection).or_default() += 1;
        }
        assert!(!by_connection.is_empty(), "{status} {encoding}: no GET of our own");
        assert!(
            by_connection.values().all(|&requests| requests == 1),
            "{status} {encoding}: {by_connection:?}"
        );
    }
    // The same refusal with one length leaves the connection to the next request.
    let server =
        Raw::start(|_| (b"HTTP/1.1 404 X\r\ncontent-length: 5\r\n\r\nabcde".to_vec(), false));
    let store = server.store("hostile-length", &[("max_attempts", "1")]);
    for n in 0..3 {
        let file = host().new_random_access_file(store.uri(&format!("k{n}")));
        assert_eq!(file.and_then(|file| file.read(0, 10)).unwrap_err().code(), Code::NotFound);
    }
    let connections: Vec<_> = server.asked().iter().map(|asked| asked.connection).collect();
    assert!(
        connections.len() >= 3
            && connections.iter().any(|&number| connections
                .iter()
                .filter(|&&other| other == number)
                .count()
                > 1),
        "{connections:?}"
    );
}

#[test]
fn a_length_that_is_no_number_is_not_believed() {
    let body = content(7, 1);
    for length in ["+7", "-7", "7, 8", "0x7", "7\r\ncontent-length: 8", "18446744073709551623"] {
        let body = body.clone();
        let server = Raw::start(move |_| {
            let head = format!(
                "HTTP/1.1 206 X\r\netag: \"e\"\r\ncontent-range: bytes 0-6/7\r\ncontent-length: {length}\r\n\r\n"
            );
            ([head.as_bytes(), &body].concat(), false)
        });
        let store = server.store("hostile-number", &[]);
        let file = host().new_random_access_file(store.uri("k"));
        let error = file.and_then(|file| file.read(0, 7)).unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{length}: {error:#}");
        assert!(format!("{error:#}").contains("cannot be right"), "{length}: {error:#}");
    }
}

#[test]
fn what_has_no_size_is_not_empty() {
    for is_listed in [true, false] {
        let server = Raw::start(move |asked| {
            let head = match asked.parameter("list-type") {
                Some(_) if is_listed => {
                    let (listing, _) = listing(&[("k".to_owned(), "e")], None);
                    let listing = String::from_utf8(listing).expect("text");
                    let (_, body) = listing.split_once("\r\n\r\n").expect("a body");
                    return xml(&body.replace("<Size>7</Size>", ""));
                }
                Some(_) => "403 X\r\ncontent-length: 0",
                None if asked.is("HEAD") => "200 X\r\netag: \"e\"",
                None => "206 X\r\netag: \"e\"\r\ncontent-range: bytes 0-0/7\r\ncontent-length: 1",
            };
            let body = if head.starts_with("206") { "x" } else { "" };
            (format!("HTTP/1.1 {head}\r\n\r\n{body}").into_bytes(), false)
        });
        let store = server.store("hostile-sizes", &[]);
        assert_eq!(host().get_file_size(store.uri("k")).expect("a size"), 7, "{is_listed}");
    }
}
