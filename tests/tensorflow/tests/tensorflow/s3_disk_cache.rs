//! Epochs of a data set on `s3://` from the disk cache: `python/disk_cache.py`.

use cargo_tf_plugin::NEWEST;
use tf_plugin_tensorflow_tests::s3::Store;
use tf_plugin_tensorflow_tests::tensorflow;

#[test]
fn second_epochs_make_one_request_a_file() {
    let tensorflow = tensorflow(NEWEST);
    let store = Store::new("disk-cache", true);
    let directory = tempfile::tempdir().expect("a scratch directory");
    let cache = format!("{}:1GiB", directory.path().display());
    // Runs in a separate process. Returns how many requests it made for bytes of objects.
    let run = |what: &str| {
        store.server().reset_log();
        let python = store.python(&tensorflow, "tensorflow/python/disk_cache.py");
        let python = python.args([what, &store.root()]).env("TF_S3_DISK_CACHE", &cache);
        let finished = python.run().success();
        finished.must_have_done(&[what]);
        let counts = store.server().counts();
        (counts.get("GetObject").copied().unwrap_or(0), counts)
    };
    run("write");
    let (gets, counts) = run("epochs");
    assert!(gets >= 8, "{counts:?}");
    let (gets, counts) = run("epoch");
    assert_eq!(gets, 4, "{counts:?}");
    assert_eq!(counts.values().sum::<usize>(), 4, "{counts:?}");
    // Another process writes other records of the same length.
    run("change");
    run("changed");
    let (gets, counts) = run("changed");
    assert_eq!(gets, 4, "{counts:?}");
}
