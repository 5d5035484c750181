//! `s3://` against what TensorFlow requires of a filesystem, in this process and in TensorFlow's; and what it returns where
//! its declarations leave a choice.

use cargo_tf_plugin::NEWEST;
use s3::S3;
use s3_server::Options;
use std::path::Path;
use std::process::Command;
use tf_fs_plugin::{Code, Result};
use tf_plugin_s3_tests::{Store, fs};
use tf_plugin_tensorflow_tests::{Plugin, tensorflow};
use tf_plugin_testing::filesystem::{Host, InTensorFlow, TestRoot};

const MALFORMED: &str = "s3://user:pw@bucket/key";

/// Another bucket of the same server.
const OTHER: &str = "conformance-other";

/// A server with two buckets.
struct Bucket(Store);

impl Bucket {
    fn new() -> Self {
        let store = Store::hidden("conformance", Options { fast: true, ..Options::default() });
        store.create_bucket(OTHER);
        Self(store)
    }
}

impl TestRoot for Bucket {
    fn uri(&self) -> String {
        self.0.uri("")
    }

    fn prepare(&self, host: &Host) -> Result<()> {
        self.0.introduce(host, &[])?;
        self.0.introduce_bucket(host, OTHER, &[])
    }

    fn environment(&self) -> Vec<(String, String)> {
        self.0.environment()
    }
}

tf_plugin_testing::filesystem::conformance! {
    S3,
    root: once(Bucket::new),
    malformed: MALFORMED,
    other_host: format!("s3://{OTHER}/"),
    visible: flush,
    directories: implied,
    without: [
        translate_name_cleans => "keys are exact: none is cleaned",
        untidy_names => "keys are exact: none is cleaned",
    ],
}

/// The same with the disk cache.
mod on_disk {
    use super::{Bucket, MALFORMED, OTHER, S3};
    use tempfile::TempDir;
    use tf_fs_plugin::Result;
    use tf_plugin_testing::filesystem::{Host, TestRoot};

    struct Cached(Bucket, TempDir);

    impl Cached {
        fn new() -> Self {
            Self(Bucket::new(), tempfile::tempdir().expect("a scratch directory"))
        }

        fn setting(&self) -> String {
            format!("{}:64MiB", self.1.path().display())
        }
    }

    impl TestRoot for Cached {
        fn uri(&self) -> String {
            self.0.uri()
        }

        fn prepare(&self, host: &Host) -> Result<()> {
            let (setting, store) = (self.setting(), &self.0.0);
            store.introduce(host, &[("disk_cache", &setting)])?;
            store.introduce_bucket(host, OTHER, &[("disk_cache", &setting)])
        }

        fn environment(&self) -> Vec<(String, String)> {
            let mut all = self.0.environment();
            all.push(("TF_S3_DISK_CACHE".to_owned(), self.setting()));
            all
        }
    }

    tf_plugin_testing::filesystem::conformance! {
        S3,
        root: once(Cached::new),
        malformed: MALFORMED,
        other_host: format!("s3://{OTHER}/"),
        visible: flush,
        directories: implied,
        without: [
            translate_name_cleans => "keys are exact: none is cleaned",
            untidy_names => "keys are exact: none is cleaned",
        ],
    }
}

/// Runs one of the tests that `conformance!` makes for a TensorFlow, and says which of its cases asked nothing.
fn not_asked(test: &str, tensorflow: (&str, &Path), cases: usize) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let report = directory.path().join("report");
    let (variable, place) = tensorflow;
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args([test, "--exact", "--nocapture"])
        .env(variable, place)
        .env("TF_PLUGIN_TEST_LIBRARY", Plugin::of("s3").path())
        .env("TF_PLUGIN_TEST_REPORT", &report)
        .output()
        .expect("it runs");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    let report = std::fs::read_to_string(report).expect("a report");
    let answers: Vec<serde_json::Value> =
        report.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), cases);
    let not_asked = answers.iter().filter(|answer| answer["outcome"] != "passed");
    not_asked.map(|answer| answer["case"].as_str().expect("a name").to_owned()).collect()
}

// What the declarations leave nothing of. The tests below ask for what `s3://` does instead.

