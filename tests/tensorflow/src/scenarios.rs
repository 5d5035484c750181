//! Runs `tests/python/scenarios.py` and judges what it says.

use crate::Plugin;
use crate::python::Python;
use cargo_tf_plugin::TensorFlow;

const SCRIPT: &str = "python/scenarios.py";

/// The script of scenarios on a plugin of this project, below `root`.
pub fn python(tensorflow: &TensorFlow, plugin: &'static str, root: &str) -> Python {
    let library = Plugin::of(plugin).path();
    Python::new(tensorflow, SCRIPT).arg("--plugin").arg(library).args(["--root", root])
}

/// Runs all cases in [`python`]. All must pass except for those that this TensorFlow cannot do with any plugin.
///
/// # Panics
/// When a case fails, or others than expected are left out.
#[track_caller]
pub fn run(tensorflow: &TensorFlow, python: Python) {
    let finished = python.in_a_fork().run().success();
    let skipped = finished.stdout.lines().filter_map(|line| line.strip_prefix("not-applicable "));
    // Keras 2 writes these two with libraries that know local paths only.
    let is_old = tensorflow.major_minor() < (2, 16);
    let expected: &[&str] = if is_old { &["keras_archive", "keras_weights"] } else { &[] };
    if !skipped.eq(expected.iter().copied()) {
        finished.fail("other cases than expected are not applicable");
    }
    assert!(finished.done().len() >= 10, "few cases have run: {}", finished.stdout);
}
