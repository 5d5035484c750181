//! The real TensorBoard on `s3://`: `tests/python/s3_tensorboard.py`.

use cargo_tf_plugin::{NEWEST, Packages};
use tf_plugin_tensorflow_tests::s3::{Store, installed};
use tf_plugin_tensorflow_tests::tensorflow;

/// TensorFlow no longer brings it along; it must not change what TensorFlow brings.
const REQUIREMENTS: &str = "tensorboard==2.20.0\nsetuptools<81";

#[test]
fn tensorboard_writes_reads_and_serves() {
    let tensorflow = tensorflow(NEWEST);
    let tensorboard = Packages::provide("tensorboard", REQUIREMENTS, Some(tensorflow.python()))
        .unwrap_or_else(|error| panic!("{error:#}"));
    let installed = installed(&tensorflow);
    installed.link_missing(tensorboard.site_packages());
    let store = Store::new("tensorboard", false);
    let finished = store
        .python_in(&installed, "python/s3_tensorboard.py")
        .args(["--root", &store.root()])
        .limit(240)
        .run()
        .success();
    finished.must_end_with("ok");
}
