//! What a request proves who makes it with: a bearer token, or a name and a password.

use crate::name::origin;
use crate::settings::Settings;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tf_fs_object_store::http::{HeaderValue, Uri as Url};
use tf_fs_plugin::prelude::*;

/// Values of `Authorization`, each for the servers that it is meant for.
#[derive(Clone, Default)]
pub(crate) struct Credentials(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// By origin.
    tokens: HashMap<String, HeaderValue>,
    /// By host.
    passwords: HashMap<String, HeaderValue>,
    /// For any other host that the user names.
    default: Option<HeaderValue>,
}

impl Credentials {
    /// Those of the settings. A file of passwords that is missing or cannot be read holds none.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for tokens that cannot be understood.
    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        let mut inner = Inner { tokens: tokens(&settings.bearer_tokens.0)?, ..Inner::default() };
        if let Some(path) = &settings.netrc {
            match std::fs::read_to_string(path) {
                Ok(text) => (inner.passwords, inner.default) = netrc(&text),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => log::warn!("{} cannot be read: {error}", path.display()),
            }
        }
        Ok(Self(Arc::new(inner)))
    }

    /// What to send to the server of this URL. What is meant for any host is only for the one that the `user` named, not
    /// for one to which another redirects.
    pub(crate) fn of(&self, url: &Url, is_named_by_user: bool) -> Option<HeaderValue> {
        let host = url.host().unwrap_or_default().to_ascii_lowercase();
        let Inner { tokens, passwords, default } = &*self.0;
        tokens
            .get(&origin(url))
            .or_else(|| passwords.get(&host))
            .or_else(|| default.as_ref().filter(|_| is_named_by_user))
            .cloned()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.0.tokens.keys().chain(self.0.passwords.keys());
        f.debug_list().entries(hosts).finish()
    }
}

/// `host=token http://other:8080=token`. Without a scheme it is `https`, so that no token is sent in the clear by mistake.
fn tokens(text: &str) -> Result<HashMap<String, HeaderValue>> {
    let wrong = |n: usize, how: &str| {
        Error::invalid_argument(format_args!(
            "TF_HTTPS_BEARER_TOKENS: entry {} {how}; write host=token, with spaces between entries",
            n + 1
        ))
    };
    let mut tokens = HashMap::new();
    for (n, entry) in text.split_whitespace().enumerate() {
        let (host, token) = entry.split_once('=').ok_or_else(|| wrong(n, "has no `=`"))?;
        let url = if host.contains("://") { host.to_owned() } else { format!("https://{host}") };
        let url = Url::try_from(url).ok().filter(|url| url.path() == "/" && url.host().is_some());
        let url = url.ok_or_else(|| wrong(n, "does not begin with a host"))?;
        let value = header(format!("Bearer {token}")).filter(|_| !token.is_empty());
        tokens
            .insert(origin(&url), value.ok_or_else(|| wrong(n, "has no token that can be sent"))?);
    }
    Ok(tokens)
}

fn header(text: String) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The passwords of a file such as `~/.netrc` by host, and those for any other host. The crates that read such files have
/// had no release since 2024.
fn netrc(text: &str) -> (HashMap<String, HeaderValue>, Option<HeaderValue>) {
    let (mut hosts, mut default) = (HashMap::new(), None);
    let mut machine: Option<Option<String>> = None;
    let (mut login, mut password) = (None::<String>, None::<String>);
    let mut finish = |machine: Option<Option<String>>, login: &mut _, password: &mut _| {
        let (login, password): (Option<String>, Option<String>) =
            (Option::take(login), Option::take(password));
        let (Some(machine), Some(password)) = (machine, password) else { return };
        let pair = STANDARD.encode(format!("{}:{password}", login.unwrap_or_default()));
        let Some(value) = header(format!("Basic {pair}")) else { return };
        match machine {
            // The first entry of a host counts.
            Some(host) => drop(hosts.entry(host.to_ascii_lowercase()).or_insert(value)),
            None => drop(default.get_or_insert(value)),
        }
    };
    let mut words = words(text).into_iter();
    while let Some(word) = words.next() {
        match word {
            "machine" | "default" => {
                finish(machine.take(), &mut login, &mut password);
                machine = match word {
                    "machine" => words.next().map(|host| Some(host.to_owned())),
                    _ => Some(None),
                };
            }
            "login" => login = words.next().map(str::to_owned),
            "password" => password = words.next().map(str::to_owned),
            "account" => drop(words.next()),
            _ => {}
        }
    }
    finish(machine, &mut login, &mut password);
    (hosts, default)
}

/// The words of such a file, without its comments and macros.
fn words(text: &str) -> Vec<&str> {
    let (mut all, mut is_macro) = (Vec::new(), false);
    for line in text.lines() {
        // A macro ends with an empty line.
        is_macro &= !line.trim().is_empty();
        for word in line.split_whitespace() {
            is_macro |= word == "macdef";
            if is_macro || word.starts_with('#') {
                break;
            }
            all.push(word.trim_matches('"'));
        }
    }
    all
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
        for text in ["sesame", "ok=1 h=", "/h=sesame", "h=ses\u{1}ame"] {
            let error = super::tokens(text).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(!error.message().contains("ses"), "{error}");
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
        let of = |host: &str, named| {
            let value = shown(all.of(&url(&format!("https://{host}:8/x")), named))?;
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
}
