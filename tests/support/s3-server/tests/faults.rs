//! Every fault, seen on the wire.

mod common;

use std::io::{ErrorKind, Read as _};
use std::time::{Duration, Instant};

use common::{Answer, Client, complete_body, server};
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
fn refused_at_accept() {
    let (server, mut client) = with(What::Refuse);
    let error = client.try_call("GET", "/bucket/k", &[], b"").expect_err("refused");
    assert!(is_reset(&error), "{error:?}");
    recovers(&server);
    assert_eq!(server.log().len(), 1);
}

#[test]
fn nobody_listens() {
    let server = server();
    server.put("bucket", "k", BODY);
    server.set_refusing(true).expect("closed");
    let error = Client::new(&server).try_call("GET", "/bucket/k", &[], b"").expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    server.set_refusing(false).expect("open again");
    recovers(&server);
}

#[test]
fn reset_and_closed_before_the_answer() {
    let (server, mut client) = with(What::Reset);
    let error = client.try_call("PUT", "/bucket/new", &[], BODY).expect_err("reset");
    assert!(is_reset(&error), "{error:?}");
    assert_eq!(server.keys("bucket"), ["k"]);
    recovers(&server);

    let (server, mut client) = with(What::Close);
    let error = client.try_call("GET", "/bucket/k", &[], b"").expect_err("closed");
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    recovers(&server);
}

