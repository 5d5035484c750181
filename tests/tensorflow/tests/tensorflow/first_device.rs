//! A first device, as the template and the book make it, trains a Keras model as it stands.

use cargo_tf_plugin::TensorFlow;
use std::path::Path;
use tf_plugin_tensorflow_tests::outside::{block, build, read};
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{LIBRARY, each_tensorflow};

each_tensorflow!(
    a_device_of_the_template_trains_a_dense_model;
    oldest and newest:
    the_first_device_of_the_book_trains_a_dense_model,
);

/// The template, whose script trains with each device.
const TEMPLATE: &str = "cargo-tf-plugin/templates/device";

/// Runs the template's script with a device of this type.
fn train(tensorflow: &TensorFlow, library: &Path, device_type: &str) {
    let script = read(&format!("{TEMPLATE}/tests/python/training.py"));
    assert!(script.contains("/device:TEMPLATE_PLUGIN:0"), "{script}");
    let script = script.replace("TEMPLATE_PLUGIN", device_type);
    Python::code(tensorflow, &script, |python| python.env(LIBRARY, library)).success();
}

fn a_device_of_the_template_trains_a_dense_model(tensorflow: &TensorFlow) {
    let manifest = read(&format!("{TEMPLATE}/manifest.toml"));
    let sources =
        ["src/lib.rs", "src/device.rs"].map(|file| (file, read(&format!("{TEMPLATE}/{file}"))));
    train(tensorflow, &build("template-plugin", &manifest, &sources, false), "TEMPLATE_PLUGIN");
}

fn the_first_device_of_the_book_trains_a_dense_model(tensorflow: &TensorFlow) {
    let page = read("docs/first-device.md");
    let sources = [("src/lib.rs", block(&page, "rust").to_owned())];
    let library = build("firstdevice", block(&page, "toml"), &sources, false);
    train(tensorflow, &library, "FIRST");
}
