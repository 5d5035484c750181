//! Tokens: when one is requested, and where no secret goes.

use super::*;
use crate::settings::of_variables;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const LATE: &str = "later: ";

/// The name of a program that does not exist.
const NO_AZ: &str = "/nonexistent/az";

/// Starts a service that responds with these bodies in turn, after `LATE` in 1.5 seconds, or with a number as the
/// status, and ends the connection for an empty one. Returns its URL, and the count of requests.
fn serve(bodies: &'static [&'static str]) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for (mut connection, body) in listener.incoming().flatten().zip(bodies) {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let late = body.strip_prefix(LATE);
            if late.is_some() {
                std::thread::sleep(Duration::from_millis(1500));
            }
            let body = late.unwrap_or(body);
            if !body.is_empty() {
                let len = body.len();
                let status = if body.len() == 3 { body } else { "200" };
                let head = format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {len}\r\n\r\n"
                );
                connection.write_all(format!("{head}{body}").as_bytes()).unwrap();
            }
        }
    });
    (url, count)
}

/// Returns tokens for these variables, from the metadata service at this URL, or from this program in place of `az`.
fn find(variables: &[(&str, &str)], url: &str, program: &str) -> Tokens {
    let settings = of_variables(variables).unwrap();
    let http = crate::client::http(&settings).unwrap();
    let mut tokens = Tokens::find(&settings, &http).unwrap().unwrap();
    for source in &mut tokens.sources {
        match source {
            Source::Imds { endpoint, .. } => *endpoint = url.to_owned(),
            Source::Cli { az, .. } => *az = program.to_owned(),
            _ => {}
        }
    }
    tokens
}

/// Returns tokens of a metadata service that the settings name.
fn service(bodies: &'static [&'static str]) -> (Tokens, Arc<AtomicUsize>) {
    let (url, count) = serve(bodies);
    (find(&[("AZURE_POD_IDENTITY_AUTHORITY_HOST", &url)], &url, NO_AZ), count)
}

/// Creates a program in place of `az`. A shell writes it: a program that this process has open for writing cannot be
/// run, nor while a child that another test just started still has it open.
fn write_az(directory: &Path, script: &str) -> String {
    let az = directory.join("az");
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod 700 "$0""#]);
    assert!(shell.arg(&az).arg(script).status().unwrap().success());
    az.to_str().unwrap().to_owned()
}

async fn got(tokens: &Tokens) -> Option<String> {
    tokens.get().await.unwrap().map(|token| token.expose().to_owned())
}

async fn wait_for_the_pause(tokens: &Tokens) {
    let requested = &mut tokens.state.lock().await.requested;
    *requested = requested.map(|requested| requested - PAUSE);
}

#[tokio::test]
async fn a_service_of_short_tokens_or_of_none_does_not_delay_each_request() {
    const SHORT: &str = r#"{"access_token":"one","expires_in":100}"#;
    const SECOND: &str = r#"{"access_token":"two","expires_in":100}"#;
    let (tokens, count) = service(&[SHORT, "", SECOND, SHORT]);
    let requests = || count.load(Ordering::SeqCst);
    // It expires within the margin, but is not renewed for each request.
    assert_eq!((got(&tokens).await.as_deref(), requests()), (Some("one"), 1));
    assert_eq!((got(&tokens).await.as_deref(), requests()), (Some("one"), 1));
    // The service does not respond: the old one is still valid.
    wait_for_the_pause(&tokens).await;
    assert_eq!((got(&tokens).await.as_deref(), requests()), (Some("one"), 2));
    assert_eq!((got(&tokens).await.as_deref(), requests()), (Some("one"), 2));
    wait_for_the_pause(&tokens).await;
    assert_eq!((got(&tokens).await.as_deref(), requests()), (Some("two"), 3));
    // The store refused the old one meanwhile.
    tokens.forget(&Secret::new("one")).await;
    assert_eq!((got(&tokens).await.as_deref(), requests()), (Some("two"), 3));
    tokens.forget(&Secret::new("two")).await;
    assert_eq!((got(&tokens).await.as_deref(), requests()), (Some("one"), 4));
}

#[test]
fn a_secret_is_not_sent_in_the_clear() {
    let find = |variables: &[_]| {
        let settings = of_variables(variables).unwrap();
        Tokens::find(&settings, &crate::client::http(&settings).unwrap()).map(drop)
    };
    let application = |authority| {
        find(&[
            ("AZURE_AUTHORITY_HOST", authority),
            ("AZURE_TENANT_ID", "x"),
            ("AZURE_CLIENT_ID", "x"),
            ("AZURE_CLIENT_SECRET", "x"),
        ])
    };
    let identity = |url| find(&[("IDENTITY_ENDPOINT", url), ("IDENTITY_HEADER", "x")]);
    for outcome in [
        application("http://login.example.com"),
        identity("http://10.0.0.1/token"),
        identity("http://169.254.example.com/token"),
        find(&[("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://10.0.0.1")]),
    ] {
        let error = outcome.expect_err("in the clear");
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains("without TLS"), "{error}");
    }
    application("login.microsoftonline.us").expect("without the scheme it is https");
    for url in ["http://127.0.0.1:4141/token", "http://169.254.130.2:8081/token", "https://h/token"]
    {
        identity(url).expect(url);
    }
}

