//! The SDK's own defaults, and TensorFlow's where the SDK leaves a slot null.

use crate::basic::{Basic, Rootless};
use crate::support::{code, fails};
use crate::trips::{Trip, arm, disarm};
use std::sync::LazyLock;
use tf_fs_plugin::{Code, Operations};
use tf_plugin_testing::filesystem::Host;

const A: &str = "basic://h/a";
const B: &str = "basic://h/b";
const DIR: &str = "basic://h/dir";
const BIG: usize = (2 << 20) + 17;

type Op = fn(&Host, &str, &str) -> tf_fs_plugin::Result<()>;
const COPY: Op = |host, src, dst| host.copy_file(src, dst);
const RENAME: Op = |host, src, dst| host.rename_file(src, dst);

fn host() -> Host {
    let host = Host::load::<Basic>().expect("loaded");
    host.write_file(A, "a's content").expect("written");
    host.create_dir(DIR).expect("created");
    host
}

fn big() -> &'static [u8] {
    static CONTENT: LazyLock<Vec<u8>> =
        LazyLock::new(|| (0..BIG).map(|index| (index % 251) as u8).collect());
    &CONTENT
}

#[test]
fn recursively_create_dir_of_what_comes_and_goes() {
    let host = host();
    arm("create_dir", Trip::Fail(Code::PermissionDenied), 1);
    assert_eq!(code(host.recursively_create_dir("basic://h/p/q")), Code::PermissionDenied);
    // `create_dir` says that the directory exists, but it is gone when it is checked. On the way up
    // it is created again; on the way down that is an error.
    arm("create_dir", Trip::Fail(Code::AlreadyExists), 0);
    host.recursively_create_dir("basic://h/r/s").expect("created");
    host.is_directory("basic://h/r/s").expect("there");
    arm("create_dir", Trip::Fail(Code::AlreadyExists), 2);
    assert_eq!(code(host.recursively_create_dir("basic://h/t/u")), Code::NotFound);
    assert!(!disarm());
}

#[test]
fn recursively_create_dir_ends_where_tensorflow_s_does_not() {
    let host = Host::load::<Rootless>().expect("loaded");
    assert_eq!(code(host.recursively_create_dir("rootless://h/a/b")), Code::NotFound);
    assert_eq!(code(host.recursively_create_dir("rootless://h/a")), Code::NotFound);
    host.check();
}

#[test]
fn onto_itself_nothing_is_lost() {
    let host = host();
    // More than is copied at a time.
    host.write_file(A, big()).expect("written");
    // A filesystem that truncates a file when it is opened for writing would lose it.
    arm("new_writable_file", Trip::Panic, 0);
    for same in [A, "basic://h/./a", "basic://h//dir/../a"] {
        host.copy_file(A, same).expect("nothing to do");
        assert!(host.read_file(A).expect("there") == big());
        host.rename_file(A, same).expect("nothing to do");
        assert!(host.read_file(A).expect("there") == big());
    }
    assert!(disarm(), "nothing was opened for writing");
}

#[test]
fn a_rename_that_cannot_delete_keeps_the_source() {
    let host = host();
    arm("delete_file", Trip::Fail(Code::PermissionDenied), 0);
    fails(host.rename_file(A, B), Code::PermissionDenied, "could not delete the source");
    assert_eq!(host.read_file(A).expect("still there"), b"a's content");
}

#[test]
fn a_copy_that_fails_leaves_no_half_made_file() {
    let host = host();
    host.write_file(A, big()).expect("written");
    for (place, after) in [
        ("new_random_access_file", 0),
        ("read", 0),
        ("read", 1),
        ("read", 2),
        ("new_writable_file", 0),
        ("append", 0),
        ("append", 2),
        ("close", 0),
    ] {
        for op in [COPY, RENAME] {
            arm(place, Trip::Fail(Code::Unavailable), after);
            assert_eq!(code(op(&host, A, B)), Code::Unavailable, "{place} {after}");
            assert!(!disarm(), "{place} {after}");
            assert_eq!(code(host.path_exists(B)), Code::NotFound, "{place} {after}");
            assert_eq!(host.stat(A).expect("there").length, BIG as u64, "{place} {after}");
        }
    }
    assert!(host.read_file(A).expect("there") == big());
    // While only the source was read, an existing target keeps its content.
    host.write_file(B, "old").expect("written");
    for place in ["new_random_access_file", "read", "new_writable_file"] {
        arm(place, Trip::Fail(Code::Unavailable), 0);
        assert_eq!(code(host.copy_file(A, B)), Code::Unavailable);
        assert_eq!(host.read_file(B).expect("there"), b"old");
    }
}

