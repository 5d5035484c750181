//! What TensorFlow's own consumers do with files, on `az://` and Azurite: `tests/python/scenarios.py`.

use azurite::{ACCOUNT, Azurite, KEY};
use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::scenarios::OBJECT_STORES_LACK;
use tf_plugin_tensorflow_tests::{each_tensorflow, scenarios};

each_tensorflow!(on_azurite);

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
    let root = format!("az://{ACCOUNT}/scenarios/tests");
    let python = scenarios::python(tensorflow, "az", &root, OBJECT_STORES_LACK)
        .env("AZURE_STORAGE_KEY", KEY)
        .env("TF_AZ_BLOB_ENDPOINT", format!("{}/{ACCOUNT}", azurite.endpoint()));
    scenarios::run(tensorflow, "az on Azurite", python, UNABLE);
}
