//! Certificates, tokens, passwords, proxies.

use crate::server::{Content, Reply, Server};
use crate::{error, impatient, open, read, settings};
use https::{Https, Secret, Settings};
use std::process::Command;
use std::time::Duration;
use tf_fs_plugin::prelude::*;

fn trusting(server: &Server) -> (Https, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &server.authority).unwrap();
    let settings = Settings { ca_file: Some(file.path().into()), ..settings() };
    (Https::with(settings), file)
}

#[test]
fn a_certificate_has_to_be_trusted_and_for_this_host() {
    let content = Content::new(5 << 20, 0);
    let copy = content.clone();
    let server = Server::tls("127.0.0.1", move |request, _| copy.reply(request));
    let (fs, _file) = trusting(&server);
    assert!(read(&fs, &server.url("f")).unwrap() == *content.bytes);

    let (code, text) = error(open(&crate::fs(), &server.url("f?signature=sesame")));
    assert_eq!(code, Code::Unavailable);
    assert!(text.contains("certificate") && !text.contains("sesame"), "{text}");

    let other = Server::tls("elsewhere.example", |_, _| Reply::new(200));
    let (fs, _file) = trusting(&other);
    let (code, text) = error(open(&fs, &other.url("f")));
    assert_eq!(code, Code::Unavailable);
    assert!(text.contains("elsewhere.example"), "{text}");
    assert!(other.take_log().is_empty());
}

#[test]
fn a_file_without_certificates_is_named() {
    let settings = Settings { ca_file: Some("/dev/null/none.pem".into()), ..settings() };
    let (code, text) = error(open(&Https::with(settings), "https://127.0.0.1:1/f"));
    assert_eq!(code, Code::InvalidArgument);
    assert!(text.contains("TF_HTTPS_CA_FILE") && text.contains("/dev/null/none.pem"), "{text}");
}

#[test]
fn tokens_and_passwords_are_sent_to_their_host() {
    let server = Server::new(|request, _| {
        let value = request.header("authorization").unwrap_or("none").to_owned();
        Reply::new(200).body(value)
    });
    let sent = |tokens: String, netrc: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), netrc).unwrap();
        let settings = Settings {
            bearer_tokens: Some(Secret::new(tokens)),
            netrc: Some(file.path().into()),
            ..settings()
        };
        String::from_utf8(read(&Https::with(settings), &server.url("f")).unwrap()).unwrap()
    };
    let netrc = "machine 127.0.0.1 login user password sesame\n";
    let token = format!("http://127.0.0.1:{}=t0", server.port);
    assert_eq!(sent(token.clone(), ""), "Bearer t0");
    assert_eq!(sent(token, netrc), "Bearer t0");
    assert_eq!(sent(String::new(), netrc), "Basic dXNlcjpzZXNhbWU=");
    assert_eq!(sent("elsewhere=t0 127.0.0.1=t1".into(), ""), "none", "a token for https only");
}

#[test]
fn credentials_that_are_not_accepted_are_not_printed() {
    let server = Server::new(|request, _| {
        // Servers may repeat what they were sent.
        let value = request.header("authorization").unwrap_or_default().to_owned();
        Reply::new(401).body(value)
    });
    let tokens = format!("http://127.0.0.1:{}=sesame", server.port);
    let fs = Https::with(Settings { bearer_tokens: Some(Secret::new(tokens)), ..settings() });
    let (code, text) = error(open(&fs, &server.url("f")));
    assert_eq!(code, Code::Unauthenticated);
    assert!(text.contains("not accepted") && !text.contains("sesame"), "{text}");
    assert!(!format!("{fs:?}").contains("sesame"));
}

/// Reads for [`proxies_are_those_of_the_environment`], in a process with another environment.
#[test]
#[ignore = "part of proxies_are_those_of_the_environment"]
fn reads_what_the_environment_says() {
    let url = std::env::var("HTTPS_TEST_URL").unwrap();
    // A proxy that refuses is retried until then.
    let settings = Settings { retry_timeout: Duration::from_secs(2), ..settings() };
    let outcome = read(&Https::with(settings), &url);
    let outcome = outcome.map(|bytes| String::from_utf8(bytes).unwrap());
    println!("outcome: {outcome:?}");
}

#[test]
fn proxies_are_those_of_the_environment() {
    let proxy = Server::new(|request, _| {
        if request.target.ends_with("/local") {
            return Reply::new(302).header("Location", "http://169.254.169.254/latest/meta-data");
        }
        let authorization = request.header("proxy-authorization").unwrap_or("none");
        Reply::new(200).body(format!("by proxy {} {authorization}", request.target))
    });
    let server = Server::new(|_, _| Reply::new(200).body("straight"));
    let run = |url: &str, variables: &[(&str, &str)]| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = "trust::reads_what_the_environment_says";
        command.args([test, "--exact", "--ignored", "--nocapture"]);
        for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
            command.env_remove(name).env_remove(name.to_uppercase());
        }
        let output =
            command.env("HTTPS_TEST_URL", url).envs(variables.iter().copied()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let address = format!("http://user:sesame@127.0.0.1:{}", proxy.port);
    let elsewhere = "http://elsewhere.example/f";
    let text = run(elsewhere, &[("HTTP_PROXY", &address), ("http_proxy", &address)]);
    assert!(text.contains("by proxy http://elsewhere.example/f Basic"), "{text}");
    let text = run("http://elsewhere.example/local", &[("http_proxy", &address)]);
    assert!(text.contains("TF_HTTPS_LOCAL_REDIRECTS"), "{text}");
    let text = run(&server.url("f"), &[("http_proxy", &address), ("no_proxy", "127.0.0.1")]);
    assert!(text.contains("straight"), "{text}");
    // A tunnel, which this proxy does not support.
    let text = run("https://elsewhere.example/f", &[("https_proxy", &address)]);
    assert!(text.contains("Err("), "{text}");
    assert!(!text.contains("sesame"), "{text}");
    let log = proxy.take_log();
    assert!(!log.iter().any(|r| r.target.contains("169.254")), "{log:?}");
    assert!(log.iter().any(|r| r.method == "CONNECT" && r.target == "elsewhere.example:443"));
}

#[test]
fn a_stalled_server_is_left() {
    let server = Server::new(|_, _| Reply { stall: Some(0), ..Reply::new(200).body("x") });
    let settings = Settings { retry_timeout: Duration::from_millis(900), ..impatient() };
    let (code, text) = error(open(&Https::with(settings), &server.url("f")));
    assert_eq!(code, Code::DeadlineExceeded, "{text}");
}
