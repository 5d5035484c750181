//! Filesystems that are broken on purpose: each defect is noticed, and each case notices one.
//!
//! `findings/filesystems.txt` records which case notices which defect. After a change of the cases or of the defects,
//! write it again. This tries every case on every defect and takes minutes:
//!
//! ```sh
//! TF_FS_PLUGIN_WRITE_FINDINGS=1 cargo test -p tf-plugin-conformance-tests the_record
//! ```

use memfs::MemFs;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tf_plugin_conformance_tests::findings::{Findings, Noticed};
use tf_plugin_conformance_tests::{Broken, Defect, MALFORMED, raw_host};
use tf_plugin_testing::filesystem::model::{Name, Op, run};
use tf_plugin_testing::filesystem::{
    Append, Case, Conformance, Directories, Files, Host, Outcome, Visibility, cases, samples,
};

/// Cases that take long: each is tried on one defect only.
const SLOW: [(&str, Defect); 11] = [
    ("read_in_pieces_of_tensorflow", Defect::ReadEndsAt64KiB),
    ("eight_mebibytes", Defect::ReadEndsAt64KiB),
    ("one_large_append", Defect::LargeAppendsAreCut),
    ("rename_file_large_files", Defect::RenameKeepsSource),
    ("copy_file_large_files", Defect::CopyLosesLastChunk),
    ("checkpoint", Defect::RenameRefusesExisting),
    ("each_opens_the_same_file", Defect::RefusesASecondCall),
    ("each_renames_its_file", Defect::RefusesASecondCall),
    ("readers_of_a_growing_file", Defect::RefusesASecondCall),
    ("forked_children", Defect::LockHangsInAFork),
    ("random_operations", Defect::DeleteMissingIsOk),
];

fn is_slow(case: &Case) -> bool {
    SLOW.iter().any(|(name, _)| *name == case.name())
}

/// All operations over memfs, without a defect: what those of the C boundary are put around.
struct Whole;

tf_plugin_testing::__export_filesystems!(Whole: "mem" => Broken<MemFs>);

/// A memfs with a defect, and what runs cases on it.
struct Patient {
    host: Host,
    /// Of the plugin that is registered in the C way there is one at a time. Last: it outlives the host.
    _alone: Option<MutexGuard<'static, ()>>,
}

impl Patient {
    fn new(defect: Defect) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        if defect.is_raw() {
            let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
            return Self { host: raw_host::<Whole>(defect), _alone: Some(alone) };
        }
        let host = Host::new();
        host.serve("mem", Broken::new(MemFs::default(), defect)).expect("registered");
        // Bytes that are claimed but were never written are not what these defects are about.
        host.read_once();
        Self { host, _alone: None }
    }

    fn outcome(&self, case: &Case) -> Outcome {
        let conformance = Conformance::new(&self.host, "mem://box/").malformed(MALFORMED);
        conformance.other_host("mem://other/").run(case)
    }

    /// Whether the case notices the defect. A case that has nothing to test with does not count.
    fn fails(&self, case: &Case) -> bool {
        match self.outcome(case) {
            Outcome::Failed(deviations) => {
                deviations.iter().any(|deviation| !deviation.what.starts_with("cannot make files"))
            }
            _ => false,
        }
    }
}

fn case(name: &str) -> Option<&'static Case> {
    Case::all().iter().find(|case| case.name() == name).copied()
}

/// Does something for each defect, on as many threads as there are CPUs.
fn for_each_defect<T: Send>(body: impl Fn(Defect) -> T + Sync) -> Vec<T> {
    // The last first: a child that hangs is waited for longest.
    let next = Mutex::new(Defect::ALL.iter().enumerate().rev());
    let results = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some((index, (defect, _))) = { next.lock().expect("no panic").next() } {
                    let result = body(*defect);
                    results.lock().expect("no panic").insert(index, result);
                }
            });
        }
    });
    results.into_inner().expect("no panic").into_values().collect()
}

/// Tries all cases on all defects.
fn find() -> Findings {
    let seen = for_each_defect(|defect| {
        let patient = Patient::new(defect);
        let quick = Case::all().iter().copied().filter(|case| !is_slow(case));
        let mut cases: Vec<_> = quick.filter(|case| patient.fails(case)).collect();
        let slow = SLOW.iter().filter(|(_, chosen)| *chosen == defect);
        let slow: Vec<_> = slow.filter_map(|(name, _)| case(name)).collect();
        cases.extend(slow.into_iter().filter(|case| patient.fails(case)));
        (defect, cases.into_iter().map(Case::name).collect())
    });
    Findings::of(&seen)
}

