//! What a command says.

use std::process::{Command, Output};

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
