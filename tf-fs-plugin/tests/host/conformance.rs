//! The header's table of codes, held against filesystems that keep to it and against some that do not.

use crate::basic::Basic;
use crate::full::{Full, Trip, arm};
use tf_fs_plugin::testing::{Conformance, Host};
use tf_fs_plugin::{Code, Ops};

#[test]
fn filesystems_that_keep_to_the_header() {
    let host = Host::load::<Full>().expect("loaded");
    Conformance::new(&host, "full://box/").check();
    Conformance::new(&host, "full:///").check();
    let host = Host::load::<Basic>().expect("loaded");
    Conformance::new(&host, "basic://box").check();
}

#[test]
#[should_panic(expected = "to EmptyDir: FailedPrecondition, not OK")]
fn tensorflows_copy_deviates() {
    let host = Host::new();
    host.register_without::<Basic>(Ops::COPY_FILE).expect("loaded");
    Conformance::new(&host, "basic://box").check();
}

#[test]
fn each_deviation_has_its_line() {
    let host = Host::new();
    host.register_without::<Basic>(Ops::TRANSLATE_NAME.union(Ops::COPY_FILE)).expect("loaded");
    let deviations = Conformance::new(&host, "basic://box").deviations();
    for line in [
        "copy_file from a file to itself: the content is there",
        "copy_file from a file to FullDir: FailedPrecondition, not OK",
        "get_matching_paths of part-*: the names",
    ] {
        assert!(deviations.iter().any(|other| other == line), "{line} is not in {deviations:#?}");
    }
    let host = Host::load::<Full>().expect("loaded");
    for (place, line) in [
        ("delete_dir", "delete_dir of Missing: NotFound, not DataLoss"),
        ("path_exists", "path_exists of a file that is open for writing: OK, not DataLoss"),
        ("get_children", "get_children of a file that is open for writing: OK, not DataLoss"),
        ("read", "new_random_access_file of Missing: failed, but changed something"),
        ("tell", "tell: OK, not DataLoss"),
        ("start_transaction", "start_transaction: OK, not DataLoss"),
        ("get_filesystem_configuration", "get_filesystem_configuration: OK, not DataLoss"),
    ] {
        arm(place, Trip::Fail(Code::DataLoss), 0);
        let deviations = Conformance::new(&host, format!("full://{place}")).deviations();
        assert_eq!(deviations.len(), 1, "{deviations:#?}");
        assert!(deviations[0].starts_with(line), "{line}: {deviations:#?}");
    }
}

#[test]
#[should_panic(expected = "cannot make files and directories to test with in full://box/cell1")]
fn without_files_there_is_nothing_to_test_with() {
    let host = Host::load::<Full>().expect("loaded");
    arm("close", Trip::Fail(Code::DataLoss), 0);
    let _ = Conformance::new(&host, "full://box").deviations();
}
