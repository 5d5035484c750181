//! The cases that run in TensorFlow, on plugins that pass and on those that are broken on purpose.
//!
//! `python.txt` in `tests/conformance/findings` records which case notices which defect. After a change of the cases or of
//! the defects, write it again, which takes minutes:
//!
//! ```sh
//! TF_FS_PLUGIN_WRITE_FINDINGS=1 cargo test -p tf-plugin-tensorflow-tests conformance::
//! ```
//!
//! `c.txt` there has a defect for each case in C, chosen by hand.

use cargo_tf_plugin::TensorFlow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use tf_plugin_conformance_tests::effort::is_whole;
use tf_plugin_conformance_tests::findings::Findings;
use tf_plugin_conformance_tests::{DEFECT_VARIABLE, Defect, MALFORMED};
use tf_plugin_tensorflow_tests::{Example, Plugin, each_tensorflow, tensorflow};
use tf_plugin_testing::device;
use tf_plugin_testing::filesystem::{
    CaseResult, Deviation, Directories, Files, InTensorFlow, Outcome, TensorFlowCase, Visibility,
    samples,
};

each_tensorflow!(
    memfs, memfs_in_c; oldest and newest: localfs, localfs_below_a_root, refdevice, localfs_in_c,
    provided_files_in_c, refdevice_in_c
);

/// The entry point of the processes of the C cases.
#[test]
fn worker_for_files() {
    InTensorFlow::work();
}

/// As [`worker_for_files`].
#[test]
fn worker_for_a_device() {
    device::InTensorFlow::work();
}

/// What the tests judge: nothing failed, and only what is named was skipped.
#[track_caller]
fn pass(cases: &[&TensorFlowCase], answers: &[CaseResult], skipped: &[&str]) {
    assert_eq!(answers.len(), cases.len());
    let mut found = Vec::new();
    for answer in answers {
        match &answer.outcome {
            Outcome::Passed => {}
            Outcome::Skipped(_) => found.push(answer.case.name),
            Outcome::Failed(deviations) => panic!("{}: {deviations:#?}", answer.case.name),
        }
    }
    assert_eq!(found, skipped);
}

#[track_caller]
fn outcome<'a>(answers: &'a [CaseResult], name: &str) -> &'a Outcome {
    let answer = answers.iter().find(|answer| answer.case.name == name);
    &answer.unwrap_or_else(|| panic!("{name} is not a case")).outcome
}

/// The settings of a release's Python.
fn settings(tensorflow: &TensorFlow) -> Vec<(String, String)> {
    let command = tensorflow.python_command();
    let settings = command.get_envs().filter_map(|(name, value)| {
        Some((name.to_string_lossy().into_owned(), value?.to_string_lossy().into_owned()))
    });
    settings.collect()
}

fn python(tensorflow: &TensorFlow, library: &Path) -> InTensorFlow {
    let python = InTensorFlow::from_python(tensorflow.python(), library);
    settings(tensorflow).into_iter().fold(python, |python, (name, value)| python.env(name, value))
}

fn in_c(tensorflow: &TensorFlow, library: &Path) -> InTensorFlow {
    InTensorFlow::in_c(tensorflow.library_dir(), library, "conformance::worker_for_files")
}

fn memfs(tensorflow: &TensorFlow) {
    let skipped = ["python_half_a_file_is_never_seen", "python_malformed", "python_memory_region"];
    let cases = python(tensorflow, Plugin::of("memfs").path());
    pass(cases.cases(), &cases.run("mem://box/"), &skipped);
}

fn memfs_in_c(tensorflow: &TensorFlow) {
    let cases = in_c(tensorflow, Plugin::of("memfs").path());
    pass(cases.cases(), &cases.run("mem://box/"), &["c_provided_files"]);
}

fn localfs(tensorflow: &TensorFlow) {
    on_disk(|library| python(tensorflow, library), &["python_half_a_file_is_never_seen"]);
}

fn localfs_in_c(tensorflow: &TensorFlow) {
    on_disk(|library| in_c(tensorflow, library), &["c_provided_files"]);
}

