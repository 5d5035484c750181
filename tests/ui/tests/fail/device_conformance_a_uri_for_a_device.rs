//! A device needs no directory.

se_plugin::conformance!(tf_plugin_ui_tests::device::P, "mem://box/");

fn main() {}
