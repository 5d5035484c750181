use super::*;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};

/// Another user than the one of this test, trusted files are then not "this user's".
const STRANGER: u32 = 54_321;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn scratch() -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    mode(scratch.path(), 0o755);
    scratch
}

fn open(path: &Path) -> io::Result<PrivateDir> {
    PrivateDir::open(path, OtherUsers::NoAccess)
}

/// The message of a refusal.
fn refused<T: std::fmt::Debug>(outcome: io::Result<T>) -> String {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    error.to_string()
}

fn put(directory: &PrivateDir, name: &str, bytes: &[u8]) {
    directory.replace(name, |file| file.write_all(bytes)).unwrap();
}

fn get(directory: &PrivateDir, name: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    directory.read(name)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[test]
fn missing_directories_are_created_for_this_user_alone() {
    let scratch = scratch();
    let path = scratch.path().join("a/b/c");
    let directory = open(&path).unwrap();
    put(&directory.create_folder("d").unwrap(), "f", b"bytes");
    for (path, expected) in
        [("a", 0o700), ("a/b/c", 0o700), ("a/b/c/d", 0o700), ("a/b/c/d/f", 0o600)]
    {
        let actual = fs::metadata(scratch.path().join(path)).unwrap().permissions().mode();
        assert_eq!(actual & 0o7777, expected, "{path}");
    }
    assert_eq!(get(&open(&path).unwrap().folder("d").unwrap(), "f").unwrap(), b"bytes");
}

#[test]
fn the_users_mask_does_not_matter() {
    const ROLE: &str = "TF_PRIVATE_DIR_TEST_MASK";
    if let Some(path) = std::env::var_os(ROLE) {
        rustix::process::umask(Mode::from_raw_mode(0o177));
        let directory = open(Path::new(&path)).unwrap();
        put(&directory.create_folder("d").unwrap(), "f", b"bytes");
        return;
    }
    let scratch = scratch();
    let path = scratch.path().join("a/b");
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["tests::the_users_mask_does_not_matter", "--exact"]).env(ROLE, &path);
    assert!(child.output().unwrap().status.success());
    for created in ["a", "a/b", "a/b/d"] {
        let actual = fs::metadata(scratch.path().join(created)).unwrap().permissions().mode();
        assert_eq!(actual & 0o777, 0o700, "{created}");
    }
}

#[test]
fn a_parent_that_others_can_write_to_is_refused_unless_it_is_sticky() {
    for (parent, is_fine) in [
        (0o777, false),
        (0o757, false),
        (0o1777, true),
        (0o1757, true),
        (0o755, true),
        (0o711, true),
    ] {
        let scratch = scratch();
        fs::create_dir_all(scratch.path().join("p/q/r")).unwrap();
        mode(&scratch.path().join("p/q/r"), 0o700);
        for (depth, below) in [("p", "q/r"), ("p/q", "r"), ("p/q", "missing")] {
            let at = scratch.path().join(depth);
            mode(&at, parent);
            let opened = open(&at.join(below));
            if is_fine {
                opened.unwrap();
            } else {
                let error = refused(opened);
                assert!(
                    error.contains(&format!("`{}` has mode {parent:o}", at.display())),
                    "{error}"
                );
            }
            mode(&at, 0o755);
        }
    }
}

#[test]
fn a_parent_of_somebody_else_is_refused() {
    let scratch = scratch();
    let path = scratch.path().join("c");
    // To the stranger, all below the directory for scratch files is somebody else's; `/` and what is root's is not.
    let stranger = TrustedUsers { user: STRANGER, root: 0 };
    let opened = PrivateDir::open_as(&path, OtherUsers::NoAccess, stranger);
    let error = refused(opened);
    assert!(error.contains("belongs to user"), "{error}");
    assert!(error.contains("54321"), "{error}");
}

#[test]
fn the_directory_itself_is_this_users_alone() {
    let scratch = scratch();
    let path = scratch.path().join("c");
    open(&path).unwrap();
    for (permissions, nothing, read) in [
        (0o700, true, true),
        (0o755, false, true),
        (0o711, false, true),
        (0o750, false, true),
        (0o770, false, false),
        (0o707, false, false),
        (0o1777, false, false),
        (0o500, true, true),
    ] {
        mode(&path, permissions);
        for (others, is_fine) in [(OtherUsers::NoAccess, nothing), (OtherUsers::Read, read)] {
            let opened = PrivateDir::open(&path, others);
            assert_eq!(opened.is_ok(), is_fine, "{permissions:o} {others:?}");
            if let Err(error) = opened {
                let expected = format!("`{}` has mode {permissions:o}", path.display());
                assert!(error.to_string().contains(&expected), "{error}");
            }
        }
    }
}

