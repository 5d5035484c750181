//! The cases that run in TensorFlow, on plugins that pass and on those that are broken on purpose.
//!
//! `docs/tensorflow-conformance.md` and `docs/tensorflow-c-conformance.md` list both. After a change of the cases or of
//! the defects, write them anew, which takes minutes:
//!
//! ```sh
//! TF_FS_PLUGIN_WRITE_DOCS=1 cargo test -p tf-plugin-tensorflow-tests --test conformance
//! ```

use cargo_tf_plugin::TensorFlow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tf_fs_plugin::testing::{
    Answer, Deviation, Files, InTensorFlow, TensorFlowCase, Verdict, samples,
};
use tf_plugin_conformance_tests::{DEFECT_VARIABLE, Defect, MALFORMED};
use tf_plugin_tensorflow_tests::{Example, Plugin, each_tensorflow, tensorflow};

each_tensorflow!(
    memfs, memfs_in_c; oldest and newest: localfs, localfs_below_a_root, refdevice, localfs_in_c,
    provided_files_in_c, refdevice_in_c
);

/// What the processes of the cases in C run.
#[test]
fn worker_for_files() {
    InTensorFlow::work();
}

/// As [`worker_for_files`].
#[test]
fn worker_for_a_device() {
    se_plugin::testing::InTensorFlow::work();
}

/// What the tests judge: nothing failed, and only what is named was skipped.
#[track_caller]
fn pass(cases: &InTensorFlow, answers: &[Answer], skipped: &[&str]) {
    assert_eq!(answers.len(), cases.cases().len());
    let mut found = Vec::new();
    for answer in answers {
        match &answer.verdict {
            Verdict::Passed => {}
            Verdict::Skipped(_) => found.push(answer.case.name),
            Verdict::Failed(deviations) => panic!("{}: {deviations:#?}", answer.case.name),
        }
    }
    assert_eq!(found, skipped);
}

fn python(tensorflow: &TensorFlow, library: &Path) -> InTensorFlow {
    let python = InTensorFlow::from_python(tensorflow.python(), library);
    tensorflow.python_command().get_envs().fold(python, |python, (name, value)| match value {
        Some(value) => python.env(name.to_string_lossy(), value.to_string_lossy()),
        None => python,
    })
}

fn in_c(tensorflow: &TensorFlow, library: &Path) -> InTensorFlow {
    InTensorFlow::in_c(tensorflow.library_dir(), library, "worker_for_files")
}

fn memfs(tensorflow: &TensorFlow) {
    let skipped = ["python_half_a_file_is_never_seen", "python_malformed", "python_memory_region"];
    let cases = python(tensorflow, Plugin::of("memfs").path());
    pass(&cases, &cases.run("mem://box/"), &skipped);
}

fn memfs_in_c(tensorflow: &TensorFlow) {
    let skipped =
        ["c_half_a_file_is_never_seen", "c_malformed", "c_memory_region", "c_provided_files"];
    let cases = in_c(tensorflow, Plugin::of("memfs").path());
    pass(&cases, &cases.run("mem://box/"), &skipped);
}

fn localfs(tensorflow: &TensorFlow) {
    on_disk(|library| python(tensorflow, library), &["python_half_a_file_is_never_seen"]);
}

fn localfs_in_c(tensorflow: &TensorFlow) {
    let skipped = ["c_half_a_file_is_never_seen", "c_provided_files"];
    on_disk(|library| in_c(tensorflow, library), &skipped);
}

fn on_disk(cases: impl Fn(&Path) -> InTensorFlow, skipped: &[&str]) {
    let example = Example::localfs();
    let directory = example.directory().expect("it is on disk");
    std::fs::create_dir(&directory).expect("a new directory");
    let cases = cases(example.plugin.path()).malformed("local://host/x");
    pass(&cases, &cases.run(&example.root), skipped);
    let left = std::fs::read_dir(directory).expect("a directory").count();
    assert_eq!(left, 0, "cases that pass leave nothing");
}

fn localfs_below_a_root(tensorflow: &TensorFlow) {
    let root = tempfile::tempdir().expect("a scratch directory");
    let cases = python(tensorflow, Plugin::of("localfs").path())
        .malformed(format!("local:///{}", "x".repeat(256)))
        .env("LOCALFS_ROOT", root.path().to_str().expect("it is text"));
    pass(&cases, &cases.run("local:///"), &["python_half_a_file_is_never_seen"]);
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
    pass(&cases, &cases.run(&example.root), &others);
    assert_eq!(entries(), before, "nothing is written");
    let missing =
        samples().iter().rfind(|sample| sample.content.is_some()).expect("there are files");
    std::fs::write(directory.join(&missing.path), "another content").expect("written");
    let found = cases.run(&example.root);
    let noticed = failed(&found);
    assert_eq!(noticed.len(), 1, "{found:#?}");
}

