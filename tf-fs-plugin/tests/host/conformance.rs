//! The header's table of codes, held against filesystems that keep to it and against some that do not.

use crate::basic::Basic;
use crate::full::Full;
use crate::trips::{Trip, arm};
use tf_fs_plugin::{Code, Ops};
use tf_plugin_testing::filesystem::{Case, Conformance, Host, Verdict};

/// All that deviates from the header, a line each.
fn deviations(host: &Host, root: &str) -> Vec<String> {
    let conformance = Conformance::new(host, root);
    let of_the_header = Case::all().iter().filter(|case| case.group().is_of_the_header());
    let found = of_the_header.filter_map(|case| match conformance.run(case) {
        Verdict::Failed(deviations) => Some(deviations),
        Verdict::Passed | Verdict::Skipped(_) => None,
    });
    found.flatten().map(|deviation| deviation.to_string()).collect()
}

#[test]
fn filesystems_that_keep_to_the_header() {
    let host = Host::load::<Full>().expect("loaded");
    assert_eq!(deviations(&host, "full://box/"), [""; 0]);
    assert_eq!(deviations(&host, "full:///"), [""; 0]);
    let host = Host::load::<Basic>().expect("loaded");
    assert_eq!(deviations(&host, "basic://box"), [""; 0]);
}

#[test]
fn each_deviation_has_its_line() {
    let host = Host::new();
    host.register_without::<Basic>(Ops::TRANSLATE_NAME.union(Ops::COPY_FILE)).expect("loaded");
    let found = deviations(&host, "basic://box");
    for line in [
        "copy_file from a file to EmptyDir: FailedPrecondition, not OK",
        "copy_file from a file to FullDir: FailedPrecondition, not OK",
        "/part-*: [basic://box/",
    ] {
        assert!(found.iter().any(|other| other.contains(line)), "{line} is not in {found:#?}");
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
        let found = deviations(&host, &format!("full://{place}"));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].starts_with(line), "{line}: {found:#?}");
    }
}

#[test]
fn without_files_there_is_nothing_to_test_with() {
    let host = Host::load::<Full>().expect("loaded");
    arm("close", Trip::Fail(Code::DataLoss), 0);
    let found = deviations(&host, "full://box");
    assert_eq!(found.len(), 1, "{found:#?}");
    let text = "cannot make files and directories to test with in full://box/";
    assert!(found[0].starts_with(text), "{found:#?}");
}
