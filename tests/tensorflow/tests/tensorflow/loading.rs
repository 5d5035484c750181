//! A plugin is there after `import tensorflow`, with no other line of code, and never in the way.

use cargo_tf_plugin::TensorFlow;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tf_plugin_tensorflow_tests::child::Finished;
use tf_plugin_tensorflow_tests::overlay::Overlay;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{Example, LIBRARY, Plugin, each_tensorflow};

each_tensorflow!(
    named_by_the_environment,
    in_the_plugins_directory,
    in_a_directory_with_two_names;
    oldest and newest:
    switched_off,
    two_plugins_with_one_scheme,
    a_new_that_fails_or_panics,
);

const SCRIPT: &str = "tensorflow/python/loading.py";

/// Turns automatic registration off.
const SWITCH: &str = "TF_FS_PLUGIN_AUTOLOAD";

/// A line without what changes from run to run: times and thread numbers, which are padded.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    for word in line.split_whitespace() {
        let mut in_number = false;
        for letter in word.chars() {
            let digit = letter.is_ascii_digit();
            match (digit, in_number) {
                (true, true) => {}
                (true, false) => shape.push('#'),
                (false, _) => shape.push(letter),
            }
            in_number = digit;
        }
        shape.push(' ');
    }
    shape
}

/// The shapes of the lines that TensorFlow itself writes to standard error, seen in an overlay without plugins: a real
/// environment, or the tests would see no plugin in one for the wrong reason.
fn usual_lines(tensorflow: &TensorFlow) -> BTreeSet<String> {
    static KNOWN: Mutex<BTreeMap<String, BTreeSet<String>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let usual = known.entry(tensorflow.version().to_owned()).or_insert_with(|| {
        let overlay = Overlay::new(tensorflow);
        assert!(overlay.python().starts_with(env::temp_dir()));
        let python = Python::with_interpreter(overlay.python(), SCRIPT);
        let steps = ["site-packages=1", "works=ram://box", "absent=mem"].map(String::from);
        let finished = ran(python, &steps);
        finished.stderr.lines().map(shape).collect()
    });
    usual.clone()
}

/// Runs the steps, all of which must succeed, and lets TensorFlow say what it says by default.
fn ran(python: Python, steps: &[String]) -> Finished {
    let finished = python.without("TF_CPP_MIN_LOG_LEVEL").args(steps).run().success();
    finished.must_have_done(steps);
    finished
}

/// The same, and returns what the plugins wrote to standard error.
fn run(tensorflow: &TensorFlow, python: Python, steps: &[String]) -> Vec<String> {
    unusual_lines(tensorflow, &ran(python, steps))
}

fn unusual_lines(tensorflow: &TensorFlow, finished: &Finished) -> Vec<String> {
    let usual = usual_lines(tensorflow);
    let unusual = finished.stderr.lines().filter(|line| !usual.contains(&shape(line)));
    // On a busy machine TensorFlow says so when an iterator ends before its pipeline was optimised.
    let unusual = unusual.filter(|line| !line.contains("Optimization loop failed: CANCELLED"));
    unusual.map(str::to_owned).collect()
}

fn step(verb: &str, value: impl AsRef<Path>) -> String {
    format!("{verb}={}", value.as_ref().display())
}

/// The one log line of severity `severity`, which must contain all `words`.
#[track_caller]
fn assert_one_line(lines: &[String], severity: char, words: &[&str]) {
    let [line] = lines else { panic!("not one line: {lines:#?}") };
    let head = line.find("] ").map_or("", |end| &line[..end]);
    assert!(head.contains(&format!(": {severity} ")), "severity {severity} is not in {line:?}");
    for word in words {
        assert!(line.contains(word), "{word:?} is not in {line:?}");
    }
}

const NOTHING: [&str; 0] = [];

fn named_by_the_environment(tensorflow: &TensorFlow) {
    let memfs = Example::memfs();
    // Old code loads the whole directory.
    let directory = tempfile::tempdir().expect("a scratch directory");
    let library = &memfs.plugin.copy_to(directory.path());
    let steps = [
        step("works", &memfs.root),
        step("absent", "manual"),
        // What old code does.
        step("register", library),
        step("register", library),
        step("load-again", library),
        step("works", &memfs.root),
        step("mapped", library),
    ];
    let finished = ran(Python::new(tensorflow, SCRIPT).env(LIBRARY, library), &steps);
    let sums: Vec<&str> =
        finished.stdout.lines().filter_map(|line| line.strip_prefix("sha256 ")).collect();
    assert_eq!(sums, [memfs.plugin.digest()], "the file in TensorFlow's memory");
    assert_eq!(unusual_lines(tensorflow, &finished), NOTHING);
}

