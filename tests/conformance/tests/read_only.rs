//! A filesystem that only reads, in the cases that change nothing: whole, and with a defect each.

use Defect::*;
use memfs::MemFs;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use tf_fs_plugin::prelude::*;
use tf_plugin_conformance_tests::{Broken, Defect, MALFORMED};
use tf_plugin_testing::filesystem::{Case, Conformance, Files, Host, Outcome, cases, samples};

/// A memfs that holds the samples, with a defect or without. Nothing is written through this type.
struct ReadOnly {
    inner: Arc<Broken<MemFs>>,
    lie: Option<Lie>,
}

/// Calls that seem to succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    OpeningNothing,
    Creating,
    Deleting,
    MakingDirectories,
}

/// A file without a byte.
const NOTHING: &[u8] = b"mem://none/nothing";

/// All samples below `mem://box/`, and below `mem://implied/` without the directories that are empty.
fn shelf(defect: Defect) -> Arc<Broken<MemFs>> {
    let memfs = MemFs::default();
    let write = |path: &[u8], content: &[u8]| -> Result<()> {
        let uri = Uri::new(path);
        uri.parent().map_or(Ok(()), |parent| memfs.recursively_create_dir(parent))?;
        memfs.new_writable_file(uri)?.append(content)
    };
    write(NOTHING, b"").expect("written");
    for sample in samples() {
        let (real, implied) =
            (format!("mem://box/{}", sample.path), format!("mem://implied/{}", sample.path));
        let made = match &sample.content {
            Some(content) => {
                write(real.as_bytes(), content).and_then(|()| write(implied.as_bytes(), content))
            }
            None => memfs.recursively_create_dir(Uri::new(real.as_bytes())),
        };
        made.expect("a sample");
    }
    Arc::new(Broken::new(memfs, defect))
}

impl ReadOnly {
    fn changes(&self, lie: Lie, uri: Uri<'_>) -> Result<()> {
        ensure!(self.lie == Some(lie), Error::permission_denied(uri));
        Ok(())
    }
}

#[tf_fs_plugin::filesystem]
impl Filesystem for ReadOnly {
    type Reader = <Broken<MemFs> as Filesystem>::Reader;
    type Region = <Broken<MemFs> as Filesystem>::Region;
    type Writer = Nowhere;

    fn new(_scheme: &str) -> Result<Self> {
        static WHOLE: LazyLock<Arc<Broken<MemFs>>> = LazyLock::new(|| shelf(NoDefect));
        Ok(Self { inner: Arc::clone(&WHOLE), lie: None })
    }

    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<Self::Reader> {
        match self.inner.new_random_access_file(uri) {
            Err(error)
                if error.code() == Code::NotFound && self.lie == Some(Lie::OpeningNothing) =>
            {
                self.inner.new_random_access_file(Uri::new(NOTHING))
            }
            opened => opened,
        }
    }

    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<Self::Region> {
        self.inner.new_read_only_memory_region_from_file(uri)
    }

    fn new_writable_file(&self, uri: Uri<'_>) -> Result<Nowhere> {
        self.changes(Lie::Creating, uri).map(|()| Nowhere)
    }

    fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
        self.changes(Lie::Deleting, uri)
    }

    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        self.changes(Lie::MakingDirectories, uri)
    }

    fn path_exists(&self, uri: Uri<'_>) -> Result<bool> {
        self.inner.path_exists(uri)
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        self.inner.stat(uri)
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        self.inner.get_children(uri)
    }
}

/// A file whose bytes get lost.
struct Nowhere;

impl WritableFile for Nowhere {
    fn append(&mut self, _data: &[u8]) -> Result<()> {
        Ok(())
    }
    fn tell(&mut self) -> Result<u64> {
        Ok(0)
    }
}

/// Exports nothing: `#[filesystem_plugin]` would.
struct Exported;

tf_plugin_testing::__export_filesystems!(Exported: "mem" => ReadOnly);

mod with_implied_directories {
    tf_plugin_testing::filesystem::conformance! {
        super::Exported,
        root: "mem://implied/",
        files: provided,
        directories: implied,
        malformed: super::MALFORMED,
    }
}

fn outcome(filesystem: ReadOnly, case: &Case) -> Outcome {
    let host = Host::new();
    host.serve("mem", filesystem).expect("registered");
    host.read_once();
    Conformance::new(&host, "mem://box/").files(Files::Provided).malformed(MALFORMED).run(case)
}