#[test]
fn half_closed() {
    let (server, mut client) = with(What::HalfClose);
    let error = client.try_call("GET", "/bucket/k", &[], b"").expect_err("the end of the answers");
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    recovers(&server);
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

/// Reads what arrives within `time`.
fn within(client: &mut Client, time: Duration) -> std::io::Result<Answer> {
    client.connect().expect("open").set_read_timeout(Some(time)).expect("a timeout");
    client.receive("GET")
}

#[test]
fn stalls() {
    let (server, mut client) = with(What::Stall);
    client.send("PUT", "/bucket/new", &[], BODY).expect("sent");
    let error = within(&mut client, Duration::from_millis(300)).expect_err("nothing");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert_eq!(server.keys("bucket"), ["k"]);

    let (server, mut client) = with(What::DoneThenStall);
    client.send("PUT", "/bucket/new", &[], BODY).expect("sent");
    let error = within(&mut client, Duration::from_millis(300)).expect_err("nothing");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert_eq!(server.keys("bucket"), ["k", "new"]);

    let (_server, mut client) = with(What::StallBody(At::Byte(7)));
    client.send("GET", "/bucket/k", &[], b"").expect("sent");
    let answer = within(&mut client, Duration::from_millis(300)).expect("a head");
    assert_eq!(answer.body, BODY[..7]);
    assert_eq!(answer.broken.expect("nothing more").kind(), ErrorKind::WouldBlock);
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
fn statuses() {
    for (status, code) in [
        (400, "InvalidRequest"),
        (401, "Unauthorized"),
        (403, "AccessDenied"),
        (404, "NoSuchKey"),
        (407, "ProxyAuthenticationRequired"),
        (408, "RequestTimeout"),
        (409, "OperationAborted"),
        (412, "PreconditionFailed"),
        (416, "InvalidRange"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (502, "BadGateway"),
        (503, "SlowDown"),
        (504, "GatewayTimeout"),
    ] {
        let (server, mut client) = with(What::status(status, code));
        client.put("/bucket/new", &vec![7; 300_000]).fails(status, code);
        assert_eq!(server.keys("bucket"), ["k"]);
        // The same connection can be used again.
        assert_eq!(client.get("/bucket/k").ok().body, BODY);
        assert_eq!(
            server.log().iter().map(|r| (r.status, r.connection, r.faulted)).collect::<Vec<_>>(),
            [(status, 1, true), (200, 1, false)]
        );
    }
    let reply = Reply::new(503, "SlowDown").no_body().retry_after(3).header("x-test", "y");
    let (_server, mut client) = with(What::Status(reply));
    let answer = client.get("/bucket/k");
    assert_eq!((answer.status, answer.body.len()), (503, 0));
    assert_eq!((answer.header("retry-after"), answer.header("x-test")), (Some("3"), Some("y")));
    for (status, code) in [
        (301, "PermanentRedirect"),
        (307, "TemporaryRedirect"),
        (400, "AuthorizationHeaderMalformed"),
    ] {
        let (_server, mut client) =
            with(What::Status(Reply::redirect(status, "eu-west-1").message("go")));
        let answer = client.get("/bucket/k");
        answer.fails(status, code);
        assert_eq!(
            (answer.header("x-amz-bucket-region"), answer.xml("Message").as_str()),
            (Some("eu-west-1"), "go")
        );
    }
    let (_server, mut client) = with(What::status(503, "SlowDown"));
    let answer = client.call("HEAD", "/bucket/k", &[], b"");
    assert_eq!(answer.status, 503);
    assert_eq!(client.get("/bucket/k").ok().body, BODY, "no body is left over");
}

#[test]
fn lost_acknowledgements() {
    let lost = |operation: &str,
                method: &str,
                target: &str,
                headers: &[(&str, &str)],
                body: &[u8],
                server: &Server| {
        let fault =
            server.inject(Fault::new(When::Nth(1), What::LoseAck).operation(operation).times(1));
        let error = Client::new(server).try_call(method, target, headers, body).expect_err("lost");
        assert!(is_reset(&error), "{operation} {error:?}");
        assert_eq!(server.met(fault), 1, "{operation}");
    };
    let server = server();
    lost("PutObject", "PUT", "/bucket/a", &[], BODY, &server);
    assert_eq!(server.get("bucket", "a").expect("written").bytes, BODY);
    lost("CopyObject", "PUT", "/bucket/b", &[("x-amz-copy-source", "bucket/a")], b"", &server);
    assert_eq!(server.get("bucket", "b").expect("copied").bytes, BODY);
    lost("DeleteObject", "DELETE", "/bucket/a", &[], b"", &server);
    assert_eq!(server.keys("bucket"), ["b"]);
    let id = Client::new(&server).begin("m");
    lost("UploadPart", "PUT", &format!("/bucket/m?partNumber=1&uploadId={id}"), &[], BODY, &server);
    assert_eq!(server.uploads("bucket")[0].parts[&1], BODY.len() as u64);
    let etag = Client::new(&server).part("m", &id, 1, BODY);
    let body = complete_body(&[(1, &etag)]);
    lost(
        "CompleteMultipartUpload",
        "POST",
        &format!("/bucket/m?uploadId={id}"),
        &[],
        body.as_bytes(),
        &server,
    );
    assert_eq!(server.get("bucket", "m").expect("complete").bytes, BODY);
    assert!(server.uploads("bucket").is_empty());
    // The retry of a client that does not know.
    Client::new(&server).complete("m", &id, &[(1, &etag)], &[]).fails(404, "NoSuchUpload");

    let (server, mut client) = with(What::DoneThenStatus(Reply::new(500, "InternalError")));
    client.put("/bucket/new", BODY).fails(500, "InternalError");
    assert_eq!(server.keys("bucket"), ["k", "new"]);
}

#[test]
fn errors_in_200() {
    let (server, mut client) = with(What::ErrorIn200("InternalError".into()));
    let answer = client.call("PUT", "/bucket/b", &[("x-amz-copy-source", "bucket/k")], b"").ok();
    assert_eq!(answer.xml("Code"), "InternalError");
    assert_eq!(server.keys("bucket"), ["k"]);

    let server = common::server();
    let mut client = Client::new(&server);
    let id = client.begin("m");
    let etag = client.part("m", &id, 1, BODY);
    server.inject(
        Fault::new(When::Nth(1), What::ErrorIn200("SlowDown".into()))
            .operation("CompleteMultipartUpload"),
    );
    assert_eq!(client.complete("m", &id, &[(1, &etag)], &[]).ok().xml("Code"), "SlowDown");
    assert_eq!((server.keys("bucket").len(), server.uploads("bucket").len()), (0, 1));
    client.complete("m", &id, &[(1, &etag)], &[]).ok().xml("ETag");
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

/// Answers whose body hyper knows or does without lie all the same.
#[test]
fn wrong_lengths_of_other_answers() {
    let length = |answer: &Answer| answer.header("content-length").map(str::to_owned);
    let told = |target: &str, by: i64| {
        let (_server, mut client) = with(What::ContentLength(by));
        client.call("HEAD", target, &[], b"")
    };
    assert_eq!(length(&told("/bucket/k", 3)).as_deref(), Some("23"));
    assert_eq!(length(&told("/bucket/k", -3)).as_deref(), Some("17"));
    let truth = length(&told("/bucket/none", 0)).map(|length| length.parse::<i64>());
    let lie = length(&told("/bucket/none", 3)).map(|length| length.parse::<i64>());
    assert_eq!(lie, truth.map(|length| length.map(|length| length + 3)));

    // A page of a listing, an error, and a response without a body.
    for (method, target, status) in [
        ("GET", "/bucket?list-type=2", 200),
        ("GET", "/bucket/none", 404),
        ("PUT", "/bucket/new", 200),
    ] {
        let (server, mut client) = with(What::ContentLength(3));
        let answer = client.call(method, target, &[], b"");
        assert_eq!(answer.status, status, "{method} {target}");
        let length: usize = length(&answer).expect("a length").parse().expect("a number");
        assert_eq!(length, answer.body.len() + 3, "{method} {target}");
        let broken = answer.broken.expect("the connection ends before the length");
        assert_eq!(broken.kind(), ErrorKind::UnexpectedEof, "{method} {target}");
        recovers(&server);
    }
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
    let (_server, mut client) = with(What::CorruptByte(At::Byte(3)));
    let body = client.get("/bucket/k").ok().body;
    assert_eq!(body.iter().zip(BODY).filter(|(a, b)| a != b).count(), 1);
    assert_ne!(body[3], BODY[3]);

    let server = common::server();
    let mut client = Client::new(&server);
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, BODY) as u32;
    let crc = base64_simd::STANDARD.encode_to_string(crc.to_be_bytes());
    let put = [("x-amz-checksum-crc32", crc.as_str())];
    client.call("PUT", "/bucket/k", &put, BODY).ok();
    let get = [("x-amz-checksum-mode", "ENABLED")];
    let right = client.call("GET", "/bucket/k", &get, b"").ok();
    assert_eq!(right.header("x-amz-checksum-crc32"), Some(crc.as_str()));
    server.inject(Fault::new(When::Nth(1), What::WrongChecksum));
    let wrong = client.call("GET", "/bucket/k", &get, b"").ok();
    let wrong = wrong.header("x-amz-checksum-crc32").expect("one");
    assert!(wrong != crc && wrong.len() == crc.len());
    server.inject(Fault::new(When::Nth(1), What::WrongChecksum));
    assert!(client.get("/bucket/k").ok().header("x-amz-checksum-crc32").is_some(), "added");

    let (_server, mut client) = with(What::Gzip);
    let answer = client.get("/bucket/k").ok();
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(answer.body.as_slice()).read_to_end(&mut plain).expect("gzip");
    assert_eq!(plain, BODY);

    let (_server, mut client) = with(What::Header("x-new".into(), "1".into()));
    assert_eq!(client.get("/bucket/k").ok().header("x-new"), Some("1"));
}
