//! Failures as they are told.

use super::*;

/// Returns the error for a response to `op` with this code and message.
fn told(op: &str, status: u16, code: &str, message: &str, has_checksum: bool) -> Error {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let body = format!(
        "<Error><Code>{}</Code><Message>{}</Message></Error>",
        escape(code),
        escape(message)
    );
    let header = |name: &str| match name {
        "x-amz-request-id" => Some("ID1"),
        "date" => Some("Fri, 20 Nov 2026 20:00:00 GMT"),
        _ => None,
    };
    let refused = explain(op, "bucket", has_checksum, status, header, body.as_bytes());
    S3Error::Refused(Box::new(refused)).into_error(op, &"s3://bucket/a/b", 3)
}

fn error(status: u16, code: &str) -> Error {
    told("GetObject", status, code, "Text & more", false)
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
    let text = error(403, "RequestTimeTooSkewed").to_string();
    assert!(
        text.contains("at the store Fri, 20 Nov 2026 20:00:00 GMT") && text.contains("here it is "),
        "{text}"
    );
    let header = |name: &str| (name == REGION_HEADER).then_some("eu-west-1");
    let refused = explain("GetObject", "b", false, 301, header, b"");
    let text = S3Error::Refused(Box::new(refused)).into_error("GetObject", &"s3://b/k", 1);
    let text = text.to_string();
    assert!(text.contains("bucket `b` is in region eu-west-1; set AWS_REGION=eu-west-1"), "{text}");
}

#[test]
fn the_words_of_a_store_stay_on_one_line() {
    let text = told("GetObject", 400, "", &"a\nb\u{9b}[31m".repeat(200), false).to_string();
    assert!(text.len() < 600 && !text.contains(char::is_control), "{text}");
}

