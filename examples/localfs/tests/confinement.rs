//! Nothing leaves the root: no `..`, no link, no race.

mod common;

use common::{TestDir, code, read_at};
use localfs::LocalFs;
use rustix::fs::CWD;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tf_fs_plugin::prelude::*;

/// A root with all kinds of ways out of it, next to a directory that must not change.
struct ConfinedDir {
    area: TestDir,
    root: PathBuf,
    fs: LocalFs,
}

const SECRET: &[u8] = b"secret";

impl ConfinedDir {
    fn new() -> Self {
        // Only for its directory.
        let area = TestDir::unconfined();
        area.mkdir("root/inside");
        area.write("root/inside/file", "inside");
        area.mkdir("outside/sub");
        area.write("outside/file", SECRET);
        area.write("outside/outside-only", "");
        let root = area.path("root");
        let outside = area.path("outside");
        symlink(&outside, root.join("absolute")).unwrap();
        symlink("../outside", root.join("relative")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("relative", root.join("twice")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        symlink(outside.join("file"), root.join("file-link")).unwrap();
        symlink(outside.join("new"), root.join("dangling")).unwrap();
        let fs = LocalFs::confined(&root).unwrap();
        Self { area, root, fs }
    }

    /// Asserts that the outside is as it was.
    #[track_caller]
    fn assert_intact(&self) {
        assert_eq!(self.area.names("."), ["outside", "root"]);
        assert_eq!(self.area.names("outside"), ["file", "outside-only", "sub"]);
        assert_eq!(self.area.names("outside/sub"), [""; 0]);
        assert_eq!(self.area.read("outside/file"), SECRET);
    }
}

/// Runs every operation on a path; returns the codes by operation, `None` for success.
fn all_operations(fs: &LocalFs, uri: Uri<'_>) -> Vec<(&'static str, Option<Code>)> {
    fn failure<T>(result: Result<T>) -> Option<Code> {
        result.err().map(|error| error.code())
    }
    let inside = Uri::new(b"local:///inside/file");
    let target = Uri::new(b"local:///inside/target");
    let append = || {
        let mut file = fs.new_appendable_file(uri)?;
        file.append(b"more")?;
        file.close()
    };
    let overwrite = || {
        let mut file = fs.new_writable_file(uri)?;
        file.append(b"more")?;
        file.close()
    };
    vec![
        ("new_random_access_file", failure(fs.new_random_access_file(uri))),
        ("append", failure(append())),
        ("overwrite", failure(overwrite())),
        ("region", failure(fs.new_read_only_memory_region_from_file(uri))),
        ("create_dir", failure(fs.create_dir(uri))),
        ("recursively_create_dir", failure(fs.recursively_create_dir(uri))),
        ("stat", failure(fs.stat(uri))),
        ("path_exists", failure(fs.path_exists(uri))),
        ("is_directory", failure(fs.is_directory(uri))),
        ("get_file_size", failure(fs.get_file_size(uri))),
        ("get_children", failure(fs.get_children(uri))),
        ("copy from", failure(fs.copy_file(uri, target))),
        ("copy to", failure(fs.copy_file(inside, uri))),
        ("rename from", failure(fs.rename_file(uri, target))),
        ("rename to", failure(fs.rename_file(inside, uri))),
        ("delete_file", failure(fs.delete_file(uri))),
        ("delete_dir", failure(fs.delete_dir(uri))),
        ("delete_recursively", failure(fs.delete_recursively(uri).map_err(|left| left.error))),
    ]
}

#[test]
fn through_a_link_to_outside() {
    for way in ["absolute", "relative", "up/outside", "twice", "inside/../relative"] {
        for below in ["file", "sub", "sub/new", "new", "new/new"] {
            let prison = ConfinedDir::new();
            let uri = format!("local:///{way}/{below}");
            for (op, answer) in all_operations(&prison.fs, Uri::new(uri.as_bytes())) {
                assert_eq!(answer, Some(Code::PermissionDenied), "{op} of {uri}");
            }
            prison.assert_intact();
            assert_eq!(prison.area.names("root/inside"), ["file"]);
        }
    }
}

#[test]
fn links_to_outside_themselves() {
    for name in ["absolute", "relative", "up", "twice", "file-link", "dangling", "magic"] {
        let prison = ConfinedDir::new();
        let uri = format!("local:///{name}");
        for (op, answer) in all_operations(&prison.fs, Uri::new(uri.as_bytes())) {
            match op {
                // The name is taken.
                "create_dir" => assert_eq!(answer, Some(Code::AlreadyExists), "{op} of {uri}"),
                // The link itself, in the root, is an entry like others.
                "rename from" | "delete_file" | "delete_recursively" => {}
                "delete_dir" => assert!(answer.is_some()),
                // Which happen after the link was renamed away.
                "rename to" => {}
                _ => assert_eq!(answer, Some(Code::PermissionDenied), "{op} of {uri}"),
            }
        }
        prison.assert_intact();
    }
}

#[test]
fn dots() {
    let prison = ConfinedDir::new();
    prison.area.write("root/outside", "not the directory outside");
    for uri in
        ["local:///../outside", "local:///inside/../../../outside", "local://inside/../outside"]
    {
        let uri = Uri::new(uri.as_bytes());
        // `..` ends at the root of the host.
        if uri.host().is_empty() {
            assert_eq!(prison.fs.get_file_size(uri).unwrap(), 25);
        } else {
            assert!(!prison.fs.path_exists(uri).unwrap());
        }
    }
    let up = Uri::new(b"local:///inside/../..");
    assert_eq!(
        code(prison.fs.delete_recursively(up).map_err(|left| left.error)),
        Code::FailedPrecondition
    );
    let undeleted = prison.fs.delete_recursively(Uri::new(b"local://../outside")).unwrap_err();
    assert_eq!(undeleted.error.code(), Code::FailedPrecondition);
    prison.assert_intact();
}

#[test]
fn links_inside_are_followed() {
    let prison = ConfinedDir::new();
    symlink("inside", prison.root.join("way")).unwrap();
    symlink("../inside/file", prison.root.join("inside/link")).unwrap();
    let fs = &prison.fs;
    let file = Uri::new(b"local:///way/link");
    assert_eq!(read_at(&fs.new_random_access_file(file).unwrap(), 0, 10), b"inside");
    assert_eq!(fs.get_file_size(file).unwrap(), 6);
    assert!(fs.is_directory(Uri::new(b"local:///way")).unwrap());
    let mut writer = fs.new_writable_file(file).unwrap();
    writer.append(b"anew").unwrap();
    writer.close().unwrap();
    assert_eq!(prison.area.read("root/inside/file"), b"anew");
    assert_eq!(fs.get_children(Uri::new(b"local:///way")).unwrap().len(), 2);
}

#[test]
fn patterns() {
    let prison = ConfinedDir::new();
    let matches = |pattern: &str| {
        let entries = prison.fs.get_matching_paths(Uri::new(pattern.as_bytes())).unwrap();
        entries.iter().map(|name| String::from_utf8(name.to_vec()).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(matches("local:///*/file"), ["local:///inside/file"]);
    assert_eq!(matches("local:///*/*"), ["local:///inside/file"]);
    assert_eq!(matches("local:///*/*/*/*"), [""; 0]);
    for none in
        ["absolute/*", "relative/f*", "up/*", "twice/*", "magic/etc/pass*", "up/outside/file"]
    {
        assert_eq!(matches(&format!("local:///{none}")), [""; 0], "{none}");
    }
    assert_eq!(matches("local:///../../../*/file"), ["local:///../../../inside/file"]);
    assert_eq!(matches("local://*/file"), ["local://inside/file"]);
    assert_eq!(
        code(prison.fs.get_matching_paths(Uri::new(b"local://../*"))),
        Code::FailedPrecondition
    );
}

#[test]
fn recursive_deletion_follows_no_link() {
    let prison = ConfinedDir::new();
    for (target, name) in [("../../outside", "a"), ("../../outside/file", "b"), ("..", "c")] {
        symlink(target, prison.root.join("inside").join(name)).unwrap();
    }
    symlink(prison.area.path("outside"), prison.root.join("inside/d")).unwrap();
    prison.fs.delete_recursively(Uri::new(b"local:///inside")).unwrap();
    assert!(!prison.root.join("inside").exists());
    prison.fs.delete_recursively(Uri::new(b"local:///absolute")).unwrap();
    assert!(prison.root.join("absolute").symlink_metadata().is_err());
    prison.assert_intact();
}

/// Exchanges the files of two names, as fast as it can, while `attack` runs.
fn while_exchanging(one: &Path, other: &Path, attack: impl FnOnce()) {
    /// Ends the race, also when the attack fails an assertion.
    struct Finish<'a>(&'a AtomicBool);
    impl Drop for Finish<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                // It fails while one of them is missing.
                let _ = rustix::fs::renameat_with(CWD, one, CWD, other, flags);
            }
        });
        let _finish = Finish(&done);
        attack();
    });
}

