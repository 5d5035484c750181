//! Tests the device through TensorFlow's C tables, in process and without TensorFlow.

use template_plugin::{TemplatePluginPlatform, add};

// About 100 tests of what TensorFlow requires of a device: memory, copies, order, events, threads.
// `cargo tf-plugin test` runs more in TensorFlow, from Python and in C.
tf_plugin_testing::device::conformance!(TemplatePluginPlatform);

#[test]
fn numbers_are_added() {
    assert_eq!(add(1.0_f32, 0.5), 1.5);
    assert_eq!(add(i64::MAX, 1), i64::MIN, "integers wrap");
}
