//! `localfs` against the header and against the model, with and without a root.

use localfs::LocalFs;
use proptest::prelude::*;
use tempfile::TempDir;
use tf_fs_plugin::testing::{Conformance, Host};
use tf_fs_plugin::{FilesystemOption, OptionValues};
use tf_plugin_conformance_tests::{config, run, sequence};

/// A host whose `local:///` is a fresh directory.
fn confined() -> (Host, TempDir) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let host = Host::load::<LocalFs>().expect("loaded");
    let path = directory.path().as_os_str().as_encoded_bytes().to_vec();
    let root = FilesystemOption::new("root", OptionValues::Buffer(vec![path]));
    let fs = host.filesystem("local").expect("there");
    fs.set_filesystem_configuration_option(&root).expect("a root");
    (host, directory)
}

#[test]
fn every_condition_of_the_header() {
    let (host, _directory) = confined();
    let long = format!("local:///{}", "x".repeat(256));
    Conformance::new(&host, "local:///").malformed(&long).check();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let host = Host::load::<LocalFs>().expect("loaded");
    let root = format!("local://{}", directory.path().display());
    Conformance::new(&host, root).malformed("local://host/x").check();
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_operations_below_a_root(ops in sequence()) {
        let (host, _directory) = confined();
        run(&host, "local:///", &ops)?;
    }

    #[test]
    fn random_operations_anywhere(ops in sequence()) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let host = Host::load::<LocalFs>().expect("loaded");
        run(&host, &format!("local://{}", directory.path().display()), &ops)?;
    }
}
