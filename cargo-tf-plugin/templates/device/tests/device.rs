//! The device through TensorFlow's C tables, in this process and without TensorFlow.

use template_plugin::{TemplatePluginPlatform, add};

// A test for each of some 100 questions that TensorFlow asks of a device: memory, copies, order, events, threads.
// And some 60 more in TensorFlow, from Python and in C, which `cargo tf-plugin test` runs.
tf_plugin_testing::device::conformance!(TemplatePluginPlatform);

#[test]
fn numbers_are_added() {
    assert_eq!(add(1.0_f32, 0.5), 1.5);
    assert_eq!(add(i64::MAX, 1), i64::MIN, "integers wrap");
}
