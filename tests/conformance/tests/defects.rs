//! Filesystems that are broken on purpose: each defect is noticed, and each case notices one.
//!
//! `docs/conformance.md` lists both. After a change of the cases or of the defects, write it anew, which
//! tries every case on every defect and takes minutes:
//!
//! ```sh
//! TF_FS_PLUGIN_WRITE_DOCS=1 cargo test -p tf-plugin-conformance-tests --test defects
//! ```

use memfs::MemFs;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use tf_fs_plugin::__private::{Registration, Scheme};
use tf_fs_plugin::prelude::*;
use tf_fs_plugin::testing::model::{Name, Op, run};
use tf_fs_plugin::testing::{
    Append, Case, Conformance, Directories, Files, Host, Plugin, Verdict, Visible, cases, samples,
};
use tf_plugin_conformance_tests::{Broken, Defect, MALFORMED, raw_host};

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

/// How many cases the document names for a defect.
const NAMED: usize = 3;

/// All operations over memfs, without a defect: what those of the C boundary are put around.
struct Whole;

struct Mem;

impl Scheme for Mem {
    fn registration() -> &'static Registration {
        static IT: Registration = Registration::new::<Broken<MemFs>, Mem>("mem");
        &IT
    }
}

impl Plugin for Whole {
    fn registrations() -> &'static [&'static Registration] {
        static ALL: LazyLock<[&'static Registration; 1]> = LazyLock::new(|| [Mem::registration()]);
        &*ALL
    }
}

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

    fn verdict(&self, case: &Case) -> Verdict {
        let conformance = Conformance::new(&self.host, "mem://box/").malformed(MALFORMED);
        conformance.other_host("mem://other/").run(case)
    }

    /// Whether the case notices the defect. That there is nothing to test with is no notice.
    fn fails(&self, case: &Case) -> bool {
        match self.verdict(case) {
            Verdict::Failed(deviations) => {
                deviations.iter().any(|deviation| !deviation.what.starts_with("cannot make files"))
            }
            _ => false,
        }
    }
}

/// What the document says: for each defect, by its number, cases that notice it; for each case a defect.
#[derive(Default)]
struct Findings {
    by_defect: BTreeMap<usize, Vec<&'static Case>>,
    by_case: BTreeMap<&'static str, usize>,
}

fn case(name: &str) -> Option<&'static Case> {
    Case::all().iter().find(|case| case.name() == name).copied()
}

fn number(defect: &str) -> Option<usize> {
    Defect::ALL.iter().position(|(other, _)| format!("{other:?}") == defect)
}

