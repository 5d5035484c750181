//! The parts around the operations: pace, the end, the program.

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Client, server};
use s3_server::Shape;

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
    assert_eq!(Shape::s3().bytes_per_second_per_connection, Some(80_000_000));
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
