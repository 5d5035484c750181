//! A disk that is full, read-only or gone fails no read.

use super::{GIB, MIB, again, blocks, content, directory, kept, process, role};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;

/// Warnings that name a directory.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Warnings;

impl log::Log for Warnings {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.level() <= log::Level::Warn {
            WARNINGS.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

fn warnings(directory: &Path) -> Vec<String> {
    let of = directory.to_str().unwrap();
    WARNINGS.lock().unwrap().iter().filter(|text| text.contains(of)).cloned().collect()
}

/// Reads files with a directory that cannot be used.
fn reads_without(directory: &Path, why: &str) {
    let _ = log::set_logger(&Warnings);
    log::set_max_level(log::LevelFilter::Warn);
    let process = process(directory, GIB);
    for round in 0..3 {
        for key in ["f", "g"] {
            process.put(key, content(5 * MIB, round));
            assert!(process.read(key, MIB).unwrap() == content(5 * MIB, round), "{why}");
        }
    }
    let warnings = warnings(directory);
    assert_eq!(warnings.len(), 1, "{why}: {warnings:?}");
    assert!(warnings[0].contains(why), "{warnings:?}");
    assert!(warnings[0].contains("files are read without it"), "{warnings:?}");
}

#[test]
fn a_directory_that_cannot_be_made() {
    let parent = directory();
    let file = parent.path().join("file");
    fs::write(&file, "").unwrap();
    reads_without(&file.join("cache"), "Not a directory");
    // Also for root.
    reads_without(Path::new("/proc/tf-disk-cache-test"), "No such file");
}

#[test]
fn a_directory_to_which_others_can_write() {
    for mode in [0o777, 0o770, 0o755] {
        let parent = directory();
        let own = parent.path().join("tf-disk-cache-1");
        fs::create_dir(&own).unwrap();
        fs::set_permissions(&own, PermissionsExt::from_mode(mode)).unwrap();
        reads_without(parent.path(), "mode 0700");
        assert!(blocks(&parent).is_empty());
    }
    let (parent, elsewhere) = (directory(), directory());
    let own = parent.path().join("tf-disk-cache-1");
    std::os::unix::fs::symlink(elsewhere.path(), own).unwrap();
    reads_without(parent.path(), "mode 0700");
}

#[test]
fn a_directory_that_is_deleted_comes_back() {
    let (parent, body) = (directory(), content(5 * MIB, 0));
    let directory = parent.path().join("a/b");
    let process = process(&directory, GIB);
    process.put("f", body.clone());
    for _ in 0..3 {
        assert!(process.read("f", MIB).unwrap() == body);
        kept(&directory, 5);
        fs::remove_dir_all(parent.path().join("a")).unwrap();
    }
    // While a file is open.
    let reader = super::open(&process, "f").unwrap();
    assert!(super::range(&reader, 0, MIB).unwrap() == body[..MIB]);
    let _ = fs::remove_dir_all(parent.path().join("a"));
    assert!(super::range(&reader, 0, 5 * MIB).unwrap() == body);
}

#[test]
fn a_full_disk() {
    let Some(role) = role() else {
        let directory = directory();
        let role = directory.path().to_str().unwrap();
        let test = "failing::a_full_disk";
        assert!(again(test, role).status().unwrap().success());
        // Nothing is left of what did not fit.
        assert!(blocks(&directory).is_empty());
        let new = directory.path().join("tf-disk-cache-1/new");
        assert_eq!(fs::read_dir(new).unwrap().count(), 0);
        return;
    };
    // A file of at most 300,000 bytes can be written: the disk takes the beginning of each block.
    let limit = Rlimit { current: Some(300_000), maximum: Some(300_000) };
    setrlimit(Resource::Fsize, limit).unwrap();
    reads_without(Path::new(&role), "too large");
}

#[test]
fn a_file_larger_than_the_cache() {
    const LIMIT: u64 = 16 << 20;
    let (directory, body) = (directory(), content(40 * MIB, 0));
    let [first, second] = [0; 2].map(|_| process(&directory, LIMIT));
    for process in [&first, &second] {
        process.put("f", body.clone());
        assert!(process.read("f", 3 * MIB).unwrap() == body);
        kept(&directory, 8);
    }
    // The half of the cache, which it may take, is read from there.
    let gets = second.requests("get");
    let position = |get: &String| get.split(' ').nth(3).unwrap().parse::<usize>().unwrap();
    assert!(gets[1..].iter().all(|get| position(get) >= 8 * MIB), "{gets:?}");
}
