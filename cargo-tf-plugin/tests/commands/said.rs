//! Where commands run, and what they say.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The workspace.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("the package is in a workspace").to_owned()
}

/// Standard output, then standard error.
pub(crate) fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said));
    format!("{out}\n--- standard error:\n{err}")
}

pub(crate) fn run(command: &mut Command) -> (i32, String) {
    let Output { status, stdout, stderr } = command.output().expect("the command runs");
    let text = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
    (status.code().expect("an exit code"), text)
}

/// Whether the lines, without their breaks, contain the words.
#[track_caller]
pub(crate) fn assert_says(text: &str, words: &str) {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat(text).contains(&flat(words)), "`{words}` is missing in:\n{text}");
}