fn on_a_device(tensorflow: &TensorFlow, plugin: &'static str) -> se_plugin::testing::InTensorFlow {
    let library = Plugin::of(plugin).path();
    let python = se_plugin::testing::InTensorFlow::from_python(tensorflow.python(), library);
    tensorflow.python_command().get_envs().fold(python, |python, (name, value)| match value {
        Some(value) => python.env(name.to_string_lossy(), value.to_string_lossy()),
        None => python,
    })
}

fn refdevice(tensorflow: &TensorFlow) {
    all_pass(on_a_device(tensorflow, "refdevice"));
}

fn refdevice_in_c(tensorflow: &TensorFlow) {
    all_pass(on_a_device_in_c(tensorflow, "refdevice"));
}

fn on_a_device_in_c(
    tensorflow: &TensorFlow,
    plugin: &'static str,
) -> se_plugin::testing::InTensorFlow {
    let (directory, library) = (tensorflow.library_dir(), Plugin::of(plugin).path());
    se_plugin::testing::InTensorFlow::in_c(directory, library, "worker_for_a_device")
}

#[track_caller]
fn all_pass(cases: se_plugin::testing::InTensorFlow) {
    // Work that is late finds what does not wait for it; and there is another device to copy to.
    let cases = cases.env("REFDEVICE_DELAY_US", "100").env("REFDEVICE_DEVICES", "2");
    let answers = cases.run("RUST_REF");
    assert_eq!(answers.len(), cases.cases().len());
    for answer in answers {
        assert_eq!(answer.verdict, Verdict::Passed, "{}", answer.case.name);
    }
}

/// Kernels that fail, panic and forget are there to be found; what has no kernel is skipped with a reason.
#[test]
fn what_is_wrong_with_kernels_is_noticed_in_tensorflow() {
    let release = tensorflow(cargo_tf_plugin::NEWEST);
    for (cases, way) in [
        (on_a_device(&release, "hostdevice"), "python"),
        (on_a_device_in_c(&release, "hostdevice"), "c"),
    ] {
        let answers = cases.run("RUST_TEST");
        let verdict = |name: &str| {
            let name = format!("{way}_{name}");
            let answer = answers.iter().find(|answer| answer.case.name == name);
            &answer.unwrap_or_else(|| panic!("{name} is no case")).verdict
        };
        for (case, what) in [
            ("kernels_of_one_argument", "PanicsToo` panicked"),
            ("kernels_that_broadcast", "[2, 3] and [3] cannot be added"),
            ("kernels_of_networks", "the preferred kernel fails"),
        ] {
            match verdict(case) {
                Verdict::Failed(found) => assert!(
                    found
                        .iter()
                        .any(|one| one.detail.as_deref().is_some_and(|text| text.contains(what))),
                    "{way}: {found:#?}"
                ),
                other => panic!("{way}: {case}: {other:?}"),
            }
        }
        let reason = "the plugin has none of these kernels";
        for case in ["kernels_that_reduce", "kernels_of_matrices"] {
            assert_eq!(*verdict(case), Verdict::Skipped(reason.to_owned()), "{way}: {case}");
        }
        for case in ["device_is_listed", "copies_of_floats", "copy_of_16_mib"] {
            assert_eq!(*verdict(case), Verdict::Passed, "{way}: {case}");
        }
    }
}

/// `panicfs`, of which every case but the first is left out, and which hangs as told.
fn hanging(cases: fn(&TensorFlow, &Path) -> InTensorFlow, how: &str) -> InTensorFlow {
    let cases = cases(&tensorflow(cargo_tf_plugin::NEWEST), Plugin::of("panicfs").path())
        .env("PANICFS_NEW", how)
        // TensorFlow's import takes 3 s on a machine with nothing else to do.
        .start_limit(Duration::from_secs(20));
    let rest = cases.cases().iter().skip(1);
    rest.fold(cases, |cases, case| cases.without(case.name, "it is not asked"))
}

