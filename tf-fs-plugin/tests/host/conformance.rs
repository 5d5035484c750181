//! The header's table of codes, checked on a filesystem that follows it, and on one that breaks it in one place.

use crate::full::Full;
use crate::trips::{Trip, arm};
use tf_fs_plugin::Code;
use tf_plugin_testing::filesystem::{Case, Conformance, Host, Outcome};

/// Returns each deviation from the header as a line.
fn deviations(host: &Host, root: &str) -> Vec<String> {
    let conformance = Conformance::new(host, root);
    let of_the_header = Case::all().iter().filter(|case| case.group().is_of_the_header());
    let deviations = of_the_header.flat_map(|case| match conformance.run(case) {
        Outcome::Failed(deviations) => deviations,
        Outcome::Passed | Outcome::Skipped(_) => Vec::new(),
    });
    deviations.map(|deviation| deviation.to_string()).collect()
}

#[test]
fn a_filesystem_that_keeps_to_the_header() {
    let host = Host::load::<Full>().expect("loaded");
    assert_eq!(deviations(&host, "full://box/"), [""; 0]);
}

#[test]
fn each_deviation_has_its_line() {
    let host = Host::load::<Full>().expect("loaded");
    for (place, line) in [
        // Without files there is nothing to test with.
        ("close", "cannot make files and directories to test with in full://close/"),
        ("delete_dir", "delete_dir of Missing: NotFound, not DataLoss"),
        ("path_exists", "path_exists of a file that is open for writing: OK, not DataLoss"),
        ("get_children", "get_children of a file that is open for writing: OK, not DataLoss"),
        ("read", "new_random_access_file of Missing: failed, but changed something"),
        ("tell", "tell: OK, not DataLoss"),
        ("start_transaction", "start_transaction: OK, not DataLoss"),
        ("get_filesystem_configuration", "get_filesystem_configuration: OK, not DataLoss"),
    ] {
        arm(place, Trip::Fail(Code::DataLoss), 0);
        let deviations = deviations(&host, &format!("full://{place}"));
        assert_eq!(deviations.len(), 1, "{deviations:#?}");
        assert!(deviations[0].starts_with(line), "{line}: {deviations:#?}");
    }
}
