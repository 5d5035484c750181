//! Bodies of requests, and what the client said of them.

use super::*;

/// A body that has arrived as a whole and was verified.
pub(super) struct Received {
    pub(super) data: Data,
    pub(super) md5: Option<[u8; 16]>,
    pub(super) sums: Checksum,
}

/// The client's declarations about the body that it sends.
pub(super) struct Promise<'a> {
    pub(super) content_md5: Option<&'a str>,
    pub(super) sums: Checksum,
    pub(super) algorithm: Option<Algorithm>,
    pub(super) headers: &'a HeaderMap,
    pub(super) trailers: Option<TrailingHeaders>,
}

pub(super) fn body_error(error: &s3s::StdError) -> S3Error {
    // The errors of s3s' body streams are private types: only their text distinguishes them.
    let text = error.to_string();
    if text.contains("Sha256Mismatch") {
        let mut error = S3Error::with_message(
            S3ErrorCode::Custom("XAmzContentSHA256Mismatch".into()),
            "The provided 'x-amz-content-sha256' header does not match what was computed.",
        );
        error.set_status_code(http::StatusCode::BAD_REQUEST);
        error
    } else if text.contains("SignatureMismatch") {
        s3_error!(
            SignatureDoesNotMatch,
            "The signature of a chunk does not match what was computed."
        )
    } else {
        s3_error!(IncompleteBody, "The request body terminated unexpectedly: {}", text)
    }
}

pub(super) async fn receive(
    body: Option<StreamingBlob>,
    promise: Promise<'_>,
    fast: bool,
) -> S3Result<Received> {
    let mut hasher = Hasher::default();
    for algorithm in Algorithm::ALL {
        if algorithm.of(&promise.sums).is_some() || promise.algorithm == Some(algorithm) {
            hasher.enable(algorithm);
        }
    }
    for algorithm in announced(promise.headers) {
        hasher.enable(algorithm);
    }
    let mut md5 = (!fast || promise.content_md5.is_some()).then(Md5::new);
    let mut builder = DataBuilder::default();
    if let Some(mut body) = body {
        let mut body = std::pin::pin!(&mut body);
        while let Some(bytes) = std::future::poll_fn(|cx| body.as_mut().poll_next(cx)).await {
            let bytes = bytes.map_err(|error| body_error(&error))?;
            hasher.update(&bytes);
            if let Some(md5) = &mut md5 {
                md5.update(&bytes);
            }
            builder.push(bytes);
        }
    }
    let data = builder.finish();
    let decoded = promise.headers.get("x-amz-decoded-content-length");
    if let Some(decoded) =
        decoded.and_then(|value| value.to_str().ok()).and_then(|value| value.parse::<u64>().ok())
        && decoded != data.len()
    {
        return Err(s3_error!(
            IncompleteBody,
            "The body does not have the length x-amz-decoded-content-length."
        ));
    }
    let mut expected = promise.sums;
    if let Some(trailers) = promise.trailers.and_then(|trailers| trailers.take()) {
        from_trailers(&mut expected, &trailers);
    }
    let sums = hasher.finalize();
    compare(&expected, &sums)?;
    let md5 = md5.map(Md5::finalize);
    if let (Some(expected), Some(md5)) = (promise.content_md5, md5)
        && expected != STANDARD.encode_to_string(md5)
    {
        return Err(s3_error!(
            BadDigest,
            "The Content-MD5 you specified did not match what we received."
        ));
    }
    Ok(Received { data, md5: if fast { None } else { md5 }, sums })
}

/// The checksum fields of an input.
macro_rules! sums {
    ($input:expr) => {
        Checksum {
            checksum_crc32: $input.checksum_crc32.clone(),
            checksum_crc32c: $input.checksum_crc32c.clone(),
            checksum_crc64nvme: $input.checksum_crc64nvme.clone(),
            checksum_sha1: $input.checksum_sha1.clone(),
            checksum_sha256: $input.checksum_sha256.clone(),
            ..Checksum::default()
        }
    };
}

/// Fills the checksum fields of an output.
macro_rules! set_sums {
    ($output:expr, $sums:expr) => {{
        let sums: Checksum = $sums;
        $output.checksum_crc32 = sums.checksum_crc32;
        $output.checksum_crc32c = sums.checksum_crc32c;
        $output.checksum_crc64nvme = sums.checksum_crc64nvme;
        $output.checksum_sha1 = sums.checksum_sha1;
        $output.checksum_sha256 = sums.checksum_sha256;
    }};
}

/// The headers of an object, from any input that creates one.
macro_rules! info {
    ($input:expr) => {
        Info {
            metadata: $input.metadata.clone().unwrap_or_default().into_iter().collect(),
            content_type: $input.content_type.clone().map(|value| value.to_string()),
            content_encoding: $input.content_encoding.clone().and_then(stored_encoding),
            cache_control: $input.cache_control.clone(),
            content_disposition: $input.content_disposition.clone(),
            content_language: $input.content_language.clone(),
            sse: $input.server_side_encryption.clone().map(|value| value.as_str().to_owned()),
            sse_kms_key_id: $input.ssekms_key_id.clone(),
            storage_class: $input.storage_class.clone().map(|value| value.as_str().to_owned()),
            ..Info::default()
        }
    };
}

/// The headers of GetObject and HeadObject.
macro_rules! describe {
    ($output:expr, $info:expr) => {{
        let info: &Info = $info;
        $output.accept_ranges = Some("bytes".to_owned());
        $output.e_tag = Some(strong(&info.etag));
        $output.last_modified = info.modified.map(Timestamp::from);
        $output.metadata = (!info.metadata.is_empty())
            .then(|| info.metadata.clone().into_iter().collect::<Metadata>());
        // The value of AWS for an object that was put without one.
        $output.content_type =
            Some(info.content_type.clone().unwrap_or_else(|| "binary/octet-stream".to_owned()));
        $output.content_encoding = info.content_encoding.clone();
        $output.cache_control = info.cache_control.clone();
        $output.content_disposition = info.content_disposition.clone();
        $output.content_language = info.content_language.clone();
        $output.server_side_encryption = info.sse.clone().map(ServerSideEncryption::from);
        $output.ssekms_key_id = info.sse_kms_key_id.clone();
        $output.storage_class = info
            .storage_class
            .clone()
            .filter(|class| class != StorageClass::STANDARD)
            .map(StorageClass::from);
    }};
}
