//! Runs `tests/python/scenarios.py` and judges what it says.

use crate::Plugin;
use crate::python::Python;
use cargo_tf_plugin::TensorFlow;
use std::collections::{BTreeMap, BTreeSet};

const SCRIPT: &str = "python/scenarios.py";

/// What object stores lack: a name there is not what a path on a disk is. The cases then expect what the documentation of
/// the plugin says instead; none is left out.
pub const OBJECT_STORES_LACK: &[&str] = &["normal_form", "hierarchy", "unclosed_files"];

/// The script of scenarios on a plugin of `examples/`, below `root`, with the abilities that the filesystem `lacks`.
pub fn python(tensorflow: &TensorFlow, plugin: &'static str, root: &str, lacks: &[&str]) -> Python {
    let library = Plugin::of(plugin).path();
    let python =
        Python::new(tensorflow, SCRIPT).arg("--plugin").arg(library).args(["--root", root]);
    lacks.iter().fold(python, |python, lack| python.args(["--lacks", lack]))
}

/// The cases that this TensorFlow cannot do on any plugin.
fn not_applicable(tensorflow: &TensorFlow) -> &'static [&'static str] {
    // Keras 2 writes these two with libraries that know local paths only.
    if tensorflow.major_minor() < (2, 16) { &["keras_archive", "keras_weights"] } else { &[] }
}

/// Runs all cases in [`python`]. All must pass except for those that no plugin can do in this TensorFlow, and `unable`: what
/// the server cannot do, each with the reason.
///
/// # Panics
/// When a case fails, or others than expected have run.
#[track_caller]
pub fn run(tensorflow: &TensorFlow, what: &str, python: Python, unable: &[(&str, &str)]) {
    let listed = Python::new(tensorflow, SCRIPT).arg("--list").in_a_fork().run().success();
    let listed: Vec<&str> = listed.stdout.lines().collect();
    assert!(listed.len() > 40, "only {} cases are listed", listed.len());

    let python = unable.iter().fold(python, |python, (name, reason)| {
        python.arg("--unable").arg(format!("{name}={reason}"))
    });
    let finished = python.in_a_fork().run().success();
    let mut results: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in finished.stdout.lines() {
        let mut words = line.split([' ', ':']);
        let (result, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        results.entry(result).or_default().push(name);
    }
    let expected_skips =
        not_applicable(tensorflow).iter().chain(unable.iter().map(|(name, _)| name));
    let skipped = results.remove("not-applicable").unwrap_or_default();
    let skipped: BTreeSet<&str> = skipped.into_iter().collect();
    if skipped != expected_skips.copied().collect() {
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
    println!("{what} on {}: {summary}", tensorflow.version());
}
