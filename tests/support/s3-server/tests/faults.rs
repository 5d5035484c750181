//! Faults whose effect no test of `s3://` would miss, seen on the wire. The others fail its sweeps if they do nothing.

mod common;

use std::io::{ErrorKind, Read as _};
use std::time::{Duration, Instant};

use common::{Client, server};
use s3_server::{At, Fault, Reply, Server, What, When};

const BODY: &[u8] = b"0123456789abcdefghij";

/// Starts a server with `bucket/k` and one fault, and a client.
fn with(what: What) -> (Server, Client) {
    let server = server();
    server.put("bucket", "k", BODY);
    server.inject(Fault::new(When::Nth(1), what));
    let client = Client::new(&server);
    (server, client)
}

/// Returns whether an error says that the connection was reset.
fn is_reset(error: &std::io::Error) -> bool {
    // A write into a connection that is gone.
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted
    )
}

/// Checks that the next request on a new connection is served: the fault hit only one.
#[track_caller]
fn recovers(server: &Server) {
    assert_eq!(Client::new(server).get("/bucket/k").ok().body, BODY);
}

#[test]
fn bodies_reset_and_cut() {
    for (at, left) in [(At::Byte(0), 0), (At::Byte(1), 1), (At::Middle, 10), (At::Last, 19)] {
        let (server, mut client) = with(What::ResetBody(at));
        let answer = client.get("/bucket/k");
        assert_eq!((answer.status, answer.body.as_slice()), (200, &BODY[..left]));
        assert!(is_reset(&answer.broken.expect("broken")));
        recovers(&server);

        let (server, mut client) = with(What::CutBody(at));
        let answer = client.get("/bucket/k");
        assert_eq!((answer.status, answer.body.as_slice()), (200, &BODY[..left]));
        assert_eq!(answer.broken.expect("broken").kind(), ErrorKind::UnexpectedEof);
        recovers(&server);
    }
}

#[test]
fn trickles() {
    let (_server, mut client) = with(What::TrickleBody(At::Byte(15), Duration::from_millis(40)));
    let start = Instant::now();
    assert_eq!(client.get("/bucket/k").ok().body, BODY);
    assert!(start.elapsed() >= Duration::from_millis(200), "{:?}", start.elapsed());

    let (_server, mut client) = with(What::SlowHead(Duration::from_millis(2)));
    client.send("GET", "/bucket/k", &[], b"").expect("sent");
    let start = Instant::now();
    let first = client.connect().expect("open").read(&mut [0; 512]).expect("a byte");
    assert_eq!(first, 1);
    // One byte has arrived: the rest is not a valid response, but it is slow.
    let mut rest = Vec::new();
    client
        .connect()
        .expect("open")
        .set_read_timeout(Some(Duration::from_millis(500)))
        .expect("a timeout");
    let _ = client.connect().expect("open").read_to_end(&mut rest);
    assert!(rest.ends_with(BODY));
    let head = rest.len() - BODY.len();
    assert!(start.elapsed() >= Duration::from_millis(2 * head as u64), "{:?}", start.elapsed());
}

#[test]
fn kept_connections_that_end() {
    let (server, mut client) = with(What::CloseIdle);
    let answer = client.get("/bucket/k").ok();
    assert_eq!((answer.body.as_slice(), answer.header("connection")), (BODY, None));
    let stream = client.stream.as_mut().expect("kept");
    assert_eq!(stream.read(&mut [0]).expect("the end"), 0);
    recovers(&server);

    let (server, mut client) = with(What::ResetOnReuse);
    client.get("/bucket/k").ok();
    let error = client.try_call("GET", "/bucket/k", &[], b"").expect_err("reset");
    assert!(is_reset(&error), "{error:?}");
    recovers(&server);

    let server = common::server();
    server.put("bucket", "k", BODY);
    let mut client = Client::new(&server);
    client.get("/bucket/k").ok();
    server.reset_connections();
    let error = client.stream.as_mut().expect("kept").read(&mut [0]).expect_err("reset");
    assert!(is_reset(&error), "{error:?}");
    recovers(&server);
}

#[test]
fn wrong_ranges() {
    let range = [("range", "bytes=5-9")];
    let (_server, mut client) = with(What::WholeFor206);
    let answer = client.call("GET", "/bucket/k", &range, b"");
    assert_eq!(
        (answer.status, answer.body.as_slice(), answer.header("content-range")),
        (200, BODY, None)
    );

    let (_server, mut client) = with(What::WrongContentRange);
    let answer = client.call("GET", "/bucket/k", &range, b"");
    assert_eq!((answer.status, answer.body.as_slice()), (206, &BODY[5..10]));
    assert_eq!(answer.header("content-range"), Some("bytes 6-10/20"));
}

