//! Renames in a store that has a request for it.

use crate::namespace::{KEYS, operations};
use crate::store::{Fault, Plugin, name, plugin};
use tf_fs_object_store::ErrorKind;
use tf_fs_plugin::prelude::*;

fn renaming(keys: &[&str]) -> Plugin {
    let plugin = plugin(keys);
    plugin.contents().renames = true;
    plugin
}

fn rename(plugin: &Plugin, src: &str, dst: &str) -> Result<()> {
    plugin.0.rename_file(&name(src), &name(dst))
}

/// Returns the requests since the last call.
fn requests(plugin: &Plugin) -> Vec<String> {
    std::mem::take(&mut plugin.contents().log)
}

#[test]
fn a_file_is_renamed_with_one_request() {
    let plugin = renaming(&["a", "other"]);
    rename(&plugin, "a", "b").unwrap();
    assert_eq!(requests(&plugin), ["list b", "rename a"]);
    // Over another one.
    rename(&plugin, "b", "other").unwrap();
    assert_eq!(plugin.read("other", 10).unwrap(), b"a");
    assert_eq!(plugin.keys(), ["other"]);
    assert_eq!(rename(&plugin, "none", "x").unwrap_err().code(), Code::NotFound);
    plugin.put("d/a", vec![1]);
    for (src, dst) in [("other", "d"), ("d", "other")] {
        let error = rename(&plugin, src, dst).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
    }
    assert_eq!(plugin.keys(), ["d/a", "other"]);
}

#[test]
fn what_is_remembered_of_both_names_changes_with_a_rename() {
    let plugin = renaming(&["d/a", "d/b"]);
    plugin.contents().settings.listing_ttl = std::time::Duration::from_secs(60);
    assert_eq!(plugin.children("d").unwrap(), ["a", "b"]);
    rename(&plugin, "d/a", "d/c").unwrap();
    // Before another listing tells.
    assert!(!plugin.0.path_exists(&name("d/a")).unwrap());
    assert!(plugin.0.path_exists(&name("d/c")).unwrap());
    assert_eq!(plugin.children("d").unwrap(), ["b", "c"]);
}

#[test]
fn a_rename_does_what_a_copy_and_a_deletion_do() {
    let told = operations(&plugin(&KEYS));
    let plugin = renaming(&KEYS);
    assert_eq!(operations(&plugin), told);
    assert_eq!(plugin.requests("rename d/a").len(), 1);
    // A store that turns out not to rename.
    let plugin = renaming(&KEYS);
    plugin.contents().cannot = vec!["rename"];
    assert_eq!(operations(&plugin), told);
}

#[test]
fn a_rename_whose_response_is_lost_was_done() {
    for before in [&["a"][..], &["a", "other"]] {
        let plugin = renaming(before);
        plugin.inject("rename", [Fault::Lost]);
        rename(&plugin, "a", "other").unwrap();
        assert_eq!(plugin.keys(), ["other"]);
        assert_eq!(plugin.requests("rename").len(), 2);
    }
    // The object there has the length and the version of the source, and may be one of before.
    let plugin = renaming(&["a", "b"]);
    plugin.inject("rename", [Fault::Lost]);
    let error = rename(&plugin, "a", "b").unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(format!("{error:#}").contains("it is unknown whether mem://b/b is it"), "{error:#}");
    // Somebody else moved it: nothing is at the destination.
    let plugin = renaming(&[]);
    plugin.inject("rename", [Fault::Fails(ErrorKind::Transient)]);
    assert_eq!(rename(&plugin, "a", "b").unwrap_err().code(), Code::NotFound);
}

#[test]
fn a_refused_rename_changes_nothing() {
    for (kind, code, attempts) in [
        (ErrorKind::Transient, Code::Unavailable, 3),
        (ErrorKind::Denied, Code::PermissionDenied, 1),
        (ErrorKind::Permanent, Code::Unknown, 1),
    ] {
        let plugin = renaming(&["a"]);
        plugin.inject("rename", [Fault::Fails(kind); 9]);
        assert_eq!(rename(&plugin, "a", "b").unwrap_err().code(), code);
        assert_eq!(plugin.requests("rename").len(), attempts);
        assert_eq!(plugin.keys(), ["a"]);
    }
}
