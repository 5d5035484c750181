//! Directories that a store creates, deletes and renames.

use crate::store::{Plugin, name, server};
use tf_fs_plugin::prelude::*;

/// A tree of several pages, with an empty directory.
const TREE: [&str; 8] = ["d/a", "d/b", "d/c", "d/e/f", "d/e/g/h", "d/empty/", "d/z", "other"];

fn code<T>(outcome: Result<T>) -> Code {
    outcome.err().expect("an error").code()
}

fn rename(plugin: &Plugin, src: &str, dst: &str) -> Result<()> {
    plugin.0.rename_file(&name(src), &name(dst))
}

#[test]
fn a_directory_is_there_until_it_is_deleted() {
    for with_lookup in [true, false] {
        let plugin = server(&["f"]);
        if !with_lookup {
            plugin.contents().cannot = vec!["look"];
        }
        let connection = &plugin.0;
        connection.create_dir(&name("d")).unwrap();
        assert_eq!(code(connection.create_dir(&name("d"))), Code::AlreadyExists);
        assert_eq!(code(connection.create_dir(&name("f"))), Code::AlreadyExists);
        assert_eq!(code(connection.create_dir(&name("none/d"))), Code::NotFound);
        for key in ["d", "d/"] {
            assert!(connection.is_directory(&name(key)).unwrap(), "{key}");
            assert!(plugin.children(key).unwrap().is_empty());
        }
        assert!(connection.is_directory(&name("")).unwrap());
        assert_eq!(plugin.children("").unwrap(), ["d", "f"]);
        assert_eq!(code(plugin.children("f")), Code::FailedPrecondition);
        assert_eq!(code(plugin.children("none")), Code::NotFound);
        assert_eq!(code(connection.stat(&name("f/"))), Code::NotFound);
        assert_eq!(code(connection.stat(&name("d/x"))), Code::NotFound);
        assert_eq!(code(connection.stat(&name("none/x"))), Code::NotFound);
        // It does not vanish with its last file.
        plugin.contents().fill(&["f", "d/x"]);
        assert_eq!(code(connection.delete_dir(&name("d"))), Code::FailedPrecondition);
        connection.delete_file(&name("d/x")).unwrap();
        assert!(connection.is_directory(&name("d")).unwrap());
        connection.delete_dir(&name("d")).unwrap();
        assert_eq!(plugin.paths(), ["f"]);
        assert_eq!(code(connection.delete_dir(&name("d"))), Code::NotFound);
        assert_eq!(code(connection.delete_dir(&name("f"))), Code::FailedPrecondition);
        assert_eq!(code(connection.delete_file(&name("d"))), Code::NotFound);
        assert!(plugin.contents().took_along.is_empty());
    }
}

#[test]
fn missing_parents_are_created() {
    let plugin = server(&["a/f"]);
    plugin.0.recursively_create_dir(&name("a/b/c/d")).unwrap();
    assert_eq!(
        plugin.take_log(),
        [
            "look a/b/c/d",
            "mkdir a/b/c/d/",
            "mkdir a/b/c/",
            "mkdir a/b/",
            "mkdir a/b/c/",
            "mkdir a/b/c/d/"
        ]
    );
    plugin.0.recursively_create_dir(&name("a/b/c/d/")).unwrap();
    plugin.0.recursively_create_dir(&name("top")).unwrap();
    assert_eq!(plugin.take_log(), ["look a/b/c/d", "look top", "mkdir top/"]);
    assert_eq!(code(plugin.0.recursively_create_dir(&name("a/f"))), Code::FailedPrecondition);
    assert_eq!(plugin.paths(), ["a/", "a/b/", "a/b/c/", "a/b/c/d/", "a/f", "top/"]);
    // A response that is lost: the second attempt finds the directory.
    plugin.contents().loses = Some("mkdir");
    plugin.0.recursively_create_dir(&name("lost")).unwrap();
}

#[test]
fn a_directory_is_deleted_after_its_content_and_never_with_it() {
    let plugin = server(&TREE);
    plugin.0.delete_recursively(&name("d")).map_err(|left| left.error).unwrap();
    assert_eq!(plugin.paths(), ["other"]);
    assert!(plugin.contents().took_along.is_empty(), "{:?}", plugin.contents().took_along);
    let log = plugin.take_log();
    let deleted = log.iter().filter(|line| line.starts_with("delete")).count();
    assert_eq!(deleted, 10, "{log:?}");
    assert_eq!(log.last().unwrap(), "delete d/");
    let left = plugin.0.delete_recursively(&name("d")).unwrap_err();
    assert_eq!(left.error.code(), Code::NotFound);
    // A file is deleted alone, and an empty directory.
    plugin.contents().fill(&["f", "empty/", "x"]);
    plugin.0.delete_recursively(&name("f")).map_err(|left| left.error).unwrap();
    plugin.0.delete_recursively(&name("empty/")).map_err(|left| left.error).unwrap();
    assert_eq!(plugin.paths(), ["x"]);
    // What cannot be deleted keeps its directories, and nothing else.
    plugin.contents().fill(&TREE);
    plugin.contents().undeletable = Some("d/e/g/h".into());
    let left = plugin.0.delete_recursively(&name("d")).unwrap_err();
    assert_eq!((left.files, left.dirs), (1, 3), "{:#}", left.error);
    assert_eq!(plugin.paths(), ["d/", "d/e/", "d/e/g/", "d/e/g/h", "other"]);
    assert!(plugin.contents().took_along.is_empty());
}

