//! None of tensorflow-io's defects comes back: `tests/python/s3_regressions.py`, in the newest TensorFlow.

use cargo_tf_plugin::NEWEST;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::s3::{Installed, Store};
use tf_plugin_tensorflow_tests::tensorflow;

const SCRIPT: &str = "python/s3_regressions.py";

#[test]
fn none_of_the_known_defects_is_there() {
    let tensorflow = tensorflow(NEWEST);
    let installed = Installed::new(&tensorflow, None);
    let store = Store::own("regressions", true);

    let listed = Python::new(&tensorflow, SCRIPT).arg("--list").in_a_fork().run().success();
    let listed: Vec<&str> =
        listed.stdout.lines().filter_map(|line| line.split(':').next()).collect();
    assert!(listed.len() >= 38, "only {} cases are listed", listed.len());

    let finished = installed
        .python(&store, SCRIPT)
        .args(["--root", &store.root(), "--control", store.endpoint()])
        .limit(1200)
        .run()
        .success();
    let passed = finished.done().into_iter().filter_map(|line| line.split(' ').next());
    let passed: Vec<&str> = passed.collect();
    if passed != listed {
        finished.fail(&format!("other cases than listed have passed; listed: {listed:?}"));
    }
    let left = store.server().uploads("regressions");
    assert!(left.is_empty(), "unfinished uploads: {left:?}");
}
