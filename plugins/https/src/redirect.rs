//! Where a redirect leads.

use crate::cookies::Cookies;
use crate::name;
use percent_encoding::{AsciiSet, percent_encode};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tf_fs_object_store::http::{
    HeaderValue, Http, HttpError, NetworkPolicy, Response, Uri as Url, Zone, header,
};
use tf_fs_plugin::prelude::*;
use url::Url as Reference;

/// Bytes of a `Location` that are escaped before it is parsed: those beyond ASCII, as they are, whatever their charset.
const ESCAPED: &AsciiSet = &AsciiSet::EMPTY;

/// Returns the target of a redirect, with ASCII alone; `None` if the response is not one, or names several.
pub(crate) fn location(response: &Response) -> Option<String> {
    if !matches!(response.status, 301..=303 | 307 | 308) {
        return None;
    }
    let mut all = response.headers.get_all(header::LOCATION).iter();
    let first = all.next().filter(|first| all.all(|other| other == first))?;
    Some(percent_encode(HeaderValue::as_bytes(first), ESCAPED).to_string())
}

/// Returns the URL of a redirect's target, as browsers understand it.
///
/// # Errors
/// If it is not a valid target.
pub(crate) fn follow(from: &Url, location: &str) -> Result<Url, HttpError> {
    let fail = |text: String| HttpError::Other(Error::failed_precondition(text));
    let here = Reference::parse(&from.to_string()).ok();
    let to = here.and_then(|here| here.join(location).ok());
    let Some(mut to) = to.filter(|to| matches!(to.scheme(), "http" | "https") && to.has_host())
    else {
        return Err(fail(format!(
            "{} redirects to something that is not a URL of a file; look at the URL",
            name::origin(from)
        )));
    };
    if from.scheme_str() == Some("https") && to.scheme() == "http" {
        let host = to.host_str().unwrap_or_default();
        return Err(fail(format!(
            "{} redirects to http://{host}, where anybody on the way can read and change the bytes; if that does not matter, \
             name the http:// URL itself",
            name::origin(from)
        )));
    }
    // They are the redirect's, not the user's.
    let _ = (to.set_username(""), to.set_password(None));
    to.set_fragment(None);
    Url::try_from(to.as_str())
        .map_err(|error| fail(format!("the redirect cannot be followed: {error}")))
}

/// The clients of requests that redirects cause, by what they may reach. All origins of a process share them.
#[derive(Clone, Debug)]
pub(crate) struct Clients {
    /// The client of requests to the servers that the user names.
    http: Http,
    /// Whether redirects are followed to any address.
    local_redirects: bool,
    within: Arc<Mutex<HashMap<NetworkPolicy, Http>>>,
}

impl Clients {
    pub(crate) fn new(http: Http, local_redirects: bool) -> Self {
        Self { http, local_redirects, within: Arc::default() }
    }

    /// Returns the client of requests within this reach; of those to servers that the user names if there is none.
    pub(crate) fn of(&self, reach: Option<NetworkPolicy>) -> Http {
        let Some(reach) = reach.filter(|_| !self.local_redirects) else { return self.http.clone() };
        let mut all = self.within.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(reach).or_insert_with(|| self.http.within(reach)).clone()
    }
}

/// Returns the zone of the server that sent a response.
pub(crate) fn zone(response: &Response) -> Zone {
    let host = response.url().host().unwrap_or_default();
    response.peer().map(Zone::of).or_else(|| Zone::of_host(host)).unwrap_or(Zone::Public)
}

/// Returns what redirects that begin at a server of the zone `from` may reach at `to`.
///
/// A server on the Internet cannot connect to this machine and its network. It should not make this process do so, nor
/// read credentials from the cloud's metadata. Within one zone nothing is won. In a private network a certificate shows
/// that the host is the one that was named.
pub(crate) fn reach(from: Zone, to: &Url) -> NetworkPolicy {
    match (from, to.scheme_str()) {
        (Zone::Loopback, _) => NetworkPolicy::new(&[Zone::Loopback, Zone::Private]),
        (_, Some("https")) => NetworkPolicy::new(&[from, Zone::Private]),
        _ => NetworkPolicy::new(&[from]),
    }
}

/// Returns the failure of a redirect out of reach, and any other unchanged.
pub(crate) fn explain(failed: HttpError, from: &str, to: &Url) -> HttpError {
    let Some(why) = failed.address_not_allowed() else { return failed };
    HttpError::Other(Error::failed_precondition(format_args!(
        "{from} redirects to {}, but {why}, where {from} is not; if that is intended, name that URL itself, or set \
         TF_HTTPS_LOCAL_REDIRECTS=1",
        name::origin(to)
    )))
}

/// Returns whether a URL has a signature, as those of S3, Google Cloud Storage, Azure and CDNs have.
pub(crate) fn is_signed(url: &Url) -> bool {
    let keys = url.query().unwrap_or_default().split('&').map(|pair| {
        let key = pair.split_once('=').map_or(pair, |(key, _)| key);
        key.to_ascii_lowercase()
    });
    let known = ["sig", "hdnts", "hdnea", "__token__", "expires", "verify"];
    keys.into_iter().any(|key| key.ends_with("signature") || known.contains(&key.as_str()))
}

