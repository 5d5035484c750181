//! The code in the documents, built and used as they say.

use cargo_tf_plugin::workspace::Workspace;
use cargo_tf_plugin::{NEWEST, TensorFlow};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A document's first code block in a language.
fn block<'d>(document: &'d str, language: &str) -> &'d str {
    let begin = format!("```{language}\n");
    let start = document.find(&begin).expect("the document has such a block") + begin.len();
    let end = document[start..].find("```").expect("the block ends");
    &document[start..start + end]
}

fn succeeded(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Makes the crate that a document describes, outside of the workspace, with one of the SDK's crates.
fn write_crate(directory: &Path, document: &str, name: &str, sdk: &str, root: &Path) {
    let manifest = block(document, "toml");
    let beside = format!("path = \"../tf-fs-plugin/{sdk}\"");
    assert!(manifest.contains(&beside), "{manifest}");
    let manifest = manifest.replace(&beside, &format!("path = \"{}\"", root.join(sdk).display()));
    let package = if manifest.starts_with("[package]") {
        String::new()
    } else {
        format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n\n")
    };
    fs::create_dir(directory.join("src")).expect("made");
    fs::write(directory.join("Cargo.toml"), format!("{package}{manifest}")).expect("written");
    fs::write(directory.join("src/lib.rs"), block(document, "rust")).expect("written");
    // The versions that the workspace was tested with.
    fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock")).expect("copied");
}

/// Builds the crate that a document describes and runs its Python; what that says.
fn follow(document: &str, name: &str, sdk: &str) -> String {
    let workspace = Workspace::current().expect("tests run in the workspace");
    let document = fs::read_to_string(workspace.root().join(document)).expect("there");
    let directory = tempfile::tempdir().expect("a scratch directory");
    write_crate(directory.path(), &document, name, sdk, workspace.root());
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet"])
        .current_dir(&directory)
        .env("CARGO_TARGET_DIR", directory.path().join("target"))
        .output();
    succeeded(&built.expect("cargo runs"));
    let ran = TensorFlow::pinned(NEWEST)
        .expect("TensorFlow is provided")
        .python_command()
        .args(["-c", block(&document, "python")])
        .current_dir(&directory)
        .output();
    succeeded(&ran.expect("Python runs"))
}

#[test]
fn the_readme_s_filesystem_works_in_tensorflow() {
    let said = follow("README.md", "hello", "tf-fs-plugin");
    assert!(said.contains("b'hello from hello://box/you'"), "{said}");
}

#[test]
fn the_first_device_works_in_tensorflow() {
    let said = follow("docs/first-device.md", "firstdevice", "se-plugin");
    for expected in [
        "PhysicalDevice(name='/physical_device:FIRST:0', device_type='FIRST')",
        "/job:localhost/replica:0/task:0/device:FIRST:0",
        "[[-3.5 -4. ]\n [-6.  -5.5]]",
        "Incompatible shapes: [2] vs. [3]",
        "Epoch 5/5",
    ] {
        assert!(said.contains(expected), "`{expected}` is missing in {said}");
    }
}
