//! What the error codes of stores mean for the user. Codes that depend on the request are in `error.rs`.

use tf_fs_plugin::Code;

/// Codes with one meaning, TensorFlow's code for it, and what to do. Of Amazon S3, and, where they differ, of Google's XML
/// API (GCS), MinIO, Ceph, Alibaba's OSS, Huawei's OBS and Tencent's COS.
#[rustfmt::skip]
const CODES: &[(&[&str], Code, &str)] = &[
    // Credentials.
    (&["SignatureDoesNotMatch"], Code::PermissionDenied,
        "the signature is wrong; look at the secret access key"),
    (&["InvalidAccessKeyId"], Code::PermissionDenied,
        "the store does not know the access key; look at the credentials and at endpoint_url"),
    (&["AccountProblem", "NotSignedUp", "InvalidPayer", "UserSuspended", "UserDisable", "AccountDisabled", "XMinioAdminUserDisabled"],
        Code::PermissionDenied,
        "the store has closed the account of these credentials, or its billing has a problem; ask whoever pays for it"),
    (&["MissingSecurityHeader", "MissingAuthenticationToken", "AuthenticationRequired", "MissingSecurityElement"], Code::Unauthenticated,
        "the store requires credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and do not set anonymous"),
    (&["CredentialsNotSupported", "UnsupportedSignature", "AuthorizationQueryParametersError"], Code::InvalidArgument,
        "the store does not accept requests signed like this; look at endpoint_url"),
    (&["UserProjectMissing", "UserProjectAccountProblem"], Code::InvalidArgument,
        "the requester pays for this bucket, and GCS wants to know the project, which this plugin does not send; use a bucket whose owner pays"),
    // Addresses.
    (&["SecondLevelDomainForbidden", "PathStyleDomainForbidden", "VirtualHostDomainRequired", "InvalidPathAccess"], Code::FailedPrecondition,
        "the store requires the bucket in the host name; set TF_S3_ADDRESSING_STYLE=virtual, or addressing_style for this bucket"),
    (&["NoSuchAccessPoint", "NoSuchAccessPointAlias"], Code::NotFound,
        "there is no such access point; look at its name, account and region"),
    (&["InvalidBucketName"], Code::InvalidArgument,
        "the store does not accept the bucket's name; look at its spelling, at endpoint_url and at addressing_style"),
    (&["IllegalLocationConstraintException", "InvalidLocationConstraint", "AuthorizationHeaderMalformed", "InvalidRegionName"],
        Code::InvalidArgument,
        "the bucket is in another region; set AWS_REGION, or region for this bucket"),
    (&["KeyTooLongError", "KeyTooLong", "InvalidObjectName", "XMinioInvalidObjectName", "InvalidURI"], Code::InvalidArgument,
        "the store does not accept the key; choose a shorter one, or one without unusual characters"),
    // The state of the object or the bucket.
    (&["InvalidObjectState", "ObjectNotInActiveTierError", "ObjectNotRestored", "ObjectArchived"], Code::FailedPrecondition,
        "the object is archived; restore it first: `aws s3api restore-object`"),
    (&["RestoreAlreadyInProgress", "ObjectRestoreInProgress"], Code::FailedPrecondition,
        "the object is archived and being restored; wait until that is done"),
    (&["ObjectLocked", "ObjectUnderActiveHold", "RetentionPolicyNotMet", "FileImmutable", "ObjectLockConfigurationExist"],
        Code::FailedPrecondition,
        "a lock or a retention policy keeps the object as it is; write to another name"),
    (&["InvalidBucketState"], Code::FailedPrecondition,
        "the bucket is in a state that does not allow this; look at its versioning and object lock"),
    (&["FileAlreadyExists", "ObjectAlreadyExists"], Code::AlreadyExists,
        "the store does not replace objects that exist; write to another name"),
    (&["XMinioParentIsObject", "XMinioObjectExistsAsDirectory"], Code::FailedPrecondition,
        "in this store a name is either a file or a directory; choose a name that is neither below a file nor that of a directory"),
    (&["NoSuchUpload"], Code::NotFound,
        "the upload does not exist any more; another client aborted it"),
    (&["BucketAlreadyExists", "BucketAlreadyOwnedByYou"], Code::AlreadyExists, "there is one already"),
    (&["NoSuchVersion"], Code::NotFound, "there is no such version of the object"),
    (&["NoSuchBucket"], Code::NotFound, "there is no bucket `{bucket}`; look at its name, and at endpoint_url"),
    (&["RequestTimeTooSkewed"], Code::PermissionDenied,
        "the clocks differ too much: here it is {here}, at the store {there}; set this machine's clock"),
    // Sizes.
    (&["EntityTooSmall"], Code::InvalidArgument,
        "a part is smaller than the store allows; raise TF_S3_WRITE_PART_BYTES"),
    (&["EntityTooLarge", "MaxMessageLengthExceeded", "RequestEntityTooLarge"], Code::InvalidArgument,
        "the store or a proxy does not take a request of this size; lower TF_S3_WRITE_PART_BYTES, or raise the limit of the proxy"),
    (&["MetadataTooLarge", "RequestHeaderSectionTooLarge"], Code::InvalidArgument,
        "the object has more metadata than the store allows"),
    // Settings of writes.
    (&["InvalidStorageClass"], Code::InvalidArgument,
        "the store does not have this storage class; look at storage_class"),
    (&["InvalidEncryptionAlgorithmError", "InvalidEncryptionAlgorithm", "ServerSideEncryptionConfigurationNotFoundError"],
        Code::InvalidArgument,
        "the store does not encrypt like this; look at server_side_encryption"),
    (&["AccessControlListNotSupported"], Code::InvalidArgument,
        "the bucket does not allow ACLs; do not set acl"),
    (&["ResourceIsEncryptedByCustomerEncryptionKey", "CustomerEncryptionKeyIncorrect", "ServerSideEncryptionCustomerKeyMissing"],
        Code::FailedPrecondition,
        "the object is encrypted with a key of a customer (SSE-C), which this plugin does not send"),
    // Bytes.
    (&["BadDigest", "InvalidDigest"], Code::DataLoss, "the store received other bytes than were sent"),
    (&["XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch"], Code::DataLoss,
        "the store received other bytes than were sent, or it does not know this kind of checksum; if it fails again, set \
         AWS_REQUEST_CHECKSUM_CALCULATION=when_required"),
    (&["IncompleteBody", "MissingContentLength"], Code::Unavailable,
        "the store received only a part; try again, and look at what is between here and the store"),
    // The store.
    (&["RequestTimeout", "RequestTimeoutException"], Code::DeadlineExceeded,
        "the store waited too long for the request"),
    (&["QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "TotalQuotaExceeded", "InsufficientCapacity", "InsufficientStorage"],
        Code::ResourceExhausted,
        "the store is full"),
    (&["NotImplemented"], Code::Unimplemented,
        "the store does not support this, or a header of it; if a setting asks for that, do not set it: acl, storage_class, \
         server_side_encryption, checksums (AWS_REQUEST_CHECKSUM_CALCULATION=when_required)"),
];

/// Returns TensorFlow's code, and an explanation.
pub(super) fn meaning(code: &str) -> Option<(Code, &'static str)> {
    if code.starts_with("KMS.") {
        let text = "the store cannot use the KMS key of the object; look at sse_kms_key_id, at the key's state, and at the \
                    permission to use it";
        return Some((Code::FailedPrecondition, text));
    }
    let (_, meaning, text) = CODES.iter().find(|(codes, ..)| codes.contains(&code))?;
    Some((*meaning, text))
}

/// Returns what is wrong with the checksum of an upload, if the response is about it. `are_sent`: whether the upload had
/// one.
pub(super) fn about_checksums(
    status: u16,
    code: &str,
    message: &str,
    are_sent: bool,
) -> Option<&'static str> {
    const WORDS: [&str; 5] = ["checksum", "x-amz-sdk", "trailer", "aws-chunked", "content-md5"];
    // A denial may repeat names of the user's.
    const HEADERS: [&str; 2] = ["x-amz-checksum-", "x-amz-sdk-"];
    let message = message.to_ascii_lowercase();
    let names = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let (is_missing, is_about) = match code {
        "MissingContentMD5" | "MissingDigest" => (true, true),
        "MalformedTrailerError" | "InvalidTrailer" => (false, true),
        _ if code == "AccessDenied" || code.is_empty() && status == 403 => {
            (false, names(&HEADERS) && !message.contains("arn:"))
        }
        "InvalidArgument" | "InvalidRequest" | "NotImplemented" | "" => {
            let is_missing =
                message.contains("content-md5") && names(&["required", "missing", "must"]);
            (is_missing, names(&WORDS))
        }
        _ => return None,
    };
    if !matches!(status, 400 | 403 | 411 | 501) || !is_missing && !is_about {
        return None;
    }
    Some(match (is_missing, are_sent) {
        (true, true) => {
            "the store requires Content-MD5, which this plugin does not send: it has x-amz-checksum-crc32; turn off what \
             requires it, such as the bucket's object lock"
        }
        (true, false) => {
            "the store requires a checksum; set AWS_REQUEST_CHECKSUM_CALCULATION=when_supported, which is the default"
        }
        (false, true) => {
            "the store does not accept the checksum of the request; set AWS_REQUEST_CHECKSUM_CALCULATION=when_required, or \
             checksums for this bucket"
        }
        (false, false) => return None,
    })
}
