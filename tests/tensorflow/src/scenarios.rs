//! Runs `tests/python/scenarios.py` and judges what it says.

use crate::Plugin;
use crate::python::Python;
use cargo_tf_plugin::TensorFlow;
use std::collections::BTreeSet;

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
/// When a case fails, or others than expected are left out.
#[track_caller]
pub fn run(tensorflow: &TensorFlow, what: &str, python: Python, unable: &[(&str, &str)]) {
    let reasons = unable.iter().map(|(name, reason)| format!("{name}={reason}"));
    let python = reasons.fold(python, |python, reason| python.arg("--unable").arg(reason));
    let finished = python.in_a_fork().run().success();
    let skipped = finished.stdout.lines().filter_map(|line| line.strip_prefix("not-applicable "));
    let skipped: BTreeSet<_> = skipped.filter_map(|rest| rest.split(':').next()).collect();
    let expected = not_applicable(tensorflow).iter().chain(unable.iter().map(|(name, _)| name));
    if skipped != expected.copied().collect() {
        finished.fail("other cases than expected are not applicable");
    }
    let passed = finished.done().len();
    assert!(passed > 40, "only {passed} cases have run");
    let summary = format!("{passed} passed, 0 failed, {} not applicable", skipped.len());
    finished.must_end_with(&summary);
    println!("{what} on {}: {summary}", tensorflow.version());
}
