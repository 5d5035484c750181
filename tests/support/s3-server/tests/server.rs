//! What surrounds the operations: pace, log, certificates, the end, the control interface, the program.

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Client, server};
use s3_server::{Options, Server, Shape, Tls};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// Checks that `took` is about `wanted`, with some room above for a busy machine.
#[track_caller]
fn near(took: Duration, wanted: u64) {
    let (low, high) =
        (Duration::from_millis(wanted * 9 / 10), Duration::from_millis(wanted * 2 + 300));
    assert!(took >= low && took <= high, "{took:?} instead of {wanted} ms");
}

#[test]
fn latency_and_bandwidth() {
    // Little, for hashes without optimisation take their time too.
    const LEN: usize = 2_000_000;
    let server = server();
    server.put("bucket", "k", vec![1; LEN]);
    let mut client = Client::new(&server);
    client.get("/bucket/k").ok();
    let latency = Shape { first_byte_latency: Duration::from_millis(100), ..Shape::default() };
    server.shape(latency);
    let (_, took) = timed(|| client.call("GET", "/bucket/k", &[("range", "bytes=0-9")], b"").ok());
    near(took, 100);

    server.shape(Shape { bytes_per_second_per_connection: Some(5_000_000), ..Shape::default() });
    let (answer, took) = timed(|| client.get("/bucket/k").ok());
    assert_eq!(answer.body.len(), LEN);
    near(took, 400);
    let (_, took) = timed(|| client.put("/bucket/up", &vec![1; LEN]).ok());
    near(took, 400);

    // Two connections share what is there.
    server.shape(Shape { total_bytes_per_second: Some(10_000_000), ..Shape::default() });
    let (_, took) = timed(|| {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| Client::new(&server).get("/bucket/k").ok());
            }
        });
    });
    near(took, 400);
    server.shape(Shape { connect_latency: Duration::from_millis(100), ..Shape::default() });
    let (_, took) = timed(|| Client::new(&server).call("HEAD", "/bucket/k", &[], b"").ok());
    near(took, 100);
    let (_, took) = timed(|| client.call("HEAD", "/bucket/k", &[], b"").ok());
    assert!(took < Duration::from_millis(100), "an open connection waits for nothing: {took:?}");
    assert_eq!(Shape::s3().bytes_per_second_per_connection, Some(80_000_000));
}

#[test]
fn the_log() {
    let server = server();
    let mut client = Client::new(&server);
    client.put("/bucket/a%20b", b"12345").ok();
    client.call("GET", "/bucket/a%20b", &[("range", "bytes=0-1"), ("if-match", "\"x\"")], b"");
    Client::new(&server).get("/bucket?list-type=2&prefix=a").ok();
    let log = server.log();
    let names: Vec<_> = log
        .iter()
        .map(|r| (r.index, r.operation, r.method.as_str(), r.status, r.connection))
        .collect();
    assert_eq!(
        names,
        [
            (1, "PutObject", "PUT", 200, 1),
            (2, "GetObject", "GET", 412, 1),
            (3, "ListObjectsV2", "GET", 200, 2)
        ]
    );
    assert_eq!(
        (log[0].bucket.as_deref(), log[0].key.as_deref(), log[0].bytes_in),
        (Some("bucket"), Some("a b"), 5)
    );
    assert_eq!(
        (log[1].headers["range"].as_str(), log[1].headers["if-match"].as_str()),
        ("bytes=0-1", "\"x\"")
    );
    assert!(log.iter().all(|r| r.signed && !r.faulted && !r.headers.contains_key("authorization")));
    assert_eq!(log[2].query, "list-type=2&prefix=a");
    assert!(log[2].bytes_out > 100 && log[0].at < log[2].at && log[0].duration.is_some());
    assert_eq!(
        server.counts().into_iter().collect::<Vec<_>>(),
        [("GetObject".to_owned(), 1), ("ListObjectsV2".to_owned(), 1), ("PutObject".to_owned(), 1)]
    );
    let counters = server.reset_log();
    assert_eq!((counters.connections, counters.bytes_in, counters.statuses[&412]), (2, 5, 1));
    assert!(server.log().is_empty() && server.counts().is_empty());
    client.get("/bucket?list-type=2").ok();
    assert_eq!(server.log()[0].index, 1);
}

fn tls_get(server: &Server, name: &str) -> Result<String, String> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(server.ca_pem().expect("an authority").as_bytes())
        .expect("PEM");
    roots.add(ca).expect("added");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    let stream = TcpStream::connect(server.address()).expect("connected");
    let mut stream = StreamOwned::new(connection, stream);
    let head = Client::new(server).head(
        "GET",
        "/bucket/k",
        &[("connection", "close")],
        &aws_sigv4::http_request::SignableBody::Bytes(b""),
    );
    stream.write_all(head.as_bytes()).map_err(|error| error.to_string())?;
    let mut text = String::new();
    // An end without TLS' close message is one too.
    let _ = stream.read_to_string(&mut text);
    Ok(text)
}

