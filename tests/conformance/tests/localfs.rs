//! `localfs` in TensorFlow's conformance cases and against the model, with and without a root.

#[path = "../../../examples/localfs/tests/common/mod.rs"]
mod common;

use localfs::LocalFs;
use tempfile::TempDir;
use tf_fs_plugin::{FilesystemOption, OptionValues, Result};
use tf_plugin_conformance_tests::readers_find_whole_files;
use tf_plugin_testing::filesystem::{Conformance, Host, Outcome, TestRoot, cases};

/// A directory that is the root of `local://`.
struct Confined(TempDir);

impl TestRoot for Confined {
    fn uri(&self) -> String {
        String::from("local:///")
    }

    fn prepare(&self, host: &Host) -> Result<()> {
        common::take_openat2_away();
        let path = self.0.path().as_os_str().as_encoded_bytes().to_vec();
        let root = FilesystemOption::new("root", OptionValues::Buffer(vec![path]));
        host.filesystem("local")?.set_filesystem_configuration_option(&root)
    }

    fn environment(&self) -> Vec<(String, String)> {
        vec![(String::from("LOCALFS_ROOT"), self.0.path().display().to_string())]
    }
}

fn directory() -> TempDir {
    common::take_openat2_away();
    tempfile::tempdir().expect("a temporary directory")
}

mod below_a_root {
    use super::*;

    tf_plugin_testing::filesystem::conformance! {
        LocalFs,
        root: once(|| Confined(directory())),
        malformed: format!("local:///{}", "x".repeat(256)),
        visible: in_place,
    }
}

mod anywhere {
    use super::*;

    tf_plugin_testing::filesystem::conformance! {
        LocalFs,
        root: each_case(|| {
            let directory = directory();
            (format!("local://{}", directory.path().display()), directory)
        }),
        malformed: "local://host/x",
        visible: in_place,
    }
}

#[test]
fn a_rename_shows_readers_one_file_or_the_other() {
    let directory = directory();
    let host = Host::load::<LocalFs>().expect("loaded");
    readers_find_whole_files(&host, &format!("local://{}", directory.path().display()));
}

/// What `visible: in_place` declares is not needed without a reason: an open reader meets an early end.
#[test]
fn writing_in_place_is_noticed() {
    let directory = directory();
    let host = Host::load::<LocalFs>().expect("loaded");
    let conformance = Conformance::new(&host, format!("local://{}", directory.path().display()));
    let outcome = conformance.run(&cases::reader_of_a_file_that_is_written_again);
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
}

#[test]
fn all_of_this_without_openat2() {
    common::repeat_without_openat2("all_of_this_without_openat2");
}
