//! What TensorFlow and Keras do with files, on `s3://` and the project's server: `tests/python/scenarios.py`.

use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::s3::Store;
use tf_plugin_tensorflow_tests::{each_tensorflow, scenarios};

each_tensorflow!(on_the_projects_server);

fn on_the_projects_server(tensorflow: &TensorFlow) {
    let store = Store::new("scenarios", false);
    let python = scenarios::python(tensorflow, "s3", &store.root());
    scenarios::run(tensorflow, store.settings(python));
}
