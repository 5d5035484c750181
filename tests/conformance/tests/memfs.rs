//! `memfs` against the header and against the model.

use memfs::MemFs;
use proptest::prelude::*;
use tf_fs_plugin::testing::{Conformance, Host};
use tf_plugin_conformance_tests::{config, run, sequence};

#[test]
fn every_condition_of_the_header() {
    let host = Host::load::<MemFs>().expect("loaded");
    Conformance::new(&host, "mem://box/").check();
    Conformance::new(&host, "mem:///").check();
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_operations(ops in sequence()) {
        let host = Host::load::<MemFs>().expect("loaded");
        run(&host, "mem://box/", &ops)?;
    }
}