/// What the documents of Amazon S3, of Google's XML API, and of other stores list.
#[test]
#[rustfmt::skip]
fn each_code_has_a_class_a_meaning_and_a_next_step() {
    use ErrorKind::{Denied, NotFound, Permanent, Precondition, Transient, Unsupported};
    for (status, code, class, tensorflow, part) in [
        // 400
        (400, "AuthorizationHeaderMalformed", Permanent, Code::InvalidArgument, "AWS_REGION"),
        (400, "IllegalLocationConstraintException", Permanent, Code::InvalidArgument, "AWS_REGION"),
        (400, "BadDigest", Permanent, Code::DataLoss, "other bytes than were sent"),
        (400, "XAmzContentSHA256Mismatch", Permanent, Code::DataLoss, "AWS_REQUEST_CHECKSUM_CALCULATION=when_required"),
        (400, "EntityTooLarge", Permanent, Code::InvalidArgument, "TF_S3_WRITE_PART_BYTES"),
        (400, "EntityTooSmall", Permanent, Code::InvalidArgument, "raise TF_S3_WRITE_PART_BYTES"),
        (400, "ExpiredToken", Permanent, Code::Unauthenticated, "renew them"),
        (400, "InvalidToken", Permanent, Code::Unauthenticated, "renew them"),
        (400, "TokenRefreshRequired", Permanent, Code::Unauthenticated, "renew them"),
        (400, "IncompleteBody", Permanent, Code::Unavailable, "try again"),
        (400, "InvalidBucketName", Permanent, Code::InvalidArgument, "addressing_style"),
        (400, "InvalidEncryptionAlgorithmError", Permanent, Code::InvalidArgument, "server_side_encryption"),
        (400, "InvalidStorageClass", Permanent, Code::InvalidArgument, "storage_class"),
        (400, "AccessControlListNotSupported", Permanent, Code::InvalidArgument, "acl"),
        (400, "KeyTooLongError", Permanent, Code::InvalidArgument, "shorter"),
        (400, "InvalidURI", Permanent, Code::InvalidArgument, "key"),
        (400, "KMS.DisabledException", Permanent, Code::FailedPrecondition, "sse_kms_key_id"),
        (400, "KMS.NotFoundException", Permanent, Code::FailedPrecondition, "sse_kms_key_id"),
        (400, "KMS.KMSInvalidStateException", Permanent, Code::FailedPrecondition, "sse_kms_key_id"),
        (400, "MaxMessageLengthExceeded", Permanent, Code::InvalidArgument, "TF_S3_WRITE_PART_BYTES"),
        (400, "MetadataTooLarge", Permanent, Code::InvalidArgument, "metadata"),
        (400, "MissingSecurityHeader", Permanent, Code::Unauthenticated, "AWS_ACCESS_KEY_ID"),
        (400, "RequestTimeout", Transient, Code::DeadlineExceeded, "waited too long"),
        (400, "InvalidRequest", Permanent, Code::InvalidArgument, "invalid"),
        (400, "MalformedXML", Permanent, Code::InvalidArgument, "invalid"),
        (400, "ResourceIsEncryptedByCustomerEncryptionKey", Permanent, Code::FailedPrecondition, "SSE-C"),
        (400, "UserProjectMissing", Permanent, Code::InvalidArgument, "GCS"),
        (400, "ObjectLocked", Permanent, Code::FailedPrecondition, "another name"),
        (400, "XMinioParentIsObject", Permanent, Code::FailedPrecondition, "either a file or a directory"),
        // 401
        (401, "AuthenticationRequired", Permanent, Code::Unauthenticated, "AWS_ACCESS_KEY_ID"),
        (401, "", Permanent, Code::Unauthenticated, "requires credentials"),
        // 403
        (403, "AccessDenied", Denied, Code::PermissionDenied, "lack the permission"),
        (403, "AllAccessDisabled", Denied, Code::PermissionDenied, "lack the permission"),
        (403, "", Denied, Code::PermissionDenied, "lack the permission"),
        (403, "AccountProblem", Permanent, Code::PermissionDenied, "billing"),
        (403, "NotSignedUp", Permanent, Code::PermissionDenied, "billing"),
        (403, "InvalidPayer", Permanent, Code::PermissionDenied, "billing"),
        (403, "InvalidAccessKeyId", Permanent, Code::PermissionDenied, "endpoint_url"),
        (403, "InvalidSecurity", Permanent, Code::Unauthenticated, "renew them"),
        (403, "SecurityTokenExpired", Permanent, Code::Unauthenticated, "renew them"),
        (403, "InvalidObjectState", Permanent, Code::FailedPrecondition, "restore it first"),
        (403, "ObjectNotInActiveTierError", Permanent, Code::FailedPrecondition, "restore it first"),
        (403, "RequestTimeTooSkewed", Permanent, Code::PermissionDenied, "clock"),
        (403, "SignatureDoesNotMatch", Permanent, Code::PermissionDenied, "secret access key"),
        (403, "SecondLevelDomainForbidden", Permanent, Code::FailedPrecondition, "TF_S3_ADDRESSING_STYLE=virtual"),
        (403, "PathStyleDomainForbidden", Permanent, Code::FailedPrecondition, "TF_S3_ADDRESSING_STYLE=virtual"),
        (403, "VirtualHostDomainRequired", Permanent, Code::FailedPrecondition, "TF_S3_ADDRESSING_STYLE=virtual"),
        (403, "RetentionPolicyNotMet", Permanent, Code::FailedPrecondition, "another name"),
        (403, "QuotaExceeded", Permanent, Code::ResourceExhausted, "full"),
        (403, "UserSuspended", Permanent, Code::PermissionDenied, "account"),
        (403, "NeverHeardOf", Permanent, Code::PermissionDenied, "the reason that it names"),
        // 404
        (404, "NoSuchKey", NotFound, Code::NotFound, "not found"),
        (404, "NoSuchVersion", NotFound, Code::NotFound, "version"),
        (404, "NoSuchBucket", Permanent, Code::NotFound, "endpoint_url"),
        (404, "NoSuchAccessPoint", Permanent, Code::NotFound, "access point"),
        (404, "NoSuchUpload", NotFound, Code::NotFound, "aborted it"),
        (410, "", NotFound, Code::NotFound, "not there any more"),
        // 405, 409, 411, 412, 413, 416
        (405, "MethodNotAllowed", Unsupported, Code::Unimplemented, "does not support"),
        (409, "OperationAborted", Permanent, Code::Aborted, "try again"),
        (409, "ConditionalRequestConflict", Permanent, Code::Aborted, "try again"),
        (409, "RestoreAlreadyInProgress", Permanent, Code::FailedPrecondition, "wait"),
        (409, "InvalidBucketState", Permanent, Code::FailedPrecondition, "versioning"),
        (409, "BucketAlreadyOwnedByYou", Permanent, Code::AlreadyExists, "there is one already"),
        (409, "FileAlreadyExists", Permanent, Code::AlreadyExists, "another name"),
        (411, "MissingContentLength", Permanent, Code::Unavailable, "between here and the store"),
        (412, "PreconditionFailed", Precondition, Code::FailedPrecondition, "condition"),
        (413, "", Permanent, Code::InvalidArgument, "TF_S3_WRITE_PART_BYTES"),
        (416, "InvalidRange", Permanent, Code::OutOfRange, "past the end"),
        // 5xx
        (429, "RateLimitExceeded", Transient, Code::Unavailable, "overloaded"),
        (500, "InternalError", Transient, Code::Unavailable, "try again"),
        (501, "NotImplemented", Unsupported, Code::Unimplemented, "AWS_REQUEST_CHECKSUM_CALCULATION=when_required"),
        (503, "SlowDown", Transient, Code::Unavailable, "overloaded"),
        (503, "ServiceUnavailable", Transient, Code::Unavailable, "overloaded or down"),
        (503, "ServerBusy", Transient, Code::Unavailable, "overloaded"),
        (507, "InsufficientStorage", Permanent, Code::ResourceExhausted, "full"),
    ] {
        let error = error(status, code);
        assert_eq!(error.code(), tensorflow, "{status} {code}: {error}");
        assert!(error.message().contains(part), "{status} {code}: {error}");
        let code = Some(code).filter(|code| !code.is_empty());
        assert_eq!(kind_of(status, code), class, "{status} {code:?}");
    }
}