#[test]
fn a_link_swapped_in_during_the_walk() {
    let prison = ConfinedDir::new();
    let fs = &prison.fs;
    let (mut inside, mut refused) = (0, 0);
    let counts = std::sync::Mutex::new((&mut inside, &mut refused));
    let (swapped, link) = (prison.root.join("swapped"), prison.root.join("spare"));
    symlink("../outside", &link).unwrap();
    std::fs::create_dir(&swapped).unwrap();
    std::fs::write(swapped.join("file"), "inside").unwrap();
    let attack = |round| {
        let name = format!("local:///swapped/new-{round}");
        let new = Uri::new(name.as_bytes());
        let file = Uri::new(b"local:///swapped/file");
        match fs.new_random_access_file(file) {
            Ok(reader) => {
                assert_eq!(read_at(&reader, 0, 10), b"inside");
                *counts.lock().unwrap().0 += 1;
            }
            // Without `openat2` a link that changes during the walk may also be found to be neither
            // file nor directory.
            Err(_) => *counts.lock().unwrap().1 += 1,
        }
        let _ = fs.new_writable_file(new).map(|mut file| file.append(b"x"));
        let _ = fs.create_dir(Uri::new(b"local:///swapped/directory"));
        let _ = fs.copy_file(file, Uri::new(b"local:///swapped/copy"));
        let _ = fs.rename_file(new, Uri::new(b"local:///swapped/renamed"));
        let _ = fs.delete_file(new);
        for child in fs.get_children(Uri::new(b"local:///swapped")).iter().flat_map(Entries::iter) {
            assert_ne!(child, b"outside-only");
        }
        let pattern = Uri::new(b"local:///swapped/*");
        for name in fs.get_matching_paths(pattern).unwrap().iter() {
            assert!(!name.ends_with(b"outside-only"));
        }
    };
    while_exchanging(&swapped, &link, || (0..3000).for_each(attack));
    prison.assert_intact();
    assert!(inside > 0 && refused > 0, "there was no race: {inside} inside, {refused} refused");
}

