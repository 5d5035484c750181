//! A first device, as the template and the book make it, trains a Keras model as it stands.

use cargo_tf_plugin::TensorFlow;
use cargo_tf_plugin::workspace::Workspace;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{LIBRARY, each_tensorflow};

each_tensorflow!(
    a_device_of_the_template_trains_a_dense_model;
    oldest and newest:
    the_first_device_of_the_book_trains_a_dense_model,
);

/// Where templates and the book expect the SDK.
const SDK: [&str; 2] = ["path = \"../../../", "path = \"../tf-fs-plugin/"];

/// The template, whose script trains with each device.
const TEMPLATE: &str = "cargo-tf-plugin/templates/device";

fn workspace() -> Workspace {
    Workspace::current().expect("tests run in the workspace")
}

fn read(path: &str) -> String {
    fs::read_to_string(workspace().root().join(path)).expect("it is there")
}

/// Builds a crate outside of the workspace and returns its library. What is built stays for the next time.
fn build(name: &str, manifest: &str, sources: &[(&str, String)]) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let workspace = workspace();
    let parent = workspace.target_dir().join("first-devices");
    let directory = parent.join(name);
    let sdk = format!("path = \"{}/", workspace.root().display());
    let manifest = SDK.iter().fold(manifest.to_owned(), |text, from| text.replace(from, &sdk));
    assert!(manifest.contains(&sdk), "{manifest}");
    let write = |file: &str, text: &str| {
        let path = directory.join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    };
    write("Cargo.toml", &manifest);
    sources.iter().for_each(|(file, text)| write(file, text));
    // The versions that the workspace was tested with.
    fs::copy(workspace.root().join("Cargo.lock"), directory.join("Cargo.lock")).expect("copied");
    let target = parent.join("target");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet"]).current_dir(&directory).env("CARGO_TARGET_DIR", &target);
    let built = cargo.output().expect("cargo runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    target.join(format!("debug/lib{}.so", name.replace('-', "_")))
}

/// Runs the template's script with a device of this type.
fn train(tensorflow: &TensorFlow, library: &Path, device_type: &str) {
    let script = read(&format!("{TEMPLATE}/tests/python/training.py"));
    assert!(script.contains("/device:TEMPLATE_PLUGIN:0"), "{script}");
    let directory = tempfile::tempdir().expect("a scratch directory");
    let path = directory.path().join("training.py");
    fs::write(&path, script.replace("TEMPLATE_PLUGIN", device_type)).expect("written");
    let python = Python::new(tensorflow, path.to_str().expect("UTF-8"));
    python.env(LIBRARY, library).run().success();
}

fn a_device_of_the_template_trains_a_dense_model(tensorflow: &TensorFlow) {
    let manifest = read(&format!("{TEMPLATE}/manifest.toml"));
    let sources = ["src/lib.rs", "src/device.rs", "benches/device.rs"]
        .map(|file| (file, read(&format!("{TEMPLATE}/{file}"))));
    train(tensorflow, &build("template-plugin", &manifest, &sources), "TEMPLATE_PLUGIN");
}

fn the_first_device_of_the_book_trains_a_dense_model(tensorflow: &TensorFlow) {
    let page = read("docs/first-device.md");
    let block = |language: &str| {
        let (_, rest) = page.split_once(&format!("```{language}\n")).expect("a block");
        rest.split_once("```").expect("the block ends").0.to_owned()
    };
    let manifest = format!("{}\n[workspace]\n", block("toml"));
    let library = build("firstdevice", &manifest, &[("src/lib.rs", block("rust"))]);
    train(tensorflow, &library, "FIRST");
}
