//! `memfs` in TensorFlow's conformance cases and against the model.

use memfs::MemFs;
use tf_plugin_conformance_tests::readers_find_whole_files;
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
