//! `s3://`, `az://` and `http://` installed beside each other, as their wheels do it: `python/together.py`.

use azurite::{ACCOUNT, Azurite, KEY};
use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::overlay::Overlay;
use tf_plugin_tensorflow_tests::s3::Store;
use tf_plugin_tensorflow_tests::{Plugin, each_tensorflow};

each_tensorflow!(three_stores_in_one_process);

fn three_stores_in_one_process(tensorflow: &TensorFlow) {
    let overlay = Overlay::new(tensorflow);
    for package in ["s3", "az", "https"] {
        Plugin::of(package).copy_to(&overlay.plugins());
    }
    let store = Store::new("together", true);
    let azurite = Azurite::with_container("together");
    let finished = store
        .python_in(&overlay, "python/together.py")
        .args([&store.root(), &format!("az://{ACCOUNT}/together/tests")])
        .env("AZURE_STORAGE_KEY", KEY)
        .env("TF_AZ_BLOB_ENDPOINT", format!("{}/{ACCOUNT}", azurite.endpoint()))
        .run()
        .success();
    assert_eq!(finished.stdout.lines().last(), Some("ok"), "{}", finished.stdout);
}