#[test]
fn a_directory_is_renamed_with_one_request() {
    let plugin = server(&TREE);
    rename(&plugin, "d", "n").unwrap();
    let requests = plugin.take_log();
    assert_eq!(requests.iter().filter(|line| line.starts_with("rename")).count(), 1);
    assert!(!requests.iter().any(|line| line.starts_with("list")), "{requests:?}");
    let moved = [
        "n/", "n/a", "n/b", "n/c", "n/e/", "n/e/f", "n/e/g/", "n/e/g/h", "n/empty/", "n/z", "other",
    ];
    assert_eq!(plugin.paths(), moved);
    // Over an empty directory, not over files.
    plugin.contents().directories.insert("d/".into());
    rename(&plugin, "n", "d/").unwrap();
    plugin.0.create_dir(&name("n")).unwrap();
    plugin.contents().files.insert("n/x".into(), Default::default());
    for dst in ["n", "other", "d/e", "d/e/f"] {
        assert_eq!(code(rename(&plugin, "d", dst)), Code::FailedPrecondition, "{dst}");
    }
    assert_eq!(code(rename(&plugin, "other", "n")), Code::FailedPrecondition);
    assert_eq!(code(rename(&plugin, "none", "m")), Code::NotFound);
    assert_eq!(code(rename(&plugin, "none/", "m")), Code::NotFound);
    assert!(plugin.contents().took_along.is_empty());
    // A response that is lost.
    plugin.contents().loses = Some("rename");
    rename(&plugin, "d", "m").unwrap();
    assert_eq!(plugin.children("m/e").unwrap(), ["f", "g"]);
}

#[test]
fn a_directory_is_copied_file_by_file_where_the_store_cannot_rename() {
    let plugin = server(&TREE);
    plugin.contents().cannot = vec!["rename"];
    rename(&plugin, "d", "n/m").unwrap();
    let moved = [
        "n/",
        "n/m/",
        "n/m/a",
        "n/m/b",
        "n/m/c",
        "n/m/e/",
        "n/m/e/f",
        "n/m/e/g/",
        "n/m/e/g/h",
        "n/m/empty/",
        "n/m/z",
        "other",
    ];
    assert_eq!(plugin.paths(), moved);
    assert!(plugin.contents().took_along.is_empty(), "{:?}", plugin.contents().took_along);
    let read = plugin.contents().files["n/m/e/g/h"].0.clone();
    assert_eq!(read, "d/e/g/h");
}

#[test]
fn a_copy_is_of_a_file() {
    let plugin = server(&TREE);
    assert_eq!(code(plugin.0.copy_file(&name("d"), &name("x"))), Code::FailedPrecondition);
    assert_eq!(code(plugin.0.copy_file(&name("none"), &name("x"))), Code::NotFound);
    assert_eq!(code(plugin.0.copy_file(&name("other"), &name("d"))), Code::FailedPrecondition);
    plugin.0.copy_file(&name("other"), &name("d/other")).unwrap();
    assert!(plugin.contents().took_along.is_empty());
    assert_eq!(plugin.take_log().iter().filter(|line| line.starts_with("copy")).count(), 1);
    rename(&plugin, "d/other", "moved").unwrap();
    assert_eq!(plugin.contents().files["moved"].0, "other");
}

#[test]
fn patterns_are_followed_directory_by_directory() {
    for ttl in [0, 60] {
        let plugin = server(&TREE);
        plugin.contents().ttl = std::time::Duration::from_secs(ttl);
        for (pattern, expected) in [
            ("*", &["d", "other"][..]),
            ("d/*", &["d/a", "d/b", "d/c", "d/e", "d/empty", "d/z"]),
            ("d/*/", &["d/e/", "d/empty/"]),
            ("*/*/*", &["d/e/f", "d/e/g"]),
            ("*/e/*/h", &["d/e/g/h"]),
            ("none/*", &[]),
        ] {
            let found =
                plugin.0.get_matching_paths(Uri::new(format!("mem://b/{pattern}").as_bytes()));
            let found: Vec<String> = found
                .unwrap()
                .iter()
                .map(|path| String::from_utf8_lossy(&path[8..]).into_owned())
                .collect();
            assert_eq!(found, expected, "{pattern}");
        }
        let uris: Vec<String> =
            ["d/a", "d/x", "d/empty", "none/x"].map(|key| format!("mem://b/{key}")).into();
        let uris: Vec<Uri<'_>> = uris.iter().map(|uri| Uri::new(uri.as_bytes())).collect();
        let exist = plugin.0.paths_exist(&uris).into_iter().map(Result::unwrap);
        assert_eq!(exist.collect::<Vec<_>>(), [true, false, true, false]);
    }
}

#[test]
fn a_tree_without_end_is_an_error() {
    let plugin = server(&[]);
    plugin.contents().is_hostile = true;
    let left = plugin.0.delete_recursively(&name("d")).unwrap_err();
    assert_eq!(left.error.code(), Code::DataLoss, "{:#}", left.error);
    assert!(plugin.take_log().len() < 20);
}