#[test]
fn the_record_is_true() {
    let findings = Findings::read_or_find("filesystems", find);
    let advice = "write the record again with `TF_FS_PLUGIN_WRITE_FINDINGS=1 cargo test -p \
                  tf-plugin-conformance-tests the_record`";
    let noticed = |defect| findings.0.iter().find(|noticed| noticed.defect == defect);
    let unnoticed: Vec<_> = Defect::ALL
        .iter()
        .map(|(defect, _)| *defect)
        .filter(|one| noticed(*one).is_none())
        .collect();
    assert!(unnoticed.is_empty(), "no case notices {unnoticed:?}; {advice}");
    let wrong: Vec<String> = for_each_defect(|defect| {
        let patient = Patient::new(defect);
        let names = noticed(defect).into_iter().flat_map(Noticed::cases);
        let silent = names.filter(|name| !case(name).is_some_and(|case| patient.fails(case)));
        silent.map(|name| format!("{name} does not notice {defect:?}")).collect::<Vec<_>>()
    })
    .concat();
    assert!(wrong.is_empty(), "{}; {advice}", wrong.join(", "));
    assert_eq!(
        findings.without(Case::all().iter().map(|case| case.name())),
        NEED_ANOTHER_DECLARATION,
        "cases that notice no defect; put one into tests/conformance/src/broken, or {advice}"
    );
}

/// Cases whose declarations differ for the broken filesystems.
const NEED_ANOTHER_DECLARATION: [&str; 3] =
    ["appending_is_declared_right", "visibility_is_declared_right", "changes_are_refused"];

/// Some checks run only if a filesystem declares the behaviour.
#[test]
fn a_false_declaration_is_noticed() {
    let patient = Patient::new(Defect::NoDefect);
    let conformance = || Conformance::new(&patient.host, "mem://box/");
    let fs = patient.host.filesystem("mem").expect("registered");
    for sample in samples().iter().filter(|sample| sample.path.starts_with("changes_are_refused")) {
        let path = format!("mem://box/{}", sample.path);
        let made = match &sample.content {
            Some(content) => fs.write_file(path, content),
            None => fs.create_dir(path),
        };
        made.expect("a sample");
    }
    for (conformance, case) in [
        (conformance().append(Append::Unsupported), &cases::appending_is_declared_right),
        (conformance().visible(Visibility::Close), &cases::visibility_is_declared_right),
        (conformance().visible(Visibility::Flush), &cases::visibility_is_declared_right),
        (conformance().visible(Visibility::InPlace), &cases::visibility_is_declared_right),
        (conformance().files(Files::Provided), &cases::changes_are_refused),
    ] {
        // memfs appends, shows at once what was flushed, so that half a file is seen, and writes.
        let outcome = conformance.run(case);
        let Outcome::Failed(deviations) = &outcome else { panic!("{case:?}: {outcome:?}") };
        assert!(!deviations[0].what.starts_with("there is no "), "{deviations:?}");
    }
}

/// A reader of a file that is being written may be refused, and no more than that.
#[test]
fn a_read_before_the_close_fails_in_one_way_only() {
    let patient = Patient::new(Defect::OpenFails);
    let conformance = Conformance::new(&patient.host, "mem://box/").visible(Visibility::Close);
    let outcome = conformance.run(&cases::visibility_is_declared_right);
    let Outcome::Failed(deviations) = &outcome else { panic!("{outcome:?}") };
    assert!(deviations[0].what.starts_with("before the close"), "{deviations:?}");
}

/// A person reads which files an operation was about: here that a file was renamed to itself.
#[test]
fn random_operations_are_told_with_names() {
    let patient = Patient::new(Defect::RenameToItselfLoses);
    let path = || Name::Path(vec![String::from("a")]);
    let ops = [
        Op::NewWritable { slot: 0, path: path() },
        Op::Rename { src: Name::File(4), dst: Name::In(1, "a") },
    ];
    let error = run(&patient.host, "mem://box/", &ops).expect_err("the file is gone").to_string();
    for part in ["0. NewWritable { slot: 0, path: \"a\" }", "1. Rename { src: \"a\", dst: \"a\" }"]
    {
        assert!(error.contains(part), "{part} is not in {error}");
    }
    let Outcome::Failed(found) = patient.outcome(&cases::random_operations) else {
        panic!("random_operations passes")
    };
    for index in ["File(", "Dir(", "In("] {
        assert!(!found[0].what.contains(index), "{}", found[0].what);
    }
}

/// Where directories are implied they may be renamed, and what only begins with their name stays.
#[test]
fn a_directory_is_renamed_without_its_neighbours() {
    for (defect, passes) in [(Defect::NoDefect, true), (Defect::RenameByPrefix, false)] {
        let host = Host::new();
        let broken = Broken::moving_directories(MemFs::default(), defect);
        host.serve("mem", broken).expect("registered");
        let conformance = Conformance::new(&host, "mem://box/").directories(Directories::Implied);
        let outcome = conformance.run(&cases::rename_file_from_empty_dir);
        assert_eq!(matches!(outcome, Outcome::Passed), passes, "{defect:?}: {outcome:?}");
        assert_eq!(matches!(outcome, Outcome::Failed(_)), !passes, "{defect:?}: {outcome:?}");
    }
}

#[test]
fn without_a_defect_nothing_is_noticed() {
    let patient = Patient::new(Defect::NoDefect);
    for case in Case::all() {
        match patient.outcome(case) {
            Outcome::Passed => {}
            Outcome::Skipped(_) if NEED_ANOTHER_DECLARATION.contains(&case.name()) => {}
            other => panic!("{}: {other:#?}", case.name()),
        }
    }
}