/// Does something for each defect, on as many threads as there are processors.
fn for_each_defect<T: Send>(body: impl Fn(usize, Defect) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some((defect, _)) = Defect::ALL.get(index) else { return };
                    let result = body(index, *defect);
                    results.lock().expect("no panic").push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no panic");
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Tries all cases on all defects.
fn find() -> Findings {
    let all = for_each_defect(|_, defect| {
        let patient = Patient::new(defect);
        let quick = Case::all().iter().copied().filter(|case| !is_slow(case));
        let mut cases: Vec<_> = quick.filter(|case| patient.fails(case)).collect();
        let slow = SLOW.iter().filter(|(_, chosen)| *chosen == defect);
        let slow: Vec<_> = slow.filter_map(|(name, _)| case(name)).collect();
        cases.extend(slow.into_iter().filter(|case| patient.fails(case)));
        cases
    });
    let mut findings = Findings::default();
    for (number, cases) in all.into_iter().enumerate() {
        for case in &cases {
            // The defect that the fewest cases notice says most about a case.
            let best = findings.by_case.get(case.name()).copied();
            let fewer = best.is_none_or(|best: usize| {
                findings.by_defect.get(&best).is_none_or(|others| cases.len() < others.len())
            });
            if fewer {
                findings.by_case.insert(case.name(), number);
            }
        }
        findings.by_defect.insert(number, cases);
    }
    findings
}

/// The document, with the findings that it says itself.
fn render(findings: &Findings) -> String {
    let cases = Case::all();
    let mut text = format!(
        "# Conformance\n\n\
         What `tf_fs_plugin::conformance!` asks of a filesystem: {} cases, of which each is a test. \
         [Testing](testing.md) says how to use them.\n\n\
         Each case was seen to fail: the last column names a defect that it notices, one of {} that are \
         put into a filesystem on purpose (`tests/conformance/src/broken.rs`), and that the second table \
         lists with the cases that notice them. A test keeps this page true: it runs each case on its \
         defect. `TF_FS_PLUGIN_WRITE_DOCS=1 cargo test -p tf-plugin-conformance-tests --test defects` \
         writes it anew.\n",
        cases.len(),
        Defect::ALL.len()
    );
    let mut group = None;
    for case in cases {
        if group != Some(case.group()) {
            group = Some(case.group());
            let of = if case.group().is_of_the_header() { " (header)" } else { "" };
            let _ = write!(
                text,
                "\n## {}{of}\n\n| Case | What it asks | Why | Notices |\n|---|---|---|---|\n",
                case.group().title()
            );
        }
        let notices = findings.by_case.get(case.name()).map_or_else(
            || String::from("a false declaration"),
            |number| format!("`{:?}`", Defect::ALL[*number].0),
        );
        let (name, asks, why) = (case.name(), case.asks(), case.why());
        let _ = writeln!(text, "| `{name}` | {} | {why} | {notices} |", asks.replace('|', "\\|"));
    }
    text.push_str(
        "\n## Defects\n\n| Defect | What is wrong | Noticed by (among others) |\n|---|---|---|\n",
    );
    for (number, (defect, what)) in Defect::ALL.iter().enumerate() {
        let cases = findings.by_defect.get(&number).map(Vec::as_slice).unwrap_or_default();
        let names: Vec<_> =
            cases.iter().take(NAMED).map(|case| format!("`{}`", case.name())).collect();
        let _ = writeln!(text, "| `{defect:?}` | {what} | {} |", names.join(", "));
    }
    text
}

/// What the document says.
fn parse(text: &str) -> Findings {
    let mut findings = Findings::default();
    let ticked = |cell: &str| cell.trim().trim_matches('`').to_owned();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").collect();
        let (Some(first), Some(last)) = (cells.first(), cells.last()) else { continue };
        let (first, last) = (ticked(first), last.trim().trim_end_matches('|').trim());
        if let Some(number) = number(&first) {
            let cases = last.split(", ").filter_map(|name| case(&ticked(name)));
            findings.by_defect.insert(number, cases.collect());
        } else if let (Some(case), Some(number)) = (case(&first), number(&ticked(last))) {
            findings.by_case.insert(case.name(), number);
        }
    }
    findings
}

fn document() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", "conformance.md"].iter().collect()
}

#[test]
fn the_document_is_true() {
    if std::env::var_os("TF_FS_PLUGIN_WRITE_DOCS").is_some() {
        std::fs::write(document(), render(&find())).expect("the document is written");
    }
    let text = std::fs::read_to_string(document()).expect("docs/conformance.md");
    let findings = parse(&text);
    let advice = "write it anew with `TF_FS_PLUGIN_WRITE_DOCS=1 cargo test -p \
                  tf-plugin-conformance-tests --test defects`";
    assert!(render(&findings) == text, "docs/conformance.md is not of these cases; {advice}");
    let unnoticed = |number: &usize| findings.by_defect.get(number).is_none_or(Vec::is_empty);
    let unnoticed: Vec<_> =
        (0..Defect::ALL.len()).filter(unnoticed).map(|n| Defect::ALL[n].0).collect();
    assert!(unnoticed.is_empty(), "no case notices {unnoticed:?}");
    let wrong: Vec<String> = for_each_defect(|number, defect| {
        let patient = Patient::new(defect);
        let of_case = findings.by_case.iter().filter(|(_, other)| **other == number);
        let named = findings.by_defect.get(&number).into_iter().flatten().map(|case| case.name());
        let names: BTreeSet<_> = of_case.map(|(name, _)| *name).chain(named).collect();
        let cases = names.into_iter().filter_map(case);
        let silent = cases.filter(|case| !patient.fails(case));
        silent.map(|case| format!("{} does not notice {defect:?}", case.name())).collect::<Vec<_>>()
    })
    .concat();
    assert!(wrong.is_empty(), "{}; {advice}", wrong.join(", "));
    let missing: Vec<_> =
        Case::all().iter().filter(|case| !findings.by_case.contains_key(case.name())).collect();
    assert_eq!(
        missing.iter().map(|case| case.name()).collect::<Vec<_>>(),
        NEED_ANOTHER_DECLARATION,
        "cases that notice no defect; put one into tests/conformance/src/broken.rs"
    );
}

