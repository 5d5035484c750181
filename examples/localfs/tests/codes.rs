//! Each condition of `filesystem_interface.h` gets the code that the header names, with and without a
//! root.

mod common;

use common::{Area, code, read_at, unprivileged};
use localfs::LocalFs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::{Duration, SystemTime};
use tf_fs_plugin::prelude::*;

/// What an operation returns for a path; `None` is success.
type Answer = Option<Code>;

const OK: Answer = None;
const NOT_FOUND: Answer = Some(Code::NotFound);
const PRECONDITION: Answer = Some(Code::FailedPrecondition);
const EXISTS: Answer = Some(Code::AlreadyExists);

/// The columns of the tables: what a path may be.
const CASES: [&str; 8] =
    ["missing", "missing/x", "file", "dir", "full", "file/x", "file/x/y", "empty"];

fn prepare(area: &Area) {
    area.write("file", "content");
    area.write("empty", "");
    area.mkdir("dir");
    area.mkdir("full/sub");
    area.write("full/x", "1");
}

/// Runs `op` on each case, each in a fresh area, and compares the results, in the order of `CASES`.
#[track_caller]
fn check<T>(name: &str, answers: [Answer; 8], op: impl Fn(&LocalFs, Uri<'_>) -> Result<T>) {
    for (case, expected) in CASES.into_iter().zip(answers) {
        for area in Area::both() {
            prepare(&area);
            let uri = area.uri(case);
            let answer = op(&area.fs, Uri::new(&uri)).err();
            let code = answer.as_ref().map(tf_fs_plugin::Error::code);
            assert_eq!(code, expected, "{name} of {case}: {answer:?}");
            if let Some(error) = answer {
                let text = error.to_string();
                assert!(text.contains(case), "{name} of {case} does not name the path: {text}");
            }
        }
    }
    // Malformed names: too long as a whole or in one component, with NUL.
    let long = [b"local:///".to_vec(), b"a/".repeat(1 << 19), b"b".to_vec()].concat();
    let component = [b"local:///tmp/".to_vec(), vec![b'a'; 256]].concat();
    for malformed in [long, component, b"local:///tmp/a\0b".to_vec()] {
        for area in Area::both() {
            area.mkdir("tmp");
            let answer = op(&area.fs, Uri::new(&malformed));
            let error = answer.err().unwrap_or_else(|| panic!("{name} took a malformed name"));
            assert_eq!(error.code(), Code::FailedPrecondition, "{name}: {error}");
            assert!(error.to_string().len() < 2000, "{name}: an endless message");
        }
    }
}

#[test]
fn opening() {
    let (f, e) = (PRECONDITION, NOT_FOUND);
    check("new_random_access_file", [e, e, OK, f, f, f, f, OK], |fs, uri| {
        fs.new_random_access_file(uri)
    });
    check("new_writable_file", [OK, e, OK, f, f, f, f, OK], |fs, uri| fs.new_writable_file(uri));
    check("new_appendable_file", [OK, e, OK, f, f, f, f, OK], |fs, uri| {
        fs.new_appendable_file(uri)
    });
    let empty = Some(Code::InvalidArgument);
    check("region", [e, e, OK, f, f, f, f, empty], |fs, uri| {
        fs.new_read_only_memory_region_from_file(uri)
    });
}

#[test]
fn creating_directories() {
    let (f, e) = (PRECONDITION, NOT_FOUND);
    check("create_dir", [OK, e, EXISTS, EXISTS, EXISTS, f, f, EXISTS], |fs, uri| {
        fs.create_dir(uri)?;
        assert!(fs.is_directory(uri)?);
        Ok(())
    });
    check("recursively_create_dir", [OK, OK, f, OK, OK, f, f, f], |fs, uri| {
        fs.recursively_create_dir(uri)?;
        assert!(fs.is_directory(uri)?);
        Ok(())
    });
}

#[test]
fn deleting() {
    let (f, e) = (PRECONDITION, NOT_FOUND);
    check("delete_file", [e, e, OK, f, f, f, f, OK], |fs, uri| {
        fs.delete_file(uri)?;
        assert!(!fs.path_exists(uri)?);
        assert!(fs.path_exists(uri.parent().unwrap())?);
        Ok(())
    });
    check("delete_dir", [e, e, f, OK, f, f, f, f], |fs, uri| {
        fs.delete_dir(uri)?;
        assert!(!fs.path_exists(uri)?);
        Ok(())
    });
    check("delete_recursively", [e, e, OK, OK, OK, f, f, OK], |fs, uri| {
        match fs.delete_recursively(uri) {
            Ok(()) => {
                assert!(!fs.path_exists(uri)?);
                assert!(fs.path_exists(uri.parent().unwrap())?);
                Ok(())
            }
            Err(undeleted) => {
                assert_eq!((undeleted.files, undeleted.dirs), (0, 1), "it did not start");
                Err(undeleted.error)
            }
        }
    });
}

#[test]
fn queries() {
    let (f, e) = (PRECONDITION, NOT_FOUND);
    check("path_exists", [e, e, OK, OK, OK, f, f, OK], |fs, uri| match fs.path_exists(uri)? {
        true => Ok(()),
        false => Err(Error::not_found(uri)),
    });
    check("stat", [e, e, OK, OK, OK, f, f, OK], |fs, uri| fs.stat(uri));
    check("is_directory", [e, e, f, OK, OK, f, f, f], |fs, uri| match fs.is_directory(uri)? {
        true => Ok(()),
        false => Err(Error::expected_directory(uri)),
    });
    check("get_file_size", [e, e, OK, f, f, f, f, OK], |fs, uri| fs.get_file_size(uri));
}

#[test]
fn listing() {
    let (f, e) = (PRECONDITION, NOT_FOUND);
    check("get_children", [e, e, f, OK, OK, f, f, f], |fs, uri| fs.get_children(uri));
    for area in Area::both() {
        prepare(&area);
        area.write("full/.hidden", "");
        let children = |path| {
            let uri = area.uri(path);
            let entries = area.fs.get_children(Uri::new(&uri)).unwrap();
            let mut names: Vec<_> =
                entries.iter().map(|name| String::from_utf8(name.to_vec()).unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(children("full"), [".hidden", "sub", "x"]);
        assert_eq!(children("dir"), [""; 0]);
        assert_eq!(children("").len(), 4);
    }
}

#[test]
fn statistics() {
    for area in Area::both() {
        prepare(&area);
        let stat = |path| area.fs.stat(Uri::new(&area.uri(path))).unwrap();
        let modified = SystemTime::UNIX_EPOCH + Duration::new(1_234_567_890, 123_456_789);
        let file = std::fs::File::options().write(true).open(area.path("file")).unwrap();
        file.set_modified(modified).unwrap();
        assert_eq!(stat("file"), FileStatistics::file(7).with_modified(modified));
        assert_eq!(stat("empty").length, 0);
        let directory = stat("full");
        assert_eq!((directory.is_directory, directory.length), (true, 0));
        assert_ne!(directory.modified_nanos(), 0);
        assert_eq!(area.fs.get_file_size(Uri::new(&area.uri("file"))).unwrap(), 7);
    }
}

#[test]
fn many_paths_at_once() {
    for area in Area::both() {
        prepare(&area);
        let names = ["file", "dir", "file/x", "missing"].map(|path| area.uri(path));
        let uris = names.each_ref().map(|name| Uri::new(name));
        let answers: Vec<_> = area
            .fs
            .paths_exist(&uris)
            .into_iter()
            .map(|answer| answer.map_err(|error| error.code()))
            .collect();
        assert_eq!(answers, [Ok(true), Ok(true), Err(Code::FailedPrecondition), Ok(false)]);
        assert!(area.fs.paths_exist(&[]).is_empty());
    }
}

/// Source, destination and the result of both `rename_file` and `copy_file`.
const MOVES: [(&str, &str, Answer); 17] = [
    ("file", "new", OK),
    ("file", "empty", OK),
    ("file", "full/x", OK),
    ("empty", "file", OK),
    ("file", "file", OK),
    ("missing", "new", NOT_FOUND),
    ("missing", "missing", NOT_FOUND),
    ("missing/x", "new", NOT_FOUND),
    ("file", "missing/x", NOT_FOUND),
    ("dir", "new", PRECONDITION),
    ("full", "new", PRECONDITION),
    ("dir", "dir", PRECONDITION),
    ("file", "dir", PRECONDITION),
    ("file", "full", PRECONDITION),
    ("empty/x", "new", PRECONDITION),
    ("empty", "file/x", PRECONDITION),
    ("file", "file/x", PRECONDITION),
];

/// Lists everything below a directory: name, inode, content.
fn snapshot(area: &Area, path: &str) -> Vec<(String, u64, Vec<u8>)> {
    let mut all = Vec::new();
    for name in area.names(path) {
        let name = if path == "." { name } else { format!("{path}/{name}") };
        let metadata = area.path(&name).symlink_metadata().unwrap();
        let content = if metadata.is_dir() { Vec::new() } else { area.read(&name) };
        all.push((name.clone(), metadata.ino(), content));
        if metadata.is_dir() {
            all.extend(snapshot(area, &name));
        }
    }
    all
}

#[test]
fn renaming_and_copying() {
    for (src, dst, expected) in MOVES {
        for area in Area::both() {
            for copies in [false, true] {
                for name in area.names(".") {
                    let _ = std::fs::remove_dir_all(area.path(&name));
                    let _ = std::fs::remove_file(area.path(&name));
                }
                prepare(&area);
                let before = snapshot(&area, ".");
                let content = std::fs::read(area.path(src)).unwrap_or_default();
                let (from, to) = (area.uri(src), area.uri(dst));
                let (from, to) = (Uri::new(&from), Uri::new(&to));
                let answer = if copies {
                    area.fs.copy_file(from, to)
                } else {
                    area.fs.rename_file(from, to)
                };
                let code = answer.as_ref().err().map(tf_fs_plugin::Error::code);
                assert_eq!(code, expected, "{src} to {dst}, copy {copies}: {answer:?}");
                if answer.is_err() {
                    assert_eq!(snapshot(&area, "."), before, "{src} to {dst}, copy {copies}");
                } else {
                    assert_eq!(area.read(dst), content, "{src} to {dst}, copy {copies}");
                    let stays = copies || src == dst;
                    assert_eq!(area.fs.path_exists(from).unwrap(), stays, "{src} to {dst}");
                }
            }
        }
    }
}

#[test]
fn renaming_one_of_two_names_of_a_file() {
    for area in Area::both() {
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
    let area = Area::unconfined();
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
    let area = Area::unconfined();
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
fn a_link_to_a_directory_is_no_file() {
    for area in Area::both() {
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
    for area in Area::both() {
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
fn whoever_has_the_target_of_a_copy_open_keeps_the_old_content() {
    for area in Area::both() {
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
fn what_cannot_be_deleted_is_counted() {
    for area in Area::both() {
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
    for area in Area::both() {
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
    for area in Area::both() {
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
    for area in Area::both() {
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
    let area = Area::unconfined();
    for uri in [&b"local://bucket/x"[..], b"local://../x", b"local://.", b"local://bucket"] {
        let error = area.fs.stat(Uri::new(uri)).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert!(error.to_string().contains("write `local:///`"), "{error}");
    }
    let area = Area::confined();
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