fn hangs_while_it_is_loaded(cases: &InTensorFlow, parts: &[&str]) {
    let started = Instant::now();
    let run = || cases.run("panicfs://box/");
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    let panic = panic.expect_err("nothing can be asked");
    let text = panic.downcast_ref::<String>().expect("a text");
    let hangs = "it hangs while TensorFlow and the plugin are loaded, before the first case: nothing in 20 s";
    for part in [hangs, "`cargo tf-plugin check` loads it without TensorFlow"].iter().chain(parts) {
        assert!(text.contains(part), "{text}");
    }
    assert!(started.elapsed() < Duration::from_secs(100), "{:?}", started.elapsed());
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
    assert!(matches!(rest[0].verdict, Verdict::Passed), "{:?}", rest[0]);
    let Verdict::Failed(found) = &last.verdict else { panic!("{last:?}") };
    assert_eq!(found[0].what, "TensorFlow's process does not end after the last case");
    let detail = found[0].detail.as_deref().unwrap_or_default();
    assert!(detail.contains("it hangs at its end, after the last case"), "{detail}");
}

/// Cases that take longer than the others, and the defects that they are tried on.
const SLOW: [(&str, &[Defect]); 19] = [
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
    ("c_many_small_appends", &[Defect::FlushWritesTwice]),
    ("c_one_large_append", &[Defect::LargeAppendsAreCut]),
    ("c_threads_read_one_file", &[Defect::RefusesASecondCall]),
    // It notices the race of `MakeTreeRaces` at times only.
    ("c_threads_make_one_tree", &[Defect::MakeTreeNeedsParent]),
    ("c_threads_with_files_of_their_own", &[Defect::RefusesASecondCall]),
];

/// How many cases the document names for a defect.
const NAMED: usize = 3;

/// What is tried on filesystems with defects, and what is written about it.
struct Proof {
    cases: fn(&TensorFlow, &Path) -> InTensorFlow,
    /// The document.
    file: &'static str,
    title: &'static str,
    way: &'static str,
    /// The row of `cargo tf-plugin test`.
    row: &'static str,
    /// The other document.
    other: &'static str,
    /// Cases that none of the defects makes fail, or none that is tried: what they do others do, too.
    notice_nothing: &'static [&'static str],
    /// What is not asked of it.
    skipped: &'static [&'static str],
    /// So many defects are noticed at least.
    least: usize,
}

const FROM_PYTHON: Proof = Proof {
    cases: python,
    file: "tensorflow-conformance.md",
    title: "Conformance in TensorFlow",
    way: "from Python",
    row: "conformance in Python",
    other: "[Conformance in TensorFlow's C library](tensorflow-c-conformance.md) has those without Python",
    notice_nothing: &["python_half_a_file_is_never_seen"],
    skipped: &["python_half_a_file_is_never_seen"],
    least: 100,
};

const IN_C: Proof = Proof {
    cases: in_c,
    file: "tensorflow-c-conformance.md",
    title: "Conformance in TensorFlow's C library",
    way: "in a process that has TensorFlow's C library and no Python, as programs in C, C++ or Rust and servers of \
          models have it",
    row: "conformance in C",
    other: "[Conformance in TensorFlow](tensorflow-conformance.md) has those from Python",
    notice_nothing: &["c_half_a_file_is_never_seen", "c_provided_files"],
    skipped: &["c_half_a_file_is_never_seen", "c_provided_files"],
    least: 80,
};

impl Proof {
    fn brokenfs(&self) -> InTensorFlow {
        let release = tensorflow(cargo_tf_plugin::NEWEST);
        (self.cases)(&release, Plugin::of("brokenfs").path())
            .malformed(MALFORMED)
            // What hangs has failed. The slowest takes 0.3 s on a machine with nothing else to do.
            .limit(Duration::from_secs(20))
    }

    fn document(&self) -> PathBuf {
        [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", self.file].iter().collect()
    }
}

fn with(defect: Defect) -> Vec<(String, String)> {
    vec![(DEFECT_VARIABLE.to_owned(), format!("{defect:?}"))]
}

/// The cases that notice it, of those given. That there is nothing to test with is no notice.
fn failed(answers: &[Answer]) -> Vec<&'static TensorFlowCase> {
    let of_the_case = |deviation: &Deviation| !deviation.what.starts_with("a step of set_up");
    let failed = answers.iter().filter(
        |answer| matches!(&answer.verdict, Verdict::Failed(all) if all.iter().any(of_the_case)),
    );
    failed.map(|answer| answer.case).collect()
}

/// For each defect, by its number, cases that notice it.
type Findings = BTreeMap<usize, Vec<&'static TensorFlowCase>>;

