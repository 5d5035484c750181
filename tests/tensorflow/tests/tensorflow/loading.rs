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
    a_new_that_fails,
    a_new_that_panics,
);

const SCRIPT: &str = "tensorflow/python/loading.py";

/// Turns automatic registration off.
const SWITCH: &str = "TF_FS_PLUGIN_AUTOLOAD";

/// How much TensorFlow says: everything that it says by default, or errors only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Default,
    Errors,
}

impl Level {
    fn set(self, python: Python) -> Python {
        match self {
            Self::Default => python.without("TF_CPP_MIN_LOG_LEVEL"),
            Self::Errors => python,
        }
    }
}

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

/// The shapes of the lines that TensorFlow itself writes to standard error, seen without any plugin.
fn usual_lines(tensorflow: &TensorFlow, level: Level) -> BTreeSet<String> {
    type Known = BTreeMap<(String, Level), BTreeSet<String>>;
    static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known
        .entry((tensorflow.version().to_owned(), level))
        .or_insert_with(|| {
            let python = level.set(Python::new(tensorflow, SCRIPT));
            let finished = python.args(["works=ram://box", "absent=mem"]).run().success();
            finished.stderr.lines().map(shape).collect()
        })
        .clone()
}

/// Runs the steps, all of which must succeed, and returns what the plugins wrote to standard error.
fn run(tensorflow: &TensorFlow, level: Level, python: Python, steps: &[String]) -> Vec<String> {
    let finished = level.set(python).args(steps).run().success();
    let done = |step: &&String| finished.stdout.lines().any(|line| line == format!("ok {step}"));
    assert_eq!(steps.iter().filter(done).count(), steps.len(), "{}", finished.stdout);
    unusual_lines(tensorflow, level, &finished)
}

fn unusual_lines(tensorflow: &TensorFlow, level: Level, finished: &Finished) -> Vec<String> {
    let usual = usual_lines(tensorflow, level);
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
    for (example, level) in
        [(Example::memfs(), Level::Default), (Example::localfs(), Level::Errors)]
    {
        let library = example.plugin.path();
        let steps = [
            step("works", &example.root),
            step("absent", "manual"),
            // What old code does.
            step("register", library),
            step("register", library),
            step("load-again", library),
            step("works", &example.root),
            step("mapped", library),
        ];
        let python = Python::new(tensorflow, SCRIPT).env(LIBRARY, library);
        let finished = level.set(python).args(&steps).run().success();
        let sums: Vec<&str> =
            finished.stdout.lines().filter_map(|line| line.strip_prefix("sha256 ")).collect();
        assert_eq!(sums, [example.plugin.digest()], "the file in TensorFlow's memory");
        assert_eq!(unusual_lines(tensorflow, level, &finished), NOTHING);
    }
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
    assert_eq!(run(tensorflow, Level::Default, python, &steps), NOTHING);
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
    assert_eq!(run(tensorflow, Level::Default, python, &steps), ["panicfs is made"]);
}

fn switched_off(tensorflow: &TensorFlow) {
    let overlay = Overlay::new(tensorflow);
    let memfs = Example::memfs();
    let library = memfs.plugin.copy_to(&overlay.plugins());
    let steps = [
        step("absent", memfs.scheme),
        step("register", &library),
        step("works", &memfs.root),
        step("load-again", &library),
        step("works", &memfs.root),
    ];
    let python =
        Python::with_interpreter(overlay.python(), SCRIPT).env(SWITCH, "0").env(LIBRARY, &library);
    assert_eq!(run(tensorflow, Level::Default, python, &steps), NOTHING);
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
        let lines = run(tensorflow, Level::Default, python, &[proof]);
        let path = second.path().display().to_string();
        let words = [&path, "another filesystem plugin was first", "File system for mem", SWITCH];
        assert_one_line(&lines, 'W', &words);
    }
}

fn a_new_that_fails(tensorflow: &TensorFlow) {
    let library = Plugin::of("panicfs").path();
    let steps = [
        step("absent", "panicfs"),
        format!("refused={}=14=new was asked to fail", library.display()),
        step("absent", "panicfs"),
        step("works", "ram://box"),
    ];
    let python = Python::new(tensorflow, SCRIPT).env(LIBRARY, library).env("PANICFS_NEW", "fail");
    let lines = run(tensorflow, Level::Errors, python, &steps);
    let path = library.display().to_string();
    assert_one_line(&lines, 'E', &[&path, "is not registered: new was asked to fail"]);
}

fn a_new_that_panics(tensorflow: &TensorFlow) {
    let library = Plugin::of("panicfs").path();
    let steps = [
        step("absent", "panicfs"),
        format!("refused={}=13=new was asked to panic", library.display()),
        step("absent", "panicfs"),
        step("works", "ram://box"),
    ];
    let python = Python::new(tensorflow, SCRIPT).env(LIBRARY, library).env("PANICFS_NEW", "panic");
    let lines = run(tensorflow, Level::Errors, python, &steps);
    // Rust's own lines about a panic come on top, at import and at the second attempt.
    let (own, of_rust): (Vec<String>, Vec<String>) =
        lines.into_iter().partition(|line| line.contains(": E "));
    let path = library.display().to_string();
    let place = "plugin panicked in `init` at ";
    assert_one_line(&own, 'E', &[&path, place, "panicfs/src/lib.rs:", "new was asked to panic"]);
    let panics = of_rust.iter().filter(|line| line.contains("panicked at")).count();
    assert_eq!(panics, 2, "{of_rust:#?}");
}

/// The overlay must be a real environment, or the tests above see no plugin for the wrong reason.
#[test]
fn an_overlay_without_plugins_has_tensorflow_and_no_scheme() {
    let tensorflow = tf_plugin_tensorflow_tests::tensorflow(cargo_tf_plugin::NEWEST);
    let overlay = Overlay::new(&tensorflow);
    let steps = [step("site-packages", "1"), step("absent", "mem"), step("works", "ram://box")];
    let python = Python::with_interpreter(overlay.python(), SCRIPT);
    assert_eq!(run(&tensorflow, Level::Errors, python, &steps), NOTHING);
    assert!(overlay.python().starts_with(env::temp_dir()));
}
