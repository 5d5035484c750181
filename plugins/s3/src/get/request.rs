//! The request of a GET.

use crate::connection::{Bucket, Route};
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use std::time::SystemTime;
use tf_fs_object_store::GetOptions;
use tf_fs_plugin::prelude::*;

/// All but S3's unreserved characters and the slash.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Returns the request as it goes over the wire, signed if there are credentials.
pub(super) fn request(
    bucket: &Bucket,
    route: &Route,
    wanted: GetOptions<'_>,
    credentials: Option<&Credentials>,
) -> Result<Vec<u8>> {
    let asked: Vec<_> = bucket.headers().collect();
    compose(route, wanted, &asked, credentials, bucket.now())
}

fn compose(
    route: &Route,
    wanted: GetOptions<'_>,
    asked: &[(HeaderName, HeaderValue)],
    credentials: Option<&Credentials>,
    now: SystemTime,
) -> Result<Vec<u8>> {
    let authority = route.authority();
    let path = format!("{}/{}", route.path, percent_encode(wanted.key.as_bytes(), ESCAPED));
    let range = format!("bytes={}-{}", wanted.range.start, wanted.range.end.saturating_sub(1));
    let mut headers = vec![("host", authority.as_str()), ("range", &range)];
    headers.extend(wanted.if_match.map(|etag| ("if-match", etag)));
    for (name, value) in asked {
        headers.push((name.as_str(), value.to_str().map_err(unsigned)?));
    }
    // It has only characters that a URL may have, and is sent as it is.
    let target: PathAndQuery = path.parse().map_err(unsigned)?;
    let mut text = Vec::with_capacity(1024);
    text.extend_from_slice(b"GET ");
    text.extend_from_slice(target.as_str().as_bytes());
    text.extend_from_slice(b" HTTP/1.1\r\n");
    for (name, value) in &headers {
        line(&mut text, name, value)?;
    }
    line(&mut text, "accept-encoding", "identity")?;
    line(&mut text, "user-agent", concat!("tf-plugin-s3/", env!("CARGO_PKG_VERSION")))?;
    if let Some(credentials) = credentials {
        let identity = credentials.clone().into();
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&route.signing_region)
            .name(&route.signing_name)
            .time(now)
            .settings(settings)
            .build()
            .map_err(unsigned)?
            .into();
        let scheme = if route.https { "https" } else { "http" };
        let url = format!("{scheme}://{authority}{path}");
        let headers = headers.iter().copied();
        let signable = SignableRequest::new("GET", url, headers, SignableBody::Bytes(&[]))
            .map_err(unsigned)?;
        let (added, _) = sign(signable, &parameters).map_err(unsigned)?.into_parts();
        for (name, value) in added.headers() {
            line(&mut text, name, value)?;
        }
    }
    text.extend_from_slice(b"\r\n");
    Ok(text)
}

/// Adds a header. Some values come from others: an ETag from a listing, a token from a file.
///
/// # Errors
/// `INVALID_ARGUMENT` for a value that is not valid in one header: a line break in it would begin another.
fn line(to: &mut Vec<u8>, name: &str, value: &str) -> Result<()> {
    let (Ok(name), Ok(value)) =
        (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()))
    else {
        // Without the value, which may be a secret.
        return Err(Error::invalid_argument(format_args!(
            "the value of the header `{}` has a line break or a control character; look at the credentials, and at \
             what the store lists as the ETag",
            name.escape_debug()
        )));
    };
    to.extend_from_slice(name.as_str().as_bytes());
    to.extend_from_slice(b": ");
    to.extend_from_slice(value.as_bytes());
    to.extend_from_slice(b"\r\n");
    Ok(())
}