#[test]
fn links_of_this_user_are_followed_on_the_way_and_nowhere_below() {
    let scratch = scratch();
    let at = |path: &str| scratch.path().join(path);
    fs::create_dir_all(at("real/home")).unwrap();
    symlink("real/home", at("home")).unwrap();
    symlink(at("home"), at("absolute")).unwrap();
    symlink("../home/x/..", at("real/up")).unwrap();
    fs::create_dir(at("real/home/x")).unwrap();
    for way in ["home", "absolute", "real/up", "real/../home/./x/.."] {
        let directory = open(&at(way).join("cache")).unwrap();
        assert!(directory.is_in_place());
        put(&directory, "way", way.as_bytes());
        assert_eq!(fs::read(at("real/home/cache/way")).unwrap(), way.as_bytes());
    }
    // Parents of the target count too.
    mode(&at("real"), 0o777);
    refused(open(&at("home/cache")));
    mode(&at("real"), 0o755);

    symlink("loop", at("loop")).unwrap();
    assert!(open(&at("loop/cache")).is_err());
    fs::write(at("file"), "").unwrap();
    let error = open(&at("file/cache")).unwrap_err();
    assert!(error.to_string().contains("/file`: Not a directory"), "{error}");

    let directory = open(&at("home/cache")).unwrap();
    symlink("cache", at("home/linked")).unwrap();
    refused(PrivateDir::open_in(&at("home"), "linked", OtherUsers::NoAccess));
    fs::create_dir(at("elsewhere")).unwrap();
    mode(&at("elsewhere"), 0o700);
    fs::write(at("elsewhere/f"), "theirs").unwrap();
    symlink(at("elsewhere"), at("home/cache/folder")).unwrap();
    refused(directory.folder("folder"));
    refused(directory.create_folder("folder"));
    symlink(at("elsewhere/f"), at("home/cache/f")).unwrap();
    for opened in [directory.read("f"), directory.update("f")] {
        assert_eq!(opened.unwrap_err().kind(), ErrorKind::InvalidData);
    }
    assert_eq!(directory.create("f").unwrap_err().kind(), ErrorKind::AlreadyExists);
    let entries = directory.entries().unwrap();
    assert!(entries.iter().all(|entry| entry.is_file == (entry.name == "way")), "{entries:?}");
    assert!(entries.iter().all(|entry| !entry.is_folder), "{entries:?}");
}

#[test]
fn it_stays_the_same_directory_when_its_name_is_somebody_elses() {
    let scratch = scratch();
    let path = scratch.path().join("cache");
    let directory = open(&path).unwrap();
    put(&directory.create_folder("00").unwrap(), "f", b"mine");
    assert!(directory.is_in_place());
    fs::rename(&path, scratch.path().join("gone")).unwrap();
    assert!(!directory.is_in_place());
    fs::create_dir_all(path.join("00")).unwrap();
    fs::write(path.join("00/f"), "theirs").unwrap();
    assert!(!directory.is_in_place());
    assert_eq!(get(&directory.folder("00").unwrap(), "f").unwrap(), b"mine");
    put(&directory, "g", b"mine");
    assert!(scratch.path().join("gone/g").exists() && !path.join("g").exists());

    fs::remove_dir_all(scratch.path().join("gone")).unwrap();
    for gone in [
        directory.folder("00").map(drop),
        directory.create_folder("00").map(drop),
        directory.create("f").map(drop),
    ] {
        assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert!(directory.entries().unwrap().is_empty());
}

#[test]
fn a_file_is_a_regular_one_that_nobody_else_can_write_to() {
    let scratch = scratch();
    let path = scratch.path().join("cache");
    let directory = open(&path).unwrap();
    let why = |name: &str| {
        let error = directory.read(name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(directory.update(name).is_err());
        error.to_string()
    };
    for (wanted, is_fine) in
        [(0o600, true), (0o644, true), (0o400, true), (0o620, false), (0o602, false)]
    {
        put(&directory, "f", b"bytes");
        mode(&path.join("f"), wanted);
        match is_fine {
            true => assert_eq!(get(&directory, "f").unwrap(), b"bytes"),
            false => assert!(why("f").contains(&format!("mode {wanted:o}"))),
        }
    }
    // Without a writer.
    let pipe = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(&directory.fd, "pipe", pipe, FILE_MODE, 0).unwrap();
    assert!(why("pipe").contains("not a regular file"));
    directory.create_folder("folder").unwrap();
    assert!(directory.read("folder").is_err());

    let trusted = TrustedUsers { user: STRANGER, root: 0 };
    let theirs = PrivateDir { trusted, ..open(&path).unwrap() };
    directory.remove("f").unwrap();
    put(&directory, "f", b"bytes");
    let error = theirs.read("f").unwrap_err().to_string();
    assert!(error.contains("not to user 54321"), "{error}");
    refused(theirs.folder("folder"));
}

#[test]
fn a_write_that_fails_leaves_the_file_before_and_nothing_else() {
    let scratch = scratch();
    let directory = open(&scratch.path().join("cache")).unwrap();
    put(&directory, "f", b"before");
    let full = |_: &mut File| Err(ErrorKind::StorageFull.into());
    assert_eq!(directory.replace("f", full).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(get(&directory, "f").unwrap(), b"before");
    assert_eq!(directory.entries().unwrap().len(), 1);
}

#[test]
fn groups_and_owners_that_may_write_to_a_parent() {
    let trusted = TrustedUsers { user: 1000, root: 65_534 };
    let mut stat = rustix::fs::stat("/").unwrap();
    let mut judge = |owner: u32, group: u32, mode: u32| {
        (stat.st_uid, stat.st_gid, stat.st_mode) = (owner, group, 0o040_000 | mode);
        trusted.check_parent(Path::new("/p"), &stat).is_ok()
    };
    for owner in [0, 1000, 65_534] {
        assert!(judge(owner, 100, 0o755));
        // The groups of root, and of this user alone: a mask of 002 makes such directories.
        assert!(judge(owner, 0, 0o775) && judge(owner, 1000, 0o2775));
        assert!(!judge(owner, 100, 0o775) && !judge(owner, 1001, 0o2775));
        assert!(judge(owner, 100, 0o1777) && !judge(owner, 0, 0o777));
    }
    assert!(!judge(1001, 100, 0o755) && !judge(1001, 0, 0o1777));
}
