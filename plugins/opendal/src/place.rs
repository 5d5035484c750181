//! Where a remote is: the URL of a section in the settings file, or the host of a name.

use crate::scheme::{PORTS, Scheme};
use crate::settings::Settings;
use tf_fs_object_store::http::{Uri as Url, names_server};
use tf_fs_plugin::prelude::*;

/// A place on a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    /// Of the URL.
    pub(crate) scheme: &'static str,
    /// In lower case, an address of version 6 in brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The path that names begin at, decoded.
    pub(crate) root: String,
    /// Whether the credentials of the settings are for it.
    pub(crate) is_known: bool,
}

impl Place {
    /// Returns where a remote is.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a name that is not a host, or a URL of another protocol.
    pub(crate) fn of(scheme: &'static Scheme, remote: &str, settings: &Settings) -> Result<Self> {
        let configured = settings.url.as_deref().map(parse).transpose()?;
        if let Some(place) = configured.clone().filter(|_| settings.is_named) {
            if let Some(protocol) = &settings.protocol {
                ensure!(
                    protocol == scheme.protocol,
                    Error::invalid_argument(format_args!(
                        "the remote has the type {protocol}, and {}:// is {}; write {protocol}://, or correct the type",
                        scheme.name, scheme.protocol
                    ))
                );
            }
            ensure!(
                scheme.urls.contains(&place.scheme),
                Error::invalid_argument(match (scheme.urls, place.scheme) {
                    (["https"], "http") | (["ftps"], "ftp") => format!(
                        "its url has no TLS; write {}:// for it, or {}:// in its url",
                        scheme.protocol, scheme.urls[0]
                    ),
                    _ => format!(
                        "its url begins with {}://, and {}:// needs {}://",
                        place.scheme,
                        scheme.name,
                        scheme.urls.join(":// or ")
                    ),
                })
            );
            return Ok(place);
        }
        ensure!(
            scheme.takes_hosts,
            Error::invalid_argument(format_args!(
                "it is not a remote of the settings file, and the name does not tell where WebHDFS is; add \
                 [remote.\"{remote}\"] with url = \"http://host:9870\""
            ))
        );
        let mut place = parse(&format!("{}://{remote}", scheme.urls[0])).map_err(|_| {
            Error::invalid_argument(
                "it is neither a remote of the settings file nor a host; correct the name, or add a section for it",
            )
        })?;
        place.is_known = configured.is_some_and(|known| known.origin() == place.origin());
        Ok(place)
    }

    /// Returns where the buckets of an account are: at the `url` of settings with this type.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for settings of another protocol, or without a URL.
    pub(crate) fn of_account(scheme: &'static Scheme, settings: &Settings) -> Result<Self> {
        let place = settings.url.as_deref().map(parse).transpose()?;
        let is_own = settings.protocol.as_deref() == Some(scheme.protocol);
        place.filter(|place| is_own && scheme.urls.contains(&place.scheme)).ok_or_else(|| {
            Error::invalid_argument(format_args!(
                "there are no settings for it; set type to {0}, and url to {1}:// and the host of {0}",
                scheme.protocol, scheme.urls[0]
            ))
        })
    }

    /// Returns scheme, host and port, in one form.
    pub(crate) fn origin(&self) -> String {
        let Self { scheme, host, port, .. } = self;
        match PORTS.contains(&(*scheme, *port)) {
            true => format!("{scheme}://{host}"),
            false => format!("{scheme}://{host}:{port}"),
        }
    }

    /// Returns the host as a resolver takes it.
    pub(crate) fn address(&self) -> (&str, u16) {
        let host = self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        (host.unwrap_or(&self.host), self.port)
    }
}

/// Splits a URL. Its credentials are known.
///
/// # Errors
/// `INVALID_ARGUMENT`, without the text: it may have a password in it.
fn parse(text: &str) -> Result<Place> {
    let url = text.parse::<Url>().ok().filter(names_server);
    let url = url.filter(|_| !text.contains(['@', '?', '#']));
    let known = url
        .as_ref()
        .and_then(|url| PORTS.iter().find(|(scheme, _)| url.scheme_str() == Some(scheme)));
    let (Some(url), Some(&(scheme, usual))) = (&url, known) else {
        return Err(Error::invalid_argument(
            "the url is not one of a server and a path; write https://host/path",
        ));
    };
    let root = percent_encoding::percent_decode_str(url.path()).decode_utf8();
    let root = root.map_err(|_| Error::invalid_argument("the path of the url is not UTF-8"))?;
    Ok(Place {
        scheme,
        host: url.host().unwrap_or_default().to_ascii_lowercase(),
        port: url.port_u16().unwrap_or(usual),
        root: root.into_owned(),
        is_known: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_one_form() {
        for (text, origin, address, root) in [
            ("http://NAS:80/a%20b/", "http://nas", ("nas", 80), "/a b/"),
            ("https://nas:8443", "https://nas:8443", ("nas", 8443), "/"),
            ("sftp://[::1]/~/data", "sftp://[::1]", ("::1", 22), "/~/data"),
            ("ftps://h:990/x", "ftps://h:990", ("h", 990), "/x"),
        ] {
            let place = parse(text).unwrap();
            assert_eq!((&*place.origin(), place.address()), (origin, address), "{text}");
            assert_eq!((&*place.root, place.is_known), (root, true), "{text}");
        }
        for text in
            ["nas", "gopher://h", "http://user:planted@h", "http://h:x", "http://h/?planted"]
        {
            let error = parse(text).unwrap_err();
            assert!(!error.message().contains("planted"), "{error}");
        }
    }
}
