//! Credentials of requests: a bearer token, or a name and a password.

use crate::name::{self, origin};
use crate::settings::Settings;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tf_fs_object_store::http::{HeaderMap, HeaderName, HeaderValue, Uri as Url, header};
use tf_fs_object_store::redact::keep;
use tf_fs_plugin::prelude::*;

/// Values of `Authorization`, each for the servers that it is meant for.
#[derive(Clone, Default)]
pub(crate) struct Credentials(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// By origin.
    tokens: HashMap<String, HeaderValue>,
    /// By origin.
    headers: HashMap<String, HeaderMap>,
    /// By host.
    passwords: HashMap<String, HeaderValue>,
    /// For any other host that the user names.
    default: Option<HeaderValue>,
}

impl Credentials {
    /// Reads the credentials of the settings. A file of passwords that is missing or cannot be read counts as empty.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for tokens that cannot be parsed.
    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        let text = settings.bearer_tokens.as_ref().map_or("", |secret| secret.expose());
        let lines = settings.headers.as_ref().map_or("", |secret| secret.expose());
        let mut inner =
            Inner { tokens: tokens(text)?, headers: headers(lines)?, ..Inner::default() };
        if let Some(path) = &settings.netrc {
            match std::fs::read_to_string(path) {
                Ok(text) => (inner.passwords, inner.default) = netrc(&text),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => log::warn!("{} cannot be read: {error}", path.display()),
            }
        }
        Ok(Self(Arc::new(inner)))
    }

    /// Adds the credentials and the headers for the server of this URL to those of a request. A header replaces a token
    /// or a password, and joins cookies.
    pub(crate) fn add(&self, to: &mut HeaderMap, url: &Url, named: &Url) {
        if let Some(authorization) = self.of(url, named) {
            to.insert(header::AUTHORIZATION, authorization);
        }
        for (name, value) in self.0.headers.get(&origin(url)).into_iter().flatten() {
            let joined = to.get(name).filter(|_| name == header::COOKIE).and_then(|cookies| {
                let both = [value.as_bytes(), b"; ", cookies.as_bytes()].concat();
                let mut both = HeaderValue::from_bytes(&both).ok()?;
                both.set_sensitive(true);
                Some(both)
            });
            to.insert(name, joined.unwrap_or_else(|| value.clone()));
        }
    }

    /// Returns whether requests to the server of this URL have credentials.
    pub(crate) fn has(&self, url: &Url, named: &Url) -> bool {
        let is_secret = |name: &HeaderName| {
            let others =
                [header::USER_AGENT, header::ACCEPT, header::ACCEPT_LANGUAGE, header::REFERER];
            !others.contains(name)
        };
        let headers = self.0.headers.get(&origin(url));
        self.of(url, named).is_some()
            || headers.is_some_and(|headers| headers.keys().any(is_secret))
    }

    /// Returns the credentials for the server of this URL, where the user named the URL `named`.
    ///
    /// A token is for a scheme, a host and a port. A password is for a host, whose other ports may belong to others: a
    /// redirect takes it neither to another port or scheme of the host that the user named, nor to a port of another host
    /// but that of `https`. A password for any host stays with the server that the user named.
    fn of(&self, url: &Url, named: &Url) -> Option<HeaderValue> {
        let host = |url: &Url| url.host().unwrap_or_default().to_ascii_lowercase();
        let is_named = origin(url) == origin(named);
        let is_usual =
            url.scheme_str() == Some("https") && matches!(url.port_u16(), None | Some(443));
        let Inner { tokens, passwords, default, .. } = &*self.0;
        tokens
            .get(&origin(url))
            .or_else(|| {
                let may_have = is_named || (is_usual && host(url) != host(named));
                passwords.get(&host(url)).filter(|_| may_have)
            })
            .or_else(|| default.as_ref().filter(|_| is_named))
            .cloned()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { tokens, headers, passwords, .. } = &*self.0;
        let hosts = tokens.keys().chain(headers.keys()).chain(passwords.keys());
        f.debug_list().entries(hosts).finish()
    }
}

/// An entry of a list of secrets by host.
struct Listed<'a> {
    /// The variable of the list, and what to write there.
    list: (&'static str, &'static str),
    number: usize,
    origin: String,
    value: &'a str,
}