fn on_disk(cases: impl Fn(&Path) -> InTensorFlow, skipped: &[&str]) {
    let example = Example::localfs();
    let directory = example.directory().expect("it is on disk");
    std::fs::create_dir(&directory).expect("a new directory");
    let cases = cases(example.plugin.path()).malformed("local://host/x");
    pass(cases.cases(), &cases.run(&example.root), skipped);
    let left = std::fs::read_dir(directory).expect("a directory").count();
    assert_eq!(left, 0, "cases that pass leave nothing");
}

fn localfs_below_a_root(tensorflow: &TensorFlow) {
    let root = tempfile::tempdir().expect("a scratch directory");
    let cases = python(tensorflow, Plugin::of("localfs").path())
        .malformed(format!("local:///{}", "x".repeat(256)))
        .env("LOCALFS_ROOT", root.path().to_str().expect("it is text"));
    pass(cases.cases(), &cases.run("local:///"), &["python_half_a_file_is_never_seen"]);
}

/// Cases about directories that an object store does not have, and about names that are cleaned.
const NOT_OF_STORES: [&str; 6] = [
    "python_open_file_is_there",
    "python_write_missing_parent",
    "python_write_below_file",
    "python_append_codes",
    "python_mkdir_codes",
    "python_untidy_names",
];

/// Runs the cases from Python on an object store with these settings, which refuses the name `malformed` if there is one,
/// and the names in the cases `without`.
pub(super) fn passes_on_a_store(
    tensorflow: &TensorFlow,
    library: &Path,
    root: &str,
    settings: &[(&str, String)],
    malformed: Option<&str>,
    without: &[&str],
) {
    let cases = python(tensorflow, library)
        .directories(Directories::Implied)
        .visible(Visibility::Flush)
        .without("python_untidy_names", "keys are exact: none is cleaned");
    let cases = malformed.into_iter().fold(cases, |cases, name| cases.malformed(name));
    let cases = without.iter().fold(cases, |cases, case| cases.without(*case, "it refuses them"));
    let cases = settings.iter().fold(cases, |cases, (name, value)| cases.env(*name, value.clone()));
    let names = cases.cases().iter().map(|case| case.name);
    let is_skipped = |name: &&str| {
        let unasked = malformed.is_none() && *name == "python_malformed";
        unasked || NOT_OF_STORES.contains(name) || without.contains(name)
    };
    let skipped: Vec<_> = names.filter(is_skipped).collect();
    pass(cases.cases(), &cases.run(root), &skipped);
}

/// With `files: provided` nothing is written, and what is there is held against what was put there.
fn provided_files_in_c(tensorflow: &TensorFlow) {
    let example = Example::localfs();
    let directory = example.directory().expect("it is on disk");
    for sample in samples() {
        let path = directory.join(&sample.path);
        match &sample.content {
            Some(content) => std::fs::write(path, content).expect("written"),
            None => std::fs::create_dir_all(path).expect("made"),
        }
    }
    let entries = || std::fs::read_dir(&directory).expect("a directory").count();
    let before = entries();
    let cases = in_c(tensorflow, example.plugin.path()).files(Files::Provided);
    let others: Vec<_> = cases.cases().iter().map(|case| case.name).collect();
    let others: Vec<_> = others.into_iter().filter(|name| *name != "c_provided_files").collect();
    pass(cases.cases(), &cases.run(&example.root), &others);
    assert_eq!(entries(), before, "nothing is written");
    let missing =
        samples().iter().rfind(|sample| sample.content.is_some()).expect("there are files");
    std::fs::write(directory.join(&missing.path), "another content").expect("written");
    let found = cases.run(&example.root);
    let noticed = failed(&found);
    assert_eq!(noticed.len(), 1, "{found:#?}");
}

fn on_a_device(tensorflow: &TensorFlow, plugin: &'static str) -> device::InTensorFlow {
    let library = Plugin::of(plugin).path();
    let python = device::InTensorFlow::from_python(tensorflow.python(), library);
    settings(tensorflow).into_iter().fold(python, |python, (name, value)| python.env(name, value))
}

