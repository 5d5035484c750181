//! What TensorFlow's own consumers do with files, from Python: `tests/python/scenarios.py`.

use cargo_tf_plugin::TensorFlow;
use std::collections::BTreeMap;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{Example, each_tensorflow};

each_tensorflow!(memfs, localfs);

const SCRIPT: &str = "python/scenarios.py";

fn memfs(tensorflow: &TensorFlow) {
    run(tensorflow, &Example::memfs(), &["--lacks", "memory_region"]);
}

fn localfs(tensorflow: &TensorFlow) {
    run(tensorflow, &Example::localfs(), &[]);
}

/// The cases that this TensorFlow cannot do on any plugin.
fn not_applicable(tensorflow: &TensorFlow) -> &'static [&'static str] {
    // Keras 2 writes these two with libraries that know local paths only.
    if tensorflow.major_minor() < (2, 16) { &["keras_archive", "keras_weights"] } else { &[] }
}

fn run(tensorflow: &TensorFlow, example: &Example, options: &[&str]) {
    let listed = Python::new(tensorflow, SCRIPT).arg("--list").run().success();
    let listed: Vec<&str> = listed.stdout.lines().collect();
    assert!(listed.len() > 40, "only {} cases are listed", listed.len());

    let finished = Python::new(tensorflow, SCRIPT)
        .arg("--plugin")
        .arg(example.plugin.path())
        .args(["--root", &example.root])
        .args(options)
        .run()
        .success();
    let mut results: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in finished.stdout.lines() {
        let mut words = line.split([' ', ':']);
        let (result, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        results.entry(result).or_default().push(name);
    }
    let skipped = results.remove("not-applicable").unwrap_or_default();
    if skipped != not_applicable(tensorflow) {
        finished.fail("other cases than expected are not applicable");
    }
    let passed = results.remove("ok").unwrap_or_default();
    let expected: Vec<&str> = listed.into_iter().filter(|name| !skipped.contains(name)).collect();
    if passed != expected {
        finished.fail(&format!("other cases than expected have passed; expected: {expected:?}"));
    }
    let summary = format!("{} passed, 0 failed, {} not applicable", passed.len(), skipped.len());
    if finished.stdout.lines().last() != Some(&summary) {
        finished.fail(&format!("the last line is not {summary:?}"));
    }
    println!("{} on {}: {summary}", example.package, tensorflow.version());
}
