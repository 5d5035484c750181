//! What is sent.

use super::{Target, Wanted};
use crate::connection::Route;
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
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
    let authority = route.authority();
    let path = format!("{}/{}", route.path, percent_encode(wanted.key.as_bytes(), ESCAPED));
    let range = format!("bytes={}-{}", wanted.range.start, wanted.range.end.saturating_sub(1));
    let asked: Vec<_> = target.bucket.headers().collect();
    let mut headers = vec![("host", authority.as_str()), ("range", &range)];
    headers.extend(wanted.etag.map(|etag| ("if-match", etag)));
    for (name, value) in &asked {
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
            .time(target.now())
            .settings(settings)
            .build()
            .map_err(unsigned)?
            .into();
        let scheme = if route.https { "https" } else { "http" };
        let url = format!("{scheme}://{authority}{path}");
        let headers = headers.iter().copied();
        let signable = SignableRequest::new("GET", url, headers, SignableBody::UnsignedPayload)
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
