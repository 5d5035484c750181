//! `memfs` in TensorFlow's conformance cases and against the model.

use memfs::MemFs;
use proptest::prelude::*;
use tf_plugin_conformance_tests::{config, readers_find_whole_files, run, sequence};
use tf_plugin_testing::filesystem::Host;

tf_plugin_testing::filesystem::conformance! {
    MemFs,
    root: "mem://box/",
    other_host: "mem://other/",
}

mod on_the_empty_host {
    use super::MemFs;

    tf_plugin_testing::filesystem::conformance!(MemFs, "mem:///");
}

#[test]
fn a_rename_shows_readers_one_file_or_the_other() {
    readers_find_whole_files(&Host::load::<MemFs>().expect("loaded"), "mem://box");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn long_random_operations(ops in sequence()) {
        let host = Host::load::<MemFs>().expect("loaded");
        run(&host, "mem://box/", &ops)?;
    }
}
