//! The README's filesystem, built and used as the README says.

use cargo_tf_plugin::workspace::Workspace;
use cargo_tf_plugin::{NEWEST, TensorFlow};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The README's first code block in a language.
fn block<'r>(readme: &'r str, language: &str) -> &'r str {
    let begin = format!("```{language}\n");
    let start = readme.find(&begin).expect("the README has such a block") + begin.len();
    let end = readme[start..].find("```").expect("the block ends");
    &readme[start..start + end]
}

fn succeeded(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Makes the crate that the README describes, outside of the workspace.
fn write_crate(directory: &Path, readme: &str, root: &Path) {
    let sdk = format!("path = \"{}\"", root.join("tf-fs-plugin").display());
    let manifest = block(readme, "toml");
    assert!(manifest.contains("path = \"../tf-fs-plugin/tf-fs-plugin\""), "{manifest}");
    let manifest = manifest.replace("path = \"../tf-fs-plugin/tf-fs-plugin\"", &sdk);
    let package = "[package]\nname = \"notes\"\nedition = \"2024\"\n\n";
    fs::create_dir(directory.join("src")).expect("made");
    fs::write(directory.join("Cargo.toml"), format!("{package}{manifest}")).expect("written");
    fs::write(directory.join("src/lib.rs"), block(readme, "rust")).expect("written");
    // The versions that the workspace was tested with.
    fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock")).expect("copied");
}

#[test]
fn the_readme_s_filesystem_works_in_tensorflow() {
    let workspace = Workspace::current().expect("tests run in the workspace");
    let readme = fs::read_to_string(workspace.root().join("README.md")).expect("there");
    let directory = tempfile::tempdir().expect("a scratch directory");
    write_crate(directory.path(), &readme, workspace.root());
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet"])
        .current_dir(&directory)
        .env("CARGO_TARGET_DIR", directory.path().join("target"))
        .output();
    succeeded(&built.expect("cargo runs"));
    let ran = TensorFlow::pinned(NEWEST)
        .expect("TensorFlow is provided")
        .python_command()
        .args(["-c", block(&readme, "python")])
        .current_dir(&directory)
        .output();
    let said = succeeded(&ran.expect("Python runs"));
    assert!(said.contains("b'hello'"), "{said}");
}