#[test]
fn in_python() {
    let release = tensorflow(NEWEST);
    let cases = InTensorFlow::all_from_python().len();
    let tensorflow = ("TF_PLUGIN_TEST_PYTHON", release.python());
    let skipped = [
        "python_open_file_is_there",
        "python_write_missing_parent",
        "python_write_below_file",
        "python_append_codes",
        "python_mkdir_codes",
        "python_untidy_names",
    ];
    assert_eq!(not_asked("conformance_in_python", tensorflow, cases), skipped);
}

#[test]
fn in_c() {
    let release = tensorflow(NEWEST);
    let cases = InTensorFlow::all_in_c().len();
    let tensorflow = ("TF_PLUGIN_TEST_C_LIBRARY", release.library_dir());
    assert_eq!(not_asked("conformance_in_c", tensorflow, cases), ["c_provided_files"]);
}

/// Everything that can be asked about one path: by its name in the header, with the code; `None` is OK.
fn ask(store: &Store, cell: &str, op: &str, path: &str) -> Option<Code> {
    let fs = fs();
    let (other, new) = (store.uri(&format!("{cell}/other")), store.uri(&format!("{cell}/new")));
    let answer = match op {
        "new_random_access_file" => fs.new_random_access_file(path).map(drop),
        "new_read_only_memory_region_from_file" => {
            fs.new_read_only_memory_region_from_file(path).map(drop)
        }
        "new_writable_file" => fs.new_writable_file(path).and_then(|mut file| file.close()),
        "new_appendable_file" => fs.new_appendable_file(path).and_then(|mut file| file.close()),
        "create_dir" => fs.create_dir(path),
        "recursively_create_dir" => fs.recursively_create_dir(path),
        "delete_file" => fs.delete_file(path),
        "delete_dir" => fs.delete_dir(path),
        "delete_recursively" => fs.delete_recursively(path).map_err(|left| left.error),
        "path_exists" => fs.path_exists(path),
        "paths_exist" => fs.paths_exist(&[path]).and_then(|mut answers| answers.remove(0)),
        "stat" => fs.stat(path).map(drop),
        "is_directory" => fs.is_directory(path),
        "get_file_size" => fs.get_file_size(path).map(drop),
        "get_children" => fs.get_children(path).map(drop),
        "copy_file from" => fs.copy_file(path, new),
        "rename_file from" => fs.rename_file(path, new),
        "copy_file to" => fs.copy_file(other, path),
        "rename_file to" => fs.rename_file(other, path),
        other => panic!("{other} is not an operation"),
    };
    answer.err().map(|error| error.code())
}

const READS: [&str; 2] = ["new_random_access_file", "new_read_only_memory_region_from_file"];
const WRITES: [&str; 2] = ["new_writable_file", "new_appendable_file"];
const MAKES: [&str; 2] = ["create_dir", "recursively_create_dir"];
const DELETES: [&str; 3] = ["delete_file", "delete_dir", "delete_recursively"];
const LOOKS: [&str; 6] =
    ["path_exists", "paths_exist", "stat", "is_directory", "get_file_size", "get_children"];
const FROM: [&str; 2] = ["copy_file from", "rename_file from"];
const TO: [&str; 2] = ["copy_file to", "rename_file to"];

/// Each question in a directory of its own, which `make` fills.
#[track_caller]
fn answers<T>(
    store: &Store,
    make: impl Fn(&str) -> T,
    name: &str,
    asked: &[(&[&str], Option<Code>)],
) {
    for (ops, want) in asked {
        for op in *ops {
            let cell = format!("{}-{}", name.replace('/', "-"), op.replace(' ', "-"));
            store.put(&format!("{cell}/other"), "other");
            let _held = make(&cell);
            let path = store.uri(&format!("{cell}/{name}"));
            assert_eq!(ask(store, &cell, op, &path), *want, "{op} {name}");
        }
    }
}

/// What the declarations leave open, and SEMANTICS.md promises.
#[test]
fn directories_are_implied() {
    let store = Store::new("conformance-implied");
    let file = |cell: &str| store.put(&format!("{cell}/file"), "content");
    answers(&store, |_| (), "none/missing", &[(&WRITES, None), (&MAKES, None), (&TO, None)]);
    for below in ["file/below", "file/far/below"] {
        let not_found = Some(Code::NotFound);
        answers(&store, file, below, &[(&WRITES, None), (&MAKES, None), (&TO, None)]);
        answers(
            &store,
            file,
            below,
            &[(&READS, not_found), (&DELETES, not_found), (&LOOKS, not_found), (&FROM, not_found)],
        );
    }
    let directory = |cell: &str| {
        store.put(&format!("{cell}/empty/"), "");
        store.put(&format!("{cell}/full/file"), "content");
    };
    for name in ["empty", "full"] {
        answers(&store, directory, name, &[(&WRITES, None), (&["rename_file from"], None)]);
    }
}

