//! Tests the device through TensorFlow's C tables, in process and without TensorFlow.

use template_plugin::TemplatePluginPlatform;

// About 100 tests of what TensorFlow requires of a device: memory, copies, order, events, threads.
// `cargo tf-plugin test` runs more in TensorFlow, from Python and in C.
tf_plugin_testing::device::conformance!(TemplatePluginPlatform);