/// Where a file is, after redirects.
#[derive(Clone)]
pub(crate) struct Location {
    pub(crate) url: Url,
    pub(crate) cookies: Cookies,
    /// The zones that its requests may reach; `None` for a server that the user named.
    pub(crate) reach: Option<NetworkPolicy>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(text: &str) -> Url {
        Url::try_from(text).unwrap()
    }

    #[test]
    fn targets_are_those_of_browsers() {
        for (here, location, to) in [
            ("https://h/a/b?q", "c", "https://h/a/c"),
            ("https://h/a/b", "/c?x=%2F", "https://h/c?x=%2F"),
            ("https://h/a", "//i:8/b", "https://i:8/b"),
            ("http://h/a", "//i/b", "http://i/b"),
            ("http://h/a", "https://u:p@i/b#c", "https://i/b"),
            ("https://h/a", "https://h/a//b%41", "https://h/a//b%41"),
            ("https://h/a", "b/../c", "https://h/c"),
            ("https://h/a/b/c", "../../d", "https://h/d"),
            ("https://h/a/b/c", "../../../../d", "https://h/d"),
            ("https://h/a/b/c", "./%2e%2E/d", "https://h/a/d"),
            ("https://h/a/b/c", "..", "https://h/a/"),
            ("https://h/a?q", "?r=1", "https://h/a?r=1"),
            ("https://h/a?q", "?", "https://h/a?"),
            ("https://h/a?q", "#f", "https://h/a?q"),
            ("https://h/a", "b#f?g", "https://h/b"),
            ("https://h/a", "HTTPS://H.Example/B", "https://h.example/B"),
            ("https://h/a", "https://h:443/b", "https://h/b"),
            ("http://h/a", "http://h:80/b", "http://h/b"),
            ("http://h/a", "http://h:/b", "http://h/b"),
            ("http://h/a", "http://h:0081/b", "http://h:81/b"),
            ("http://h/a", "http://[::1]:8/b", "http://[::1]:8/b"),
            ("http://h/a", "http://[0:0:0:0:0:0:0:1]/b", "http://[::1]/b"),
            ("http://h/a", "http://127.1/b", "http://127.0.0.1/b"),
            ("http://h/a", "http://0x7f000001/b", "http://127.0.0.1/b"),
            ("http://h/a", "http://b%C3%BCcher.example/b", "http://xn--bcher-kva.example/b"),
            ("http://h/a", "http://xn--bcher-kva.example/b", "http://xn--bcher-kva.example/b"),
            ("http://h/a", "http://my_host-1.example./b", "http://my_host-1.example./b"),
            ("https://h/a", "/a b.bin", "https://h/a%20b.bin"),
            ("https://h/a", "  /b  ", "https://h/b"),
            ("https://h/a", "/b\tc", "https://h/bc"),
            ("https://h/a", "\\\\i\\b\\c", "https://i/b/c"),
            ("https://h/a", "https:\\\\i/b", "https://i/b"),
            ("https://h/a", "https:/i/b", "https://h/i/b"),
            ("https://h/a", "https:b", "https://h/b"),
            ("https://h/a", "https:///i/b", "https://i/b"),
            ("https://h/a", "/%zz%", "https://h/%zz%"),
            ("https://h/a", "/\"<>`{|}^[]\\'", "https://h/%22%3C%3E%60%7B|%7D^[]/'"),
            ("https://h/a", "/b?\"<>`{|}^[]\\'", "https://h/b?%22%3C%3E`{|}^[]\\%27"),
            ("https://h/a", "", "https://h/a"),
            ("https://h", "b", "https://h/b"),
        ] {
            let got = follow(&from(here), location);
            assert_eq!(got.map(|url| url.to_string()).unwrap(), to, "{location}");
        }
    }

    #[test]
    fn redirects_lead_into_no_other_zone() {
        use Zone::{LinkLocal, Loopback, Private, Public};
        for (from_zone, scheme, zones) in [
            (Public, "http", &[][..]),
            (Public, "https", &[Private]),
            (Private, "http", &[Private]),
            (Private, "https", &[Private]),
            (Loopback, "http", &[Loopback, Private]),
            (Loopback, "https", &[Loopback, Private]),
            (LinkLocal, "http", &[LinkLocal]),
        ] {
            let to = from(&format!("{scheme}://h/"));
            assert_eq!(reach(from_zone, &to), NetworkPolicy::new(zones), "{from_zone:?} {scheme}");
        }
    }

    #[test]
    fn signatures_are_known() {
        for (url, signed) in [
            ("https://h/f?X-Amz-Signature=1", true),
            ("https://h/f?sv=2&sig=1", true),
            ("https://h/f?Expires=1&Signature=2&Key-Pair-Id=3", true),
            ("https://h/f?x-goog-signature", true),
            ("https://h/f?q=signature", false),
            ("https://h/signature", false),
        ] {
            assert_eq!(is_signed(&from(url)), signed, "{url}");
        }
    }

    #[test]
    fn only_files_are_targets() {
        for location in [
            "http://h/a",
            "HTTP://h/a",
            "ftp://h/a",
            "file:///etc/passwd",
            "data:,x",
            "https://",
            "javascript:0",
            "https://a b/",
            "https://h:99999/",
            "https://h:port/",
            "https://[::1/",
            "https://a%00b/",
        ] {
            assert!(follow(&from("https://h/a"), location).is_err(), "{location}");
        }
    }
}