fn whole() -> ReadOnly {
    ReadOnly::new("mem").expect("made")
}

/// Each defect, with a case that notices it.
const DEFECTS: [(Defect, &Case); 24] = [
    (ReadIgnoresOffset, &cases::read_backwards),
    (LastByteIsNotRead, &cases::all_bytes_are_kept),
    (ReadEndsAt64KiB, &cases::read_in_pieces_of_tensorflow),
    (ReadEndsAtNul, &cases::line_ends_are_kept),
    (OpensDirectories, &cases::new_random_access_file_of_full_dir),
    (StatOffByOne, &cases::stat_of_file),
    (StatMissingIsEmpty, &cases::stat_of_missing),
    (StatOfDirsIsFile, &cases::stat_of_full_dir),
    (BelowFileIsMissing, &cases::path_exists_of_below_file),
    (ExistsByPrefix, &cases::prefix_is_not_a_path),
    (ListsAllLevels, &cases::listing_is_one_level),
    (ListsAtMost100, &cases::listing_of_many_files),
    (ListsNoDirectories, &cases::walk),
    (ListsByPrefix, &cases::listing_of_prefix_siblings),
    (ListsFiles, &cases::get_children_of_file),
    (ListsTwice, &cases::get_children_of_full_dir),
    (DecodesPercent, &cases::name_with_percent),
    (CutsAtHash, &cases::name_with_hash),
    (CutsAtQuestionMark, &cases::name_with_question_mark),
    (PlusIsSpace, &cases::name_with_plus_and_ampersand),
    (IgnoresCase, &cases::names_by_case),
    (KeysAreLastComponents, &cases::same_name_as_file_and_in_directory),
    (RegionIsCut, &cases::region_of_a_large_file),
    (RefusesASecondCall, &cases::each_opens_the_same_file),
];

#[test]
fn each_defect_is_noticed() {
    let broken = DEFECTS.map(|(defect, case)| {
        (format!("{defect:?}"), ReadOnly { inner: shelf(defect), lie: None }, case)
    });
    let lies = [
        (Lie::OpeningNothing, &cases::new_random_access_file_of_missing),
        (Lie::Creating, &cases::changes_are_refused),
        (Lie::Deleting, &cases::changes_are_refused),
        (Lie::MakingDirectories, &cases::changes_are_refused),
    ];
    let lying =
        lies.map(|(lie, case)| (format!("{lie:?}"), ReadOnly { lie: Some(lie), ..whole() }, case));
    for (defect, filesystem, case) in broken.into_iter().chain(lying) {
        match outcome(filesystem, case) {
            Outcome::Failed(deviations) => {
                let what = &deviations[0].what;
                assert!(!what.starts_with("there is no mem:"), "{defect}: {deviations:?}");
            }
            other => panic!("{case:?} does not notice {defect}: {other:?}"),
        }
    }
}

/// Every case that a read-only filesystem supports runs.
#[test]
fn cases_that_change_nothing_run_and_others_are_skipped() {
    let (mut passed, mut skipped) = (BTreeSet::new(), 0);
    for case in Case::all() {
        match outcome(whole(), case) {
            Outcome::Passed => drop(passed.insert(case.name())),
            Outcome::Skipped(reason) => {
                assert!(reason.contains("provided") || case.name() == "configuration", "{reason}");
                skipped += 1;
            }
            Outcome::Failed(deviations) => panic!("{case:?}: {deviations:?}"),
        }
    }
    assert!(passed.len() >= 150, "only {} cases run: {passed:?}", passed.len());
    assert!(skipped >= 100, "{skipped}");
    for name in ["walk", "saved_model", "glob_star", "readers_of_one_file", "names_by_case"] {
        assert!(passed.contains(name), "{name}");
    }
    for name in ["checkpoint", "delete_file_of_file", "random_operations", "cache_lock_file"] {
        assert!(!passed.contains(name), "{name}");
    }
}

#[test]
fn a_set_up_without_the_samples_is_told_so() {
    let empty = ReadOnly { inner: Arc::new(Broken::new(MemFs::default(), NoDefect)), lie: None };
    let outcome = outcome(empty, &cases::stat_of_file);
    let Outcome::Failed(deviations) = outcome else { panic!("{outcome:?}") };
    let text = deviations[0].to_string();
    assert!(text.starts_with("there is no mem://box/stat_of_file-cell1/"), "{text}");
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
