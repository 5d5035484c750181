//! None of tensorflow-io's defects comes back: `tests/python/s3_regressions.py`, in the newest TensorFlow.

use cargo_tf_plugin::NEWEST;
use tf_plugin_tensorflow_tests::s3::{Store, installed};
use tf_plugin_tensorflow_tests::tensorflow;

#[test]
fn none_of_the_known_defects_is_there() {
    let installed = installed(&tensorflow(NEWEST));
    let store = Store::new("regressions", true);

    let finished = store
        .python_in(&installed, "python/s3_regressions.py")
        .args(["--root", &store.root(), "--control", store.endpoint()])
        .limit(1200)
        .run()
        .success();
    let passed = finished.done().len();
    assert!(passed >= 38, "only {passed} cases have run");
    finished.must_end_with(&format!("{passed} passed, 0 failed"));
    let left = store.server().uploads("regressions");
    assert!(left.is_empty(), "unfinished uploads: {left:?}");
}
