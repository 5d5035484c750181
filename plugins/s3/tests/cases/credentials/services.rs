//! Credentials from services: STS, containers, instances.

use super::{Home, LATER, NO_KEYS, json, read, store, want_token};
use s3_server::{Credentials, Fault, Options, Reply, Shape, Tls, What, When};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tf_plugin_s3_tests::Store;
use tf_plugin_s3_tests::fake::{Asked, Fake};
use tf_plugin_s3_tests::probe::{is_child, probe};
use tf_plugin_s3_tests::this_test;

/// The response of STS.
fn sts(action: &str, store: &Store, token: &str) -> String {
    sts_of(action, (store.access_key(), store.secret_key()), token)
}

/// The same, with these keys.
pub(super) fn sts_of(action: &str, keys: (&str, &str), token: &str) -> String {
    sts_until(action, keys, token, LATER)
}

/// The same, with keys that end then.
pub(super) fn sts_until(
    action: &str,
    (key, secret): (&str, &str),
    token: &str,
    end: &str,
) -> String {
    format!(
        "<{action}Response><{action}Result><Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{token}</SessionToken><Expiration>{end}</Expiration></Credentials><AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/r/s</Arn><AssumedRoleId>x</AssumedRoleId></AssumedRoleUser></{action}Result></{action}Response>"
    )
}

#[test]
fn web_identity() {
    if is_child() {
        return;
    }
    let (store, home) = (store(), Home::new());
    want_token(&store, "W");
    let answer = sts("AssumeRoleWithWebIdentity", &store, "W");
    let service = Fake::start(move |asked| {
        let right = asked.body.contains("WebIdentityToken=jwt-of-pod")
            && asked.body.contains("RoleArn=arn");
        Some(if right { (200, answer.clone()) } else { (403, "<Error/>".into()) })
    });
    let url = service.url();
    let token = home.write("token", "jwt-of-pod");
    let role = ("AWS_ROLE_ARN", Some("arn:aws:iam::1:role/r"));
    let endpoint = ("AWS_ENDPOINT_URL_STS", Some(url.as_str()));
    let file = ("AWS_WEB_IDENTITY_TOKEN_FILE", Some(token.as_str()));
    assert_eq!(read(this_test!(), &store, &[role, endpoint, file]).content(), "content");
    let no_role = read(this_test!(), &store, &[endpoint, file]);
    assert!(no_role.error("Unauthenticated").ends_with("AWS_ROLE_ARN is not"), "{no_role:?}");
    let gone = ("AWS_WEB_IDENTITY_TOKEN_FILE", Some("/nonexistent/token"));
    let no_file = read(this_test!(), &store, &[role, endpoint, gone]);
    let text = no_file.error("Unauthenticated");
    assert!(
        text.contains("web identity: cannot read AWS_WEB_IDENTITY_TOKEN_FILE /nonexistent/token"),
        "{text}"
    );
    assert!(!text.contains("EC2"), "no other source is asked: {text}");
    let wrong = home.write("wrong", "planted-other-jwt");
    let refused = read(
        this_test!(),
        &store,
        &[role, endpoint, ("AWS_WEB_IDENTITY_TOKEN_FILE", Some(&wrong))],
    );
    let text = refused.error("Unauthenticated");
    assert!(text.contains("web identity: ") && !text.contains("planted"), "{text}");
}

#[test]
fn a_service_that_is_not_up_yet_is_waited_for() {
    if is_child() {
        return;
    }
    let (store, home) = (store(), Home::new());
    want_token(&store, "W");
    // The SDK makes three attempts for each of ours.
    let late = |answer: String| {
        let calls = AtomicUsize::new(0);
        Fake::start(move |_| match calls.fetch_add(1, Ordering::Relaxed) {
            0..8 => Some((0, String::new())),
            _ => Some((200, answer.clone())),
        })
    };
    let service = late(sts("AssumeRoleWithWebIdentity", &store, "W"));
    let (url, token) = (service.url(), home.write("token", "jwt-of-pod"));
    let pod = [
        ("AWS_ROLE_ARN", Some("arn:aws:iam::1:role/r")),
        ("AWS_ENDPOINT_URL_STS", Some(url.as_str())),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", Some(token.as_str())),
    ];
    assert_eq!(read(this_test!(), &store, &pod).content(), "content");
    let service = late(json(&store, "W"));
    let url = format!("{}/keys", service.url());
    let container = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", Some(url.as_str()))];
    assert_eq!(read(this_test!(), &store, &container).content(), "content");
    // But not for ever.
    let service = Fake::start(|_| Some((0, String::new())));
    let url = format!("{}/keys", service.url());
    let gone = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", Some(url.as_str())),
        ("TF_S3_MAX_ATTEMPTS", Some("2")),
    ];
    let gone = read(this_test!(), &store, &gone);
    let text = gone.error("Unauthenticated");
    assert!(text.contains(&store.uri("k")) && text.contains("container: "), "{text}");
    assert_eq!(service.asked().len(), 6);
}

