//! Cookies of one chain of redirects: a sign-in sets one, and redirects to the file. None is kept for another file.

use crate::name::origin;
use std::fmt;
use std::time::SystemTime;
use tf_fs_object_store::http::{HeaderValue, Response, Uri as Url, date, header};

/// The most cookies of a chain, and the most bytes of one, as in browsers.
const MOST: usize = 50;
const LONGEST: usize = 4096;

/// The cookies that the servers of a chain have set.
#[derive(Clone, Default)]
pub(crate) struct Cookies(Vec<Cookie>);

#[derive(Clone, Debug, PartialEq)]
struct Cookie {
    /// The only server that it is sent to: the one that set it. Browsers also send it to other ports and hosts of its
    /// domain, which may belong to others.
    origin: String,
    path: String,
    name: String,
    value: String,
}

// They may be credentials.
impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|cookie| &cookie.origin)).finish()
    }
}

impl Cookies {
    /// Keeps the cookies that a response from this URL sets.
    pub(crate) fn keep(&mut self, url: &Url, response: &Response) {
        for text in response.headers.get_all(header::SET_COOKIE) {
            if let Ok(text) = std::str::from_utf8(text.as_bytes()) {
                self.set(url, text);
            }
        }
    }

    /// Sets one cookie, as `Set-Cookie` writes it (RFC 6265, 5.2 and 5.3), or deletes one.
    pub(crate) fn set(&mut self, url: &Url, text: &str) {
        let mut parts = text.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else {
            return;
        };
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || text.len() > LONGEST {
            return;
        }
        let host = url.host().unwrap_or_default().to_ascii_lowercase();
        let directory = url.path().rfind('/').filter(|&end| end > 0).map(|end| &url.path()[..end]);
        let mut path = directory.unwrap_or("/");
        let (mut lives, mut expires) = (None, None);
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            match key.as_str() {
                "domain" => {
                    let domain = value.trim_start_matches('.').to_ascii_lowercase();
                    let rest = host.strip_suffix(&domain);
                    let is_within = rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                    if !domain.is_empty() && !is_within {
                        return;
                    }
                }
                "secure" if url.scheme_str() != Some("https") => return,
                "path" if value.starts_with('/') => path = value,
                "max-age" => lives = value.parse::<i64>().ok().map(|seconds| seconds > 0).or(lives),
                "expires" => expires = date(value),
                _ => {}
            }
        }
        let cookie = Cookie {
            origin: origin(url),
            path: path.to_owned(),
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let is_same = |other: &Cookie| {
            (&other.origin, &other.path, &other.name)
                == (&cookie.origin, &cookie.path, &cookie.name)
        };
        self.0.retain(|other| !is_same(other));
        let now = SystemTime::now();
        if lives.unwrap_or(expires.is_none_or(|at| at > now)) && self.0.len() < MOST {
            self.0.push(cookie);
        }
    }

    /// Returns the `Cookie` header of a request for this URL.
    pub(crate) fn header(&self, url: &Url) -> Option<HeaderValue> {
        let (origin, path) = (origin(url), url.path());
        let is_below = |directory: &str| {
            path.strip_prefix(directory).is_some_and(|rest| {
                rest.is_empty() || directory.ends_with('/') || rest.starts_with('/')
            })
        };
        let all = self.0.iter().filter(|cookie| cookie.origin == origin && is_below(&cookie.path));
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs: Vec<_> =
            all.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        let mut value = HeaderValue::try_from(pairs.join("; ")).ok().filter(|_| !all.is_empty())?;
        value.set_sensitive(true);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_goes_back_to_its_server_alone() {
        for (from, set, to, sent) in [
            ("https://h/a", "s=1", "https://h/b", Some("s=1")),
            ("https://H:443/a", "s=1", "https://h/b", Some("s=1")),
            ("https://h/a", "s=1", "https://h:444/b", None),
            ("https://h/a", "s=1", "https://i/b", None),
            ("https://h/a", "s=1", "https://www.h/b", None),
            ("http://h/a", "s=1", "https://h/b", None),
            // Domains: that of a parent is valid, and not sent to others.
            ("https://a.h/x", "s=1; Domain=h", "https://a.h/y", Some("s=1")),
            ("https://a.h/x", "s=1; domain=.H", "https://a.h/y", Some("s=1")),
            ("https://a.h/x", "s=1; Domain=h", "https://b.h/y", None),
            ("https://a.h/x", "s=1; Domain=b.h", "https://a.h/y", None),
            ("https://ah/x", "s=1; Domain=h", "https://ah/y", None),
            ("https://a.h/x", "s=1; Domain=", "https://a.h/y", Some("s=1")),
            // Only TLS sets and sends what is secure.
            ("https://h/a", "s=1; Secure; HttpOnly", "https://h/b", Some("s=1")),
            ("http://h/a", "s=1; SECURE", "http://h/b", None),
            ("http://h/a", "s=1", "http://h/b", Some("s=1")),
            // Paths.
            ("https://h/a/b", "s=1", "https://h/a/c", Some("s=1")),
            ("https://h/a/b", "s=1", "https://h/c", None),
            ("https://h/a/b", "s=1; Path=/", "https://h/c", Some("s=1")),
            ("https://h/a", "s=1; Path=/d", "https://h/d/e", Some("s=1")),
            ("https://h/a", "s=1; Path=/d", "https://h/de", None),
            ("https://h/a", "s=1; Path=x", "https://h/b", Some("s=1")),
            // Times.
            ("https://h/a", "s=1; Max-Age=60", "https://h/b", Some("s=1")),
            ("https://h/a", "s=1; Max-Age=0", "https://h/b", None),
            ("https://h/a", "s=1; Max-Age=-1", "https://h/b", None),
            ("https://h/a", "s=1; Expires=Sun, 06 Nov 1994 08:49:37 GMT", "https://h/b", None),
            (
                "https://h/a",
                "s=1; Max-Age=9; Expires=Sun, 06 Nov 1994 08:49:37 GMT",
                "https://h/b",
                Some("s=1"),
            ),
            // These are not cookies:
            ("https://h/a", "s", "https://h/b", None),
            ("https://h/a", "=1", "https://h/b", None),
            ("https://h/a", "", "https://h/b", None),
            ("https://h/a", "s=", "https://h/b", Some("s=")),
            ("https://h/a", " s = \"1=2\" ;;", "https://h/b", Some("s=\"1=2\"")),
        ] {
            let (mut cookies, from) = (Cookies::default(), Url::try_from(from).unwrap());
            cookies.set(&from, set);
            let got = cookies.header(&Url::try_from(to).unwrap());
            let got = got.as_ref().map(|value| value.to_str().unwrap());
            assert_eq!(got, sent, "{set} of {from} to {to}");
        }
    }

    #[test]
    fn cookies_replace_each_other_and_do_not_show() {
        let url = Url::from_static("https://h/a/b");
        let mut cookies = Cookies::default();
        for text in ["s=sesame", "t=2; Path=/", "s=3", "u=4", "u=5; Max-Age=0"] {
            cookies.set(&url, text);
        }
        assert_eq!(cookies.header(&url).unwrap(), "s=3; t=2");
        assert!(!format!("{cookies:?} {:?}", cookies.header(&url)).contains("s=3"));
        for n in 0..1000 {
            cookies.set(&url, &format!("{n}=x"));
        }
        cookies.set(&url, &format!("long={}", "x".repeat(5000)));
        assert_eq!(cookies.0.len(), MOST);
    }
}
