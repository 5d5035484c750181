use super::*;
use crate::credentials::Credentials;
use crate::redirect::Clients;
use crate::settings::{Secret, Settings as Plugin};
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use tf_fs_object_store::Settings;
use tf_fs_object_store::http::{Http, HttpSettings, Proxy, Tls};

fn origin(base: &str, credentials: Credentials) -> Origin {
    let time = std::time::Duration::from_secs(1);
    let http = Http::new(HttpSettings {
        tls: Tls::default(),
        proxy: Proxy::None,
        connect_timeout: time,
        stall_timeout: time,
        user_agent: "x",
    });
    Origin {
        clients: Clients::new(http.unwrap(), false),
        base: base.to_owned(),
        settings: Settings::default(),
        credentials,
        user_agent: None,
        locations: Mutex::default(),
        wholes: Arc::default(),
        prefers_get: AtomicBool::default(),
    }
}

#[test]
fn signed_urls_do_not_show() {
    let origin = origin("https://h", Credentials::default());
    let signed = "https://i/f?signature=sesame";
    let key = (signed.to_owned(), "version".to_owned());
    let url = Url::from_static(signed);
    let location = Location { url, cookies: Cookies::default(), reach: None };
    lock(&origin.locations).insert(key, location);
    let shown = format!("{origin:?}");
    assert!(shown.contains("https://h") && !shown.contains("sesame"), "{shown}");
}

/// Where a secret may go, with the user's URL and the locations of each. Redirects lead to all but the first two.
const PLACES: [(&str, &str, &[&str]); 8] = [
    ("the server that you name", "https://h/f", &["https://h/f", "https://h:443/g", "https://H/g"]),
    ("named with `http://`", "http://h/f", &["http://h/f", "http://h:80/g"]),
    ("from there to its `https://`", "http://h/f", &["https://h/g"]),
    ("its other ports", "https://h/f", &["https://h:8/g", "https://h:80/g", "http://h:443/g"]),
    ("another host, `https`", "https://h/f", &["https://i/g", "https://I:443/g"]),
    ("another port of it", "https://h/f", &["https://i:8/g", "http://i:443/g"]),
    ("another host, `http`", "http://h/f", &["http://i/g", "http://I:80/g"]),
    (
        "a host without an entry",
        "https://h/f",
        &["https://j/g", "https://h.j/g", "https://j.h/g", "https://h./g", "http://j/g"],
    ),
];

/// Secrets by what keeps them, each for the host `h`, and for `i` where that says something else, and the code that
/// decides where they go.
const SECRETS: [(&str, &str, &str, &str); 7] = [
    ("a token", "tokens", "h=sesame i=sesame", "`Credentials::of`"),
    ("a token for `http://`", "tokens", "http://h=sesame http://i=sesame", "`Credentials::of`"),
    ("a header", "headers", "h=X: sesame\ni=X: sesame", "`Credentials::add`"),
    (
        "a password of `~/.netrc`",
        "netrc",
        "machine h password sesame machine i password sesame",
        "`Credentials::of`",
    ),
    ("its `default` password", "netrc", "default password sesame", "`Credentials::of`"),
    ("a cookie of the redirect", "cookie", "", "`Cookies::header`"),
    ("the query of the URL", "query", "", "`redirect::follow`"),
];

/// Returns whether a request for `to` has the secret, where the user named the URL `named`.
fn is_sent(kind: &str, text: &str, named: &str, to: &str) -> bool {
    let netrc = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(netrc.path(), if kind == "netrc" { text } else { "" }).unwrap();
    let of_kind = |wanted: &str| (kind == wanted).then(|| Secret::new(text));
    let settings = Plugin {
        bearer_tokens: of_kind("tokens"),
        headers: of_kind("headers"),
        netrc: Some(netrc.path().into()),
        ..Plugin::default()
    };
    let origin = origin("", Credentials::new(&settings).unwrap());
    let query = if kind == "query" { "?signature=sesame" } else { "" };
    let named = Url::try_from(format!("{named}{query}")).unwrap();
    let is_first = Url::try_from(to).unwrap().path() == named.path();
    let mut cookies = Cookies::default();
    if kind == "cookie" {
        cookies.set(&named, "s=sesame; Path=/");
    }
    let url = match is_first {
        true => named.clone(),
        false => redirect::follow(&Url::try_from("http://front/").unwrap(), to).unwrap(),
    };
    let query = Query { method: &Method::GET, options: None, named: &named };
    let request = origin.build(query, &Location { url, cookies, reach: None });
    // The second is `:sesame` in Base64.
    let is_secret = |text: &str| text.contains("sesame") || text.contains("OnNlc2FtZQ==");
    let mut values = request.headers().values();
    values.any(|value| is_secret(value.to_str().unwrap())) || is_secret(&request.uri().to_string())
}

#[test]
fn the_readme_says_where_each_secret_goes() {
    let mut table = String::from("| |");
    for (place, ..) in PLACES {
        let _ = write!(table, " {place} |");
    }
    let _ = write!(table, " Code |\n|---|{}---|\n", "---|".repeat(PLACES.len()));
    for (secret, kind, text, code) in SECRETS {
        let _ = write!(table, "| {secret} |");
        for (place, named, targets) in PLACES {
            let sent: Vec<bool> = targets.iter().map(|to| is_sent(kind, text, named, to)).collect();
            // The query is that of the first URL alone.
            let is_same = kind == "query" || sent.iter().all(|one| *one == sent[0]);
            assert!(is_same, "{secret}, {place}: {targets:?} {sent:?}");
            let _ = write!(table, " {} |", if sent[0] { "yes" } else { "–" });
        }
        let _ = writeln!(table, " {code} |");
    }
    let readme = include_str!("../../README.md");
    let (_, rest) = readme.split_once("<!-- secrets -->\n").expect("the mark before the table");
    let (shown, _) = rest.split_once("<!-- end of secrets -->").expect("the mark after it");
    assert_eq!(shown, table, "put this into README.md if it is right:\n{table}");
}
