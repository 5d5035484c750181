//! The code in the documents, built and used as they say.

use cargo_tf_plugin::NEWEST;
use std::os::unix::fs::symlink;
use std::time::Duration;
use tf_plugin_tensorflow_tests::outside::{block, build, read, target};
use tf_plugin_tensorflow_tests::{child, tensorflow};

/// Ten times what the longest takes on two busy cores.
const LIMIT: Duration = Duration::from_secs(600);

/// Builds the crate that a document describes from a heading on, runs its Python, and returns the output.
fn follow(document: &str, heading: &str, name: &str) -> String {
    let document = read(document);
    let (_, document) = document.split_once(heading).expect("the document has the heading");
    let manifest = block(document, "toml");
    let package = if manifest.starts_with("[package]") {
        String::new()
    } else {
        format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n\n")
    };
    let sources = [("src/lib.rs", block(document, "rust").to_owned())];
    let _ = build(name, &format!("{package}{manifest}"), &sources, true);
    // The crate's directory, with the library where the document has it.
    let directory = tempfile::tempdir().expect("a scratch directory");
    symlink(target(), directory.path().join("target")).expect("linked");
    let mut python = tensorflow(NEWEST).python_command();
    python.args(["-c", block(document, "python")]).current_dir(&directory);
    child::run(python, LIMIT).success().stdout
}

#[test]
fn the_readme_s_filesystem_works_in_tensorflow() {
    let output = follow("README.md", "### A filesystem", "hello");
    assert!(output.contains("b'hello from hello://box/you'"), "{output}");
}

#[test]
fn the_readme_s_op_works_in_tensorflow() {
    let output = follow("README.md", "### An op", "hellowords");
    assert!(output.contains("[0 2 6]"), "{output}");
}

#[test]
fn the_readme_s_device_works_in_tensorflow() {
    let output = follow("README.md", "### A device", "tiny");
    assert!(output.contains("device:TINY:0 [3. 5.]"), "{output}");
}

#[test]
fn the_first_device_works_in_tensorflow() {
    let output = follow("docs/first-device.md", "# Your first device", "firstdevice");
    for expected in [
        "PhysicalDevice(name='/physical_device:FIRST:0', device_type='FIRST')",
        "/job:localhost/replica:0/task:0/device:FIRST:0",
        "[[-3.5 -4. ]\n [-6.  -5.5]]",
        "Incompatible shapes: [2] vs. [3]",
        "Epoch 5/5",
    ] {
        assert!(output.contains(expected), "`{expected}` is missing in {output}");
    }
}
