//! What Azure sends, and what users write. `tests/fuzz` lists all targets.

use crate::account::{parse_connection_string, parse_endpoint};
use crate::client::Client;
use crate::delete::refusals;
use crate::list::page_of_blobs;
use crate::name::{canonical, split};
use crate::settings::Secret;
use crate::sign::SharedKey;
use tf_fs_object_store::Client as _;
use tf_fs_object_store::http::xml::{elements, error_message};
use tf_fs_plugin::Uri;
use tf_plugin_fuzz::{fuzz, text};

#[test]
fn xml() {
    let words = [
        "<E><Blobs><Blob><Name>a</Name><Properties><Content-Length>7</Content-Length></Properties></Blob></Blobs><NextMarker/></E>",
        "<E>",
        "</E>",
        "<Blobs>",
        "</Blobs>",
        "<Blob>",
        "</Blob>",
        "<Name>",
        "</Name>",
        "<BlobPrefix>",
        "</BlobPrefix>",
        "<Name Encoded=\"true\">",
        "<Metadata><hdi_isfolder>true</hdi_isfolder></Metadata>",
        "&amp;",
        "&#x41;",
        "%41",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "<Error><Message>",
        "a/",
    ];
    fuzz!(words, |bytes| {
        let _ = error_message(bytes);
        for has_delimiter in [false, true] {
            let Ok(page) = page_of_blobs(bytes, has_delimiter) else { continue };
            let given = text(bytes).matches("Name").count();
            assert!(page.objects.len() + page.common_prefixes.len() <= given, "{page:?}");
        }
    });
}

#[test]
fn escaped_texts() {
    let words = ["&", "<", ">", "\"", "'", "]]>", "%41", " ", "\n", "é", "&amp;", "a"];
    fuzz!(words, |bytes| {
        let written = text(bytes);
        // XML has no other control characters, and makes one line break of each kind.
        if written.contains(|c: char| {
            c.is_control() && c != '\n' || matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{2028}')
        }) {
            return;
        }
        let escaped = written.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let mut found = Vec::new();
        elements(format!("<N>{escaped}</N>").as_bytes(), |_, text| found.extend(text)).unwrap();
        assert_eq!(found, [written]);
    });
}

#[test]
fn batches() {
    let words = [
        "--b\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n",
        "--b\r\nContent-ID: 1\r\n\r\nHTTP/1.1 404 X\r\nx-ms-error-code: BlobNotFound\r\n\r\n",
        "--b--\r\n",
        "--b",
        "--",
        "\r\n",
        "Content-ID: 2",
        "HTTP/1.1 ",
        "404",
        "x-ms-error-code: é",
        ":",
    ];
    fuzz!(words, |bytes| {
        for count in 0..3 {
            let Ok(found) = refusals(&text(bytes), count) else { continue };
            assert!(found.len() <= count);
            assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0));
            assert!(found.iter().all(|(id, status, _)| *id < count && *status != 202));
        }
    });
}

#[test]
fn credentials() {
    let words = [
        "AccountName=",
        "AccountKey=",
        "c2VzYW1l",
        ";",
        "BlobEndpoint=",
        "https://",
        "http://",
        "acc.blob.core.windows.net",
        "/",
        "?",
        "@",
        ":",
        "UseDevelopmentStorage=true",
        "SharedAccessSignature=",
        "EndpointSuffix=",
        "é",
    ];
    fuzz!(words, |bytes| {
        let written = text(bytes);
        let _ = parse_connection_string(&written);
        let _ = SharedKey::parse(&Secret::new(&*written));
        if let Ok((host, path)) = parse_endpoint(&written) {
            assert!(!host.contains(['@', '?']) && !path.ends_with('/'));
            assert_eq!(parse_endpoint(&format!("{host}{path}")).unwrap(), (host, path));
        }
    });
}

#[test]
fn names() {
    let words = [
        "az://",
        "abfss://",
        "acc",
        "/",
        "//",
        "con",
        "con@acc.dfs.core.windows.net",
        ".blob.core.windows.net",
        "key",
        "é",
        "..",
        "@",
        ":",
        "*",
        "\\",
        "?",
        "metrics.json",
    ];
    fuzz!(words, |bytes| {
        let uri = Uri::new(bytes);
        if let Ok((bucket, key)) = split(uri) {
            assert!(uri.as_bytes().ends_with(key.as_bytes()));
            let name = canonical(bucket).unwrap();
            assert_eq!(canonical(&name).unwrap(), name, "twice is once");
        }
        if let Ok(name) = Client::parse(uri) {
            let printed = name.to_string();
            // Messages escape what is not printable.
            if !printed.contains('\\') {
                let again = Client::parse(Uri::new(printed.as_bytes())).unwrap();
                assert_eq!(again, name, "{printed}");
            }
        }
    });
}
