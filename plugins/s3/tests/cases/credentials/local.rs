//! Credentials from the environment, profiles and processes.

use super::{Home, NO_KEYS, json, read, store, want_token};
use std::time::Duration;
use tf_plugin_s3_tests::fake::Fake;
use tf_plugin_s3_tests::probe::{is_child, probe};
use tf_plugin_s3_tests::this_test;

#[test]
fn environment() {
    if is_child() {
        return;
    }
    let store = store();
    let keys = [
        ("AWS_ACCESS_KEY_ID", Some(store.access_key())),
        ("AWS_SECRET_ACCESS_KEY", Some(store.secret_key())),
    ];
    assert_eq!(read(this_test!(), &store, &keys).content(), "content");
    want_token(&store, "T");
    let token = [keys[0], keys[1], ("AWS_SESSION_TOKEN", Some("T"))];
    assert_eq!(read(this_test!(), &store, &token).content(), "content");
    let half = read(this_test!(), &store, &keys[..1]);
    assert!(half.error("Unauthenticated").contains("AWS_SECRET_ACCESS_KEY is not"), "{half:?}");
}

#[test]
fn none() {
    if is_child() {
        return;
    }
    let store = store();
    let nothing = read(this_test!(), &store, &[]);
    let text = nothing.error("Unauthenticated");
    for part in [
        &store.uri("k"),
        "no AWS credentials",
        "environment: AWS_ACCESS_KEY_ID is not set",
        "profile `default`: not in ~/.aws/config and not in ~/.aws/credentials",
        "web identity: AWS_WEB_IDENTITY_TOKEN_FILE is not set",
        "container: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or AWS_CONTAINER_CREDENTIALS_FULL_URI is not set",
        "EC2 instance: AWS_EC2_METADATA_DISABLED is set",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(store.log().is_empty(), "nothing is asked without credentials");
}

#[test]
fn a_silent_metadata_service_costs_two_seconds_once() {
    if is_child() {
        return;
    }
    let store = store();
    let silent = Fake::start(|_| None);
    let change = [
        NO_KEYS[0],
        NO_KEYS[1],
        ("AWS_EC2_METADATA_DISABLED", None),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", Some(&*silent.url())),
    ]
    .map(|(name, value)| (name, value.map(str::to_owned)));
    let change: Vec<_> = change.iter().map(|(name, value)| (*name, value.as_deref())).collect();
    let uri = store.uri("k");
    let name = this_test!();
    let once = probe(name, &uri, &store, &change);
    assert!(once.error("Unauthenticated").contains("EC2 instance: "), "{once:?}");
    assert!(once.took < Duration::from_secs(3), "{once:?}");
    let thrice = probe(name, &format!("{uri} {uri} {uri}"), &store, &change);
    assert!(thrice.error("Unauthenticated").contains("did not respond a moment ago"), "{thrice:?}");
    assert!(thrice.took < Duration::from_secs(3), "{thrice:?}");
}

#[test]
fn profiles() {
    if is_child() {
        return;
    }
    let (store, home) = (store(), Home::new());
    want_token(&store, "P");
    let keys = format!(
        "aws_access_key_id = {}\naws_secret_access_key = {}\naws_session_token = P\n",
        store.access_key(),
        store.secret_key()
    );
    home.write(
        ".aws/credentials",
        &format!("[default]\n{keys}[other]\naws_access_key_id = x\naws_secret_access_key = y\n"),
    );
    home.write(".aws/config", "[profile bare]\nregion = us-east-1\n");
    let at_home = ("HOME", Some(home.path()));
    assert_eq!(read(this_test!(), &store, &[at_home]).content(), "content");
    let other = read(this_test!(), &store, &[at_home, ("AWS_PROFILE", Some("other"))]);
    let text = other.error("PermissionDenied");
    assert!(
        text.contains("InvalidAccessKeyId") && text.contains("does not know the access key"),
        "{text}"
    );
    let missing = read(this_test!(), &store, &[at_home, ("AWS_PROFILE", Some("missing"))]);
    let text = missing.error("Unauthenticated");
    assert!(
        text.ends_with("profile `missing`: not in ~/.aws/config and not in ~/.aws/credentials"),
        "{text}"
    );
    // A profile for another purpose than credentials is not a mistake.
    let bare = read(this_test!(), &store, &[at_home, ("AWS_PROFILE", Some("bare"))]);
    let text = bare.error("Unauthenticated");
    assert!(text.contains("profile `bare`: it has no credentials; web identity: "), "{text}");
}

#[test]
fn a_missing_profile_is_no_reason_to_use_others() {
    if is_child() {
        return;
    }
    let (store, home) = (store(), Home::new());
    // No file at all: the AWS SDK would continue with the next source.
    let fake_keys = json(&store, "I");
    let container = Fake::start(move |_| Some((200, fake_keys.clone())));
    let url = container.url();
    let change = [
        ("HOME", Some(home.path())),
        ("AWS_PROFILE", Some("missing")),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", Some(url.as_str())),
    ];
    let answer = read(this_test!(), &store, &change);
    assert!(answer.error("Unauthenticated").contains("profile `missing`"), "{answer:?}");
    assert!(container.asked().is_empty());
}

#[test]
fn a_bucket_has_a_profile_of_its_own() {
    if is_child() {
        return;
    }
    let (store, home) = (store(), Home::new());
    let keys = format!(
        "[mine]\naws_access_key_id = {}\naws_secret_access_key = {}\n",
        store.access_key(),
        store.secret_key()
    );
    home.write(".aws/credentials", &keys);
    let file =
        home.write("s3.toml", &format!("[bucket.\"{}\"]\nprofile = \"mine\"\n", store.bucket()));
    let answer = read(
        this_test!(),
        &store,
        &[
            ("HOME", Some(home.path())),
            ("TF_S3_CONFIG", Some(&file)),
            // They would be refused.
            ("AWS_ACCESS_KEY_ID", Some("wrong")),
            ("AWS_SECRET_ACCESS_KEY", Some("wrong")),
        ],
    );
    assert_eq!(answer.content(), "content");
}

#[test]
fn a_process() {
    if is_child() {
        return;
    }
    let (store, home) = (store(), Home::new());
    want_token(&store, "C");
    let keys = home.write("keys.json", &json(&store, "C"));
    home.write(".aws/config", &format!("[default]\ncredential_process = /bin/cat {keys}\n"));
    let at_home = ("HOME", Some(home.path()));
    assert_eq!(
        read(this_test!(), &store, &[at_home, ("PATH", Some("/bin:/usr/bin"))]).content(),
        "content"
    );
    home.write(".aws/config", "[default]\ncredential_process = /bin/false\n");
    let failed = read(this_test!(), &store, &[at_home, ("PATH", Some("/bin:/usr/bin"))]);
    assert!(failed.error("Unauthenticated").contains("profile `default`: "), "{failed:?}");
}

#[test]
fn a_process_that_hangs_is_started_once() {
    if is_child() {
        return;
    }
    let (store, home) = (store(), Home::new());
    let runs = home.write("runs", "");
    let script = home.write("hang.sh", &format!("echo run >> {runs}\nexec sleep 40\n"));
    home.write(".aws/config", &format!("[default]\ncredential_process = /bin/sh {script}\n"));
    let change = [("HOME", Some(home.path())), ("PATH", Some("/bin:/usr/bin"))];
    let failed = read(this_test!(), &store, &change);
    let text = failed.error("Unauthenticated");
    assert!(text.contains("profile `default`: no result in 30 s"), "{text}");
    assert_eq!(std::fs::read_to_string(runs).unwrap(), "run\n");
}
