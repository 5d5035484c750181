//! What TensorFlow's own consumers do with files, on `s3://` and two servers: `tests/python/scenarios.py`.

use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::s3::Store;
use tf_plugin_tensorflow_tests::scenarios::OBJECT_STORES_LACK;
use tf_plugin_tensorflow_tests::{each_tensorflow, scenarios};

each_tensorflow!(on_the_projects_server);

fn on_the_projects_server(tensorflow: &TensorFlow) {
    run(tensorflow, "s3 on the project's server", &Store::own("scenarios", false));
}

/// moto takes four times the processor time of the others; `s3_tensorboard` has it in each run.
#[cfg(feature = "matrix")]
#[test]
fn on_moto() {
    for version in ["2.12.1", cargo_tf_plugin::NEWEST] {
        let tensorflow = tf_plugin_tensorflow_tests::tensorflow(version);
        run(&tensorflow, "s3 on moto", &Store::moto("scenarios"));
    }
}

fn run(tensorflow: &TensorFlow, what: &str, store: &Store) {
    let python = scenarios::python(tensorflow, "s3", &store.root(), OBJECT_STORES_LACK);
    scenarios::run(tensorflow, what, store.settings(python), &[]);
}
