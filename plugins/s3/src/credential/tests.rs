//! The metadata service: its responses, and its silence.

use super::*;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use tf_fs_object_store::http::Tls;

/// Starts a service that lets so many connections wait, and then responds: a token, and 404 to all else. Returns its
/// URL, and a receiver that gets a message for each connection.
fn service(silent: usize) -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (says, hears) = channel();
    std::thread::spawn(move || {
        let mut waiting = Vec::new();
        for (n, connection) in listener.incoming().flatten().enumerate() {
            let _ = says.send(());
            if n < silent {
                waiting.push(connection);
            } else {
                std::thread::spawn(move || serve(connection));
            }
        }
    });
    (url, hears)
}

fn serve(mut connection: TcpStream) {
    let mut lines = BufReader::new(connection.try_clone().unwrap()).lines().map_while(Result::ok);
    while let Some(line) = lines.next() {
        while lines.next().is_some_and(|header| !header.is_empty()) {}
        let answer = match line.starts_with("PUT ") {
            true => {
                "200 X\r\nx-aws-ec2-metadata-token-ttl-seconds: 21600\r\ncontent-length: 1\r\n\r\nt"
            }
            false => "404 X\r\ncontent-length: 0\r\n\r\n",
        };
        if connection.write_all(format!("HTTP/1.1 {answer}").as_bytes()).is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn an_error_response_and_one_lost_packet_are_not_silence() {
    let case = async |silent: usize, is_silent: bool| {
        let tls = Arc::new(Tls { verify: true, ..Tls::default() }.client_config().unwrap());
        // The longer one is for a token and a response, also on a busy machine.
        let timeout = Duration::from_millis(if is_silent { 300 } else { 2000 });
        let services = Services::with_imds_timeout(&tls, timeout);
        let (url, hears) = service(silent);
        let region = services.listen(|| services.region_at(&url)).await;
        let region = region.unwrap_err().to_string();
        assert_eq!(region.contains("404"), !is_silent, "{silent}: {region}");
        assert_eq!(services.is_silent(), is_silent, "{silent}: {region}");
        let connections = hears.try_iter().count();
        assert!(connections >= silent.saturating_add(1).min(2), "{silent}: {connections}");
        // The source that is tried next.
        let keys = services.listen(|| services.instance_keys(&url)).await;
        let keys = keys.unwrap_err().to_string();
        assert_eq!(keys.contains("404"), !is_silent, "{silent}: {keys}");
        assert_eq!(services.is_silent(), is_silent, "{silent}: {keys}");
    };
    // Each waits for the service.
    tokio::join!(case(0, false), case(1, false), case(usize::MAX, true));
}

#[test]
fn credentials_in_json() {
    let of = |text: &str| of_json(text.as_bytes()).map_err(|why| why.to_string());
    let keys = of(
        r#"{"accessKeyId":"i","SecretAccessKey":"s","Token":"t","Expiration":"2030-01-01T00:00:00Z"}"#,
    );
    let keys = keys.unwrap();
    assert_eq!((keys.access_key_id(), keys.session_token()), ("i", Some("t")));
    assert_eq!(keys.expiry(), date_time("2030-01-01T00:00:00.000+00:00"));
    for (text, why) in [
        ("x", "no valid JSON"),
        (r#"{"AccessKeyId":"i"}"#, "no SecretAccessKey"),
        (r#"{"Code":"Failed","Message":"m"}"#, "the error Failed: m"),
        (r#"{"Version":2,"AccessKeyId":"i","SecretAccessKey":"s"}"#, "another Version than 1"),
        (
            r#"{"AccessKeyId":"i","SecretAccessKey":"s","Expiration":"x"}"#,
            "an Expiration that is not a date",
        ),
    ] {
        assert_eq!(of(text).unwrap_err(), why);
    }
}

#[test]
fn agents_of_containers() {
    assert!(["169.254.170.23", "[fd00:ec2:0::23]"].into_iter().all(services::is_agent));
    assert!(!["169.254.170.3", "169.254.170.2.x"].into_iter().any(services::is_agent));
}

#[test]
fn errors_of_sts_that_pass() {
    for (status, code, passes) in
        [(400, "Throttling", true), (503, "Other", true), (400, "ExpiredToken", false)]
    {
        let body = format!("<ErrorResponse><Error><Code>{code}</Code></Error></ErrorResponse>");
        let class = services::class_of(status, body.as_bytes());
        assert_eq!(class == ErrorKind::Transient, passes, "{status} {code}");
    }
}

#[test]
fn endpoints_of_sts() {
    for (region, fips, dualstack, host) in [
        ("us-east-1", true, false, "sts-fips.us-east-1.amazonaws.com"),
        ("us-east-1", false, true, "sts.us-east-1.api.aws"),
        ("us-gov-west-1", true, false, "sts.us-gov-west-1.amazonaws.com"),
        ("cn-north-1", false, true, "sts.cn-north-1.api.amazonwebservices.com.cn"),
    ] {
        assert_eq!(services::sts_url(region, fips, dualstack), format!("https://{host}"));
    }
}
