//! Names and patterns, of any bytes. `tests/fuzz` lists all targets.

use crate::{Uri, glob};
use tf_plugin_fuzz::{fuzz, halves};

#[test]
fn globs() {
    let words = ["*", "?", "[", "]", "[^", "[a-", "\\", "é", "\u{ff}", "a", "\0", "\u{1F600}"];
    fuzz!(words, |bytes| {
        let (pattern, name) = halves(bytes);
        let matches = glob::matches(pattern, name);
        if glob::is_literal(pattern) {
            let only = glob::unescape(pattern);
            assert!(glob::matches(pattern, &only), "it matches its own name");
            assert_eq!(matches, *only == *name, "it matches no other name");
        }
        let escaped: Vec<u8> = name.iter().flat_map(|&byte| [b'\\', byte]).collect();
        assert!(glob::is_literal(&escaped));
        assert_eq!(*glob::unescape(&escaped), *name);
        assert!(glob::matches(&escaped, name));
        assert!(glob::matches(b"*", name));
    });
}

#[test]
fn uris() {
    let words = ["s3", "://", "/", "//", ".", "..", "/../", "/./", "bucket", "a b", "é", "\\", ":"];
    fuzz!(words, |bytes| {
        let uri = Uri::new(bytes);
        let (root, path) = uri.split_path();
        assert_eq!([root, path].concat(), bytes);
        let printed = match uri.scheme() {
            "" => path.to_vec(),
            scheme => [scheme.as_bytes(), b"://", uri.host(), path].concat(),
        };
        assert_eq!(printed, bytes);

        let clean = Uri::canonical(bytes);
        assert_eq!(Uri::canonical(&clean), clean, "twice is once");
        let clean = Uri::new(&clean);
        assert_eq!((clean.scheme(), clean.host()), (uri.scheme(), uri.host()));
        if let Some(parent) = clean.parent() {
            assert_eq!(parent.join(clean.file_name()), clean.as_bytes());
            assert_eq!(parent.strip_from(clean.as_bytes()), Some(clean.file_name()));
        }
        assert!(clean.ancestors().all(|above| above.is_canonical()));
    });
}
