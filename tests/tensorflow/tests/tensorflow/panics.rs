//! A filesystem that panics in each of its operations, in real TensorFlow: every panic becomes an error
//! that says what and where, and the process goes on.

use cargo_tf_plugin::TensorFlow;
use std::collections::BTreeSet;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{Plugin, each_tensorflow, script};

each_tensorflow!(every_operation);

/// The cases of `tests/tensorflow/python/panics.py` besides the operations of the header.
const EXTRA: &[&str] = &["content", "drop", "payload", "display"];

/// The operations of open files.
const FILE_OPERATIONS: &[&str] = &["read", "append", "tell", "flush", "sync", "close"];

fn every_operation(tensorflow: &TensorFlow) {
    let source = script("tensorflow/fixtures/panicfs/src/lib.rs");
    let finished = Python::new(tensorflow, "tensorflow/python/panics.py")
        .arg(Plugin::of("panicfs").path())
        .arg(source)
        .in_a_fork()
        .run()
        .success();

    // None is forgotten: what was tried and what cannot be reached are all operations that there are.
    let mut tried = BTreeSet::new();
    for line in finished.stdout.lines() {
        let name = line.strip_prefix("ok ").or_else(|| line.strip_prefix("unreachable "));
        let name = name.unwrap_or_else(|| finished.fail(&format!("an odd line: {line}")));
        assert!(tried.insert(name), "{name} was tried twice");
    }
    let operations = tf_fs_plugin::Operations::NAMES.iter().map(|(name, _)| *name);
    let all: BTreeSet<&str> =
        operations.chain(FILE_OPERATIONS.iter().copied()).chain(EXTRA.iter().copied()).collect();
    assert_eq!(tried, all);

    // Where TensorFlow cannot be told, the log is.
    for slot in [
        "translate_name",
        "random access file cleanup",
        "writable file cleanup",
        "memory region cleanup",
    ] {
        let start = format!("] plugin panicked in `{slot}` at ");
        let line = finished.stderr.lines().find(|line| line.contains(&start));
        let line = line.unwrap_or_else(|| finished.fail(&format!("no line about {slot}")));
        assert!(line.contains("panicfs/src/lib.rs:") && line.contains("requested it"), "{line}");
    }
}
