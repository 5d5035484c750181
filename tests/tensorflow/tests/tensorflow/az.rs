//! What TensorFlow's own consumers do with files, on `az://` and Azurite: `tests/python/scenarios.py`.

use azurite::{ACCOUNT, Azurite, KEY};
use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{Plugin, each_tensorflow, scenarios};

each_tensorflow!(on_azurite);

/// Where a name in Azure is not what a path on a disk is. The cases then expect what the README says instead.
const LACKS: &[&str] = &["normal_form", "hierarchy", "unclosed_files"];

/// What no blob can be.
const UNABLE: &[(&str, &str)] = &[
    ("odd_names", BACKSLASH),
    ("escaped_patterns", BACKSLASH),
    (
        "dot_dot",
        "it looks for `..` in the place of a container, which the plugin refuses; tests of az look at exact names",
    ),
];

const BACKSLASH: &str = "Azure takes a backslash for a slash, so the plugin refuses such a name";

fn on_azurite(tensorflow: &TensorFlow) {
    let azurite = Azurite::with_container("scenarios");
    let mut python = Python::new(tensorflow, scenarios::SCRIPT)
        .arg("--plugin")
        .arg(Plugin::of("az").path())
        .args(["--root", &format!("az://{ACCOUNT}/scenarios/tests")])
        .env("AZURE_STORAGE_KEY", KEY)
        .env("TF_AZ_BLOB_ENDPOINT", format!("{}/{ACCOUNT}", azurite.endpoint()));
    for lack in LACKS {
        python = python.args(["--lacks", lack]);
    }
    scenarios::run(tensorflow, "az on Azurite", python, UNABLE);
}
