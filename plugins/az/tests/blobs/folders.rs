//! Blobs that mark directories, as other tools write them.

use crate::blobs::uri;
use crate::common::{AZURITE, Store, plugin};
use azurite::KEY;
use tf_fs_plugin::prelude::*;

#[test]
fn blobs_of_other_tools_that_mark_directories_are_directories() {
    let store = Store::new("folders");
    for key in ["d", "e", "f", "f/g"] {
        store.script(key, "await blob.upload('', 0, {metadata: {hdi_isfolder: 'true'}})");
    }
    for key in ["d/a", "d-1", "f/g/b", "f/c"] {
        store.write(key, b"bytes").unwrap();
    }
    let is_directory =
        |key: &str| store.az.stat(uri(&store.uri(key))).map(|stat| stat.is_directory);
    for key in ["d", "d/", "e", "e/", "f", "f/g"] {
        assert!(is_directory(key).unwrap_or_else(|error| panic!("{key}: {error:#}")), "{key}");
    }
    assert!(!is_directory("d-1").unwrap());
    assert_eq!(store.children("").unwrap(), ["d", "d-1", "e", "f"]);
    assert_eq!(store.children("e").unwrap(), [""; 0]);
    assert_eq!(store.children("f").unwrap(), ["c", "g"]);
    let error = store.read("e").unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
    let error = store.az.delete_dir(uri(&store.uri("d"))).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
    store.az.delete_dir(uri(&store.uri("e"))).unwrap();
    let error = is_directory("e").unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "{error:#}");
    store.az.delete_recursively(uri(&store.uri("f"))).unwrap();
    assert_eq!(store.keys(), ["d", "d-1", "d/a"]);
}

#[test]
fn such_blobs_are_copied_and_renamed_as_directories() {
    let store = Store::new("folders-renamed");
    let marker = "await blob.upload('', 0, {metadata: {hdi_isfolder: 'true'}})";
    let fails = |result: Result<()>| {
        let error = result.unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
    };
    // With nothing cached, and with what a listing tells.
    for is_listed in [false, true] {
        for key in ["d/sub", "f"] {
            store.script(key, marker);
        }
        for key in ["d/sub/x", "f/c"] {
            store.write(key, key.as_bytes()).unwrap();
        }
        let cached = store.by(plugin(
            AZURITE.endpoint(),
            &[("account_key", KEY), ("listing_ttl_ms", if is_listed { "60000" } else { "0" })],
        ));
        let az = &cached.az;
        if is_listed {
            assert_eq!(cached.children("").unwrap(), ["d", "f"]);
        }
        fails(az.copy_file(uri(&store.uri("f")), uri(&store.uri("copy"))));
        // Over an empty directory, as a rename that was interrupted leaves one.
        store.az.create_dir(uri(&store.uri("g"))).unwrap();
        az.rename_file(uri(&store.uri("f")), uri(&store.uri("g"))).unwrap();
        assert_eq!(store.read("g/c").unwrap(), b"f/c");
        az.rename_file(uri(&store.uri("d")), uri(&store.uri("e"))).unwrap();
        assert_eq!(store.read("e/sub/x").unwrap(), b"d/sub/x");
        assert!(az.stat(uri(&store.uri("e/sub"))).unwrap().is_directory);
        // `d` had none itself.
        assert_eq!(store.keys(), ["e/sub/", "e/sub/x", "g/", "g/c"]);
        // None is appended to: its bytes could not be read.
        store.script("f", marker);
        fails(az.new_appendable_file(uri(&store.uri("f"))).map(drop));
        for key in ["e", "f", "g"] {
            store.az.delete_recursively(uri(&store.uri(key))).unwrap();
        }
        assert!(store.keys().is_empty());
    }
}