#[test]
fn a_service_is_trusted_by_the_bundle() {
    if is_child() {
        return;
    }
    let (store, home) = (store(), Home::new());
    want_token(&store, "T");
    let service = Store::hidden("sts", Options { tls: Some(Tls::Valid), ..Options::default() });
    let answer = Reply::new(200, "").document(sts("AssumeRoleWithWebIdentity", &store, "T"));
    service.inject(Fault::new(When::All, What::Status(answer)));
    let ca = home.write("ca.pem", service.ca_pem().expect("an authority"));
    let (url, token) = (service.endpoint(), home.write("token", "jwt-of-pod"));
    let change = [
        ("AWS_ROLE_ARN", Some("arn:aws:iam::1:role/r")),
        ("AWS_ENDPOINT_URL_STS", Some(url.as_str())),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", Some(token.as_str())),
    ];
    let name = this_test!();
    let with =
        |more: &[(&'static str, Option<&str>)]| read(name, &store, &[&change, more].concat());
    assert_eq!(with(&[("AWS_CA_BUNDLE", Some(&ca))]).content(), "content");
    let bucket = format!("[bucket.\"{}\"]\nca_file = \"{ca}\"\n", store.bucket());
    let bucket = home.write("s3.toml", &bucket);
    assert_eq!(with(&[("TF_S3_CONFIG", Some(&bucket))]).content(), "content");
    // Credentials go only to a verified service, whatever certificate is accepted for the store.
    let before = service.log().len();
    for change in [&[][..], &[("TF_S3_VERIFY_TLS", Some("0"))]] {
        let unknown = with(change);
        assert!(unknown.error("Unauthenticated").contains("certificate"), "{unknown:?}");
    }
    assert_eq!(service.log().len(), before, "a token was sent to a stranger");
}

#[test]
fn an_assumed_role() {
    if is_child() {
        return;
    }
    let (store, home) = (store(), Home::new());
    want_token(&store, "R");
    let answer = sts("AssumeRole", &store, "R");
    let service = Fake::start(move |_| Some((200, answer.clone())));
    let url = service.url();
    home.write(
        ".aws/config",
        "[default]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\n[profile base]\naws_access_key_id = base-key\naws_secret_access_key = s\n",
    );
    let at_home = [("HOME", Some(home.path())), ("AWS_ENDPOINT_URL_STS", Some(url.as_str()))];
    assert_eq!(read(this_test!(), &store, &at_home).content(), "content");
    let asked = service.asked();
    assert!(
        asked[0].header("authorization").unwrap().contains("Credential=base-key/"),
        "{asked:?}"
    );
}

#[test]
fn a_role_whose_source_fails_is_not_replaced_by_another_source() {
    if is_child() {
        return;
    }
    let (store, home) = (store(), Home::new());
    let keys = json(&store, "C");
    let container = Fake::start(move |_| Some((200, keys.clone())));
    let url = format!("{}/keys", container.url());
    let change =
        [("HOME", Some(home.path())), ("AWS_CONTAINER_CREDENTIALS_FULL_URI", Some(url.as_str()))];
    for (source, reason) in [
        ("role_arn = arn:aws:iam::1:role/r\ncredential_source = ENVIRONMENT", "AWS_ACCESS_KEY_ID"),
        ("role_arn = arn:aws:iam::1:role/r\nsource_profile = default", "no credentials"),
        ("credential_source = environment", "AWS_ACCESS_KEY_ID"),
    ] {
        home.write(".aws/config", &format!("[default]\n{source}\n"));
        let failed = read(this_test!(), &store, &change);
        assert!(failed.error("Unauthenticated").contains(reason), "{source}: {failed:?}");
    }
    assert!(container.asked().is_empty(), "{:?}", container.asked());
    // STS repeats the token that signs.
    let sts = Fake::start(|asked| {
        let token = asked.header("x-amz-security-token").unwrap_or_default();
        Some((403, format!("<R><Error><Code>No</Code><Message>{token}</Message></Error></R>")))
    });
    home.write(
        ".aws/config",
        "[default]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\n[profile base]\naws_access_key_id = k\naws_secret_access_key = s\naws_session_token = planted-token\n",
    );
    let url = sts.url();
    let refused =
        read(this_test!(), &store, &[change[0], ("AWS_ENDPOINT_URL_STS", Some(url.as_str()))]);
    assert!(refused.error("Unauthenticated").contains("No: "), "{refused:?}");
    assert!(!format!("{refused:?}").contains("planted"), "{refused:?}");
}

#[test]
fn a_container() {
    if is_child() {
        return;
    }
    let (store, home) = (store(), Home::new());
    want_token(&store, "E");
    let keys = json(&store, "E");
    let service = Fake::start(move |asked| {
        let known = asked.header("authorization") == Some("pod-token");
        Some(if known { (200, keys.clone()) } else { (401, "{\"message\":\"no\"}".into()) })
    });
    let url = format!("{}/keys", service.url());
    let full = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", Some(url.as_str()));
    let token = ("AWS_CONTAINER_AUTHORIZATION_TOKEN", Some("pod-token"));
    assert_eq!(read(this_test!(), &store, &[full, token]).content(), "content");
    let file = home.write("token", "pod-token");
    let file = ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", Some(file.as_str()));
    assert_eq!(read(this_test!(), &store, &[full, file]).content(), "content");
    let refused = read(this_test!(), &store, &[full]);
    assert!(
        refused
            .error("Unauthenticated")
            .contains("container: AWS_CONTAINER_CREDENTIALS_FULL_URI: "),
        "{refused:?}"
    );
    let broken = ("AWS_CONTAINER_AUTHORIZATION_TOKEN", Some("planted\nsecret"));
    let unfit = read(this_test!(), &store, &[full, broken]);
    let text = unfit.error("Unauthenticated");
    assert!(
        text.contains("line break") && !text.contains("planted") && !unfit.log.contains("planted"),
        "{unfit:?}"
    );
}

/// The responses of IMDSv2.
pub(super) fn metadata(asked: &Asked, keys: &str) -> Option<(u16, String)> {
    let path = asked.line.split(' ').nth(1).unwrap_or_default();
    if asked.line.starts_with("PUT /latest/api/token") {
        return Some((200, "session".into()));
    }
    if asked.header("x-aws-ec2-metadata-token") != Some("session") {
        return Some((401, String::new()));
    }
    Some(match path {
        "/latest/meta-data/iam/security-credentials/" => (200, "role".into()),
        "/latest/meta-data/iam/security-credentials/role" => (200, keys.to_owned()),
        "/latest/meta-data/placement/region" => (200, "eu-north-1".into()),
        _ => (404, String::new()),
    })
}

#[test]
fn an_instance() {
    if is_child() {
        return;
    }
    let store = store();
    want_token(&store, "M");
    let keys = json(&store, "M");
    let service = Fake::start(move |asked| metadata(asked, &keys));
    let url = service.url();
    let on = [
        ("AWS_EC2_METADATA_DISABLED", None),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", Some(url.as_str())),
    ];
    assert_eq!(read(this_test!(), &store, &on).content(), "content");
    let roleless = Fake::start(|asked| {
        Some(if asked.line.starts_with("PUT") {
            (200, "session".into())
        } else {
            (404, String::new())
        })
    });
    let url = roleless.url();
    let on = [
        ("AWS_EC2_METADATA_DISABLED", None),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", Some(url.as_str())),
    ];
    let none = read(this_test!(), &store, &on);
    assert!(none.error("Unauthenticated").contains("EC2 instance: "), "{none:?}");
    assert!(none.error("Unauthenticated").contains("404"), "{none:?}");
    // A proxy has no business there.
    let proxied =
        [on[0], on[1], ("HTTP_PROXY", Some("http://127.0.0.1:9")), ("NO_PROXY", Some("127.0.0.2"))];
    let _ = read(this_test!(), &store, &proxied);
    assert!(roleless.asked().len() >= 4, "{:?}", roleless.asked());
}

#[test]
fn an_instance_whose_service_is_busy_is_waited_for() {
    if is_child() {
        return;
    }
    let store = store();
    want_token(&store, "M");
    let (keys, calls) = (json(&store, "M"), AtomicUsize::new(0));
    let busy = move |n: usize, asked: &Asked| match n {
        // For the token, for the role's name, for its keys.
        0 => Some((503, String::new())),
        2 => Some((429, String::new())),
        5 => Some((500, String::new())),
        _ => metadata(asked, &keys),
    };
    let service = Fake::start(move |asked| busy(calls.fetch_add(1, Ordering::Relaxed), asked));
    let url = service.url();
    let on = [
        ("AWS_EC2_METADATA_DISABLED", None),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", Some(url.as_str())),
    ];
    assert_eq!(read(this_test!(), &store, &on).content(), "content");
    assert_eq!(service.asked().len(), 9, "{:?}", service.asked());
    // Another service, which does not have that method.
    let other = Fake::start(|_| Some((501, String::new())));
    let url = other.url();
    let on = [on[0], ("AWS_EC2_METADATA_SERVICE_ENDPOINT", Some(url.as_str()))];
    let none = read(this_test!(), &store, &on);
    assert!(none.error("Unauthenticated").contains("EC2 instance: "), "{none:?}");
    assert_eq!(other.asked().len(), 1, "{:?}", other.asked());
}

/// Makes the store accept new credentials only, and a service give out expired ones so many times before.
fn renewing(store: &Store, times: usize) -> Fake {
    let expired = Credentials::new("OLD", "old").session_token("O").expired();
    let new = Credentials::new("NEW", "new").session_token("N");
    store.set_credentials([expired, new]);
    let calls = AtomicUsize::new(0);
    Fake::start(move |_| {
        let (key, secret, token) = if calls.fetch_add(1, Ordering::Relaxed) < times {
            ("OLD", "old", "O")
        } else {
            ("NEW", "new", "N")
        };
        Some((
            200,
            format!(
                "{{\"AccessKeyId\":\"{key}\",\"SecretAccessKey\":\"{secret}\",\"Token\":\"{token}\",\"Expiration\":\"{LATER}\"}}"
            ),
        ))
    })
}

#[test]
fn credentials_that_expire_are_renewed() {
    if is_child() {
        return;
    }
    let store = store();
    let service = renewing(&store, 1);
    let url = format!("{}/keys", service.url());
    let mut change = NO_KEYS.to_vec();
    change.push(("AWS_CONTAINER_CREDENTIALS_FULL_URI", Some(&url)));
    let uri = store.uri("k");
    let name = this_test!();
    // Just loaded: asking for newer ones at once would be in vain. A moment later they are renewed, once for all requests
    // that are under way.
    let first_byte_latency = Duration::from_millis(200);
    store.shape(Shape { first_byte_latency, ..Shape::default() });
    let answer = probe(name, &format!("{uri} later:{uri}"), &store, &change);
    assert_eq!(answer.content(), "content".repeat(8));
    assert_eq!(service.asked().len(), 2);
    // The refusal of a HEAD has no body, which would say why.
    let service = renewing(&store, 1);
    let url = format!("{}/keys", service.url());
    change.pop();
    change.push(("AWS_CONTAINER_CREDENTIALS_FULL_URI", Some(&url)));
    let answer = probe(name, &format!("{uri} append:{uri}"), &store, &change);
    assert_eq!(answer.content(), "content!");
    assert_eq!(service.asked().len(), 2);
}

#[test]
fn credentials_that_are_renewed_late_count_at_once() {
    if is_child() {
        return;
    }
    let store = store();
    let service = renewing(&store, 2);
    let url = format!("{}/keys", service.url());
    let mut change = NO_KEYS.to_vec();
    change.push(("AWS_CONTAINER_CREDENTIALS_FULL_URI", Some(&url)));
    let uri = store.uri("k");
    // The second look finds those that were refused. The third is made by the operation in which they are refused again.
    let uris = format!("{uri} later:{uri} later:{uri}");
    assert_eq!(probe(this_test!(), &uris, &store, &change).content(), "content".repeat(8));
    assert_eq!(service.asked().len(), 3);
}

#[test]
fn expired_credentials_are_told_from_wrong_ones() {
    if is_child() {
        return;
    }
    let store = store();
    store.set_credentials([Credentials::new(store.access_key(), store.secret_key()).expired()]);
    let keys = [
        ("AWS_ACCESS_KEY_ID", Some(store.access_key())),
        ("AWS_SECRET_ACCESS_KEY", Some(store.secret_key())),
    ];
    let name = this_test!();
    let expired = read(name, &store, &keys);
    let text = expired.error("Unauthenticated");
    assert!(text.contains("ExpiredToken") && text.contains("have expired; renew them"), "{text}");
    store.set_credentials([Credentials::new(store.access_key(), "another")]);
    let wrong = read(name, &store, &keys);
    let text = wrong.error("PermissionDenied");
    assert!(
        text.contains("SignatureDoesNotMatch") && text.contains("look at the secret access key"),
        "{text}"
    );
}

#[test]
fn anonymous() {
    if is_child() {
        return;
    }
    let store = store();
    let change = [("AWS_NO_SIGN_REQUEST", Some("YES"))];
    let refused = read(this_test!(), &store, &change);
    assert!(refused.error("PermissionDenied").contains("AccessDenied"), "{refused:?}");
    store.set_public(store.bucket(), true);
    assert_eq!(read(this_test!(), &store, &change).content(), "content");
    assert!(store.log().iter().all(|request| !request.signed));
}
