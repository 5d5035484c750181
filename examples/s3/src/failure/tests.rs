//! Failures as they are told.

use super::*;

fn error(status: u16, code: &str) -> Error {
    let body = format!("<Error><Code>{code}</Code><Message>Text &amp; more</Message></Error>");
    let header = |name: &str| (name == "x-amz-request-id").then_some("ID1");
    let answer = Answer::new(status, header, body.as_bytes());
    of_answer("GetObject", &"s3://bucket/a/b", &answer, 3)
}

#[test]
fn answers_have_the_codes_of_the_contract() {
    use Code::*;
    for (status, code, expected) in [
        (404, "NoSuchKey", NotFound),
        (404, "NoSuchBucket", NotFound),
        (404, "NoSuchUpload", NotFound),
        (404, "", NotFound),
        (403, "AccessDenied", PermissionDenied),
        (403, "SignatureDoesNotMatch", PermissionDenied),
        (403, "InvalidAccessKeyId", PermissionDenied),
        (403, "RequestTimeTooSkewed", PermissionDenied),
        (403, "", PermissionDenied),
        (401, "", Unauthenticated),
        (400, "ExpiredToken", Unauthenticated),
        (403, "ExpiredToken", Unauthenticated),
        (400, "InvalidToken", Unauthenticated),
        (412, "PreconditionFailed", FailedPrecondition),
        (403, "InvalidObjectState", FailedPrecondition),
        (301, "PermanentRedirect", FailedPrecondition),
        (307, "TemporaryRedirect", FailedPrecondition),
        (409, "OperationAborted", Aborted),
        (409, "ConditionalRequestConflict", Aborted),
        (416, "InvalidRange", OutOfRange),
        (429, "TooManyRequests", Unavailable),
        (503, "SlowDown", Unavailable),
        (503, "ServiceUnavailable", Unavailable),
        (500, "InternalError", Unavailable),
        (200, "InternalError", Unavailable),
        (200, "SlowDown", Unavailable),
        (502, "", Unavailable),
        (504, "", Unavailable),
        (400, "RequestTimeout", DeadlineExceeded),
        (408, "", DeadlineExceeded),
        (400, "BadDigest", DataLoss),
        (400, "XAmzContentSHA256Mismatch", DataLoss),
        (400, "InvalidArgument", InvalidArgument),
        (400, "KeyTooLongError", InvalidArgument),
        (501, "NotImplemented", Unimplemented),
        (405, "MethodNotAllowed", Unimplemented),
        (507, "XMinioStorageFull", ResourceExhausted),
    ] {
        let error = error(status, code);
        assert_eq!(error.code(), expected, "{status} {code}: {error}");
        for part in [
            "s3://bucket/a/b: GetObject: ",
            &format!("HTTP {status}"),
            code,
            "request id ID1",
            "3 attempts",
            "\"Text & more\"",
        ] {
            assert!(error.message().contains(part), "{part}: {error}");
        }
    }
}

#[test]
fn what_helps_is_said() {
    assert!(error(404, "NoSuchBucket").message().contains("no bucket `bucket`"));
    let answer = Answer {
        status: 403,
        code: Some("RequestTimeTooSkewed".into()),
        date: Some("Fri, 20 Nov 2026 20:00:00 GMT".into()),
        ..Answer::default()
    };
    let text = of_answer("GetObject", &"s3://b/k", &answer, 1).to_string();
    assert!(
        text.contains("at the store Fri, 20 Nov 2026 20:00:00 GMT") && text.contains("here it is "),
        "{text}"
    );
    let answer = Answer { status: 301, region: Some("eu-west-1".into()), ..Answer::default() };
    let text = of_answer("GetObject", &"s3://b/k", &answer, 1).to_string();
    assert!(text.contains("bucket `b` is in region eu-west-1; set AWS_REGION=eu-west-1"), "{text}");
}

#[test]
fn the_words_of_a_store_stay_on_one_line() {
    let answer =
        Answer { status: 400, message: Some("a\nb\u{1b}[31m".repeat(200)), ..Answer::default() };
    let text = of_answer("GetObject", &"s3://b/k", &answer, 1).to_string();
    assert!(text.len() < 600 && !text.contains(char::is_control), "{text}");
}