#[test]
fn checksums_that_a_store_refuses_are_named() {
    let text = |status, code: &str, message: &str, had_checksum| {
        told("PutObject", status, code, message, had_checksum).message().to_owned()
    };
    let off = "AWS_REQUEST_CHECKSUM_CALCULATION=when_required";
    let on = "AWS_REQUEST_CHECKSUM_CALCULATION=when_supported";
    for (status, code, message) in [
        (400, "InvalidArgument", "x-amz-checksum-crc32 is not supported"),
        (400, "InvalidRequest", "Value for x-amz-sdk-checksum-algorithm header is invalid."),
        (400, "InvalidArgument", "Unsupported header 'x-amz-trailer' received for this API call."),
        (
            400,
            "MalformedTrailerError",
            "The request contained trailing data that was not well-formed",
        ),
        (
            501,
            "NotImplemented",
            "STREAMING-UNSIGNED-PAYLOAD-TRAILER: aws-chunked is not implemented",
        ),
        (403, "AccessDenied", "The x-amz-checksum-crc32 header is not allowed"),
    ] {
        assert!(text(status, code, message, true).contains(off), "{code} {message}");
        assert!(!text(status, code, message, false).contains(off) || status == 501, "{message}");
    }
    let lock = "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters";
    for (code, message) in [("InvalidRequest", lock), ("MissingContentMD5", "Missing")] {
        assert!(text(400, code, message, false).contains(on), "{code}");
        assert!(text(400, code, message, true).contains("requires Content-MD5"), "{code}");
    }
    assert!(!text(400, "InvalidArgument", "Invalid part number", true).contains("CHECKSUM"));
    assert!(!text(412, "PreconditionFailed", "checksum", true).contains("CHECKSUM"));
}

/// The message has words of checksums, and the code says what it is.
#[test]
fn a_code_counts_before_the_words_of_a_message() {
    let denied = "User: arn:aws:iam::1:user/u is not authorized to perform: s3:PutObject on resource: arn:aws:s3:::b/";
    for (status, code, message, expected, part) in [
        (403, "AccessDenied", format!("{denied}movie_trailers/x"), Code::PermissionDenied, "lack"),
        (403, "AccessDenied", format!("{denied}x-amz-checksum-/x"), Code::PermissionDenied, "lack"),
        (403, "AccessDenied", "no checksum for you".into(), Code::PermissionDenied, "lack"),
        (403, "", "movie_trailers".into(), Code::PermissionDenied, "lack"),
        (403, "Forbidden", "checksums/x".into(), Code::PermissionDenied, "lack"),
        (403, "SignatureDoesNotMatch", "content-md5".into(), Code::PermissionDenied, "secret"),
        (403, "QuotaExceeded", "of bucket trailers".into(), Code::ResourceExhausted, "full"),
        (403, "InvalidObjectState", "trailer".into(), Code::FailedPrecondition, "restore"),
        (400, "ExpiredToken", "trailer".into(), Code::Unauthenticated, "renew"),
        (
            400,
            "BadDigest",
            "The Content-MD5 you specified did not match what we received.".into(),
            Code::DataLoss,
            "other bytes",
        ),
        (
            400,
            "BadDigest",
            "The CRC32 you specified did not match the calculated checksum.".into(),
            Code::DataLoss,
            "other bytes",
        ),
        (
            400,
            "XAmzContentChecksumMismatch",
            "The provided 'x-amz-checksum' header does not match".into(),
            Code::DataLoss,
            "other bytes",
        ),
        (400, "KMS.DisabledException", "key of checksums".into(), Code::FailedPrecondition, "KMS"),
    ] {
        for op in ["PutObject", "UploadPart", "CompleteMultipartUpload"] {
            let error = told(op, status, code, &message, true);
            assert_eq!(error.code(), expected, "{error}");
            assert!(error.message().contains(part), "{error}");
        }
    }
}

#[test]
fn a_store_shows_no_secret_of_ours() {
    tf_fs_object_store::redact::keep("planted/secret+key");
    let message = "refused: planted%2Fsecret%2Bkey planted/secret+key";
    let text = told("GetObject", 403, "planted/secret+key", message, false).to_string();
    assert!(!text.contains("planted"), "{text}");
}

#[test]
fn a_store_under_load_does_not_say_that_an_object_is_gone() {
    for code in ["RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable"] {
        assert_eq!(kind_of(404, Some(code)), ErrorKind::Transient, "{code}");
    }
    assert_eq!(kind_of(200, Some("MalformedXML")), ErrorKind::Permanent);
}