impl<'a> Listed<'a> {
    /// Parses `host=value`. The default scheme is `https`: no secret is sent in the clear by mistake.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` without the value.
    fn parse(list: (&'static str, &'static str), (index, entry): (usize, &'a str)) -> Result<Self> {
        let entry_of = |origin, value| Listed { list, number: index + 1, origin, value };
        let (host, value) =
            entry.split_once('=').ok_or_else(|| entry_of(String::new(), "").wrong("has no `=`"))?;
        let host = host.trim();
        let text = if host.contains("://") { host.to_owned() } else { format!("https://{host}") };
        let text = text.strip_suffix('/').unwrap_or(&text);
        let url = name::ascii(text).and_then(|origin| Url::try_from(&*origin).ok());
        let url = url.filter(|url| {
            matches!(url.scheme_str(), Some("http" | "https"))
                && url.authority().is_some_and(|authority| !authority.as_str().contains('@'))
        });
        match url {
            Some(url) => Ok(entry_of(origin(&url), value)),
            None => Err(entry_of(String::new(), "").wrong("does not begin with a host")),
        }
    }

    fn wrong(&self, how: &str) -> Error {
        let (variable, format) = self.list;
        Error::invalid_argument(format_args!(
            "{variable}: entry {} {how}; write {format}",
            self.number
        ))
    }
}

/// Parses `host=token http://other:8080=token`.
pub(crate) fn tokens(text: &str) -> Result<HashMap<String, HeaderValue>> {
    let list = ("TF_HTTPS_BEARER_TOKENS", "host=token, with spaces between entries");
    let mut tokens = HashMap::new();
    for entry in text.split_whitespace().enumerate() {
        let entry = Listed::parse(list, entry)?;
        let value = secret(&format!("Bearer {}", entry.value)).filter(|_| !entry.value.is_empty());
        let value = value.ok_or_else(|| entry.wrong("has no token that can be sent"))?;
        tokens.insert(entry.origin, value);
    }
    Ok(tokens)
}

/// Headers that the plugin or the connection sets.
static RESERVED: [HeaderName; 14] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::EXPECT,
    header::RANGE,
    header::IF_RANGE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::ACCEPT_ENCODING,
    header::PROXY_AUTHORIZATION,
];

/// Parses `host=Name: value`, one a line.
fn headers(text: &str) -> Result<HashMap<String, HeaderMap>> {
    let list = ("TF_HTTPS_HEADERS", "host=Name: value, one a line");
    let mut headers = HashMap::<_, HeaderMap>::new();
    for entry in text.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let entry = Listed::parse(list, entry)?;
        let (name, value) =
            entry.value.split_once(':').ok_or_else(|| entry.wrong("has no `:` after the name"))?;
        let name = HeaderName::try_from(name.trim())
            .map_err(|_| entry.wrong("has no valid name of a header"))?;
        if RESERVED.contains(&name) {
            return Err(entry.wrong(&format!("sets {name}, which the plugin sets itself")));
        }
        let value =
            secret(value.trim()).ok_or_else(|| entry.wrong("has a value that cannot be sent"))?;
        headers.entry(entry.origin).or_default().insert(name, value);
    }
    Ok(headers)
}

fn secret(text: &str) -> Option<HeaderValue> {
    // After the scheme, if it has one.
    keep(text.split_once(' ').map_or(text, |(_, secret)| secret));
    // Of cookies, each value.
    text.split(';')
        .filter_map(|pair| pair.split_once('='))
        .for_each(|(_, value)| keep(value.trim()));
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Reads a file such as `~/.netrc`: the passwords by host, and that for any other host. The crates that read such files
/// have had no release since 2024.
pub(crate) fn netrc(text: &str) -> (HashMap<String, HeaderValue>, Option<HeaderValue>) {
    let (mut hosts, mut default) = (HashMap::new(), None);
    let mut add = |entry: Option<Entry>| {
        let Some(Entry { host, login, password: Some(password) }) = entry else { return };
        keep(&password);
        let pair = STANDARD.encode(format!("{}:{password}", login.unwrap_or_default()));
        let Some(value) = secret(&format!("Basic {pair}")) else { return };
        match host {
            // The first entry of a host applies.
            Some(host) => drop(hosts.entry(host.to_ascii_lowercase()).or_insert(value)),
            None => drop(default.get_or_insert(value)),
        }
    };
    let mut words = Words(text);
    let mut entry: Option<Entry> = None;
    while let Some(word) = words.next() {
        // A password may begin with `#`, so a comment is only where no value is.
        if word.starts_with('#') {
            words.skip_line();
            continue;
        }
        match &*word {
            "machine" => {
                add(entry.take());
                entry = words.next().map(|host| Entry { host: Some(host), ..Entry::default() });
            }
            "default" => add(entry.replace(Entry::default())),
            "macdef" => words.skip_macro(),
            "login" | "user" | "account" | "password" => {
                let value = words.next();
                match (&mut entry, &*word) {
                    (Some(entry), "password") => entry.password = value,
                    (Some(entry), "login" | "user") => entry.login = value,
                    _ => {}
                }
            }
            // A value before it is missing, so the following ones may be for another host.
            _ => entry = None,
        }
    }
    add(entry);
    (hosts, default)
}

/// The entry of one host, or of any.
#[derive(Default)]
struct Entry {
    host: Option<String>,
    login: Option<String>,
    password: Option<String>,
}

/// The rest of such a file.
struct Words<'a>(&'a str);

