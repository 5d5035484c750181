//! The codes and messages of failures, and what only a filesystem of the machine can do: links, permissions, hard
//! links. `tests/conformance` checks the codes of the header, with and without a root and without `openat2`.

mod common;

use common::{TestDir, code, read_at, unprivileged};
use localfs::LocalFs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::{Duration, SystemTime};
use tf_fs_plugin::prelude::*;

/// Calls an operation on a path, and drops its result.
type Operation = fn(&LocalFs, Uri<'_>) -> Result<()>;

/// The operations on one path.
const OPERATIONS: [(&str, Operation); 13] = [
    ("new_random_access_file", |fs, uri| fs.new_random_access_file(uri).map(drop)),
    ("new_writable_file", |fs, uri| fs.new_writable_file(uri).map(drop)),
    ("new_appendable_file", |fs, uri| fs.new_appendable_file(uri).map(drop)),
    ("region", |fs, uri| fs.new_read_only_memory_region_from_file(uri).map(drop)),
    ("create_dir", |fs, uri| fs.create_dir(uri)),
    ("recursively_create_dir", |fs, uri| fs.recursively_create_dir(uri)),
    ("delete_file", |fs, uri| fs.delete_file(uri)),
    ("delete_dir", |fs, uri| fs.delete_dir(uri)),
    ("delete_recursively", |fs, uri| fs.delete_recursively(uri).map_err(|left| left.error)),
    ("path_exists", |fs, uri| fs.path_exists(uri).map(drop)),
    ("stat", |fs, uri| fs.stat(uri).map(drop)),
    ("is_directory", |fs, uri| fs.is_directory(uri).map(drop)),
    ("get_children", |fs, uri| fs.get_children(uri).map(drop)),
];

fn prepare(area: &TestDir) {
    area.write("file", "content");
    area.mkdir("dir");
}

#[test]
fn a_path_below_a_file_is_a_failed_precondition_that_names_it() {
    for area in TestDir::both() {
        prepare(&area);
        for (name, op) in OPERATIONS {
            for path in ["file/x", "file/x/y"] {
                let error = op(&area.fs, Uri::new(&area.uri(path))).expect_err(name);
                assert_eq!(error.code(), Code::FailedPrecondition, "{name} of {path}: {error}");
                assert!(error.to_string().contains(path), "{name} does not name it: {error}");
            }
        }
    }
}

/// Names that are too long as a whole or in one component, or have a NUL.
#[test]
fn a_malformed_name_is_a_failed_precondition_with_a_short_text() {
    let long = [b"local:///".to_vec(), b"a/".repeat(1 << 19), b"b".to_vec()].concat();
    let component = [b"local:///tmp/".to_vec(), vec![b'a'; 256]].concat();
    for malformed in [long, component, b"local:///tmp/a\0b".to_vec()] {
        for area in TestDir::both() {
            area.mkdir("tmp");
            for (name, op) in OPERATIONS {
                let error = op(&area.fs, Uri::new(&malformed)).expect_err(name);
                assert_eq!(error.code(), Code::FailedPrecondition, "{name}: {error}");
                assert!(error.to_string().len() < 2000, "{name}: an endless message");
            }
        }
    }
}

#[test]
fn stat_returns_the_time_of_modification() {
    let area = TestDir::confined();
    prepare(&area);
    let modified = SystemTime::UNIX_EPOCH + Duration::new(1_234_567_890, 123_456_789);
    let file = std::fs::File::options().write(true).open(area.path("file")).unwrap();
    file.set_modified(modified).unwrap();
    let stat = area.fs.stat(Uri::new(&area.uri("file"))).unwrap();
    assert_eq!(stat, FileStatistics::file(7).with_modified(modified));
}

#[test]
fn renaming_one_of_two_names_of_a_file() {
    for area in TestDir::both() {
        area.write("a", "content");
        area.mkdir("dir");
        std::fs::hard_link(area.path("a"), area.path("b")).unwrap();
        let uri = |path: &str| area.uri(path);
        area.fs.rename_file(Uri::new(&uri("a")), Uri::new(&uri("b"))).unwrap();
        assert_eq!(area.names("."), ["b", "dir"]);
        assert_eq!(area.read("b"), b"content");
        // One entry that is reached in two ways stays.
        std::fs::hard_link(area.path("b"), area.path("dir/b")).unwrap();
        symlink("dir", area.path("way")).unwrap();
        area.fs.rename_file(Uri::new(&uri("dir/b")), Uri::new(&uri("way/b"))).unwrap();
        assert_eq!(area.read("dir/b"), b"content");
        // A copy onto another name of the same file must not empty it.
        area.fs.copy_file(Uri::new(&uri("b")), Uri::new(&uri("dir/b"))).unwrap();
        assert_eq!(area.read("b"), b"content");
        assert_eq!(area.path("b").metadata().unwrap().nlink(), 2, "nothing was to be done");
    }
}

#[test]
fn a_copy_that_fails_half_way_leaves_everything() {
    let area = TestDir::unconfined();
    area.write("old", "content");
    for dst in ["old", "new"] {
        // It can be opened, but address 0 cannot be read.
        let src = Uri::new(b"local:///proc/self/mem");
        let answer = area.fs.copy_file(src, Uri::new(&area.uri(dst)));
        assert_eq!(code(answer), Code::DataLoss);
        assert_eq!(area.names("."), ["old"]);
        assert_eq!(area.read("old"), b"content");
    }
}

#[test]
fn renaming_to_another_filesystem_of_the_machine() {
    let area = TestDir::unconfined();
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    area.write("file", "content");
    let target = elsewhere.path().join("file");
    let dst = format!("local://{}", target.display());
    let src = area.uri("file");
    area.fs.rename_file(Uri::new(&src), Uri::new(dst.as_bytes())).unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"content");
    assert_eq!(area.names("."), [""; 0]);
    // Back, onto a directory.
    area.mkdir("file");
    let back = area.fs.rename_file(Uri::new(dst.as_bytes()), Uri::new(&src));
    assert_eq!(code(back), Code::FailedPrecondition);
    assert!(target.exists());
}