#[test]
fn wrong_lengths() {
    let (server, mut client) = with(What::ContentLength(3));
    let answer = client.get("/bucket/k");
    assert_eq!((answer.header("content-length"), answer.body.as_slice()), (Some("23"), BODY));
    assert_eq!(answer.broken.expect("broken").kind(), ErrorKind::UnexpectedEof);
    recovers(&server);

    let (server, mut client) = with(What::ContentLength(-3));
    let answer = client.get("/bucket/k").ok();
    assert_eq!(
        (answer.header("content-length"), answer.body.as_slice()),
        (Some("17"), &BODY[..17])
    );
    if client.unclaimed().len() < 3 {
        let mut rest = [0; 3];
        client.connect().expect("open").read_exact(&mut rest).expect("bytes of nobody");
        assert_eq!(rest, BODY[17..]);
    } else {
        assert_eq!(client.unclaimed(), &BODY[17..]);
    }
    recovers(&server);
}

#[test]
fn etags() {
    let (_server, mut client) = with(What::NoEtag);
    assert_eq!(client.get("/bucket/k").ok().header("etag"), None);
    let (server, mut client) = with(What::ChangedEtag);
    let answer = client.get("/bucket/k").ok();
    let changed = answer.header("etag").expect("one").to_owned();
    assert_ne!(changed, format!("\"{}\"", server.stat("bucket", "k").expect("there").etag));
    assert_eq!(changed.len(), 34);

    let (_server, mut client) = with(What::NoEtag);
    let answer = client.call("PUT", "/bucket/b", &[("x-amz-copy-source", "bucket/k")], b"").ok();
    assert!(answer.all("ETag").is_empty() && !answer.all("LastModified").is_empty());
    let (_server, mut client) = with(What::ChangedEtag);
    assert!(client.get("/bucket?list-type=2").ok().xml("ETag").contains("ffffffff"));
}

#[test]
fn strange_xml() {
    let list = "/bucket?list-type=2";
    let (_server, mut client) = with(What::BadXml);
    let text = client.get(list).ok().text();
    assert!(text.starts_with("<?xml") && !text.contains("</ListBucketResult>"), "{text}");

    let (_server, mut client) = with(What::HugeXml(5_000_000));
    let answer = client.get(list).ok();
    assert!(answer.body.len() > 5_000_000 && answer.text().ends_with("</ListBucketResult>"));
    assert_eq!(answer.xml("Key"), "k");

    let (_server, mut client) = with(What::XmlBomb);
    let text = client.get(list).ok().text();
    assert!(text.contains("<!DOCTYPE") && text.contains("&e9;") && text.len() < 10_000, "{text}");

    let (_server, mut client) = with(What::UnknownXml);
    let answer = client.get(list).ok();
    assert!(answer.text().contains("<Contents><Unheard of=\"it\">"), "{}", answer.text());
    assert!(answer.all("Key").contains(&"k".to_owned()));
}

#[test]
fn listings_without_an_end() {
    let server = server();
    for key in ["a", "b", "c"] {
        server.put("bucket", key, BODY);
    }
    let fault =
        server.inject(Fault::new(When::All, What::EndlessListing).operation("ListObjectsV2"));
    let mut client = Client::new(&server);
    let first = client.get("/bucket?list-type=2&max-keys=2").ok();
    assert_eq!((first.xml("IsTruncated").as_str(), first.all("Key").len()), ("true", 2));
    let token = first.xml("NextContinuationToken");
    let next = client
        .get(&format!(
            "/bucket?continuation-token={}&list-type=2&max-keys=2",
            token.replace('=', "%3D")
        ))
        .ok();
    assert_eq!((next.all("Key"), next.xml("NextContinuationToken")), (first.all("Key"), token));
    assert_eq!(server.met(fault), 2);

    server.clear_faults();
    server.inject(Fault::new(When::All, What::TruncatedWithoutToken));
    let answer = client.get("/bucket?list-type=2&max-keys=2").ok();
    assert_eq!(answer.xml("IsTruncated"), "true");
    assert!(answer.all("NextContinuationToken").is_empty());
}

#[test]
fn altered_bodies() {
    let (_server, mut client) = with(What::Gzip);
    let answer = client.get("/bucket/k").ok();
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(answer.body.as_slice()).read_to_end(&mut plain).expect("gzip");
    assert_eq!(plain, BODY);

    let (_server, mut client) = with(What::Header("x-new".into(), "1".into()));
    assert_eq!(client.get("/bucket/k").ok().header("x-new"), Some("1"));
}

#[test]
fn lost_acknowledgements() {
    let (server, mut client) = with(What::LoseAck);
    let error = client.try_call("PUT", "/bucket/new", &[], BODY).expect_err("lost");
    assert!(is_reset(&error), "{error:?}");
    assert_eq!(server.get("bucket", "new").expect("written").bytes, BODY);

    let (server, mut client) = with(What::DoneThenStatus(Reply::new(500, "InternalError")));
    client.put("/bucket/new", BODY).fails(500, "InternalError");
    assert_eq!(server.keys("bucket"), ["k", "new"]);
}