/// What these ask about is declared otherwise of the broken filesystems.
const NEED_ANOTHER_DECLARATION: [&str; 3] =
    ["appending_is_declared_right", "visibility_is_declared_right", "changes_are_refused"];

/// What these ask is only asked of filesystems that say so.
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
        (conformance().visible(Visible::Close), &cases::visibility_is_declared_right),
        (conformance().visible(Visible::Flush), &cases::visibility_is_declared_right),
        (conformance().visible(Visible::InPlace), &cases::visibility_is_declared_right),
        (conformance().files(Files::Provided), &cases::changes_are_refused),
    ] {
        // memfs appends, shows at once what was flushed, so that half a file is seen, and writes.
        let verdict = conformance.run(case);
        let Verdict::Failed(deviations) = &verdict else { panic!("{case:?}: {verdict:?}") };
        assert!(!deviations[0].what.starts_with("there is no "), "{deviations:?}");
    }
}

/// Whoever reads a file that is being written may be refused, and no more than that.
#[test]
fn a_read_before_the_close_fails_in_one_way_only() {
    let patient = Patient::new(Defect::OpenFails);
    let conformance = Conformance::new(&patient.host, "mem://box/").visible(Visible::Close);
    let verdict = conformance.run(&cases::visibility_is_declared_right);
    let Verdict::Failed(deviations) = &verdict else { panic!("{verdict:?}") };
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
    let Verdict::Failed(found) = patient.verdict(&cases::random_operations) else {
        panic!("random_operations passes")
    };
    for index in ["File(", "Dir(", "In("] {
        assert!(!found[0].what.contains(index), "{}", found[0].what);
    }
}

/// A memfs that renames directories with all that is in them.
#[derive(Default)]
struct MovesDirectories(MemFs);

#[filesystem]
impl Filesystem for MovesDirectories {
    type Reader = <MemFs as Filesystem>::Reader;
    type Writer = <MemFs as Filesystem>::Writer;

    fn new(scheme: &str) -> Result<Self> {
        MemFs::new(scheme).map(Self)
    }

    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<Self::Reader> {
        self.0.new_random_access_file(uri)
    }

    fn new_writable_file(&self, uri: Uri<'_>) -> Result<Self::Writer> {
        self.0.new_writable_file(uri)
    }

    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        self.0.create_dir(uri)
    }

    fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
        self.0.delete_file(uri)
    }

    fn delete_dir(&self, uri: Uri<'_>) -> Result<()> {
        self.0.delete_dir(uri)
    }

    fn rename_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        if !self.0.stat(src)?.is_directory {
            return self.0.rename_file(src, dst);
        }
        self.0.create_dir(dst)?;
        for name in self.0.get_children(src)?.iter() {
            self.rename_file(Uri::new(&src.join(name)), Uri::new(&dst.join(name)))?;
        }
        self.0.delete_dir(src)
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        self.0.stat(uri)
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        self.0.get_children(uri)
    }
}

/// Where directories are implied they may be renamed, and what only begins with their name stays.
#[test]
fn a_directory_is_renamed_without_its_neighbours() {
    for (defect, passes) in [(Defect::NoDefect, true), (Defect::RenameByPrefix, false)] {
        let host = Host::new();
        let broken = Broken::new(MovesDirectories::default(), defect);
        host.serve("mem", broken).expect("registered");
        let conformance = Conformance::new(&host, "mem://box/").directories(Directories::Implied);
        let verdict = conformance.run(&cases::rename_file_from_empty_dir);
        assert_eq!(matches!(verdict, Verdict::Passed), passes, "{defect:?}: {verdict:?}");
        assert_eq!(matches!(verdict, Verdict::Failed(_)), !passes, "{defect:?}: {verdict:?}");
    }
}

#[test]
fn without_a_defect_nothing_is_noticed() {
    let patient = Patient::new(Defect::NoDefect);
    for case in Case::all() {
        match patient.verdict(case) {
            Verdict::Passed => {}
            Verdict::Skipped(_) if NEED_ANOTHER_DECLARATION.contains(&case.name()) => {}
            other => panic!("{}: {other:#?}", case.name()),
        }
    }
}
