//! The signature of a request with an account's key: Azure's Shared Key scheme, version 2015-02-21 and later.

use crate::settings::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use tf_fs_object_store::http::{HeaderMap, Method};

/// An account's key.
#[derive(Clone)]
pub(crate) struct SharedKey(Hmac<Sha256>);

impl SharedKey {
    /// Parses the key as Azure shows it; `None` if it is not base64.
    pub(crate) fn parse(text: &Secret) -> Option<Self> {
        let key = STANDARD.decode(text.expose().trim()).ok().filter(|key| !key.is_empty())?;
        Hmac::new_from_slice(&key).ok().map(Self)
    }

    /// Returns the value of `Authorization`. `path` is that of the URL, encoded as it is sent; `query` has names and
    /// values before they are encoded.
    pub(crate) fn authorization(
        &self,
        account: &str,
        method: &Method,
        path: &str,
        query: &[(&str, String)],
        headers: &HeaderMap,
        content_length: u64,
    ) -> String {
        let text = string_to_sign(account, method, path, query, headers, content_length);
        let mut mac = self.0.clone();
        mac.update(text.as_bytes());
        format!("SharedKey {account}:{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl PartialEq for SharedKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.clone().finalize() == other.0.clone().finalize()
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKey(…)")
    }
}

/// Headers whose values are signed by their place.
const PLACES: [&str; 8] = [
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

fn string_to_sign(
    account: &str,
    method: &Method,
    path: &str,
    query: &[(&str, String)],
    headers: &HeaderMap,
    content_length: u64,
) -> String {
    let value = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let length = if content_length == 0 { String::new() } else { content_length.to_string() };
    let (encoding, language) = (value("content-encoding"), value("content-language"));
    let mut text = format!("{method}\n{encoding}\n{language}\n{length}\n");
    for name in PLACES {
        let _ = writeln!(text, "{}", value(name));
    }
    let own: BTreeMap<&str, &str> = headers
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("x-ms-"))
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default().trim()))
        .collect();
    for (name, value) in own {
        let _ = writeln!(text, "{name}:{value}");
    }
    let _ = write!(text, "/{account}{path}");
    let sorted: BTreeMap<&str, &str> =
        query.iter().map(|(name, value)| (*name, value.as_str())).collect();
    for (name, value) in sorted {
        let _ = write!(text, "\n{name}:{value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tf_fs_object_store::http::HeaderValue;

    /// Compares with the documentation of Azure's Shared Key scheme, for a list of containers.
    #[test]
    fn the_text_is_that_of_the_documentation() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-ms-version", "2015-02-21"),
            ("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"),
            ("user-agent", "none of its business"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let query = [
            ("timeout", "20".to_owned()),
            ("restype", "container".to_owned()),
            ("comp", "metadata".to_owned()),
        ];
        let text = string_to_sign("myaccount", &Method::GET, "/mycontainer", &query, &headers, 0);
        assert_eq!(
            text,
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n/myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"
        );
    }

    #[test]
    fn a_key_is_base64_and_does_not_show() {
        let key = SharedKey::parse(&Secret::new("c2VzYW1l")).expect("a key");
        assert!(!format!("{key:?}").contains("sesame"));
        for text in ["", "not base64!"] {
            assert!(SharedKey::parse(&Secret::new(text)).is_none(), "{text}");
        }
    }
}