fn refdevice(tensorflow: &TensorFlow) {
    // TensorFlow 2.19 to 2.21 have no kernels that change variables, which are not compared with the CPU's.
    let has_variables = !((2, 19)..=(2, 21)).contains(&tensorflow.major_minor());
    let skipped: &[&str] = if has_variables { &["python_every_kernel"] } else { &[] };
    let results = all_pass(on_a_device(tensorflow, "refdevice"), skipped);
    let Outcome::Skipped(rest) = outcome(&results, "python_every_kernel") else { return };
    let listed: Vec<&str> =
        rest.trim_start_matches("never compared with the CPU: ").split("; ").collect();
    let is_adam = |one: &&str| one.starts_with("ResourceApplyAdam");
    assert!(listed.len() < 20 && listed.iter().any(is_adam), "{rest}");
}

fn refdevice_in_c(tensorflow: &TensorFlow) {
    all_pass(on_a_device_in_c(tensorflow, "refdevice"), &[]);
}

fn on_a_device_in_c(tensorflow: &TensorFlow, plugin: &'static str) -> device::InTensorFlow {
    let (directory, library) = (tensorflow.library_dir(), Plugin::of(plugin).path());
    device::InTensorFlow::in_c(directory, library, "conformance::worker_for_a_device")
}

#[track_caller]
fn all_pass(cases: device::InTensorFlow, skipped: &[&str]) -> Vec<device::CaseResult> {
    // Work that is late finds what does not wait for it; and there is another device to copy to.
    let cases = cases.env("REFDEVICE_DELAY_US", "100").env("REFDEVICE_DEVICES", "2");
    let answers = cases.run("RUST_REF");
    pass(cases.cases(), &answers, skipped);
    answers
}

/// Kernels that fail, panic and forget are there to be found; what has no kernel is skipped with a reason.
#[test]
fn broken_kernels_are_noticed_in_tensorflow() {
    let release = tensorflow(cargo_tf_plugin::NEWEST);
    let mut answers = on_a_device(&release, "hostdevice").run("RUST_TEST");
    answers.extend(on_a_device_in_c(&release, "hostdevice").run("RUST_TEST"));
    for (case, what) in [
        ("python_kernels_of_one_argument", "panicked in `hostdevice::kernels::PanicsToo`"),
        ("python_kernels_that_broadcast", "[2, 3] and [3] cannot be added"),
        ("python_kernels_of_networks", "the preferred kernel fails"),
    ] {
        match outcome(&answers, case) {
            Outcome::Failed(found) => assert!(
                found
                    .iter()
                    .any(|one| one.detail.as_deref().is_some_and(|text| text.contains(what))),
                "{found:#?}"
            ),
            other => panic!("{case}: {other:?}"),
        }
    }
    let reason = "the plugin has none of these kernels";
    let Outcome::Failed(wrong) = outcome(&answers, "python_every_kernel") else {
        panic!("{answers:#?}")
    };
    assert!(
        wrong.iter().any(|one| one.what.starts_with("output 0 of Acosh T=float64 of x [[2, 3]]")),
        "{wrong:#?}"
    );
    let Outcome::Failed(misspelt) = outcome(&answers, "python_names_of_ops") else {
        panic!("{answers:#?}")
    };
    let [misspelt] = &misspelt[..] else { panic!("{misspelt:#?}") };
    assert!(misspelt.what.starts_with("no op named `Acossh` in TensorFlow 2."), "{misspelt}");
    assert_eq!(misspelt.wanted.as_deref(), Some("`Acosh`?"));
    for case in ["python_kernels_that_reduce", "python_kernels_of_matrices"] {
        assert_eq!(*outcome(&answers, case), Outcome::Skipped(reason.to_owned()), "{case}");
    }
    for case in [
        "python_device_is_listed",
        "python_copies_of_floats",
        "python_copy_of_16_mib",
        "c_device_is_listed",
        "c_copies",
        "c_threads_compute",
    ] {
        assert_eq!(*outcome(&answers, case), Outcome::Passed, "{case}");
    }
}

