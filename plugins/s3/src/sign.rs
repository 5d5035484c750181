//! Signatures of requests (AWS Signature Version 4).

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode,
};
use aws_sigv4::sign::v4;
use std::time::SystemTime;
use tf_fs_object_store::http::{Chunks, HeaderName, HeaderValue, Request};
use tf_fs_plugin::prelude::*;

/// Whether a signature is of the body, too.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BodyHash<'a> {
    Of(&'a [u8]),
    Unsigned,
}

/// Signs a request for a service of AWS, with all of its headers.
///
/// # Errors
/// `INVALID_ARGUMENT` for credentials that cannot be in a header.
pub(crate) fn sign(
    request: &mut Request<Chunks>,
    payload: BodyHash<'_>,
    credentials: &Credentials,
    region: &str,
    service: &str,
    now: SystemTime,
) -> Result<()> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        Error::internal(format_args!("a request cannot be signed: {error}"))
    };
    let identity = credentials.clone().into();
    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(service)
        .time(now)
        .settings(settings)
        .build()
        .map_err(|error| failed(&error))?
        .into();
    let url = request.uri().to_string();
    let mut headers = Vec::with_capacity(request.headers().len());
    for (name, value) in request.headers() {
        let value = std::str::from_utf8(value.as_bytes()).map_err(|_| unsendable(name.as_str()))?;
        headers.push((name.as_str(), value));
    }
    let body = match payload {
        BodyHash::Of(body) => SignableBody::Bytes(body),
        BodyHash::Unsigned => SignableBody::UnsignedPayload,
    };
    let signable = SignableRequest::new(request.method().as_str(), url, headers.into_iter(), body);
    let signed =
        aws_sigv4::http_request::sign(signable.map_err(|error| failed(&error))?, &parameters);
    let (added, _) = signed.map_err(|error| failed(&error))?.into_parts();
    let added: Vec<(String, String)> =
        added.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    for (name, value) in added {
        let parsed = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&value));
        let (Ok(header), Ok(mut value)) = parsed else { return Err(unsendable(&name)) };
        value.set_sensitive(true);
        request.headers_mut().insert(header, value);
    }
    Ok(())
}

/// Returns why a header cannot be sent.
#[cold]
pub(crate) fn unsendable(name: &str) -> Error {
    Error::invalid_argument(format_args!(
        "the value of the header `{}` has a line break or a control character; look at the credentials, and at \
         what the store lists as the ETag",
        name.escape_debug()
    ))
}
