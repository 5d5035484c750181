//! Reading `s3://` from several machines by TensorFlow's own means: `plugins/s3/scale.py`. Each process has the plugin
//! by `import tensorflow` alone.

use cargo_tf_plugin::NEWEST;
use tf_plugin_tensorflow_tests::s3::{Store, installed};
use tf_plugin_tensorflow_tests::tensorflow;

const SCRIPT: &str = "../plugins/s3/scale.py";

/// The last line of JSON that the script says.
fn run(store: &Store, way: &str) -> serde_json::Value {
    let installed = installed(&tensorflow(NEWEST));
    let finished =
        store.python_in(&installed, SCRIPT).args([way, &store.root()]).limit(300).run().success();
    let last = finished.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| finished.fail(&format!("{last:?}: {error}")))
}

#[test]
fn data_service_with_two_workers() {
    let store = Store::new("scale", true);
    let result = run(&store, "service");
    assert_eq!(result["seen"], 4000, "{result}");
    assert_eq!(result["complete"], true, "each record once: {result}");
    let requests = result["requests"].as_array().expect("a list");
    assert_eq!(requests.len(), 2, "{result}");
    for worker in requests {
        assert!(worker.as_u64() >= Some(4), "a worker has not read its four files: {result}");
    }
    // Nobody has read a file twice: no second copy of the pipeline ran.
    let reads = store.server().log().into_iter().filter(|request| {
        request.operation == "GetObject"
            && request.key.as_deref().is_some_and(|key| key.contains("/data/"))
    });
    assert!(reads.count() <= 16, "{:?}", store.server().counts());
}

#[test]
fn multi_worker_mirrored_strategy_with_two_workers() {
    let store = Store::new("scale", true);
    let result = run(&store, "workers");
    let results = result["results"].as_array().expect("a list");
    assert_eq!(results.len(), 2, "{result}");
    for worker in results {
        for (actual, expected) in
            worker["weights"].as_array().expect("a list").iter().zip([3.0, -2.0, 1.0])
        {
            let actual = actual.as_f64().expect("a number");
            assert!((actual - expected).abs() < 1e-3, "{result}");
        }
        assert!(worker["requests"].as_u64() > Some(0), "a worker has read nothing: {result}");
    }
    assert_eq!(results[0]["weights"], results[1]["weights"], "both have the same model");
    let keys = store.server().keys("scale");
    let left: Vec<&String> = keys.iter().filter(|key| !key.contains("/data/")).collect();
    let expected = [
        // TensorFlow makes the directory.
        "tests/checkpoint/",
        "tests/checkpoint/model.data-00000-of-00001",
        "tests/checkpoint/model.index",
    ];
    assert_eq!(left, expected, "the chief's checkpoint, and nothing of the other's");
}