/// `panicfs`, of which every case but the first is left out, and which hangs as told.
fn hanging(cases: fn(&TensorFlow, &Path) -> InTensorFlow, how: &str) -> InTensorFlow {
    let cases = cases(&tensorflow(cargo_tf_plugin::NEWEST), Plugin::of("panicfs").path())
        .env("PANICFS_NEW", how)
        // TensorFlow's import takes 3 s on a machine with nothing else to do, and took over 20 s on a busy one.
        .start_limit(Duration::from_secs(60));
    let rest = cases.cases().iter().skip(1);
    rest.fold(cases, |cases, case| cases.without(case.name, "it is not asked"))
}

fn hangs_while_it_is_loaded(cases: &InTensorFlow, parts: &[&str]) {
    let started = Instant::now();
    let run = || cases.run("panicfs://box/");
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    let panic = panic.expect_err("nothing can be asked");
    let text = panic.downcast_ref::<String>().expect("a text");
    let hangs = "it hangs while TensorFlow and the plugin are loaded, before the first case: nothing in 60 s";
    for part in [hangs, "`cargo tf-plugin check` loads it without TensorFlow"].iter().chain(parts) {
        assert!(text.contains(part), "{text}");
    }
    assert!(started.elapsed() < Duration::from_secs(200), "{:?}", started.elapsed());
}

#[test]
fn a_plugin_that_hangs_while_it_is_loaded_is_ended() {
    // The stack, by Python.
    hangs_while_it_is_loaded(&hanging(python, "hang"), &["in load_pluggable_device_library"]);
}

#[test]
fn a_plugin_that_hangs_while_it_is_loaded_is_ended_in_c() {
    hangs_while_it_is_loaded(&hanging(in_c, "hang"), &[]);
}

#[test]
fn a_plugin_that_hangs_when_the_process_ends_has_failed() {
    let python = hanging(python, "hang at the end");
    let answers = python.run("panicfs://box/");
    let (last, rest) = answers.split_last().expect("all have an answer");
    assert_eq!(rest.len() + 1, python.cases().len());
    assert!(matches!(rest[0].outcome, Outcome::Passed), "{:?}", rest[0]);
    let Outcome::Failed(found) = &last.outcome else { panic!("{last:?}") };
    assert_eq!(found[0].what, "TensorFlow's process does not end after the last case");
    let detail = found[0].detail.as_deref().unwrap_or_default();
    assert!(detail.contains("it hangs at its end, after the last case"), "{detail}");
}

/// Cases that take longer than the others, and the defects that they are tried on.
const SLOW: [(&str, &[Defect]); 14] = [
    ("python_threads_read_one_file", &[Defect::ReaderKeepsAPosition]),
    ("python_dataset_snapshot", &[Defect::RenameMissingIsOk, Defect::RenameRefusesExisting]),
    ("python_tfrecord_compressed", &[Defect::HighBitIsLost]),
    ("python_fixed_length_records", &[Defect::ReadIgnoresOffset]),
    ("python_one_large_write", &[Defect::LargeAppendsAreCut]),
    ("python_tfrecord", &[Defect::LastByteIsNotRead]),
    ("python_text_lines", &[Defect::LineEndsAreTranslated, Defect::ReadEndsAt64KiB]),
    ("python_saved_model", &[Defect::LastByteIsNotRead]),
    ("python_dataset_cache", &[Defect::DroppedFilesVanish, Defect::DroppedFilesStayLocked]),
    ("python_dataset_save", &[Defect::AppendNeedsFile]),
    ("python_event_file_grows", &[Defect::ReadIsCached]),
    ("python_event_file", &[Defect::LastByteIsNotRead]),
    ("python_many_record_files", &[Defect::LastByteIsNotRead]),
    ("python_many_small_writes", &[Defect::FlushWritesTwice]),
];

/// So many cases are enough for a defect that ends the process.
const ENOUGH: usize = 6;

