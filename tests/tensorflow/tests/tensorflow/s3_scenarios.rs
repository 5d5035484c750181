//! What TensorFlow's own consumers do with files, on `s3://` and the project's server: `tests/python/scenarios.py`.

use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::s3::Store;
use tf_plugin_tensorflow_tests::scenarios::OBJECT_STORES_LACK;
use tf_plugin_tensorflow_tests::{each_tensorflow, scenarios};

each_tensorflow!(on_the_projects_server);

fn on_the_projects_server(tensorflow: &TensorFlow) {
    let store = Store::new("scenarios", false);
    let python = scenarios::python(tensorflow, "s3", &store.root(), OBJECT_STORES_LACK);
    scenarios::run(tensorflow, "s3 on the project's server", store.settings(python), &[]);
}
