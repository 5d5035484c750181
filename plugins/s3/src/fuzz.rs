//! Names and keys. `tests/fuzz` lists all targets.

use crate::client::Client;
use crate::delete::fits_xml;
use crate::list::decode;
use crate::name::split;
use crate::request::copy_source;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tf_fs_object_store::{Client as _, Name};
use tf_fs_plugin::Uri;
use tf_plugin_fuzz::{fuzz, text};

#[test]
fn names() {
    let words = [
        "s3://",
        "bucket",
        "/",
        "//",
        "key",
        "arn:aws:s3:us-west-2:1:accesspoint",
        "accesspoint",
        ":",
        "mine",
        "@",
        "*",
        "..",
        " ",
        "é",
        "?",
        "s3a://",
    ];
    fuzz!(words, |bytes| {
        let uri = Uri::new(bytes);
        if let Ok((bucket, key)) = split(uri) {
            assert!(uri.as_bytes().ends_with(key.as_bytes()));
            assert!(!bucket.contains('@') || bucket.starts_with("arn:"));
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

#[test]
fn keys() {
    let words = ["a", "/", "+", " ", "%", "%2B", "é", "\n", "&", "<", "\u{ffff}", "~"];
    fuzz!(words, |bytes| {
        let key = text(bytes);
        // However the store writes it in a listing.
        let encoded = utf8_percent_encode(&key, NON_ALPHANUMERIC).to_string();
        assert_eq!(decode(&encoded), key);
        assert_eq!(decode(&encoded.replace("%20", "+")), key);
        let name = Name::new("s3", "bucket", &key);
        let source = copy_source(&name);
        let (bucket, copied) = source.split_once('/').unwrap();
        assert_eq!(
            (bucket, &*percent_decode_str(copied).decode_utf8().unwrap()),
            ("bucket", &*key)
        );
        assert!(source.is_ascii());
        assert!(!fits_xml(&key) || !key.contains(char::is_control));
    });
}