/// Cases that none of the defects makes fail, or none that is tried: what they do others do, too.
const NOTICE_NOTHING: [&str; 1] = ["python_half_a_file_is_never_seen"];

fn brokenfs(cases: fn(&TensorFlow, &Path) -> InTensorFlow) -> InTensorFlow {
    let release = tensorflow(cargo_tf_plugin::NEWEST);
    cases(&release, Plugin::of("brokenfs").path())
        .malformed(MALFORMED)
        // A case that hangs has failed. The slowest takes 0.3 s on an idle machine.
        .limit(Duration::from_secs(20))
}

/// The cases that notice it, of those given. A case that has nothing to test with does not count.
fn failed(answers: &[CaseResult]) -> Vec<&'static TensorFlowCase> {
    let of_the_case = |deviation: &Deviation| !deviation.what.starts_with("a step of set_up");
    let failed = answers.iter().filter(
        |answer| matches!(&answer.outcome, Outcome::Failed(all) if all.iter().any(of_the_case)),
    );
    failed.map(|answer| answer.case).collect()
}

/// Whether nothing is known but that the process died, hung or did not end well.
fn ends_the_process(answer: &CaseResult) -> bool {
    let of_the_process = |deviation: &Deviation| deviation.what.starts_with("TensorFlow's process");
    matches!(&answer.outcome, Outcome::Failed(all) if all.iter().all(of_the_process))
}

/// For each defect, by its number, cases that notice it.
type Jobs = BTreeMap<usize, Vec<&'static TensorFlowCase>>;

/// Tries the cases from Python on all defects.
fn find() -> Findings {
    let all = InTensorFlow::all_from_python();
    let jobs = Defect::ALL.iter().enumerate().map(|(number, (defect, _))| {
        let is_tried = |case: &&&TensorFlowCase| match SLOW.iter().find(|slow| slow.0 == case.name)
        {
            Some((_, defects)) => defects.contains(defect),
            None => true,
        };
        (number, all.iter().filter(is_tried).copied().collect())
    });
    let seen = tried(jobs.collect(), ENOUGH).into_iter().map(|(number, cases)| {
        (Defect::ALL[number].0, cases.into_iter().map(|case| case.name).collect())
    });
    Findings::of(&seen.collect::<Vec<_>>())
}

