//! Services of credentials whose clocks differ from this machine's.

use super::services::sts_until;
use super::{Home, NO_KEYS, store, want_token};
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use std::time::SystemTime;
use tf_plugin_s3_tests::fake::{Asked, Fake};
use tf_plugin_s3_tests::probe::{is_child, probe};
use tf_plugin_s3_tests::{Store, this_test};

const HOUR: i64 = 3600;

/// Returns the time of a machine that is ahead by so many seconds.
fn now(ahead: i64) -> DateTime {
    DateTime::from_secs(DateTime::from(SystemTime::now()).secs() + ahead)
}

/// Returns when a request was signed, by the clock of who signed it.
fn signed_at(asked: &Asked) -> Option<i64> {
    let date = asked.header("x-amz-date")?;
    let (d, t) = date.trim_end_matches('Z').split_once('T')?;
    let text =
        format!("{}-{}-{}T{}:{}:{}Z", &d[..4], &d[4..6], &d[6..], &t[..2], &t[2..4], &t[4..]);
    Some(DateTime::from_str(&text, Format::DateTime).ok()?.secs())
}

/// Starts STS with a clock that is ahead by so many seconds. Its keys are valid for an hour.
fn sts(store: &Store, ahead: i64) -> Fake {
    let keys = [store.access_key(), store.secret_key()].map(str::to_owned);
    let date = move || format!("date: {}", now(ahead).fmt(Format::HttpDate).unwrap());
    Fake::start_with(date, move |asked| {
        let is_late = |at: i64| at.abs_diff(now(ahead).secs()) > 300;
        if signed_at(asked).is_some_and(is_late) {
            let error = "<Error><Code>SignatureDoesNotMatch</Code><Message>Signature expired</Message></Error>";
            return Some((403, format!("<ErrorResponse>{error}</ErrorResponse>")));
        }
        let until = now(ahead + HOUR).fmt(Format::DateTime).unwrap();
        let action = if asked.body.contains("WebIdentity") {
            "AssumeRoleWithWebIdentity"
        } else {
            "AssumeRole"
        };
        Some((200, sts_until(action, (&keys[0], &keys[1]), "T", &until)))
    })
}

/// A machine whose clock is hours ahead of STS takes fresh keys for expired ones, and one whose clock is hours behind takes
/// expired ones for valid ones.
#[test]
fn the_time_of_sts_counts() {
    if is_child() {
        return;
    }
    let (store, home) = (store(), Home::new());
    want_token(&store, "T");
    home.write(
        ".aws/config",
        "[default]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\n[profile base]\naws_access_key_id = base-key\naws_secret_access_key = s\n",
    );
    let (uri, token) = (store.uri("k"), home.write("token", "jwt-of-pod"));
    for ahead in [-3 * HOUR, 3 * HOUR, 0] {
        let service = sts(&store, ahead);
        let url = service.url();
        let at_home = [("HOME", Some(home.path())), ("AWS_ENDPOINT_URL_STS", Some(url.as_str()))];
        let change = [&NO_KEYS[..], &at_home].concat();
        let signed = probe(this_test!(), &[&*uri; 3].join(" "), &store, &change);
        assert_eq!(signed.content(), "content", "{ahead}");
        // The first is refused for its time.
        let expected = if ahead == 0 { 1 } else { 2 };
        assert_eq!(service.asked().len(), expected, "{ahead}: {:?}", service.asked());
        let pod = [
            ("AWS_ROLE_ARN", Some("arn:aws:iam::1:role/r")),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", Some(token.as_str())),
            ("AWS_ENDPOINT_URL_STS", Some(url.as_str())),
        ];
        let change = [&NO_KEYS[..], &pod].concat();
        let unsigned = probe(this_test!(), &[&*uri; 3].join(" "), &store, &change);
        assert_eq!(unsigned.content(), "content", "{ahead}");
        assert_eq!(service.asked().len(), expected + 1, "{ahead}: {:?}", service.asked());
    }
}
