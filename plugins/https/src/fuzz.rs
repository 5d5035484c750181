//! Fuzz targets for text that users write. `tests/fuzz` lists all targets.

use crate::credentials::{netrc, tokens};
use crate::name::{origin, split, url};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tf_fs_object_store::http::Uri as Url;
use tf_fs_plugin::Uri;
use tf_plugin_fuzz::{fuzz, halves, text};

/// Returns a word of a netrc file.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

#[test]
fn password_files() {
    let words = [
        "machine a login u password p\n",
        "machine ",
        "default ",
        "login ",
        "password ",
        "account ",
        "macdef m\n",
        "\n\n",
        "\"",
        "\\",
        "#",
        " ",
        "host",
        "é",
        "\u{a0}",
        "\u{1}",
    ];
    fuzz!(words, |bytes| {
        let written = text(bytes);
        let (hosts, _) = netrc(&written);
        assert!(hosts.len() <= written.matches("machine").count());
        // A value is what was written, and goes to no other host.
        let (login, password) = halves(bytes);
        let (login, password) = (text(login), text(password));
        let file = format!(
            "machine one login {} password {}\nmachine two login v password q",
            quoted(&login),
            quoted(&password)
        );
        let (hosts, default) = netrc(&file);
        let sent = |host: &str| {
            let value = hosts[host].to_str().unwrap().strip_prefix("Basic ").unwrap().to_owned();
            String::from_utf8(STANDARD.decode(value).unwrap()).unwrap()
        };
        assert_eq!((sent("one"), sent("two")), (format!("{login}:{password}"), "v:q".to_owned()));
        assert!(hosts.len() == 2 && default.is_none());
    });
}

#[test]
fn bearer_tokens() {
    let words =
        ["a.b", "=", "sesame", " ", "\n", "http://", "https://", ":81", "@", "/", "é", "\u{1}"];
    fuzz!(words, |bytes| {
        let written = text(bytes);
        let Ok(tokens) = tokens(&written) else { return };
        assert!(tokens.len() <= written.split_whitespace().count());
        for host in tokens.keys() {
            assert_eq!(origin(&Url::try_from(&**host).unwrap()), *host);
        }
    });
}

#[test]
fn urls() {
    let words = [
        "https://", "http://", "host", ":81", "/", "//", "?x=%2F", "#", "@", "..", " ", "é", "\"",
        "%", "[::1]",
    ];
    fuzz!(words, |bytes| {
        let Ok((origin, key)) = split(Uri::new(bytes)) else { return };
        if let Ok(url) = Url::try_from(origin) {
            let server = origin.split_once("://").unwrap().1;
            let has_port =
                server.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u64>().is_ok());
            assert_eq!(url.port_u16().is_some(), has_port);
        }
        let printed = format!("{origin}/{key}");
        assert_eq!(split(Uri::new(printed.as_bytes())).unwrap(), (origin, key));
        let Ok(url) = url(origin, key) else { return };
        assert!(url.to_string().bytes().all(|byte| byte.is_ascii_graphic()));
        assert_eq!(url.authority().map(|authority| authority.as_str().contains('@')), Some(false));
        // The request has the key, escaped once.
        let sent = url.path_and_query().unwrap().as_str();
        let decoded = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
        assert_eq!(decoded(&sent[1..]), decoded(key));
    });
}