#[test]
fn a_link_to_a_directory_is_not_a_file() {
    for area in TestDir::both() {
        prepare(&area);
        symlink("dir", area.path("link")).unwrap();
        let (file, link, new) = (area.uri("file"), area.uri("link"), area.uri("new"));
        let (file, link, new) = (Uri::new(&file), Uri::new(&link), Uri::new(&new));
        for (src, dst) in [(file, link), (link, new), (link, link)] {
            assert_eq!(code(area.fs.rename_file(src, dst)), Code::FailedPrecondition);
            assert_eq!(code(area.fs.copy_file(src, dst)), Code::FailedPrecondition);
        }
        assert!(area.path("link").symlink_metadata().unwrap().is_symlink());
        assert!(!area.path("new").exists());
        // Deleting is about the link itself.
        area.fs.delete_file(link).unwrap();
        assert!(area.path("dir").is_dir());
    }
}

#[test]
fn copies_keep_permissions_and_leave_nothing_behind() {
    for area in TestDir::both() {
        area.write("script", "#!");
        let mode = |path: &str| area.path(path).metadata().unwrap().permissions().mode() & 0o7777;
        std::fs::set_permissions(area.path("script"), PermissionsExt::from_mode(0o751)).unwrap();
        let long = "n".repeat(255);
        for dst in ["copy", &long] {
            area.fs.copy_file(Uri::new(&area.uri("script")), Uri::new(&area.uri(dst))).unwrap();
            assert_eq!(mode(dst), 0o751);
        }
        assert_eq!(area.names("."), ["copy", &long, "script"]);
    }
}

#[test]
fn an_open_reader_of_a_copys_target_keeps_the_old_content() {
    for area in TestDir::both() {
        area.write("old", vec![b'o'; 20_000]);
        area.write("new", "n");
        let old = area.uri("old");
        let reader = area.fs.new_random_access_file(Uri::new(&old)).unwrap();
        let region = area.fs.new_read_only_memory_region_from_file(Uri::new(&old)).unwrap();
        area.fs.copy_file(Uri::new(&area.uri("new")), Uri::new(&old)).unwrap();
        assert_eq!(read_at(&reader, 19_999, 10), b"o");
        assert_eq!(region.content().to_vec(), vec![b'o'; 20_000]);
        assert_eq!(area.read("old"), b"n");
    }
}

#[test]
fn undeletable_entries_are_counted() {
    for area in TestDir::both() {
        area.mkdir("tree/locked/inner");
        area.mkdir("tree/open");
        for file in ["tree/locked/1", "tree/locked/2", "tree/open/3", "tree/4"] {
            area.write(file, "");
        }
        for (path, mode) in [(".", 0o777), ("tree", 0o777), ("tree/open", 0o777)] {
            std::fs::set_permissions(area.path(path), PermissionsExt::from_mode(mode)).unwrap();
        }
        std::fs::set_permissions(area.path("tree/locked"), PermissionsExt::from_mode(0o555))
            .unwrap();
        let uri = area.uri("tree");
        let undeleted = unprivileged(|| area.fs.delete_recursively(Uri::new(&uri))).unwrap_err();
        assert_eq!(undeleted.error.code(), Code::PermissionDenied);
        // `1`, `2`; `tree`, `locked`, `inner`.
        assert_eq!((undeleted.files, undeleted.dirs), (2, 3), "{}", undeleted.error);
        assert_eq!(area.names("tree"), ["locked"]);
        assert_eq!(area.names("tree/locked"), ["1", "2", "inner"]);
        std::fs::set_permissions(area.path("tree/locked"), PermissionsExt::from_mode(0o755))
            .unwrap();
    }
}

