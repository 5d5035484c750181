//! Credentials that a store refuses are loaded again, and the request is repeated, within the operation.

use super::services::{metadata, sts_of};
use super::{Home, LATER, NO_KEYS, store};
use s3_server::{Credentials, Fault, Reply, What, When};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tf_plugin_s3_tests::Store;
use tf_plugin_s3_tests::fake::Fake;
use tf_plugin_s3_tests::probe::{is_child, probe};
use tf_plugin_s3_tests::this_test;

fn old() -> Credentials {
    Credentials::new("OLD", "old").session_token("O")
}

fn new() -> Credentials {
    Credentials::new("NEW", "new").session_token("N")
}

/// What the sources give out now: key, secret, token.
type Given = Arc<Mutex<[&'static str; 3]>>;

fn json(given: &Given) -> String {
    let [key, secret, token] = *given.lock().unwrap();
    format!(
        "{{\"Code\":\"Success\",\"Version\":1,\"AccessKeyId\":\"{key}\",\"SecretAccessKey\":\"{secret}\",\"Token\":\"{token}\",\"SessionToken\":\"{token}\",\"Expiration\":\"{LATER}\"}}"
    )
}

/// A source that gives out other credentials from the second read on, by which time the store accepts no others. `write`
/// puts them where a file has them.
fn turned(store: &Store, write: impl Fn(&Given) + Send + Sync + 'static) -> Given {
    store.set_credentials([old()]);
    let given: Given = Arc::new(Mutex::new(["OLD", "old", "O"]));
    write(&given);
    let shared = Arc::clone(&given);
    let turn = What::run(move |store, _| {
        *shared.lock().unwrap() = ["NEW", "new", "N"];
        write(&shared);
        store.set_credentials([old().expired(), new()]);
    });
    store.inject(Fault::new(When::Nth(2), turn).operation("GetObject"));
    given
}

/// Reads twice with these variables, and the second time with new credentials.
fn reads_on(test: &str, store: &Store, change: &[(&str, Option<&str>)]) {
    let uri = store.uri("k");
    let all = [&NO_KEYS[..], change].concat();
    assert_eq!(probe(test, &format!("{uri} {uri}"), store, &all).content(), "content");
    assert_eq!(store.counts()["GetObject"], 3, "{:?}", store.log());
}

#[test]
fn those_of_files_and_processes() {
    if is_child() {
        return;
    }
    let name = this_test!();
    let (store, home) = (self::store(), Arc::new(Home::new()));
    let files = Arc::clone(&home);
    turned(&store, move |given| {
        let [key, secret, token] = *given.lock().unwrap();
        files.write(
            ".aws/credentials",
            &format!(
                "[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\naws_session_token = {token}\n"
            ),
        );
    });
    reads_on(name, &store, &[("HOME", Some(home.path()))]);

    let (store, home) = (self::store(), Arc::new(Home::new()));
    let files = Arc::clone(&home);
    turned(&store, move |given| drop(files.write("keys.json", &json(given))));
    let keys = home.write("none", "").replace("none", "keys.json");
    home.write(".aws/config", &format!("[default]\ncredential_process = /bin/cat {keys}\n"));
    reads_on(name, &store, &[("HOME", Some(home.path())), ("PATH", Some("/bin:/usr/bin"))]);
}

#[test]
fn those_of_services() {
    if is_child() {
        return;
    }
    let name = this_test!();
    let store = self::store();
    let given = turned(&store, |_| {});
    let service = Fake::start(move |_| Some((200, json(&given))));
    let url = format!("{}/keys", service.url());
    reads_on(name, &store, &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", Some(&url))]);

    let store = self::store();
    let given = turned(&store, |_| {});
    let service = Fake::start(move |asked| metadata(asked, &json(&given)));
    let on = [
        ("AWS_EC2_METADATA_DISABLED", None),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", Some(str::to_owned(&*service.url()))),
    ];
    let on: Vec<_> = on.iter().map(|(name, value)| (*name, value.as_deref())).collect();
    reads_on(name, &store, &on);

    let (store, home) = (self::store(), Home::new());
    let given = turned(&store, |_| {});
    let service = Fake::start(move |_| {
        let [key, secret, token] = *given.lock().unwrap();
        Some((200, sts_of("AssumeRoleWithWebIdentity", (key, secret), token)))
    });
    let (url, token) = (service.url(), home.write("token", "jwt-of-pod"));
    let pod = [
        ("AWS_ROLE_ARN", Some("arn:aws:iam::1:role/r")),
        ("AWS_ENDPOINT_URL_STS", Some(url.as_str())),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", Some(token.as_str())),
    ];
    reads_on(name, &store, &pod);
}

/// Returns a service of credentials that never expire, and the variable that leads to it.
fn steady(store: &Store) -> (Fake, String) {
    let [key, secret] = [store.access_key(), store.secret_key()].map(str::to_owned);
    let keys = format!(
        "{{\"AccessKeyId\":\"{key}\",\"SecretAccessKey\":\"{secret}\",\"Token\":\"T\",\"Expiration\":\"{LATER}\"}}"
    );
    store.set_credentials([Credentials::new(&*key, &*secret).session_token("T")]);
    let service = Fake::start(move |_| Some((200, keys.clone())));
    let url = format!("{}/keys", service.url());
    (service, url)
}

#[test]
fn in_every_kind_of_operation() {
    if is_child() {
        return;
    }
    let store = self::store();
    let (service, url) = steady(&store);
    let operations = [
        "GetObject",
        "ListObjectsV2",
        "PutObject",
        "CreateMultipartUpload",
        "UploadPart",
        "UploadPartCopy",
        "CompleteMultipartUpload",
        "CopyObject",
        "DeleteObject",
        "DeleteObjects",
    ];
    for operation in operations {
        // The first request loads them.
        let nth = if operation == "GetObject" { 2 } else { 1 };
        let expired = What::Status(Reply::new(400, "ExpiredToken"));
        store.inject(Fault::new(When::Nth(nth), expired).operation(operation));
    }
    let mut change = NO_KEYS.to_vec();
    change.push(("AWS_CONTAINER_CREDENTIALS_FULL_URI", Some(&url)));
    let uri = store.uri("k");
    let done = probe(this_test!(), &format!("{uri} all:{uri}"), &store, &change);
    assert_eq!(done.content().len(), (20 << 20) + 1);
    let counts = store.counts();
    for operation in operations {
        assert!(counts.get(operation).is_some_and(|count| *count >= 2), "{operation}: {counts:?}");
    }
    assert!(service.asked().len() > operations.len() / 2, "{}", service.asked().len());
}

/// A HEAD has no body that says why it is refused.
#[test]
fn after_a_refusal_without_a_reason() {
    if is_child() {
        return;
    }
    for status in [400, 401, 403] {
        let store = self::store();
        let (service, url) = steady(&store);
        let refused = What::Status(Reply::new(status, "").no_body());
        store.inject(Fault::new(When::Nth(1), refused).operation("HeadObject"));
        let mut change = NO_KEYS.to_vec();
        change.push(("AWS_CONTAINER_CREDENTIALS_FULL_URI", Some(&url)));
        let uri = store.uri("k");
        let done = probe(this_test!(), &format!("{uri} append:{uri}"), &store, &change);
        assert_eq!(done.content(), "content!", "{status}");
        assert_eq!(service.asked().len(), 2, "{status}");
    }
}

#[test]
fn but_not_again_and_again() {
    if is_child() {
        return;
    }
    let store = self::store();
    let (service, url) = steady(&store);
    let mut change = NO_KEYS.to_vec();
    change.push(("AWS_CONTAINER_CREDENTIALS_FULL_URI", Some(&url)));
    let uri = store.uri("k");
    store.inject(Fault::new(When::All, What::Status(Reply::new(400, "ExpiredToken"))));
    let expired = probe(this_test!(), &format!("{uri} {uri} {uri}"), &store, &change);
    assert!(expired.error("Unauthenticated").contains("have expired; renew them"), "{expired:?}");
    // The first read loads them; each further one does so once.
    assert_eq!((service.asked().len(), store.log().len()), (3, 5));
    // Without a reason they are loaded again once: the source has no others.
    store.clear_faults();
    store.inject(Fault::new(When::All, What::Status(Reply::new(403, "").no_body())));
    let before = service.asked().len();
    let denied = probe(this_test!(), &[&*uri; 20].join(" "), &store, &change);
    assert!(denied.error("PermissionDenied").contains("HTTP 403"), "{denied:?}");
    assert!(service.asked().len() - before <= 2, "{}", service.asked().len() - before);
}

/// STS has new keys for each request, and the store refuses all of them.
#[test]
fn nor_without_end_where_each_load_has_new_keys() {
    if is_child() {
        return;
    }
    let store = self::store();
    let loads = AtomicU32::new(0);
    let service = Fake::start(move |_| {
        let n = loads.fetch_add(1, Ordering::Relaxed);
        Some((200, json(&Arc::new(Mutex::new([&*format!("KEY{n}").leak(), "secret", "T"])))))
    });
    let url = format!("{}/keys", service.url());
    let mut change = NO_KEYS.to_vec();
    change.push(("AWS_CONTAINER_CREDENTIALS_FULL_URI", Some(&url)));
    let uri = store.uri("k");
    for (code, loads, requests) in [("InvalidAccessKeyId", 4, 8), ("ExpiredToken", 4, 8)] {
        store.clear_faults();
        store.inject(Fault::new(When::All, What::Status(Reply::new(403, code))));
        let before = (service.asked().len(), store.log().len());
        let refused = probe(this_test!(), &format!("{uri} {uri} {uri}"), &store, &change);
        assert!(format!("{refused:?}").contains(code), "{refused:?}");
        // One renewal for each read, also where the first read loads them.
        let after = (service.asked().len() - before.0, store.log().len() - before.1);
        assert!(after.0 <= loads && after.1 <= requests, "{code}: {after:?}");
    }
}