#[test]
fn tensorflows_copy_goes_into_a_directory_and_from_one_filesystem_to_another() {
    let host = Host::new();
    host.register_without::<Basic>(Operations::COPY_FILE).expect("loaded");
    host.register::<crate::full::Full>().expect("loaded");
    host.create_dir(DIR).expect("created");
    host.write_file(A, big()).expect("written");
    host.copy_file(A, DIR).expect("copied into it");
    assert!(host.read_file("basic://h/dir/a").expect("there") == big());
    host.copy_file(A, "full://h/a").expect("copied across");
    assert!(host.read_file("full://h/a").expect("there") == big());
}

#[test]
fn path_exists_comes_from_stat() {
    let host = host();
    fails(host.path_exists(B), Code::NotFound, "basic://h/b: not found");
    arm("stat", Trip::Fail(Code::Unavailable), 0);
    assert_eq!(code(host.path_exists(A)), Code::Unavailable);
}

#[test]
fn tensorflows_delete_recursively_counts_what_stays() {
    let host = host();
    fails(host.get_file_size(DIR), Code::FailedPrecondition, "Called GetFileSize on a directory");
    host.recursively_create_dir("basic://h/t/u/v").expect("created");
    for file in ["basic://h/t/1", "basic://h/t/u/2", "basic://h/t/u/v/3"] {
        host.write_file(file, file).expect("written");
    }
    // Three files, of which the second cannot be deleted: it and the two directories above stay.
    arm("delete_file", Trip::Fail(Code::PermissionDenied), 1);
    let left = host.delete_recursively("basic://h/t").expect_err("one stays");
    assert_eq!((left.error.code(), left.files, left.dirs), (Code::PermissionDenied, 1, 2));
    host.delete_recursively("basic://h/t").expect("deleted");
    assert_eq!(code(host.stat("basic://h/t")), Code::NotFound);
}

#[track_caller]
fn glob(host: &Host, pattern: &str, expected: &[&str]) {
    let matches = host.get_matching_paths(pattern).expect(pattern);
    let matches: Vec<_> = matches.iter().map(|name| String::from_utf8_lossy(name)).collect();
    assert_eq!(matches, expected, "{pattern}");
}

#[test]
fn get_matching_paths_of_untidy_patterns() {
    let host = host();
    host.recursively_create_dir("basic://h/t/u1").expect("created");
    host.create_dir("basic://h/t/u2").expect("created");
    host.write_file("basic://h/t/u1/part-0", "").expect("written");
    glob(&host, "basic://h/t//u1/*0", &["basic://h/t//u1/part-0"]);
    glob(&host, "basic://h/t/u2/../u1/*0", &["basic://h/t/u2/../u1/part-0"]);
    glob(&host, "basic://other/*", &[]);
    fails(
        host.filesystem("basic").expect("there").get_matching_paths("other://h/*"),
        Code::FailedPrecondition,
        "this filesystem serves `basic://`",
    );
}

#[test]
fn get_matching_paths_tells_what_tensorflow_hides() {
    let host = host();
    for pattern in ["basic://*", "basic://*/x", "basic://h*/x", "basic://h?/*", "basic://[h]/*"] {
        fails(
            host.get_matching_paths(pattern),
            Code::InvalidArgument,
            "wildcards are not supported in a host",
        );
    }
    arm("get_children", Trip::Fail(Code::Unavailable), 0);
    assert_eq!(code(host.get_matching_paths("basic://h/*")), Code::Unavailable);
    arm("stat", Trip::Fail(Code::PermissionDenied), 0);
    assert_eq!(code(host.get_matching_paths("basic://h/a")), Code::PermissionDenied);
    arm("get_children", Trip::Panic, 1);
    fails(
        host.get_matching_paths("basic://h/*/*"),
        Code::Internal,
        "plugin panicked in `get_matching_paths`",
    );
    // TensorFlow's default swallows them.
    let host = Host::new();
    host.register_without::<Basic>(Operations::GET_MATCHING_PATHS).expect("loaded");
    arm("get_children", Trip::Fail(Code::Unavailable), 0);
    glob(&host, "basic://h/*", &[]);
}
