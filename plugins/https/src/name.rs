//! A URL, as the user wrote it: scheme, host and port are the bucket, the path and the query are the key.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use std::borrow::Cow;
use tf_fs_object_store::Name;
use tf_fs_object_store::http::{Uri as Url, names_server};
use tf_fs_plugin::prelude::*;
use url::Url as Reference;

/// Characters that a request line cannot hold. Letters beyond ASCII are escaped too; existing escapes stay as they are.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Splits a URL into its origin, such as `https://host:8080`, and the text after the next `/`.
///
/// # Errors
/// `INVALID_ARGUMENT` for what is not a URL of these schemes. The error does not show it: it may have a password in it.
pub(crate) fn split(uri: Uri<'_>) -> Result<(&str, &str)> {
    let text = std::str::from_utf8(uri.as_bytes())
        .map_err(|_| Error::invalid_argument("the URL is not UTF-8; percent-encode its bytes"))?;
    let is_known =
        |scheme: &str| ["https", "http"].iter().any(|it| it.eq_ignore_ascii_case(scheme));
    let parts = text.split_once("://").filter(|(scheme, _)| is_known(scheme));
    let (_, rest) = parts.ok_or_else(|| {
        Error::invalid_argument(
            "the name is not a URL; write https://host/path or http://host/path",
        )
    })?;
    let host_at = text.len() - rest.len();
    let end = rest.find('/').map_or(text.len(), |slash| host_at + slash);
    let (origin, key) = (&text[..end], text[end..].strip_prefix('/').unwrap_or_default());
    let authority = &origin[host_at..];
    ensure!(
        !authority.contains('@'),
        Error::invalid_argument(
            "the URL has a user name or a password, which would show up in logs; put them into ~/.netrc, or a token \
             into TF_HTTPS_BEARER_TOKENS"
        )
    );
    ensure!(
        !authority.contains(['?', '#', '\\']) && ascii(origin).is_some(),
        Error::invalid_argument(format_args!(
            "`{}` is not a host; write https://host/path or https://host:port/path",
            authority.escape_debug()
        ))
    );
    ensure!(
        !key.contains('#'),
        Error::invalid_argument(format_args!(
            "{}: a `#` begins a fragment, which is not sent to servers; write %23, or leave it out",
            Name::new("https", origin, key)
        ))
    );
    Ok((origin, key))
}

/// Returns an origin as requests name it: an international host in its ASCII form. `None` if it has no valid host.
pub(crate) fn ascii(origin: &str) -> Option<Cow<'_, str>> {
    let is_host = |origin: &str| {
        Url::try_from(origin).is_ok_and(|url| names_server(&url) && url.path() == "/")
    };
    if is_host(origin) {
        return Some(Cow::Borrowed(origin));
    }
    // The parser of browsers would leave these out, or take them for something else.
    let is_odd = |c: char| c.is_ascii_control() || matches!(c, ' ' | '/' | '\\' | '?' | '#' | '@');
    let (_, authority) = origin.split_once("://")?;
    if authority.contains(is_odd) {
        return None;
    }
    let url = Reference::parse(origin).ok()?;
    Some(Cow::Owned(url.origin().ascii_serialization())).filter(|origin| is_host(origin))
}

/// Returns the URL for requests of this key of an origin.
///
/// # Errors
/// `INVALID_ARGUMENT` for a URL that is too long.
pub(crate) fn url(origin: &str, key: &str) -> Result<Url> {
    let base = ascii(origin).unwrap_or(Cow::Borrowed(origin));
    Url::try_from(format!("{base}/{}", utf8_percent_encode(key, ESCAPED))).map_err(|error| {
        Error::invalid_argument(format_args!(
            "{}: cannot be requested: {error}",
            Name::new("https", origin, key)
        ))
    })
}

/// Returns scheme, host and port of a URL in one form: lower case, and without a port that the scheme implies.
pub(crate) fn origin(url: &Url) -> String {
    let scheme = url.scheme_str().unwrap_or_default();
    let host = url.host().unwrap_or_default().to_ascii_lowercase();
    match (scheme, url.port_u16()) {
        (_, None) | ("https", Some(443)) | ("http", Some(80)) => format!("{scheme}://{host}"),
        (_, Some(port)) => format!("{scheme}://{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_what_the_user_wrote() {
        for (text, origin, key) in [
            ("https://h/a//b/../c?x=%2F/y", "https://h", "a//b/../c?x=%2F/y"),
            ("http://h:81/", "http://h:81", ""),
            ("http://h", "http://h", ""),
            ("http://[::1]:80/%2e%2E", "http://[::1]:80", "%2e%2E"),
        ] {
            assert_eq!(split(Uri::new(text.as_bytes())).unwrap(), (origin, key));
        }
        for (key, path) in
            [("a//b/../c?x=%2F", "/a//b/../c?x=%2F"), ("ü a", "/%C3%BC%20a"), ("%41", "/%41")]
        {
            assert_eq!(url("https://h", key).unwrap().path_and_query().unwrap().as_str(), path);
        }
    }

    #[test]
    fn a_host_is_requested_in_ascii() {
        for (text, url) in [
            ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
            ("http://BÜCHER.example:81", "http://xn--bcher-kva.example:81/"),
            ("http://b%C3%BCcher.example:80/x", "http://xn--bcher-kva.example/x"),
            ("http://例え.テスト/", "http://xn--r8jz45g.xn--zckzah/"),
            ("http://my_host:/x", "http://my_host:/x"),
            ("HTTP://H:80/x", "http://H:80/x"),
            ("HTTPS://bücher.example/x", "https://xn--bcher-kva.example/x"),
            ("http://[::1]:81/x", "http://[::1]:81/x"),
            ("http://127.1/x", "http://127.1/x"),
        ] {
            let (origin, key) = split(Uri::new(text.as_bytes())).unwrap();
            assert_eq!(super::url(origin, key).unwrap().to_string(), url);
        }
        for text in
            ["http://ü\n/", "http://ü b/", "http://ü:port/", "http://h:99999/", "http://a%00b/"]
        {
            assert!(split(Uri::new(text.as_bytes())).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_invalid_url_is_reported_without_its_secrets() {
        for text in ["https://user:sesame@h/x", "https://sesame@h/x"] {
            let error = split(Uri::new(text.as_bytes())).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(
                !error.message().contains("sesame") && error.message().contains("netrc"),
                "{error}"
            );
        }
        for text in [
            "https://",
            "https:///x",
            "https://h?x",
            "https://a b/x",
            "ftp://h/x",
            "https://h/x#y",
            "https://h:99999/x",
            "https://h:8o/x",
        ] {
            assert_eq!(
                split(Uri::new(text.as_bytes())).unwrap_err().code(),
                Code::InvalidArgument,
                "{text}"
            );
        }
        let error = split(Uri::new(b"https://h/x?sesame#y")).unwrap_err();
        assert!(!error.message().contains("sesame"), "{error}");
    }

    #[test]
    fn an_origin_has_one_form() {
        for (text, form) in [
            ("https://H:443/x", "https://h"),
            ("http://h:443/x", "http://h:443"),
            ("http://h:80/", "http://h"),
            ("HTTPS://h:443/", "https://h"),
        ] {
            assert_eq!(origin(&Url::try_from(text).unwrap()), form);
        }
    }
}