/// For the process a file is there from when it is opened for writing; for others from its close or flush.
#[test]
fn files_are_visible_at_flush() {
    let store = Store::new("conformance-visible");
    let open =
        |cell: &str| fs().new_writable_file(store.uri(&format!("{cell}/open"))).expect("it opens");
    let (refused, not_found) = (Some(Code::FailedPrecondition), Some(Code::NotFound));
    answers(
        &store,
        open,
        "open",
        &[
            (&["path_exists", "paths_exist", "stat", "get_file_size", "delete_file"], None),
            (&["new_appendable_file"], None),
            (&["is_directory"], refused),
            (&["create_dir"], Some(Code::AlreadyExists)),
            (&READS, refused),
            (&FROM, refused),
        ],
    );
    for opens in WRITES {
        let dropped = |cell: &str| {
            let path = store.uri(&format!("{cell}/{opens}"));
            let file = match opens {
                "new_writable_file" => fs().new_writable_file(path),
                _ => fs().new_appendable_file(path),
            };
            drop(file.expect("it opens"));
        };
        answers(
            &store,
            dropped,
            opens,
            &[
                (&LOOKS, not_found),
                (&READS, not_found),
                (&FROM, not_found),
                (&["new_appendable_file", "create_dir"], None),
                // `Dataset.cache` deletes the lock file that it has dropped.
                (&["delete_file"], None),
            ],
        );
    }
    for (name, open) in [("open", true), ("dropped", false)] {
        let cell = format!("listing-{name}");
        store.put(&format!("{cell}/other"), "other");
        let writer =
            fs().new_writable_file(store.uri(&format!("{cell}/{name}"))).expect("it opens");
        let writer = open.then_some(writer);
        let mut listed = fs().get_children(store.uri(&cell)).expect("it is listed");
        listed.sort();
        let want: &[&[u8]] = if open { &[b"open", b"other"] } else { &[b"other"] };
        assert_eq!(listed, want);
        drop(writer);
    }
    let stored = |key: &str| store.get(key).expect("an object");
    let written = |key: &str| {
        store.put(key, "old");
        let mut writer = fs().new_writable_file(store.uri(key)).expect("it opens");
        writer.append(b"the new").expect("it is appended");
        assert_eq!(stored(key), b"old", "{key}");
        writer
    };
    let mut flushed = written("flushed");
    flushed.flush().expect("it is flushed");
    assert_eq!(stored("flushed"), b"the new");
    assert_eq!(fs().read_file(store.uri("flushed")).expect("it is read"), b"the new");
    drop(flushed);
    assert_eq!(stored("flushed"), b"the new");
    drop(written("dropped"));
    assert_eq!(stored("dropped"), b"old");
}

/// Not FAILED_PRECONDITION, as in the header: TensorFlow's own filesystems say this, too.
#[test]
fn a_name_that_can_never_be_one_is_an_invalid_argument() {
    let store = Store::new("conformance-malformed");
    for op in [&READS[..], &WRITES, &MAKES, &DELETES, &LOOKS, &FROM, &TO].concat() {
        store.put("cell/other", "other");
        assert_eq!(ask(&store, "cell", op, MALFORMED), Some(Code::InvalidArgument), "{op}");
    }
    assert_eq!(store.keys(), ["cell/other"]);
}

/// Which the cases that are left out ask for otherwise.
#[test]
fn names_are_not_cleaned() {
    let store = Store::new("conformance-names");
    // Where each name led if it were cleaned.
    for key in ["a_file", "a/path/to/a/file", "full/file"] {
        store.put(key, "content");
    }
    for name in ["./a_file", "a/convoluted/../path/./to/.//.///a/file", "/full/./../full/file"] {
        let uri = store.uri(name);
        assert_eq!(fs().translate_name(&uri).expect("a name"), uri.as_bytes());
        assert_eq!(ask(&store, "", "path_exists", &uri), Some(Code::NotFound), "{name}");
    }
}
