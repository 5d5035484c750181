//! Credentials from single sign-on.

use super::{Home, LATER, read, store, want_token};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tf_plugin_s3_tests::fake::Fake;
use tf_plugin_s3_tests::probe::is_child;
use tf_plugin_s3_tests::{Store, this_test};

/// The file of a token: its name is the SHA-1 of `corp`.
const TOKEN: &str = ".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json";

/// Returns a home with a profile of single sign-on.
fn home() -> Home {
    let home = Home::new();
    home.write(
        ".aws/config",
        "[default]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = r\n[sso-session corp]\nsso_region = us-east-1\nsso_start_url = https://d-1.awsapps.com/start\n",
    );
    home
}

/// Returns the response with the keys of the role.
fn keys(store: &Store) -> String {
    format!(
        "{{\"roleCredentials\":{{\"accessKeyId\":\"{}\",\"secretAccessKey\":\"{}\",\"sessionToken\":\"S\",\"expiration\":4070908800000}}}}",
        store.access_key(),
        store.secret_key()
    )
}

#[test]
fn single_sign_on() {
    if is_child() {
        return;
    }
    let (store, home) = (store(), home());
    want_token(&store, "S");
    let keys = keys(&store);
    let service = Fake::start(move |asked| {
        let known = asked.header("x-amz-sso_bearer_token") == Some("cached-token");
        Some(if known { (200, keys.clone()) } else { (401, "{}".into()) })
    });
    let url = service.url();
    let at_home = [("HOME", Some(home.path())), ("AWS_ENDPOINT_URL_SSO", Some(url.as_str()))];
    let without = read(this_test!(), &store, &at_home);
    assert!(without.error("Unauthenticated").contains("profile `default`: "), "{without:?}");
    home.write(
        TOKEN,
        &format!("{{\"accessToken\":\"cached-token\",\"expiresAt\":\"{LATER}\",\"region\":\"us-east-1\",\"startUrl\":\"https://d-1.awsapps.com/start\"}}"),
    );
    assert_eq!(read(this_test!(), &store, &at_home).content(), "content");
}

/// Two buckets need keys at once, and a token for renewals is valid once.
#[test]
fn a_token_is_renewed_once() {
    if is_child() {
        return;
    }
    let (store, home) = (store(), home());
    want_token(&store, "S");
    let other = format!("{}-other", store.bucket());
    store.create_bucket(&other);
    (*store).put(&other, "k", "other");
    let (keys, renewals) = (keys(&store), AtomicUsize::new(0));
    let service = Fake::start(move |asked| {
        if asked.line == "POST /token" {
            let n = renewals.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(300));
            let renewed =
                "{\"accessToken\":\"new-token\",\"refreshToken\":\"next\",\"expiresIn\":3600}";
            let used = "{\"error\":\"invalid_grant\"}";
            return Some(if n == 0 { (200, renewed.into()) } else { (400, used.into()) });
        }
        let known = asked.header("x-amz-sso_bearer_token") == Some("new-token");
        Some(if known { (200, keys.clone()) } else { (401, "{}".into()) })
    });
    home.write(
        TOKEN,
        &format!("{{\"accessToken\":\"old-token\",\"expiresAt\":\"2026-01-01T00:00:00Z\",\"clientId\":\"c\",\"clientSecret\":\"s\",\"registrationExpiresAt\":\"{LATER}\",\"refreshToken\":\"first\"}}"),
    );
    let url = service.url();
    let change = [
        super::NO_KEYS[0],
        super::NO_KEYS[1],
        ("HOME", Some(home.path())),
        ("AWS_ENDPOINT_URL_SSO", Some(url.as_str())),
        ("AWS_ENDPOINT_URL_SSO_OIDC", Some(url.as_str())),
    ];
    let uris = format!("both:{},s3://{other}/k", store.uri("k"));
    let both = tf_plugin_s3_tests::probe::probe(this_test!(), &uris, &store, &change);
    assert_eq!(both.content(), "contentother");
    let renewals = service.asked().iter().filter(|asked| asked.line == "POST /token").count();
    assert_eq!(renewals, 1, "{:?}", service.asked());
}