#[test]
fn certificates() {
    let start = |tls| {
        let options =
            Options { buckets: vec!["bucket".into()], tls: Some(tls), ..Options::default() };
        let server = Server::start(options).expect("a server");
        server.put("bucket", "k", "secret text");
        assert!(server.endpoint().starts_with("https://127.0.0.1:"));
        server
    };
    let good = start(Tls::Valid);
    for name in ["127.0.0.1", "localhost", "bucket.localhost", "other.s3.localhost"] {
        let answer = tls_get(&good, name).expect("trusted");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("secret text"), "{answer}");
    }
    let error = tls_get(&start(Tls::Expired), "127.0.0.1").expect_err("expired");
    assert!(error.contains("expired"), "{error}");
    let error = tls_get(&start(Tls::WrongHost), "127.0.0.1").expect_err("another host");
    assert!(error.contains("not valid for name"), "{error}");
}

#[test]
fn the_end_closes_everything() {
    let server = server();
    server.put("bucket", "k", vec![0; 50_000_000]);
    let mut idle = Client::new(&server);
    idle.call("HEAD", "/bucket/k", &[], b"").ok();
    let mut busy = Client::new(&server);
    busy.send("GET", "/bucket/k", &[], b"").expect("sent");
    busy.read_head().expect("a head");
    let address = server.address();
    let ((), took) = timed(|| drop(server));
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(idle.stream.expect("open").read(&mut [0]).expect("the end"), 0);
    TcpStream::connect(address).expect_err("nobody listens");
}

fn control(server: &Server, target: &str) -> String {
    let mut client = Client::new(server);
    client.credentials = None;
    client.get(&format!("/_server/{target}")).text()
}

#[test]
fn control_without_a_signature() {
    let server = server();
    server.put("bucket", "a b", "x");
    let mut client = Client::new(&server);
    assert_eq!(control(&server, "keys?bucket=bucket"), "[\"a b\"]");
    client.begin("m");
    assert!(control(&server, "uploads?bucket=bucket").contains("\"key\":\"m\""));
    control(
        &server,
        "fault?what=status&status=503&code=SlowDown&operation=GetObject&nth=2&times=1",
    );
    client.call("HEAD", "/bucket/a%20b", &[], b"").ok();
    client.get("/bucket/a%20b").ok();
    client.get("/bucket/a%20b").fails(503, "SlowDown");
    client.get("/bucket/a%20b").ok();
    control(&server, "fault?what=status&status=500");
    control(&server, "clear?");
    client.get("/bucket/a%20b").ok();
    let log = control(&server, "log");
    assert_eq!(log.lines().count(), 6);
    let line: serde_json::Value =
        serde_json::from_str(log.lines().nth(3).expect("one")).expect("JSON");
    assert_eq!(
        (line["operation"].as_str(), line["status"].as_u64(), line["faulted"].as_bool()),
        (Some("GetObject"), Some(503), Some(true))
    );
    let sums: serde_json::Value = serde_json::from_str(&control(&server, "reset")).expect("JSON");
    assert_eq!(
        (sums["operations"]["GetObject"].as_u64(), sums["statuses"]["503"].as_u64()),
        (Some(4), Some(1))
    );
    assert_eq!(server.log().len(), 0);
    control(&server, "shape?latency_ms=80&connection_mbps=50");
    let (_, took) = timed(|| client.get("/bucket/a%20b").ok());
    near(took, 80);
    for (target, wanted) in [
        ("fault?what=nonsense", "is not a fault"),
        ("fault", "add what=NAME"),
        ("shape?latency_ms=x", "give a number"),
        ("keys", "add bucket=NAME"),
        ("keys?bucket=none", "there is no bucket"),
        ("other", "is not known"),
    ] {
        let text = control(&server, target);
        assert!(text.contains(wanted), "{target}: {text}");
    }
}

#[test]
fn the_program() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_s3-server"))
        .args([
            "--listen",
            "127.0.0.1:0",
            "--access-key",
            "K",
            "--secret-key",
            "S",
            "--bucket",
            "a",
            "--bucket",
            "b",
        ])
        .args(["--fast", "--latency-ms", "50", "--connection-mbps", "80"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("listening on http://").expect("the address").to_owned();
    let ask = || {
        let mut stream = TcpStream::connect(&address).expect("connected");
        let request = format!(
            "GET /_server/keys?bucket=b HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    };
    let text = ask();
    child.kill().expect("ended");
    child.wait().expect("ended");
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("[]"), "{text}");
}
