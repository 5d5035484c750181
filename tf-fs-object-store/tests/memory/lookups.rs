//! Names that one request looks up, in a store whose listings are not needed for it.

use crate::namespace::{KEYS, operations};
use crate::store::{Fault, Plugin, name, plugin};
use std::time::Duration;
use tf_fs_object_store::ErrorKind;
use tf_fs_plugin::prelude::*;

fn looking_up(keys: &[&str]) -> Plugin {
    let plugin = plugin(keys);
    plugin.contents().looks_up = true;
    plugin.contents().page = Some(1000);
    plugin
}

/// Returns the requests since the last call.
fn requests(plugin: &Plugin) -> Vec<String> {
    std::mem::take(&mut plugin.contents().log)
}

#[test]
fn a_name_is_looked_up_without_its_siblings() {
    let keys: Vec<String> = (0..2000).map(|n| format!("d/ckpt-{n}.index")).collect();
    let plugin = looking_up(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(plugin.0.stat(&name("d/ckpt-7.index")).unwrap().length, 14);
    assert!(plugin.0.is_directory(&name("d")).unwrap());
    assert!(plugin.0.is_directory(&name("d/")).unwrap());
    assert!(!plugin.0.path_exists(&name("d/none")).unwrap());
    // A file is not the directory of its name.
    assert!(!plugin.0.path_exists(&name("d/ckpt-7.index/")).unwrap());
    assert_eq!(
        requests(&plugin),
        ["look d/ckpt-7.index", "look d", "look d/", "look d/none", "look d/ckpt-7.index/"]
    );
    // The destination of a copy, too.
    plugin.0.copy_file(&name("d/ckpt-7.index"), &name("d/ckpt-7.copy")).unwrap();
    assert_eq!(requests(&plugin), ["look d/ckpt-7.copy", "copy d/ckpt-7.index"]);
    assert_eq!(plugin.read("d", 10).unwrap_err().code(), Code::FailedPrecondition);
    assert_eq!(requests(&plugin), ["get d from 0 attempt 1", "look d"]);
    // The bucket is there.
    assert!(plugin.0.is_directory(&name("")).unwrap());
    assert_eq!(requests(&plugin).iter().filter(|line| line.starts_with("look")).count(), 0);
}

#[test]
fn several_names_are_looked_up_at_a_time_and_many_are_listed() {
    let keys: Vec<String> = (0..100).map(|n| format!("d/{n:02}")).collect();
    let plugin = looking_up(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    for (count, expected) in [(16, "look"), (17, "list")] {
        let uris: Vec<String> = (0..count).map(|n| format!("mem://b/d/{:02}", 90 + n)).collect();
        let uris: Vec<Uri<'_>> = uris.iter().map(|uri| Uri::new(uri.as_bytes())).collect();
        let exist = plugin.0.paths_exist(&uris).into_iter().map(Result::unwrap);
        assert_eq!(exist.collect::<Vec<_>>(), (0..count).map(|n| n < 10).collect::<Vec<_>>());
        let requests = requests(&plugin);
        assert_eq!(requests.len(), if expected == "look" { count } else { 1 }, "{requests:?}");
        assert!(requests.iter().all(|line| line.starts_with(expected)), "{requests:?}");
    }
}

#[test]
fn a_lookup_tells_what_a_listing_would() {
    let told = operations(&plugin(&KEYS));
    for ttl in [0, 60] {
        let plugin = looking_up(&KEYS);
        plugin.contents().settings.listing_ttl = Duration::from_secs(ttl);
        assert_eq!(operations(&plugin), told, "{ttl} s");
    }
}

#[test]
fn a_lookup_is_remembered_until_the_name_changes() {
    let plugin = looking_up(&["f"]);
    plugin.contents().settings.listing_ttl = Duration::from_secs(60);
    for key in ["f", "none", "f", "none", "none/below"] {
        assert_eq!(plugin.0.path_exists(&name(key)).unwrap(), key == "f");
    }
    // Nothing is below a name that is missing.
    assert_eq!(requests(&plugin), ["look f", "look none"]);
    plugin.0.create_dir(&name("none")).unwrap();
    assert!(plugin.0.is_directory(&name("none")).unwrap());
}

#[test]
fn a_failed_lookup_is_retried_by_its_kind_and_hides_no_name() {
    for (kind, attempts, code) in [
        (ErrorKind::Transient, 3, Code::Unavailable),
        (ErrorKind::Denied, 1, Code::PermissionDenied),
        (ErrorKind::Permanent, 1, Code::Unknown),
        (ErrorKind::NotFound, 1, Code::NotFound),
    ] {
        let plugin = looking_up(&["f"]);
        plugin.inject("look", [Fault::Fails(kind); 9]);
        let error = plugin.0.stat(&name("f")).unwrap_err();
        assert_eq!(error.code(), code, "{error:#}");
        assert_eq!(plugin.requests("").len(), attempts, "{kind:?}");
    }
}
