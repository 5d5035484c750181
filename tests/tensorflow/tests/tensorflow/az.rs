//! What TensorFlow and Keras do with files, on `az://` and Azurite: the conformance cases and `tests/python/scenarios.py`.

use super::conformance::passes_on_a_store;
use azurite::{ACCOUNT, Azurite, KEY};
use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::{Plugin, each_tensorflow, scenarios};

each_tensorflow!(scenarios_on_azurite; oldest and newest: conformance_on_azurite);

/// Azure takes a backslash for a slash, so the plugin refuses such a name.
const REFUSED: [&str; 2] = ["python_glob_escapes", "python_names_with_wildcards"];

fn settings(azurite: &Azurite) -> [(&'static str, String); 2] {
    let endpoint = format!("{}/{ACCOUNT}", azurite.endpoint());
    [("AZURE_STORAGE_KEY", KEY.to_owned()), ("TF_AZ_BLOB_ENDPOINT", endpoint)]
}

fn conformance_on_azurite(tensorflow: &TensorFlow) {
    let azurite = Azurite::with_container("conformance");
    let (library, root) = (Plugin::of("az").path(), format!("az://{ACCOUNT}/conformance/"));
    let malformed = Some("az://user:pw@account/container/blob");
    passes_on_a_store(tensorflow, library, &root, &settings(&azurite), malformed, &REFUSED);
}

fn scenarios_on_azurite(tensorflow: &TensorFlow) {
    let azurite = Azurite::with_container("scenarios");
    let root = format!("az://{ACCOUNT}/scenarios/tests");
    let python = scenarios::python(tensorflow, "az", &root).envs(settings(&azurite));
    scenarios::run(tensorflow, python);
}
