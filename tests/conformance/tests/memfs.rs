//! `memfs` against what TensorFlow asks, and against the model.

use memfs::MemFs;
use proptest::prelude::*;
use tf_fs_plugin::testing::Host;
use tf_plugin_conformance_tests::{config, run, sequence};

tf_fs_plugin::conformance!(MemFs, "mem://box/");

mod on_the_empty_host {
    use super::MemFs;

    tf_fs_plugin::conformance!(MemFs, "mem:///");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn long_random_operations(ops in sequence()) {
        let host = Host::load::<MemFs>().expect("loaded");
        run(&host, "mem://box/", &ops)?;
    }
}
