//! Tests the GPU through TensorFlow's C tables, in process and without TensorFlow.

use se_plugin::Platform as _;
use template_plugin::TemplatePluginPlatform;

// About 100 tests of what TensorFlow requires of a device: memory, copies, order, events, threads. Without a GPU they are
// skipped. `cargo tf-plugin test` runs more in TensorFlow, from Python and in C.
tf_plugin_testing::device::conformance!(TemplatePluginPlatform);

#[test]
fn there_is_a_gpu() {
    // The error says what is missing. A driver for the CPU, such as PoCL, is used if a variable names it:
    // TEMPLATE_PLUGIN_DEVICE_NAME=pthread.
    let opened = TemplatePluginPlatform::new().and_then(|platform| platform.open(0));
    assert!(opened.is_ok(), "{}", opened.unwrap_err());
}
