//! Where secrets go: the cells of the table in `CONFIGURATION.md`.

use s3_server::Options;
use tf_plugin_s3_tests::Store;
use tf_plugin_s3_tests::fake::{Asked, Fake};
use tf_plugin_s3_tests::probe::{Probe, is_child, probe};
use tf_plugin_s3_tests::this_test;

const SECRET: &str = "planted/secret+key=";
const TOKEN: &str = "planted/session+token=";

/// A store that refuses all requests, and writes all of each into its error as a gateway might, encoded and not.
fn echo() -> Fake {
    Fake::start(|asked| {
        let headers: Vec<_> =
            asked.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let text = format!("{} {} {SECRET}", asked.line, headers.join(" "));
        let encoded = text.replace('/', "%2F").replace('+', "%2b").replace('=', "%253D");
        let json = text.replace('/', "\\/").replace('+', "\\u002b");
        let message = format!("{TOKEN} {text} {encoded} {json}").replace('&', "&amp;");
        Some((403, format!("<Error><Code>AccessDenied</Code><Message>{message}</Message></Error>")))
    })
}

/// Reads and writes at this endpoint with keys and these variables, and logs all that there is.
fn try_all(test: &str, endpoint: &str, change: &[(&str, Option<&str>)]) -> Vec<Probe> {
    let store = Store::hidden("secrets", Options { fast: true, threads: 1, ..Options::default() });
    let uri = store.uri("k");
    let mut all = vec![
        ("AWS_ENDPOINT_URL", Some(endpoint)),
        ("AWS_ACCESS_KEY_ID", Some("AKID")),
        ("AWS_SECRET_ACCESS_KEY", Some(SECRET)),
        ("AWS_SESSION_TOKEN", Some(TOKEN)),
        ("TF_CPP_MAX_VLOG_LEVEL", Some("5")),
    ];
    all.extend_from_slice(change);
    ["", "all:"].map(|how| probe(test, &format!("{how}{uri}"), &store, &all)).into()
}

fn everything(asked: &[Asked]) -> String {
    format!("{asked:?}")
}

#[test]
fn the_secret_key_stays_here_and_the_token_goes_to_the_store() {
    if is_child() {
        return;
    }
    let store = echo();
    let all = try_all(this_test!(), &store.url(), &[]);
    let asked = store.asked();
    assert!(asked.len() >= 2, "{asked:?}");
    for request in &asked {
        assert_eq!(request.header("x-amz-security-token"), Some(TOKEN), "{request:?}");
    }
    assert!(!everything(&asked).contains("planted/secret"), "{asked:?}");
    // What the store echoes is in no error and in no log.
    for probe in all {
        let text = format!("{probe:?}");
        assert!(text.contains("PermissionDenied"), "{text}");
        assert!(!text.contains("planted"), "{text}");
    }
}

#[test]
fn what_is_for_this_machine_goes_to_no_proxy_elsewhere() {
    if is_child() {
        return;
    }
    let store = echo();
    // No such machine: a request that is sent there gets no response.
    let proxy = Some("http://192.0.2.1:9");
    let change = [
        ("HTTP_PROXY", proxy),
        ("http_proxy", proxy),
        ("ALL_PROXY", proxy),
        ("TF_S3_RETRY_TIMEOUT_MS", Some("0")),
    ];
    for probe in try_all(this_test!(), &store.url(), &change) {
        let _ = probe.error("PermissionDenied");
    }
    assert!(store.asked().len() >= 2);
}

/// The token of a pod is a secret of its own, and STS may be on this machine.
#[test]
fn an_identity_goes_to_its_service_only() {
    if is_child() {
        return;
    }
    let sts = Fake::start(|asked| {
        let text = format!("{} {}", asked.line, asked.body).replace('&', "&amp;");
        Some((
            403,
            format!(
                "<ErrorResponse><Error><Code>AccessDenied</Code><Message>{text}</Message></Error></ErrorResponse>"
            ),
        ))
    });
    let (url, store) = (sts.url(), echo());
    let file = std::env::temp_dir().join(format!("s3-jwt-{}", std::process::id()));
    std::fs::write(&file, "planted.jwt-of.pod").unwrap();
    let proxy = Some("http://192.0.2.1:9");
    let change = [
        ("AWS_ACCESS_KEY_ID", None),
        ("AWS_SECRET_ACCESS_KEY", None),
        ("AWS_SESSION_TOKEN", None),
        ("AWS_ROLE_ARN", Some("arn:aws:iam::1:role/r")),
        ("AWS_ENDPOINT_URL_STS", Some(&*url)),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", file.to_str()),
        ("HTTP_PROXY", proxy),
        ("http_proxy", proxy),
    ];
    let all = try_all(this_test!(), &store.url(), &change);
    std::fs::remove_file(&file).unwrap();
    assert!(everything(&sts.asked()).contains("planted.jwt-of.pod"), "{:?}", sts.asked());
    assert_eq!(store.asked().len(), 0);
    for probe in all {
        let _ = probe.error("Unauthenticated");
        assert!(!format!("{probe:?}").contains("planted"), "{probe:?}");
    }
}

/// The password of a container's agent is sent to this machine, or with TLS.
#[test]
fn a_container_token_goes_to_no_other_machine_in_the_clear() {
    if is_child() {
        return;
    }
    let store = echo();
    let change = [
        ("AWS_ACCESS_KEY_ID", None),
        ("AWS_SECRET_ACCESS_KEY", None),
        ("AWS_SESSION_TOKEN", None),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", Some("http://192.0.2.1/keys")),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", Some("planted-container-token")),
    ];
    for probe in try_all(this_test!(), &store.url(), &change) {
        let text = probe.error("Unauthenticated");
        assert!(text.contains("AWS_CONTAINER_CREDENTIALS_FULL_URI: "), "{text}");
        assert!(text.contains("allowed IP address") && !text.contains("planted"), "{text}");
    }
    // Here it reaches its service, which echoes it.
    let agent = Fake::start(|asked| {
        let token = asked.header("authorization").unwrap_or_default();
        Some((403, format!("{{\"code\":\"Refused\",\"message\":\"{token} is not valid\"}}")))
    });
    let url = format!("{}/keys", agent.url());
    let proxy = Some("http://192.0.2.1:9");
    let change = [
        change[0],
        change[1],
        change[2],
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", Some(&*url)),
        change[4],
        ("HTTP_PROXY", proxy),
    ];
    for probe in try_all(this_test!(), &store.url(), &change) {
        let _ = probe.error("Unauthenticated");
        assert!(!format!("{probe:?}").contains("planted"), "{probe:?}");
    }
    let asked = agent.asked();
    assert_eq!(asked[0].header("authorization"), Some("planted-container-token"), "{asked:?}");
    assert_eq!(store.asked().len(), 0);
}