impl Proof {
    /// Tries the cases on all defects.
    fn find(&self) -> Findings {
        let all = self.brokenfs().cases();
        let jobs = Defect::ALL.iter().enumerate().map(|(number, (defect, _))| {
            let tried = |case: &&&TensorFlowCase| match SLOW.iter().find(|slow| slow.0 == case.name)
            {
                Some((_, defects)) => defects.contains(defect),
                None => true,
            };
            (number, all.iter().filter(tried).copied().collect())
        });
        self.tried(jobs.collect(), 2 * NAMED)
    }

    /// Which of these cases notice these defects. Of a defect that ends the process so many are enough.
    fn tried(&self, jobs: Vec<(usize, Vec<&'static TensorFlowCase>)>, enough: usize) -> Findings {
        let mut findings = Findings::new();
        // A case that ends the process ends the job, so that the others are tried in another one.
        let mut rest = jobs;
        while !rest.is_empty() {
            let jobs: Vec<_> = rest
                .iter()
                .map(|(number, cases)| (with(Defect::ALL[*number].0), cases.clone()))
                .collect();
            let answers = self.brokenfs().run_each("mem://box/", &jobs);
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
}

/// A defect that a case notices, of several the one that the fewest cases notice.
fn notices(findings: &Findings, case: &TensorFlowCase) -> Option<Defect> {
    let with =
        findings.iter().filter(|(_, cases)| cases.iter().any(|other| other.name == case.name));
    let best = with.min_by_key(|(_, cases)| cases.len());
    best.map(|(number, _)| Defect::ALL[*number].0)
}

impl Proof {
    fn render(&self, findings: &Findings) -> String {
        let cases = self.brokenfs().cases();
        let noticed = findings.values().filter(|cases| !cases.is_empty()).count();
        let mut text = format!(
            "# {}\n\n\
             What `conformance!` asks of a filesystem through a real TensorFlow, {}: {} cases, which \
             `cargo tf-plugin test` runs in each release that it is told of, the row `{}`. \
             [Testing](testing.md#in-real-tensorflow) says how; {}; [Conformance](conformance.md) lists the cases that \
             run without TensorFlow, which are more and see more.\n\n\
             The last column names a defect that a case was seen to notice, one of {} that are put into a filesystem on \
             purpose (`tests/conformance/src/broken.rs`). TensorFlow lets {noticed} of them be seen, which the second \
             table lists with cases that notice them; the others are of calls that TensorFlow does not make, or of \
             answers that it does not hand on. A test keeps this page true: it runs the cases on their defects in \
             TensorFlow. `TF_FS_PLUGIN_WRITE_DOCS=1 cargo test -p tf-plugin-tensorflow-tests --test conformance` \
             writes it anew.\n",
            self.title,
            self.way,
            cases.len(),
            self.row,
            self.other,
            Defect::ALL.len()
        );
        let mut group = "";
        for case in cases {
            if group != case.group {
                group = case.group;
                let _ = write!(
                    text,
                    "\n## {group}\n\n| Case | What it asks | Why | Notices |\n|---|---|---|---|\n"
                );
            }
            let notices =
                notices(findings, case).map_or_else(String::new, |found| format!("`{found:?}`"));
            let asks = case.asks.replace('|', "\\|");
            let _ = writeln!(text, "| `{}` | {asks} | {} | {notices} |", case.name, case.why);
        }
        text.push_str(
            "\n## Defects\n\n| Defect | What is wrong | Noticed by (among others) |\n|---|---|---|\n",
        );
        for (number, cases) in findings.iter().filter(|(_, cases)| !cases.is_empty()) {
            let (defect, what) = Defect::ALL[*number];
            let names: Vec<_> =
                cases.iter().take(NAMED).map(|case| format!("`{}`", case.name)).collect();
            let _ = writeln!(text, "| `{defect:?}` | {what} | {} |", names.join(", "));
        }
        text
    }

    /// What the document says: of each defect its cases, and each case's defect.
    fn parse(&self, text: &str) -> (Findings, BTreeMap<&'static str, usize>) {
        let all = self.brokenfs().cases();
        let ticked = |cell: &str| cell.trim().trim_matches('`').to_owned();
        let case = |name: &str| all.iter().find(|case| case.name == name).copied();
        let number =
            |name: &str| Defect::ALL.iter().position(|(other, _)| format!("{other:?}") == name);
        let (mut by_defect, mut by_case) = (Findings::new(), BTreeMap::new());
        for line in text.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<_> = line.trim_matches('|').split(" | ").collect();
            let (Some(first), Some(last)) = (cells.first(), cells.last()) else { continue };
            let (first, last) = (ticked(first), last.trim().trim_end_matches('|').trim());
            if let Some(number) = number(&first) {
                let cases = last.split(", ").filter_map(|name| case(&ticked(name)));
                by_defect.insert(number, cases.collect());
            } else if let (Some(case), Some(number)) = (case(&first), number(&ticked(last))) {
                by_case.insert(case.name, number);
            }
        }
        (by_defect, by_case)
    }

    fn holds(&self) {
        if std::env::var_os("TF_FS_PLUGIN_WRITE_DOCS").is_some() {
            std::fs::write(self.document(), self.render(&self.find())).expect("it is written");
        }
        let file = self.file;
        let text = std::fs::read_to_string(self.document()).expect("the document");
        let (findings, by_case) = self.parse(&text);
        let advice = "write it anew with `TF_FS_PLUGIN_WRITE_DOCS=1 cargo test -p \
                      tf-plugin-tensorflow-tests --test conformance`";
        let cases = self.brokenfs().cases();
        for case in cases {
            let row = format!("| `{}` | {} |", case.name, case.asks.replace('|', "\\|"));
            assert!(text.contains(&row), "docs/{file} lacks {row}; {advice}");
        }
        let silent: Vec<_> = cases.iter().map(|case| case.name).collect();
        let silent: Vec<_> =
            silent.into_iter().filter(|name| !by_case.contains_key(name)).collect();
        assert_eq!(silent, self.notice_nothing, "cases that notice no defect");
        assert!(findings.len() >= self.least, "only {} defects are noticed", findings.len());

        // The cases that say it of themselves, and for the other defects the first that is named.
        let mut jobs = Findings::new();
        for (name, number) in by_case {
            let case = cases.iter().find(|case| case.name == name).expect("it is listed");
            jobs.entry(number).or_default().push(case);
        }
        for (number, cases) in &findings {
            jobs.entry(*number).or_insert_with(|| cases.iter().take(1).copied().collect());
        }
        let mut silent: Vec<_> = jobs.into_iter().collect();
        // What only shows when threads meet is looked for up to five times.
        for _ in 0..5 {
            if silent.is_empty() {
                break;
            }
            let found = self.tried(silent.clone(), usize::MAX);
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

    fn nothing_is_noticed_without_a_defect(&self) {
        let cases = self.brokenfs();
        let jobs = [(Vec::new(), cases.cases().to_vec())];
        let answers = cases.run_each("mem://box/", &jobs);
        pass(&cases, &answers[0], self.skipped);
    }
}

#[test]
fn defects_are_noticed_in_tensorflow() {
    FROM_PYTHON.holds();
}

#[test]
fn defects_are_noticed_in_c() {
    IN_C.holds();
}

#[test]
fn without_a_defect_nothing_is_noticed_in_tensorflow() {
    FROM_PYTHON.nothing_is_noticed_without_a_defect();
}

#[test]
fn without_a_defect_nothing_is_noticed_in_c() {
    IN_C.nothing_is_noticed_without_a_defect();
}

/// A case that hangs has failed, with the reason; the others go on in a new process.
#[test]
fn what_hangs_fails_alone_in_c() {
    // TensorFlow reads for ever where the end of a file is not said.
    let (name, defect) = with(Defect::RawForgetsOutOfRange).remove(0);
    let limit = std::time::Duration::from_secs(5);
    let cases = IN_C.brokenfs().env(name, defect).limit(limit);
    let answers = cases.run("mem://box/");
    assert_eq!(answers.len(), cases.cases().len());
    let verdict = |name: &str| {
        let answer = answers.iter().find(|answer| answer.case.name == name);
        &answer.unwrap_or_else(|| panic!("{name} is no case")).verdict
    };
    let Verdict::Failed(deviations) = verdict("c_text_lines") else { panic!("{answers:#?}") };
    assert_eq!(deviations[0].what, "TensorFlow's process ends in the middle of the case");
    let detail = deviations[0].detail.as_deref().unwrap_or_default();
    assert!(detail.contains("c_text_lines is not done after 5s"), "{detail}");
    for case in ["c_write_and_read", "c_fixed_length_records", "c_threads_in_one_session"] {
        assert_eq!(*verdict(case), Verdict::Passed, "{case}");
    }
}