/// Which of these cases notice these defects. Of a defect that ends the process so many are enough.
fn tried(jobs: Vec<(usize, Vec<&'static TensorFlowCase>)>, enough: usize) -> Jobs {
    let mut findings = Jobs::new();
    // A case that ends the process ends the job, so that the others are tried in another one.
    let mut rest = jobs;
    while !rest.is_empty() {
        let jobs = rest.iter().map(|(number, cases)| {
            let defect = format!("{:?}", Defect::ALL[*number].0);
            (vec![(DEFECT_VARIABLE.to_owned(), defect)], cases.clone())
        });
        let jobs: Vec<_> = jobs.collect();
        let answers = brokenfs(python).run_each("mem://box/", &jobs);
        let mut left = Vec::new();
        for ((number, cases), answers) in rest.into_iter().zip(answers) {
            let found = findings.entry(number).or_default();
            found.extend(failed(&answers));
            if answers.len() < cases.len() && found.len() < enough {
                left.push((number, cases[answers.len()..].to_vec()));
            }
        }
        rest = left;
    }
    findings
}

#[test]
fn defects_are_noticed_in_tensorflow() {
    let findings = Findings::read_or_find("python", find);
    let advice = "write the record again with `TF_FS_PLUGIN_WRITE_FINDINGS=1 cargo test -p \
                  tf-plugin-tensorflow-tests conformance::`";
    let cases = InTensorFlow::all_from_python();
    let silent = findings.without(cases.iter().map(|case| case.name));
    assert_eq!(silent, NOTICE_NOTHING, "cases that notice no defect; {advice}");
    let noticed = findings.0.len();
    assert!(noticed >= 100, "only {noticed} defects are noticed");

    // The cases of which a defect is the own one, and before a release, for the other defects, the first that is
    // named: its own defect is another one, and is tried here.
    let of_others = usize::from(is_whole());
    let mut jobs = Jobs::new();
    for noticed in &findings.0 {
        let number = Defect::ALL.iter().position(|(defect, _)| *defect == noticed.defect);
        let names = noticed.cases().take(noticed.own.len().max(of_others));
        let chosen = names.map(|name| {
            let case = cases.iter().find(|case| case.name == name);
            *case.unwrap_or_else(|| panic!("there is no case {name}; {advice}"))
        });
        jobs.insert(number.expect("it is one of all"), chosen.collect());
    }
    let mut silent: Vec<_> = jobs.into_iter().filter(|(_, cases)| !cases.is_empty()).collect();
    // A race is looked for up to five times.
    for _ in 0..5 {
        if silent.is_empty() {
            break;
        }
        let found = tried(silent.clone(), usize::MAX);
        for (number, cases) in &mut silent {
            cases.retain(|case| !found[number].iter().any(|one| one.name == case.name));
        }
        silent.retain(|(_, cases)| !cases.is_empty());
    }
    let silent = silent.iter().flat_map(|(number, cases)| {
        let defect = Defect::ALL[*number].0;
        cases.iter().map(move |case| format!("{} does not notice {defect:?}", case.name))
    });
    let wrong: Vec<_> = silent.collect();
    assert!(wrong.is_empty(), "{}; {advice}", wrong.join(", "));
}

#[test]
fn without_a_defect_nothing_is_noticed_in_tensorflow() {
    let cases = brokenfs(python);
    let jobs = [(Vec::new(), cases.cases().to_vec())];
    let answers = cases.run_each("mem://box/", &jobs);
    pass(cases.cases(), &answers[0], &NOTICE_NOTHING);
}

/// Each case in C has a defect that it notices. Which defects the cases notice beyond that is not recorded: those of the
/// process notice all of them.
#[test]
fn defects_are_noticed_in_c() {
    let cases = brokenfs(in_c);
    pass(cases.cases(), &cases.run("mem://box/"), &["c_provided_files"]);
    let findings = Findings::read("c");
    let silent = findings.without(cases.cases().iter().map(|case| case.name));
    assert_eq!(silent, ["c_provided_files"], "cases that notice no defect");
    for noticed in &findings.0 {
        let broken = brokenfs(in_c).env(DEFECT_VARIABLE, format!("{:?}", noticed.defect));
        let mut answers = broken.run("mem://box/");
        // Another defect may have ended the process: the case has to say what is wrong.
        answers.retain(|answer| !ends_the_process(answer));
        let found = failed(&answers);
        for name in noticed.cases() {
            let notices = found.iter().any(|case| case.name == name);
            assert!(notices, "{name} does not notice {:?}", noticed.defect);
        }
    }
}

/// A case that hangs has failed, with the reason; the others go on in a new process.
#[test]
fn a_hanging_case_fails_alone_in_c() {
    // Of which the process has five more.
    let limit = Duration::from_secs(5);
    let cases = in_c(&tensorflow(cargo_tf_plugin::NEWEST), Plugin::of("panicfs").path())
        .env("PANICFS_HANG_IN", "c_writer_moves_between_threads")
        .limit(limit);
    let answers = cases.run("panicfs://box/");
    assert_eq!(answers.len(), cases.cases().len());
    let hung = outcome(&answers, "c_writer_moves_between_threads");
    let Outcome::Failed(deviations) = hung else { panic!("{answers:#?}") };
    assert_eq!(deviations[0].what, "TensorFlow's process ends in the middle of the case");
    let detail = deviations[0].detail.as_deref().unwrap_or_default();
    assert!(detail.contains("it hangs: not a word in 5 s"), "{detail}");
    for case in ["c_write_and_read", "c_flushed_is_read", "c_save_and_restore"] {
        assert_eq!(*outcome(&answers, case), Outcome::Passed, "{case}");
    }
}