#[test]
fn a_link_swapped_in_during_recursive_deletion() {
    let prison = ConfinedDir::new();
    let (tree, link) = (prison.root.join("tree"), prison.root.join("spare"));
    let fresh = prison.root.join("fresh");
    // The tree itself becomes a link, or a directory in it does.
    for (swapped, outside) in [(tree.clone(), "../outside"), (tree.join("dir"), "../../outside")] {
        while_exchanging(&swapped, &link, || {
            for _ in 0..1000 {
                while tree.symlink_metadata().is_ok() || link.symlink_metadata().is_ok() {
                    let _ = std::fs::remove_dir_all(&tree);
                    let _ = std::fs::remove_dir_all(&link);
                }
                symlink(outside, &link).unwrap();
                std::fs::create_dir_all(fresh.join("dir/sub")).unwrap();
                std::fs::write(fresh.join("dir/file"), "").unwrap();
                std::fs::rename(&fresh, &tree).unwrap();
                // It may fail, but only on what is inside.
                let _ = prison.fs.delete_recursively(Uri::new(b"local:///tree"));
                prison.assert_intact();
            }
        });
    }
}

#[test]
fn the_root_stays_the_directory_that_was_opened() {
    let prison = ConfinedDir::new();
    std::fs::rename(&prison.root, prison.area.path("moved")).unwrap();
    symlink("outside", &prison.root).unwrap();
    let size = prison.fs.get_file_size(Uri::new(b"local:///inside/file"));
    assert_eq!(size.unwrap(), 6);
    assert!(!prison.fs.path_exists(Uri::new(b"local:///file")).unwrap());
}

#[test]
fn all_of_this_without_openat2() {
    common::repeat_without_openat2("all_of_this_without_openat2");
}
