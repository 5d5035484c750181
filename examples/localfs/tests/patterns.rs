//! `get_matching_paths` where it depends on the machine. `tests/conformance` checks the patterns.

mod common;

use common::{TestDir, code, unprivileged};
use std::os::unix::fs::{PermissionsExt, symlink};
use tf_fs_plugin::prelude::*;

fn matches(area: &TestDir, pattern: &str) -> Vec<String> {
    let pattern = area.uri(pattern);
    let prefix = area.uri("").len();
    let entries = area.fs.get_matching_paths(Uri::new(&pattern)).unwrap();
    let start = &area.uri("")[..];
    entries
        .iter()
        .map(|name| {
            assert!(name.starts_with(start), "in the form of the pattern");
            String::from_utf8(name[prefix..].to_vec()).unwrap()
        })
        .collect()
}

fn prepare(area: &TestDir) {
    for dir in ["a/x", "a-b", "b/x/y", "empty"] {
        area.mkdir(dir);
    }
    for file in ["a/1", "a/2", "a/.3", "a/x/1", "a-b/1", "b/1", "b/x/y/z", "top", "st*r"] {
        area.write(file, "");
    }
}

#[test]
fn names_are_written_as_in_the_pattern() {
    for area in TestDir::both() {
        prepare(&area);
        let check =
            |pattern, expected: &[&str]| assert_eq!(matches(&area, pattern), expected, "{pattern}");
        // Sorted as whole names: `-` comes before `/`.
        check("a*/1", &["a-b/1", "a/1"]);
        check("st*", &["st*r"]);
        check("a//[12]", &["a//1", "a//2"]);
        check("./a/[12]", &["./a/1", "./a/2"]);
        check("b/../a/[12]", &["b/../a/1", "b/../a/2"]);
        check("*/x/", &["a/x/", "b/x/"]);
        check("t*/", &[]);
        check("top/", &[]);
    }
}

#[test]
fn only_what_can_match_is_read() {
    for area in TestDir::both() {
        prepare(&area);
        let mode = |path: &str, mode| {
            std::fs::set_permissions(area.path(path), PermissionsExt::from_mode(mode)).unwrap();
        };
        area.mkdir("locked/sub");
        mode(".", 0o755);
        mode("locked", 0);
        let check = |pattern: &str, expected: &[&str]| {
            assert_eq!(unprivileged(|| matches(&area, pattern)), expected, "{pattern}");
        };
        check("[!l]*/1", &["a-b/1", "a/1", "b/1"]);
        check("l*", &["locked"]);
        check("b/*/y", &["b/x/y"]);
        let pattern = area.uri("*/1");
        let answer = unprivileged(|| area.fs.get_matching_paths(Uri::new(&pattern)));
        assert_eq!(code(answer), Code::PermissionDenied, "an error is not an empty answer");
        mode("locked", 0o755);
    }
}

#[test]
fn a_link_that_leads_round_in_a_circle() {
    for area in TestDir::both() {
        prepare(&area);
        symlink("circle", area.path("circle")).unwrap();
        assert_eq!(matches(&area, "*/1"), ["a-b/1", "a/1", "b/1"]);
        assert_eq!(matches(&area, "cir*"), ["circle"]);
        assert_eq!(matches(&area, "circle/x"), [""; 0]);
    }
}

#[test]
fn ten_thousand_files() {
    let area = TestDir::confined();
    area.mkdir("many");
    for i in 0..10_000 {
        area.write(&format!("many/part-{i:05}"), "");
    }
    let parts = matches(&area, "many/part-*");
    assert_eq!(parts.len(), 10_000);
    assert!(parts.is_sorted());
    assert_eq!(matches(&area, "many/*[05]").len(), 2_000);
    let uri = area.uri("many");
    assert_eq!(area.fs.get_children(Uri::new(&uri)).unwrap().len(), 10_000);
}

#[test]
fn malformed_patterns() {
    let area = TestDir::unconfined();
    for pattern in [&b"local://*/x"[..], b"local://host/*", b"local:///a\0/*"] {
        let answer = area.fs.get_matching_paths(Uri::new(pattern));
        assert_eq!(code(answer), Code::FailedPrecondition);
    }
    let long = [&b"local:///tmp/"[..], &b"a".repeat(256), b"/*"].concat();
    assert_eq!(code(area.fs.get_matching_paths(Uri::new(&long))), Code::FailedPrecondition);
}

#[test]
fn all_of_this_without_openat2() {
    common::repeat_without_openat2("all_of_this_without_openat2");
}