fn in_the_plugins_directory(tensorflow: &TensorFlow) {
    let overlay = Overlay::new(tensorflow);
    let (memfs, localfs) = (Example::memfs(), Example::localfs());
    let memfs_library = memfs.plugin.copy_to(&overlay.plugins());
    localfs.plugin.copy_to(&overlay.plugins());
    let manual_library = Plugin::of("manualfs").copy_to(&overlay.plugins());
    let refused = format!("{}=6=already registered", memfs.plugin.path().display());
    let steps = [
        step("site-packages", "1"),
        step("works", &memfs.root),
        step("works", &localfs.root),
        step("absent", "manual"),
        step("register", &memfs_library),
        step("register", &memfs_library),
        // The same plugin as another file is another plugin.
        step("refused", refused),
        step("works", &memfs.root),
        step("register", manual_library),
        step("exists", "manual://box/x"),
    ];
    let python = Python::with_interpreter(overlay.python(), SCRIPT);
    assert_eq!(run(tensorflow, python, &steps), NOTHING);
}

/// TensorFlow then loads everything twice.
fn in_a_directory_with_two_names(tensorflow: &TensorFlow) {
    let overlay = Overlay::new(tensorflow);
    let library = Plugin::of("panicfs").copy_to(&overlay.plugins());
    let steps = [
        step("site-packages", "2"),
        step("works", "panicfs://box"),
        step("register", library),
        step("works", "panicfs://box"),
    ];
    let python = Python::with_interpreter(overlay.python(), SCRIPT)
        .env("PYTHONPATH", overlay.second_name())
        .env("PANICFS_NEW", "count");
    assert_eq!(run(tensorflow, python, &steps), ["panicfs is made"]);
}

fn switched_off(tensorflow: &TensorFlow) {
    let overlay = Overlay::new(tensorflow);
    let memfs = Example::memfs();
    let library = memfs.plugin.copy_to(&overlay.plugins());
    let steps = [
        step("absent", "mem"),
        step("register", &library),
        step("works", &memfs.root),
        step("load-again", &library),
        step("works", &memfs.root),
    ];
    let python =
        Python::with_interpreter(overlay.python(), SCRIPT).env(SWITCH, "0").env(LIBRARY, &library);
    assert_eq!(run(tensorflow, python, &steps), NOTHING);
}

/// TensorFlow loads the directory first, then what the environment names.
fn two_plugins_with_one_scheme(tensorflow: &TensorFlow) {
    let (memfs, rival) = (Example::memfs(), Plugin::of("rivalfs"));
    for (first, second, proof) in [
        (memfs.plugin, rival, step("works", &memfs.root)),
        (rival, memfs.plugin, step("content", "mem://box/any=rival")),
    ] {
        let overlay = Overlay::new(tensorflow);
        first.copy_to(&overlay.plugins());
        let python = Python::with_interpreter(overlay.python(), SCRIPT).env(LIBRARY, second.path());
        let lines = run(tensorflow, python, &[proof]);
        let path = second.path().display().to_string();
        let words = [&path, "another filesystem plugin was first", "File system for mem", SWITCH];
        assert_one_line(&lines, 'W', &words);
    }
}

fn a_new_that_fails_or_panics(tensorflow: &TensorFlow) {
    let library = Plugin::of("panicfs").path();
    let path = library.display().to_string();
    // Rust's own lines about a panic come on top, at import and at the second attempt.
    let fails = ("fail", 14, 0, &["is not registered: new was asked to fail"][..]);
    let place = "plugin panicked in `init` at ";
    let panics = ("panic", 13, 2, &[place, "panicfs/src/lib.rs:", "new was asked to panic"][..]);
    for (how, code, panic_count, words) in [fails, panics] {
        let steps = [
            step("absent", "panicfs"),
            format!("refused={path}={code}=new was asked to {how}"),
            step("absent", "panicfs"),
            step("works", "ram://box"),
        ];
        let python = Python::new(tensorflow, SCRIPT).env(LIBRARY, library).env("PANICFS_NEW", how);
        let lines = run(tensorflow, python, &steps);
        let (own, of_rust): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| line.contains(": E "));
        assert_one_line(&own, 'E', &[&[&*path], words].concat());
        let panicked = of_rust.iter().filter(|line| line.contains("panicked at")).count();
        assert_eq!(panicked, panic_count, "{of_rust:#?}");
        assert!(panic_count > 0 || of_rust.is_empty(), "{of_rust:#?}");
    }
}
