//! A device needs no directory.

tf_plugin_testing::device::conformance!(tf_plugin_ui_tests::device::P, "mem://box/");

fn main() {}