#[test]
fn tokens_of_all_services_are_read() {
    let at = UNIX_EPOCH + Duration::from_secs(4_000_000_000);
    for json in [
        r#"{"access_token":"t","expires_on":"4000000000","expires_in":"1"}"#,
        r#"{"accessToken":"t","expires_on":4000000000,"expiresOn":"2096-10-02 07:06:40"}"#,
    ] {
        let token = token_of(json.as_bytes()).expect(json);
        assert_eq!((token.text.expose(), token.ends), ("t", at));
    }
    let token = token_of(br#"{"access_token":"t","expires_in":3599}"#).unwrap();
    let left = token.ends.duration_since(SystemTime::now()).unwrap();
    assert!((Duration::from_secs(3590)..=Duration::from_secs(3600)).contains(&left));
    for json in ["", "{}", r#"{"access_token":""}"#, r#"{"access_token":1}"#] {
        assert!(token_of(json.as_bytes()).is_none(), "{json}");
    }
}

#[test]
fn an_identity_by_halves_is_refused() {
    let settings = of_variables(&[("AZURE_CLIENT_SECRET", "sesame")]).unwrap();
    let http = crate::client::http(&settings).unwrap();
    let error = Tokens::find(&settings, &http).expect_err("no tenant");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(
        error.message(),
        "AZURE_CLIENT_SECRET is set, but not AZURE_TENANT_ID and AZURE_CLIENT_ID; set them too"
    );
}

#[tokio::test]
async fn a_rejected_token_is_dropped_once_and_requests_are_anonymous_for_a_while() {
    let settings = of_variables(&[]).unwrap();
    let tokens = Tokens::find(&settings, &crate::client::http(&settings).unwrap());
    let tokens = tokens.unwrap().unwrap();
    let token = |text| Token { text: Secret::new(text), ends: SystemTime::now() + 2 * MARGIN };
    tokens.state.lock().await.token = Some(token("new"));
    tokens.forget(&Secret::new("old")).await;
    assert_eq!(tokens.get().await.unwrap(), Some(Secret::new("new")));
    tokens.forget(&Secret::new("new")).await;
    assert!(tokens.state.lock().await.token.is_none());
    for (age, is_kept) in [(NOBODY_FOR / 2, true), (NOBODY_FOR * 2, false)] {
        tokens.state.lock().await.chosen = Some(Err(SystemTime::now() - age));
        tokens.look_again().await;
        assert_eq!(tokens.state.lock().await.chosen.is_some(), is_kept);
    }
}

#[tokio::test]
async fn a_managed_identity_that_does_not_respond_now_is_not_taken_for_missing() {
    const LATER: &str = r#"later: {"access_token":"one","expires_in":3600}"#;
    const TOKEN: &str = r#"{"access_token":"two","expires_in":3600}"#;
    let (tokens, _) = service(&[LATER]);
    assert_eq!(got(&tokens).await.as_deref(), Some("one"));
    // While the service is updated; too many requests; the connection breaks off.
    let (tokens, _) = service(&["410", "404", "429", "500", "", TOKEN]);
    for n in 0..5 {
        let failed = tokens.get().await.expect_err("no token");
        assert_eq!(failed.kind(), ErrorKind::Transient, "{n}: {failed}");
        let error = failed.into_error("read", &"x", 1);
        assert_eq!(error.code(), Code::Unavailable, "{n}: {error:#}");
    }
    assert_eq!(got(&tokens).await.as_deref(), Some("two"));
    // The settings are wrong: that does not pass.
    let (tokens, _) = service(&["400"]);
    let failed = tokens.get().await.expect_err("no such identity");
    assert_eq!(failed.kind(), ErrorKind::Permanent, "{failed}");
    // An identity that is named does not count as missing.
    let url = "http://127.0.0.1:1";
    let tokens = find(&[("AZURE_POD_IDENTITY_AUTHORITY_HOST", url)], url, NO_AZ);
    let failed = tokens.get().await.expect_err("nobody listens");
    assert_eq!(failed.kind(), ErrorKind::Transient, "{failed}");
}

#[tokio::test]
async fn az_login_is_tried_where_the_metadata_service_refuses() {
    let directory = tempfile::tempdir().unwrap();
    let json = r#"{"accessToken":"from az","expires_on":4000000000}"#;
    let az = write_az(directory.path(), &format!("echo '{json}'"));
    // Other clouds' services say this, and Azure's where the identity is not this machine's.
    for statuses in [&["400"], &["401"], &["403"], &["404"], &[""]] {
        for name in [None, Some("AZURE_CLIENT_ID"), Some("AZURE_POD_IDENTITY_AUTHORITY_HOST")] {
            let (url, count) = serve(statuses);
            let variables = name.map(|name| (name, &*url));
            let tokens = find(variables.as_slice(), &url, &az);
            let text = format!("{statuses:?} {name:?}");
            assert_eq!(got(&tokens).await.as_deref(), Some("from az"), "{text}");
            assert_eq!(count.load(Ordering::SeqCst), 1, "{text}");
        }
    }
    // There is an identity, which may have other permissions than the signed-in user.
    for statuses in [&["410"], &["429"], &["500"]] {
        let tokens = find(&[], &serve(statuses).0, &az);
        let failed = tokens.get().await.expect_err("a token");
        assert_eq!(failed.kind(), ErrorKind::Transient, "{statuses:?}: {failed}");
    }
}

#[tokio::test]
async fn a_default_identity_that_had_a_token_is_not_gone_at_once() {
    const ONE: &str = r#"{"access_token":"one","expires_in":100}"#;
    const TWO: &str = r#"{"access_token":"two","expires_in":3600}"#;
    let (url, count) = serve(&[ONE, "404", "404", "", TWO]);
    let tokens = find(&[], &url, NO_AZ);
    assert_eq!(got(&tokens).await.as_deref(), Some("one"));
    wait_for_the_pause(&tokens).await;
    assert_eq!(got(&tokens).await.as_deref(), Some("one"), "the old one still does");
    tokens.forget(&Secret::new("one")).await;
    for n in 2..4 {
        assert_eq!(count.load(Ordering::SeqCst), n);
        let failed = tokens.get().await.expect_err("no token");
        assert_eq!(failed.kind(), ErrorKind::Transient, "{n}: {failed}");
    }
    assert_eq!(got(&tokens).await.as_deref(), Some("two"));
}

#[tokio::test]
async fn waiters_for_a_failing_search_do_not_repeat_it() {
    let (url, count) = serve(&["404"; 8]);
    let tokens = find(&[("AZURE_CLIENT_ID", "me")], &url, NO_AZ);
    let get = || tokens.get();
    let (a, b, c, d) = tokio::join!(get(), get(), get(), get());
    for outcome in [a, b, c, d] {
        let failed = outcome.expect_err("no token");
        assert_eq!(failed.kind(), ErrorKind::Transient, "{failed}");
    }
    // The others arrived after the first search had begun: one of them repeats it.
    assert_eq!(count.load(Ordering::SeqCst), 2);
    tokens.get().await.expect_err("no token");
    assert_eq!(count.load(Ordering::SeqCst), 3, "later it is looked for again");
}

#[tokio::test]
async fn az_ends_with_the_request_that_waits_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let pids = directory.path().join("pids");
    // Like the real one: a shell that waits for its child.
    let script = format!("sleep 60 &\necho $$ $! > '{}'\nwait", pids.display());
    let az = write_az(directory.path(), &script);
    let started = async {
        loop {
            match std::fs::read_to_string(&pids) {
                Ok(text) if text.ends_with('\n') => break text,
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let pids = tokio::select! {
        outcome = cli(&az, None) => panic!("it ended: {}", outcome.is_ok()),
        pids = tokio::time::timeout(Duration::from_secs(20), started) => pids.expect("it starts"),
    };
    let (shell, child) = pids.trim().split_once(' ').unwrap();
    let shell = format!("/proc/{shell}");
    assert!(!Path::new(&shell).exists(), "it still runs, or nobody has waited for it");
    // Another process waits for this one, at some time or never.
    let runs = || {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    let killed = Instant::now();
    while runs() {
        assert!(killed.elapsed() < Duration::from_secs(20), "its child still runs");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn fuzz_tokens() {
    let words = [
        "{\"access_token\": \"t\", \"expires_in\": 3600}",
        "{\"accessToken\": \"t\", \"expires_on\": \"18446744073709551615\"}",
        "{\"access_token\":",
        "\"expires_on\":",
        "18446744073709551615",
        "\"",
        ",",
        "}",
        "null",
    ];
    tf_plugin_fuzz::fuzz!(words, |bytes| {
        if let Some(token) = token_of(bytes) {
            assert!(!token.text.expose().is_empty());
        }
    });
}
