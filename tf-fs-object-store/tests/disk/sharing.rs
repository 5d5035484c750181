//! Processes that share a directory, and are killed.

use super::{Plugin, again, blocks, content, directory, process, role, used};
use std::path::Path;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

const FILES: usize = 24;
const LEN: usize = 2_200_000;
/// Less than the bytes of the files.
const LIMIT: u64 = 20 << 20;

/// Returns a process with all files in its store.
fn with_files(directory: &Path) -> Plugin {
    let process = process(directory, LIMIT);
    for file in 0..FILES {
        process.put(&file.to_string(), content(LEN, file as u8));
    }
    process
}

fn read(process: &Plugin, file: usize) {
    let read = process.read(&file.to_string(), 600_000).unwrap();
    assert!(read == content(LEN, file as u8), "file {file}");
}

/// Returns the next number of a sequence that looks random.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

/// Checks that the directory stays within its limit while `is_over` is false.
fn watch(directory: &TempDir, mut is_over: impl FnMut() -> bool) -> u64 {
    let mut most = 0;
    while !is_over() {
        most = most.max(used(directory));
        std::thread::sleep(Duration::from_millis(5));
    }
    most
}

#[test]
fn eight_processes_with_threads_share_a_cache_that_is_too_small() {
    if let Some(role) = role() {
        let (directory, seed) = role.rsplit_once('#').unwrap();
        let process = with_files(Path::new(directory));
        std::thread::scope(|threads| {
            for thread in 0..4 {
                let (process, mut state) = (&process, seed.parse::<u64>().unwrap() * 100 + thread);
                threads.spawn(move || {
                    for _ in 0..10 {
                        read(process, next(&mut state) % FILES);
                    }
                });
            }
        });
        return;
    }
    let directory = directory();
    let test = "sharing::eight_processes_with_threads_share_a_cache_that_is_too_small";
    let role = |seed| format!("{}#{seed}", directory.path().display());
    let mut children: Vec<_> =
        (1..=8).map(|seed| again(test, &role(seed)).spawn().unwrap()).collect();
    let most =
        watch(&directory, || children.iter_mut().all(|child| child.try_wait().unwrap().is_some()));
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert!(most <= LIMIT, "{most} bytes of {LIMIT}");
    assert!(most > LIMIT / 2, "{most} bytes of {LIMIT}: it is used");
}

#[test]
fn after_kills_at_any_moment_each_block_is_right() {
    if let Some(directory) = role() {
        let process = with_files(Path::new(&directory));
        let mut state = std::process::id().into();
        loop {
            read(&process, next(&mut state) % FILES);
        }
    }
    let directory = directory();
    let test = "sharing::after_kills_at_any_moment_each_block_is_right";
    let mut state = SystemTime::now().elapsed().unwrap().as_nanos() as u64;
    for round in 0..30 {
        let role = directory.path().to_str().unwrap();
        let mut child = again(test, role).spawn().unwrap();
        // It starts within some of these, and writes in the others.
        std::thread::sleep(Duration::from_millis(next(&mut state) as u64 % 150));
        child.kill().unwrap();
        child.wait().unwrap();
        if round % 10 == 9 {
            let survivor = with_files(directory.path());
            (0..FILES).for_each(|file| read(&survivor, file));
            assert!(used(&directory) <= LIMIT, "{}", used(&directory));
        }
    }
    assert!(!blocks(&directory).is_empty());
}

#[test]
fn old_files_of_a_killed_process_are_deleted() {
    let directory = directory();
    let process = with_files(directory.path());
    read(&process, 0);
    super::kept(&directory, 3);
    let new = directory.path().join("tf-disk-cache-1/new");
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    for (name, is_old) in [("old", true), ("young", false)] {
        let file = std::fs::File::create(new.join(name)).unwrap();
        file.set_len(1 << 20).unwrap();
        if is_old {
            file.set_modified(long_ago).unwrap();
        }
    }
    // They are unknown until the files are counted.
    std::fs::write(directory.path().join("tf-disk-cache-1/sum"), "torn").unwrap();
    read(&process, 1);
    super::eventually("it is deleted", || !new.join("old").exists());
    assert!(new.join("young").exists());
}

#[test]
fn the_blocks_used_last_stay() {
    let directory = directory();
    let process = with_files(directory.path());
    for file in 0..5 {
        read(&process, file);
        super::kept(&directory, 3 * (file + 1));
    }
    let names = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut old = blocks(&directory);
    // All are from long ago, in this order, and then one file is read.
    for (age, path) in old.iter().enumerate() {
        let file = std::fs::File::open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(5000 + age as u64)).unwrap();
    }
    read(&process, 2);
    let young = |path: &Path| {
        let used = std::fs::metadata(path).unwrap().modified().unwrap();
        used.elapsed().is_ok_and(|age| age < Duration::from_secs(1000))
    };
    old.retain(|path| young(path));
    assert_eq!(old.len(), 3, "reading is noted");
    for file in 5..12 {
        read(&process, file);
    }
    super::eventually("something is deleted", || {
        let now: Vec<_> = blocks(&directory).iter().map(|path| names(path)).collect();
        now.len() < 36 && old.iter().all(|path| now.contains(&names(path)))
    });
}
