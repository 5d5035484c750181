//! A filesystem that only reads, in the cases that change nothing: whole, and with a defect each.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use tf_fs_plugin::__private::{Registration, Scheme};
use tf_plugin_conformance_tests::{Flaw, Shelf, Shelves};
use tf_plugin_testing::filesystem::{
    Case, Conformance, Files, Host, Plugin, Verdict, cases, samples,
};

struct OfShelves;

impl Scheme for OfShelves {
    fn registration() -> &'static Registration {
        static IT: Registration = Registration::new::<Shelves, OfShelves>("shelf");
        &IT
    }
}

/// Exports nothing: `#[filesystem_plugin]` would.
struct Exported;

impl Plugin for Exported {
    fn registrations() -> &'static [&'static Registration] {
        static ALL: LazyLock<[&'static Registration; 1]> =
            LazyLock::new(|| [OfShelves::registration()]);
        &*ALL
    }
}

const MALFORMED: &str = "shelf://box/\u{1}";

/// All samples, with their directories or without.
fn shelf(host: &str, directories: bool) -> Shelf {
    let samples = samples().iter().filter(|sample| directories || sample.content.is_some());
    Shelf::with(host, samples.map(|sample| (&*sample.path, sample.content.as_deref())))
}

mod with_directories {
    use super::*;

    tf_plugin_testing::filesystem::conformance! {
        Exported,
        root: once(|| {
            let shelf = shelf("real", true);
            (shelf.uri(), shelf)
        }),
        files: provided,
        malformed: MALFORMED,
    }
}

mod with_implied_directories {
    use super::*;

    tf_plugin_testing::filesystem::conformance! {
        Exported,
        root: once(|| {
            let shelf = shelf("implied", false);
            (shelf.uri(), shelf)
        }),
        files: provided,
        directories: implied,
        malformed: MALFORMED,
    }
}

fn conformance<'h>(host: &'h Host, shelf: &Shelf) -> Conformance<'h> {
    Conformance::new(host, shelf.uri()).files(Files::Provided).malformed(MALFORMED)
}

fn case(name: &str) -> &'static Case {
    let found = Case::all().iter().find(|case| case.name() == name);
    found.unwrap_or_else(|| panic!("there is no case {name}"))
}

#[test]
fn each_defect_is_noticed() {
    let shelf = shelf("defects", true);
    let mut silent = Vec::new();
    for &(flaw, name) in Flaw::ALL {
        let host = Host::new();
        host.serve("shelf", Shelves::with(flaw)).expect("registered");
        host.read_once();
        match conformance(&host, &shelf).run(case(name)) {
            Verdict::Failed(deviations) => {
                assert!(
                    !deviations[0].what.starts_with("there is no shelf:"),
                    "{flaw:?}: {deviations:?}"
                );
            }
            other => silent.push(format!("{name} does not notice {flaw:?}: {other:?}")),
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

/// Every case that a read-only filesystem supports runs.
#[test]
fn cases_that_change_nothing_run_and_others_are_skipped() {
    let shelf = shelf("whole", true);
    let host = Host::new();
    host.serve("shelf", Shelves::default()).expect("registered");
    let (mut passed, mut skipped) = (BTreeSet::new(), 0);
    for case in Case::all() {
        match conformance(&host, &shelf).run(case) {
            Verdict::Passed => drop(passed.insert(case.name())),
            Verdict::Skipped(reason) => {
                assert!(reason.contains("provided") || case.name() == "configuration", "{reason}");
                skipped += 1;
            }
            Verdict::Failed(deviations) => panic!("{case:?}: {deviations:?}"),
        }
    }
    assert!(passed.len() >= 150, "only {} cases run: {passed:?}", passed.len());
    assert!(skipped >= 100, "{skipped}");
    for name in ["walk", "saved_model", "glob_star", "readers_of_one_file", "names_by_case"] {
        assert!(passed.contains(name), "{name}");
    }
    for name in ["checkpoint", "delete_file_of_file", "random_operations", "event_file"] {
        assert!(!passed.contains(name), "{name}");
    }
}

#[test]
fn a_set_up_without_the_samples_is_told_so() {
    let shelf = Shelf::with("nearly", [("something/else", Some(&b""[..]))]);
    let host = Host::new();
    host.serve("shelf", Shelves::default()).expect("registered");
    let verdict = conformance(&host, &shelf).run(&cases::stat_of_file);
    let Verdict::Failed(deviations) = verdict else { panic!("{verdict:?}") };
    let text = deviations[0].to_string();
    assert!(text.starts_with("there is no shelf://nearly/stat_of_file-cell1/"), "{text}");
    assert!(text.contains("`tf_plugin_testing::filesystem::samples()`"), "{text}");
}

/// An author can put all of them into a directory, an archive or on a server.
#[test]
fn samples_are_a_tree() {
    let mut directories = BTreeSet::from([""]);
    let mut paths = BTreeSet::new();
    let mut bytes = 0;
    for sample in samples() {
        let (parent, name) = sample.path.rsplit_once('/').unwrap_or(("", &sample.path));
        assert!(directories.contains(parent), "the directory of {} comes later", sample.path);
        assert!(!name.is_empty() && name != "." && name != "..", "{}", sample.path);
        assert!(paths.insert(&*sample.path), "{} comes twice", sample.path);
        match &sample.content {
            Some(content) => bytes += content.len(),
            None => drop(directories.insert(&*sample.path)),
        }
    }
    assert!(bytes < 8 << 20, "{bytes} bytes");
    // Those of which only the directory is requested exist, too.
    assert!(directories.contains("walk-cell1/empty"));
}