#[cold]
fn unsigned(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::internal("a request cannot be signed").with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_s3::config::endpoint::Endpoint;
    use std::time::Duration;
    use tf_fs_object_store::Range;

    fn lines(
        wanted: GetOptions<'_>,
        asked: &[(HeaderName, HeaderValue)],
        token: Option<&str>,
    ) -> Vec<String> {
        let credentials = credentials("AKIAIOSFODNN7EXAMPLE", token);
        let text = composed(wanted, asked, Some(&credentials)).unwrap();
        let text = String::from_utf8(text).unwrap();
        text.strip_suffix("\r\n\r\n").unwrap().split("\r\n").map(str::to_owned).collect()
    }

    fn credentials(id: &str, token: Option<&str>) -> Credentials {
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        Credentials::new(id, secret, token.map(str::to_owned), None, "documentation")
    }

    fn composed(
        wanted: GetOptions<'_>,
        asked: &[(HeaderName, HeaderValue)],
        credentials: Option<&Credentials>,
    ) -> Result<Vec<u8>> {
        let endpoint = Endpoint::builder().url("https://examplebucket.s3.amazonaws.com").build();
        let route = Route::of(&endpoint, "us-east-1".to_owned().into()).unwrap();
        // Fri, 24 May 2013 00:00:00 GMT
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_369_353_600);
        compose(&route, wanted, asked, credentials, now)
    }

    #[test]
    fn no_value_can_add_a_header_or_a_request() {
        const EVIL: [&str; 6] =
            ["\r\nx-evil: 1", "\nx-evil: 1", "\rx", "\0", "\u{7f}", "\r\n\r\nGET /"];
        let range = Range::new(0, 10);
        for evil in EVIL {
            let etag = format!("\"e\"{evil}");
            let wanted = GetOptions::new("k", range).with_if_match(Some(&etag));
            // Signing checks some values, too; but not every request is signed.
            assert!(composed(wanted, &[], None).is_err(), "{etag:?}");
            assert!(composed(wanted, &[], Some(&credentials("id", None))).is_err(), "{etag:?}");
            let wanted = GetOptions::new("k", range);
            for credentials in [
                credentials("id", Some(&format!("secret{evil}"))),
                credentials(&format!("secret{evil}"), None),
            ] {
                let error = composed(wanted, &[], Some(&credentials)).unwrap_err();
                assert!(!format!("{error:#} {error:?}").contains("secret"), "{error:?}");
            }
            // A key may have any bytes: it is encoded.
            let wanted = GetOptions::new(evil, range);
            let lines = lines(wanted, &[], None);
            assert!(!lines.iter().any(|line| line.starts_with("x-evil")), "{lines:?}");
            assert_eq!(lines.iter().filter(|line| line.starts_with("GET ")).count(), 1);
        }
        // Valid characters of an ETag are accepted.
        let wanted = GetOptions::new("k", range).with_if_match(Some("\"é-_~\t\""));
        assert!(composed(wanted, &[], None).is_ok());
    }

    /// "Example: GET Object" of "Authenticating Requests: Using the Authorization Header" in Amazon's documentation.
    #[test]
    fn a_request_is_signed_as_documented() {
        let wanted = GetOptions::new("test.txt", Range::new(0, 10));
        let lines = lines(wanted, &[], None);
        assert_eq!(lines[0], "GET /test.txt HTTP/1.1");
        for line in [
            "host: examplebucket.s3.amazonaws.com",
            "range: bytes=0-9",
            "x-amz-date: 20130524T000000Z",
            "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "authorization: AWS4-HMAC-SHA256 \
             Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ] {
            assert!(lines.iter().any(|own| own == line), "{line} in {lines:#?}");
        }
    }

    #[test]
    fn all_that_matters_is_signed() {
        let wanted = GetOptions::new("a//b c+é", Range::new(5, 6)).with_if_match(Some("\"e\""));
        let payer =
            (HeaderName::from_static("x-amz-request-payer"), HeaderValue::from_static("requester"));
        let lines = lines(wanted, &[payer], Some("token"));
        assert_eq!(lines[0], "GET /a//b%20c%2B%C3%A9 HTTP/1.1");
        assert!(lines.contains(&"range: bytes=5-5".to_owned()), "{lines:?}");
        assert!(lines.contains(&"if-match: \"e\"".to_owned()), "{lines:?}");
        let signed = "SignedHeaders=host;if-match;range;x-amz-content-sha256;x-amz-date;x-amz-request-payer;x-amz-security-token,";
        assert!(lines.iter().any(|line| line.contains(signed)), "{lines:#?}");
    }
}
