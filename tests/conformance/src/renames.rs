//! Readers of a file that others replace by renaming.

use std::sync::atomic::{AtomicBool, Ordering};
use tf_plugin_testing::filesystem::Host;

const SIZE: usize = 2 << 20;
const VERSIONS: u8 = 60;

/// Renames a new version over `root/current` again and again, while two threads query its length and one reads it.
///
/// # Panics
/// If one of them finds anything but the whole of one version.
pub fn readers_find_whole_files(host: &Host, root: &str) {
    let current = format!("{root}/current");
    let next = format!("{root}/next");
    host.write_file(&current, vec![0; SIZE]).expect("written");
    let done = AtomicBool::new(false);
    let until_done = |look: &dyn Fn()| {
        while !done.load(Ordering::Relaxed) {
            look();
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                until_done(&|| {
                    let found = host.stat(&current).expect("a version is always there");
                    assert_eq!(found.length, SIZE as u64);
                })
            });
        }
        scope.spawn(|| {
            until_done(&|| {
                let read = host.read_file(&current).expect("a version is always there");
                let version = read.first().copied();
                let whole = version.is_some_and(|version| read == vec![version; SIZE]);
                assert!(whole, "{} bytes of {SIZE}, or of two versions", read.len());
            })
        });
        for version in 1..=VERSIONS {
            let written = host.write_file(&next, vec![version; SIZE]);
            let result = written.and_then(|()| host.rename_file(&next, &current));
            // The scope waits for the others.
            done.store(version == VERSIONS || result.is_err(), Ordering::Relaxed);
            result.expect("renamed");
        }
    });
}
