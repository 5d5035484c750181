//! `memfs` against what TensorFlow asks, and against the model.

use memfs::MemFs;
use proptest::prelude::*;
use tf_fs_plugin::testing::{Conformance, Host};
use tf_plugin_conformance_tests::{config, run, sequence};

tf_fs_plugin::conformance!(MemFs, "mem://box/");

#[test]
fn every_condition_of_the_header_on_the_empty_host() {
    let host = Host::load::<MemFs>().expect("loaded");
    Conformance::new(&host, "mem:///").check();
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn long_random_operations(ops in sequence()) {
        let host = Host::load::<MemFs>().expect("loaded");
        run(&host, "mem://box/", &ops)?;
    }
}