impl Words<'_> {
    /// Returns the next word. One in quotes may have spaces in it, and `\"`.
    fn next(&mut self) -> Option<String> {
        self.0 = self.0.trim_start();
        let is_quoted = self.0.starts_with('"');
        let mut letters = self.0.char_indices().skip(usize::from(is_quoted));
        let mut word = String::new();
        let mut end = self.0.len();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' if is_quoted => {
                    end = at + 1;
                    break;
                }
                letter if !is_quoted && letter.is_whitespace() => {
                    end = at;
                    break;
                }
                '\\' if is_quoted => word.extend(letters.next().map(|(_, letter)| letter)),
                letter => word.push(letter),
            }
        }
        (!self.0.is_empty()).then(|| {
            self.0 = &self.0[end..];
            word
        })
    }

    fn skip_line(&mut self) {
        self.0 = self.0.split_once('\n').map_or("", |(_, rest)| rest);
    }

    /// Skips a macro, which ends with an empty line.
    fn skip_macro(&mut self) {
        self.skip_line();
        while self.0.lines().next().is_some_and(|line| !line.trim().is_empty()) {
            self.skip_line();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::try_from(text).unwrap()
    }

    fn shown(value: Option<HeaderValue>) -> Option<String> {
        value.map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn tokens_are_for_one_server() {
        let tokens = tokens("a.b=one http://c:81=two=2\nD:444=three").unwrap();
        let of = |text| shown(tokens.get(&origin(&url(text))).cloned());
        assert_eq!(of("https://a.b/x").as_deref(), Some("Bearer one"));
        assert_eq!(of("https://A.B:443/x").as_deref(), Some("Bearer one"));
        assert_eq!(of("http://c:81/").as_deref(), Some("Bearer two=2"));
        assert_eq!(of("https://d:444/").as_deref(), Some("Bearer three"));
        for other in
            ["http://a.b/", "https://x.a.b/", "https://a.b:444/", "https://a-b/", "http://c/"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_mistake_is_told_without_the_token() {
        for text in ["sesame", "ok=1 h=", "/h=sesame", "h=ses\u{1}ame", "h:99999=sesame"] {
            let error = super::tokens(text).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(!error.message().contains("ses"), "{error}");
        }
    }

    #[test]
    fn headers_are_for_one_server() {
        let text = "a.b=PRIVATE-TOKEN: one\n\n  http://c:81 = X : two: 2=3 \na.b=x-empty:\na.b=Cookie: k=v\n\
                    bücher.example=User-Agent: Mozilla/5.0 (X11; Linux)";
        let inner = Inner { headers: headers(text).unwrap(), ..Inner::default() };
        let all = Credentials(Arc::new(inner));
        let sent = |text: &str| {
            let mut to = HeaderMap::new();
            to.insert(header::COOKIE, HeaderValue::from_static("s=1"));
            all.add(&mut to, &url(text), &url("https://named/"));
            let shown = |(name, value): (&HeaderName, &HeaderValue)| {
                format!("{name}: {}", value.to_str().unwrap())
            };
            let mut all: Vec<String> = to.iter().map(shown).collect();
            all.sort();
            (all, format!("{to:?}"))
        };
        let (a, debug) = sent("https://A.B:443/x");
        assert_eq!(a, ["cookie: k=v; s=1", "private-token: one", "x-empty: "]);
        assert!(!debug.contains("one") && !debug.contains("k=v"), "{debug}");
        assert_eq!(sent("http://c:81/").0, ["cookie: s=1", "x: two: 2=3"]);
        for other in ["http://a.b/", "https://a.b:444/", "https://x.a.b/", "https://c:81/"] {
            assert_eq!(sent(other).0, ["cookie: s=1"], "{other}");
        }
        let has = |text| all.has(&url(text), &url(text));
        assert!(has("https://a.b/") && !has("https://c/"));
        assert!(!has("https://xn--bcher-kva.example/"), "an agent is not a secret");
        assert!(!format!("{all:?}").contains("one"), "{all:?}");
    }

    #[test]
    fn a_mistake_in_headers_is_told_without_the_value() {
        for (text, how) in [
            ("sesame", "entry 1 has no `=`"),
            ("\nok=X: 1\nh=sesame", "entry 2 has no `:`"),
            ("h=a b: sesame", "no valid name"),
            ("h=: sesame", "no valid name"),
            ("h=X: ses\u{1}ame", "a value that cannot be sent"),
            ("=X: sesame", "does not begin with a host"),
            ("h/path=X: sesame", "does not begin with a host"),
            ("ftp://h=X: sesame", "does not begin with a host"),
            ("sesame@h=X: sesame", "does not begin with a host"),
            ("h:99999=X: sesame", "does not begin with a host"),
            ("h=host: sesame", "sets host, which"),
            ("h=Range: sesame", "sets range, which"),
        ] {
            let error = headers(text).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.message().contains(how) && !error.message().contains("ses"), "{error}");
        }
    }

    #[test]
    fn passwords_are_by_host() {
        let text = "# a comment\nmachine a login u password p\nmacdef x\n machine no password no\n\n\
                    machine A login v password q\nmachine\n b\tlogin \"w\" account z password r machine c login only\n\
                    default login any password d";
        let (hosts, default) = netrc(text);
        let inner = Inner { passwords: hosts, default, ..Inner::default() };
        let all = Credentials(Arc::new(inner));
        let of = |host: &str, is_named| {
            let there = url(&format!("https://{host}/x"));
            let named = if is_named { there.clone() } else { url("https://named/") };
            let value = shown(all.of(&there, &named))?;
            let pair = STANDARD.decode(value.strip_prefix("Basic ").unwrap()).unwrap();
            Some(String::from_utf8(pair).unwrap())
        };
        assert_eq!(of("a", true).as_deref(), Some("u:p"));
        assert_eq!(of("B", false).as_deref(), Some("w:r"));
        assert_eq!(of("c", true).as_deref(), Some("any:d"));
        assert_eq!(of("elsewhere", true).as_deref(), Some("any:d"));
        assert_eq!(of("elsewhere", false), None, "where a redirect led");
        assert_eq!(of("no", false), None);
        assert!(!format!("{all:?}").contains('p'), "{all:?}");
    }

    #[test]
    fn a_redirect_takes_a_password_to_the_usual_port_of_its_host_alone() {
        let (passwords, default) =
            netrc("machine h login u password p machine i login v password q default login any");
        let all = Credentials(Arc::new(Inner { passwords, default, ..Inner::default() }));
        for (named, to, has) in [
            ("https://h/a", "https://h/b", true),
            ("https://h:443/a", "https://H/b", true),
            ("https://h:8/a", "https://h:8/b", true),
            ("http://h/a", "http://h/b", true),
            // As curl since 2022: other ports and schemes of a host may belong to others.
            ("https://h/a", "https://h:8/b", false),
            ("https://h:8/a", "https://h/b", false),
            ("https://h/a", "http://h/b", false),
            ("http://h/a", "https://h/b", false),
            ("http://h/a", "http://h:8/b", false),
            // Sign-ins at another host.
            ("https://h/a", "https://i/b", true),
            ("http://h/a", "https://i:443/b", true),
            ("https://h/a", "https://i:8/b", false),
            ("http://h/a", "http://i/b", false),
            ("https://h/a", "https://h.i/b", false),
            ("https://h/a", "https://elsewhere/b", false),
        ] {
            assert_eq!(all.of(&url(to), &url(named)).is_some(), has, "{named} to {to}");
        }
    }

    #[test]
    fn a_password_goes_to_no_other_host() {
        let pairs = |text: &str| {
            let mut all: Vec<(String, String)> = netrc(text)
                .0
                .into_iter()
                .map(|(host, value)| {
                    let value = value.to_str().unwrap().strip_prefix("Basic ").unwrap().to_owned();
                    (host, String::from_utf8(STANDARD.decode(value).unwrap()).unwrap())
                })
                .collect();
            all.sort();
            all
        };
        let pair = |host: &str, pair: &str| (host.to_owned(), pair.to_owned());
        let second = "machine b login v password q";
        for (first, wanted) in [
            // A `#` at the beginning of a value is not a comment, and quotes hold spaces.
            ("machine a login u password #p # comment\n", Some("u:#p")),
            ("machine a login u password \"p \\\"q\\\\ r\"\n", Some("u:p \"q\\ r")),
            ("machine a login u password p\"\n", Some("u:p\"")),
            ("machine a user u password p\n", Some("u:p")),
            ("machine a password p login u\nmacdef m\nmachine c password no\n\n", Some("u:p")),
            ("machine a login u password p protocol https\n", None),
        ] {
            let mut all: Vec<_> = wanted.map(|wanted| pair("a", wanted)).into_iter().collect();
            all.push(pair("b", "v:q"));
            assert_eq!(pairs(&format!("{first}{second}")), all, "{first}");
        }
        // The value of `a` is missing: `b` and its password are not that of `a`.
        for text in ["machine a login u password\n", "machine a login\n", "machine\n"] {
            let all = pairs(&format!("{text}{second}"));
            assert!(all.iter().all(|(host, pair)| host != "a" && pair != "v:q"), "{text}: {all:?}");
        }
        assert_eq!(pairs("\"\" \\ machine"), []);
    }
}
