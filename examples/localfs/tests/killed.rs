//! Processes that are killed in the middle of a copy.

use localfs::LocalFs;
use rustix::fs::Mode;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command};
use tf_fs_plugin::Code;
use tf_plugin_testing::filesystem::Host;

/// The directory to copy in; set in the process that is killed.
const VARIABLE: &str = "LOCALFS_TEST_KILLED";

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

/// Kills the process, also when an assertion fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Copies from a pipe, whose content comes once: it cannot be copied a second time in another way.
#[test]
fn a_copy_that_cannot_get_its_name_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let host = Host::load::<LocalFs>().unwrap();
    let name = |name: &str| format!("local://{}/{name}", directory.path().display());
    let error = std::thread::scope(|scope| {
        let copy = scope.spawn(|| host.copy_file(name("pipe"), name("target")));
        let mut writer = std::fs::File::options().write(true).open(&pipe).unwrap();
        // More than a pipe holds, so that the copy has begun when this is written.
        writer.write_all(&vec![1; 4 << 20]).unwrap();
        std::fs::create_dir(directory.path().join("target")).unwrap();
        drop(writer);
        copy.join().unwrap().unwrap_err()
    });
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert_eq!(names(directory.path()), ["pipe", "target"]);
}

#[test]
fn a_killed_copy_leaves_nothing_behind() {
    if let Ok(directory) = std::env::var(VARIABLE) {
        // The other process. It is killed in here: nobody closes the pipe.
        let host = Host::load::<LocalFs>().unwrap();
        let name = |name: &str| format!("local://{directory}/{name}");
        let ended = host.copy_file(name("pipe"), name("target"));
        panic!("the copy ended: {ended:?}");
    }
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    for target in [None, Some("old")] {
        let mut expected = vec!["pipe".to_owned()];
        if let Some(old) = target {
            std::fs::write(directory.path().join("target"), old).unwrap();
            expected.push("target".to_owned());
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "a_killed_copy_leaves_nothing_behind"]);
        let child = Killed(command.env(VARIABLE, directory.path()).spawn().unwrap());
        let mut writer = std::fs::File::options().write(true).open(&pipe).unwrap();
        // More than a pipe holds, so that the copy has begun when this is written.
        writer.write_all(&vec![1; 4 << 20]).unwrap();
        assert_eq!(names(directory.path()), expected, "while the copy runs");
        drop(child);
        assert_eq!(names(directory.path()), expected, "after the process was killed");
        if let Some(old) = target {
            let content = std::fs::read_to_string(directory.path().join("target")).unwrap();
            assert_eq!(content, old, "the target is the old one");
        }
    }
}
