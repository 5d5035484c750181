//! What is sent.

use super::{Target, Wanted};
use crate::connection::Route;
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use http::{HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use std::time::SystemTime;
use tf_fs_plugin::prelude::*;

/// All but S3's unreserved characters and the slash.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The request as it goes over the wire, signed if there are credentials.
pub(super) fn request(
    target: &Target,
    route: &Route,
    wanted: Wanted<'_>,
    credentials: Option<&Credentials>,
) -> Result<Vec<u8>> {
    let asked: Vec<_> = target.bucket.headers().collect();
    compose(route, wanted, &asked, credentials, target.now())
}

fn compose(
    route: &Route,
    wanted: Wanted<'_>,
    asked: &[(HeaderName, HeaderValue)],
    credentials: Option<&Credentials>,
    now: SystemTime,
) -> Result<Vec<u8>> {
    let authority = route.authority();
    let path = format!("{}/{}", route.path, percent_encode(wanted.key.as_bytes(), ESCAPED));
    let range = format!("bytes={}-{}", wanted.range.start, wanted.range.end.saturating_sub(1));
    let mut headers = vec![("host", authority.as_str()), ("range", &range)];
    headers.extend(wanted.etag.map(|etag| ("if-match", etag)));
    for (name, value) in asked {
        headers.push((name.as_str(), value.to_str().map_err(unsigned)?));
    }
    let mut text = Vec::with_capacity(1024);
    line(&mut text, &["GET ", &path, " HTTP/1.1"]);
    for (name, value) in &headers {
        line(&mut text, &[name, ": ", value]);
    }
    line(&mut text, &["accept-encoding: identity"]);
    line(&mut text, &["user-agent: tf-plugin-s3/", env!("CARGO_PKG_VERSION")]);
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
            line(&mut text, &[name, ": ", value]);
        }
    }
    text.extend_from_slice(b"\r\n");
    Ok(text)
}

fn line(to: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        to.extend_from_slice(part.as_bytes());
    }
    to.extend_from_slice(b"\r\n");
}

#[cold]
fn unsigned(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::internal("a request cannot be signed").with_source(error)
}

#[cfg(test)]
mod tests {
    use super::super::Range;
    use super::*;
    use aws_sdk_s3::config::endpoint::Endpoint;
    use std::time::Duration;

    fn lines(
        wanted: Wanted<'_>,
        asked: &[(HeaderName, HeaderValue)],
        token: Option<&str>,
    ) -> Vec<String> {
        let endpoint = Endpoint::builder().url("https://examplebucket.s3.amazonaws.com").build();
        let route = Route::of(&endpoint, "us-east-1".to_owned().into()).unwrap();
        let credentials = Credentials::new(
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            token.map(str::to_owned),
            None,
            "documentation",
        );
        // Fri, 24 May 2013 00:00:00 GMT
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_369_353_600);
        let text = compose(&route, wanted, asked, Some(&credentials), now).unwrap();
        let text = String::from_utf8(text).unwrap();
        text.strip_suffix("\r\n\r\n").unwrap().split("\r\n").map(str::to_owned).collect()
    }

    /// "Example: GET Object" of "Authenticating Requests: Using the Authorization Header" in Amazon's documentation.
    #[test]
    fn a_request_is_signed_as_documented() {
        let wanted = Wanted { key: "test.txt", range: Range::new(0, 10), etag: None };
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
        let wanted = Wanted { key: "a//b c+é", range: Range::new(5, 6), etag: Some("\"e\"") };
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