#[test]
fn a_single_file_that_cannot_be_deleted_is_counted() {
    for area in TestDir::both() {
        area.mkdir("locked");
        area.write("locked/file", "");
        std::fs::set_permissions(area.path("."), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::set_permissions(area.path("locked"), PermissionsExt::from_mode(0o555)).unwrap();
        let uri = area.uri("locked/file");
        let undeleted = unprivileged(|| area.fs.delete_recursively(Uri::new(&uri))).unwrap_err();
        assert_eq!((undeleted.files, undeleted.dirs), (1, 0));
        std::fs::set_permissions(area.path("locked"), PermissionsExt::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_tree_deeper_than_paths_and_open_files() {
    for area in TestDir::both() {
        area.mkdir("deep");
        let mut directory = std::fs::File::open(area.path("deep")).unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&directory, "directory", 0o777.into()).unwrap();
            let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CREATE;
            rustix::fs::openat(&directory, "file", flags, 0o666.into()).unwrap();
            let flags = rustix::fs::OFlags::DIRECTORY;
            directory =
                rustix::fs::openat(&directory, "directory", flags, 0.into()).unwrap().into();
        }
        drop(directory);
        area.fs.delete_recursively(Uri::new(&area.uri("deep"))).unwrap();
        assert_eq!(area.names("."), [""; 0]);
    }
}

#[test]
fn refusals_of_the_system() {
    for area in TestDir::both() {
        area.mkdir("secret");
        area.write("secret/file", "");
        std::fs::set_permissions(area.path("."), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::set_permissions(area.path("secret"), PermissionsExt::from_mode(0o000)).unwrap();
        let (dir, file) = (area.uri("secret"), area.uri("secret/file"));
        let (dir, file) = (Uri::new(&dir), Uri::new(&file));
        let (fs, denied) = (&area.fs, Code::PermissionDenied);
        assert_eq!(code(unprivileged(|| fs.path_exists(file))), denied);
        assert_eq!(code(unprivileged(|| fs.get_children(dir))), denied);
        assert_eq!(code(unprivileged(|| fs.new_random_access_file(file))), denied);
        assert_eq!(code(unprivileged(|| fs.new_writable_file(file))), denied);
        let pattern = area.uri("secret/*");
        let glob = unprivileged(|| fs.get_matching_paths(Uri::new(&pattern)));
        assert_eq!(code(glob), denied, "an error is not an empty answer");
        std::fs::set_permissions(area.path("secret"), PermissionsExt::from_mode(0o700)).unwrap();
    }
}

#[test]
fn a_host_needs_a_root() {
    let area = TestDir::unconfined();
    for uri in [&b"local://bucket/x"[..], b"local://../x", b"local://.", b"local://bucket"] {
        let error = area.fs.stat(Uri::new(uri)).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert!(error.to_string().contains("write `local:///`"), "{error}");
    }
    let area = TestDir::confined();
    area.mkdir("bucket");
    area.write("bucket/x", "in the bucket");
    assert_eq!(area.fs.get_file_size(Uri::new(b"local://bucket/x")).unwrap(), 13);
    assert_eq!(area.fs.get_file_size(Uri::new(b"local:///bucket/x")).unwrap(), 13);
    assert!(area.fs.is_directory(Uri::new(b"local://bucket/")).unwrap());
    area.fs.recursively_create_dir(Uri::new(b"local://other/a/b")).unwrap();
    assert!(area.path("other/a/b").is_dir());
    for uri in [&b"local://../x"[..], b"local://./x", b"local://.."] {
        assert_eq!(code(area.fs.stat(Uri::new(uri))), Code::FailedPrecondition);
    }
}

#[test]
fn the_root_itself() {
    for fs in [LocalFs::unconfined(), LocalFs::confined("/usr").unwrap()] {
        let root = Uri::new(b"local:///");
        assert!(fs.is_directory(root).unwrap());
        assert_eq!(code(fs.create_dir(root)), Code::AlreadyExists);
        fs.recursively_create_dir(root).unwrap();
        assert_eq!(code(fs.delete_dir(root)), Code::FailedPrecondition);
        assert_eq!(code(fs.delete_file(root)), Code::FailedPrecondition);
        let undeleted = fs.delete_recursively(root).unwrap_err();
        assert_eq!(undeleted.error.code(), Code::FailedPrecondition);
        assert_eq!((undeleted.files, undeleted.dirs), (0, 1));
        let other = Uri::new(b"local:///no-such-name");
        assert_eq!(code(fs.rename_file(root, other)), Code::FailedPrecondition);
        assert_eq!(code(fs.copy_file(root, other)), Code::FailedPrecondition);
    }
}

#[test]
fn all_of_this_without_openat2() {
    common::repeat_without_openat2("all_of_this_without_openat2");
}
