//! The directory in which commands run, and their output.

use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("the package is in a workspace").to_owned()
}

/// Returns the names in a directory, sorted.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let name = |entry: DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<_> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}

/// Returns standard output, then standard error.
pub(crate) fn text(output: &Output) -> String {
    let [out, err] =
        [&output.stdout, &output.stderr].map(|printed| String::from_utf8_lossy(printed));
    format!("{out}\n--- standard error:\n{err}")
}

/// The output of a command, and how it ended.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn ran(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().expect("the command runs");
    let text = |printed: Vec<u8>| String::from_utf8_lossy(&printed).into_owned();
    Ran { code: status.code(), out: text(stdout), err: text(stderr) }
}

/// Runs a command; returns its exit code, and standard output followed by standard error.
pub(crate) fn run(command: &mut Command) -> (i32, String) {
    let Ran { code, out, err } = ran(command);
    (code.expect("an exit code"), out + &err)
}

/// Runs a command that succeeds, and returns the JSON that it prints.
#[track_caller]
pub(crate) fn json(command: &mut Command) -> Value {
    let Ran { code, out, err } = ran(command);
    assert_eq!(code, Some(0), "{out}\n{err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error} in {out}\n{err}"))
}

/// Checks that the lines, without their breaks, contain the words.
#[track_caller]
pub(crate) fn assert_says(text: &str, words: &str) {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat(text).contains(&flat(words)), "`{words}` is missing in:\n{text}");
}

/// Checks that a text contains all of these.
#[track_caller]
pub(crate) fn assert_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
}

/// Waits until a condition holds, for a minute at most.
#[track_caller]
pub(crate) fn wait_until(otherwise: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{otherwise}");
        thread::sleep(Duration::from_millis(10));
    }
}
