//! What TensorFlow's own consumers do with files, on `s3://` and three servers: `tests/python/scenarios.py`.

use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::s3::Store;
use tf_plugin_tensorflow_tests::scenarios::OBJECT_STORES_LACK;
use tf_plugin_tensorflow_tests::{each_tensorflow, scenarios};

each_tensorflow!(
    on_the_projects_server;
    oldest and newest:
    on_s3s_fs,
);

fn on_the_projects_server(tensorflow: &TensorFlow) {
    run(tensorflow, "s3 on the project's server", &Store::own("scenarios", false), &[]);
}

/// moto takes four times the processor time of the others; `s3_tensorboard` has it in each run.
#[cfg(feature = "matrix")]
#[test]
fn on_moto() {
    for version in ["2.12.1", cargo_tf_plugin::NEWEST] {
        let tensorflow = tf_plugin_tensorflow_tests::tensorflow(version);
        run(&tensorflow, "s3 on moto", &Store::moto("scenarios"), &[]);
    }
}

fn on_s3s_fs(tensorflow: &TensorFlow) {
    run(tensorflow, "s3 on s3s-fs", &Store::s3s_fs("scenarios"), S3S_FS_IS_UNABLE);
}

/// `s3s-fs` keeps objects as files in directories, with what a disk cannot do, and has some mistakes.
const S3S_FS_IS_UNABLE: &[(&str, &str)] = &[
    ("memory_region", "GET of a name that others begin with is status 500"),
    ("concurrent_renames_onto_one_file", "an object is there with no bytes while it is copied"),
    ("directories", NO_MARKERS),
    ("walk_and_glob", NO_MARKERS),
    ("odd_names", "a listing says that its keys are URL-encoded, but they are not"),
    ("names_not_utf8", NO_MARKERS),
    ("long_path", NO_MARKERS),
    ("dot_dot", "PUT of a key with .. is status 500"),
    ("deep_directories", NO_MARKERS),
    ("many_files", NO_MARKERS),
    ("codes_of_opening", NOT_BESIDE),
    ("codes_of_directories", NO_MARKERS),
    ("codes_of_deleting", NO_MARKERS),
    ("codes_of_rename_and_copy", NOT_BESIDE),
];

const NO_MARKERS: &str =
    "an object whose key ends in / is not listed, so an empty directory is not there";
const NOT_BESIDE: &str =
    "an object cannot be beside others that begin with its key and /: status 500";

fn run(tensorflow: &TensorFlow, what: &str, store: &Store, unable: &[(&str, &str)]) {
    let python = scenarios::python(tensorflow, "s3", &store.root(), OBJECT_STORES_LACK);
    scenarios::run(tensorflow, what, store.settings(python), unable);
}
